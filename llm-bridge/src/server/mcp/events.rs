//! The last events of a user's streams, so that a client whose connection broke off gets what it has missed, the answer too.

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::stream;
use parking_lot::Mutex;
use rmcp::{
    model::JsonRpcMessage,
    transport::streamable_http_server::session::{
        EventId, EventStore, EventStoreError, EventStream, ServerSseMessage,
    },
};
use tokio::{sync::watch, time::Instant};

/// How many events are kept of a user's streams.
const MAX_EVENTS: usize = 256;
/// How many bytes of messages are kept of a user's streams.
const MAX_BYTES: usize = 4 << 20;
/// How long an event is kept.
const KEPT: Duration = Duration::from_secs(300);
/// How many streams of a user are known. One is known as long as it is not over, so that its next event has the next number.
const MAX_STREAMS: usize = 4096;

/// The events of one user.
pub(super) struct Events {
    kept: Arc<Mutex<Kept>>,
    /// Told of each event.
    added: watch::Sender<()>,
}

#[derive(Default)]
struct Kept {
    /// In the order in which they were sent.
    events: VecDeque<Event>,
    bytes: usize,
    streams: HashMap<Arc<str>, Stream>,
}

struct Event {
    stream: Arc<str>,
    number: u64,
    message: ServerSseMessage,
    bytes: usize,
    at: Instant,
}

struct Stream {
    /// The number of the event that was sent last, from 1.
    last: u64,
    /// Whether the answer was.
    is_over: bool,
    at: Instant,
}

/// What follows an event.
enum Next {
    Event(u64, ServerSseMessage),
    /// Nothing yet.
    Later,
    /// Nothing any more, or it is not kept.
    Over,
}

impl Default for Events {
    fn default() -> Self {
        Self { kept: Arc::default(), added: watch::Sender::new(()) }
    }
}

impl Kept {
    fn add(&mut self, stream: &str, message: &ServerSseMessage, bytes: usize) -> EventId {
        let now = Instant::now();
        if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(stream) {
            let oldest = self.streams.iter().min_by_key(|(_, stream)| (!stream.is_over, stream.at));
            if let Some(name) = oldest.map(|(name, _)| Arc::clone(name)) {
                self.streams.remove(&name);
            }
        }
        let name =
            self.streams.get_key_value(stream).map_or_else(|| stream.into(), |(name, _)| Arc::clone(name));
        let known = self.streams.entry(Arc::clone(&name));
        let known = known.or_insert(Stream { last: 0, is_over: false, at: now });
        known.last += 1;
        known.at = now;
        let message_sent = message.message.as_deref();
        known.is_over = matches!(message_sent, Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)));
        let number = known.last;
        let id = format!("{number}-{name}");
        let mut message = message.clone();
        message.event_id = Some(id.clone());
        self.events.push_back(Event { stream: name, number, message, bytes, at: now });
        self.bytes += bytes;
        self.forget(now);
        id
    }

    fn forget(&mut self, now: Instant) {
        while let Some(first) = self.events.front()
            && (self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES || now - first.at >= KEPT)
        {
            self.bytes -= first.bytes;
            self.events.pop_front();
        }
        self.streams.retain(|_, stream| !stream.is_over || now - stream.at < KEPT);
    }

    fn after(&self, stream: &str, number: u64) -> Next {
        let Some(known) = self.streams.get(stream) else { return Next::Over };
        let next = self.events.iter().find(|event| *event.stream == *stream && event.number > number);
        match next {
            // One that is left out would be missed.
            Some(event) if event.number == number + 1 => Next::Event(event.number, event.message.clone()),
            None if known.last == number && !known.is_over => Next::Later,
            _ => Next::Over,
        }
    }
}

#[async_trait]
impl EventStore for Events {
    async fn store_event(&self, stream: &str, event: &ServerSseMessage) -> Result<EventId, EventStoreError> {
        let mut bytes = Counter(0);
        if let Some(message) = &event.message {
            serde_json::to_writer(&mut bytes, message.as_ref())?;
        }
        let id = self.kept.lock().add(stream, event, bytes.0);
        self.added.send_replace(());
        Ok(id)
    }

    /// Ends with the answer, and until then waits for what comes.
    async fn replay_events_after(&self, last: &str) -> Result<EventStream, EventStoreError> {
        let (number, stream) = last.split_once('-').ok_or("it is no id of an event")?;
        let (number, stream) = (number.parse::<u64>()?, Arc::<str>::from(stream));
        if !self.kept.lock().streams.contains_key(&stream) {
            return Err("its stream is not known any more".into());
        }
        let (kept, mut added) = (Arc::clone(&self.kept), self.added.subscribe());
        added.mark_changed();
        let from = (kept, added, stream, number);
        let events = stream::unfold(from, |(kept, mut added, stream, number)| async move {
            loop {
                let next = kept.lock().after(&stream, number);
                match next {
                    Next::Event(number, event) => return Some((event, (kept, added, stream, number))),
                    Next::Over => return None,
                    Next::Later => added.changed().await.ok()?,
                }
            }
        });
        Ok(Box::pin(events))
    }
}

/// Counts what is written.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use serde_json::{Value, json};

    use super::*;

    fn message(value: Value) -> ServerSseMessage {
        ServerSseMessage::from_message(serde_json::from_value(value).unwrap())
    }

    fn progress(text: &str) -> ServerSseMessage {
        message(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params":
            {"progressToken": 1, "progress": 1.0, "message": text}}))
    }

    fn answer() -> ServerSseMessage {
        message(json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
    }

    async fn ids_after(events: &Events, id: &str) -> Vec<String> {
        let replayed = events.replay_events_after(id).await.unwrap();
        replayed.map(|event| event.event_id.unwrap()).collect().await
    }

    #[tokio::test]
    async fn b7_what_came_after_an_event_is_sent_again_up_to_the_answer_and_nothing_twice() {
        let events = Events::default();
        let mut ids = Vec::new();
        for event in [ServerSseMessage::retry(Duration::from_secs(1)), progress("a"), answer()] {
            ids.push(events.store_event("call", &event).await.unwrap());
            events.store_event("other", &progress("b")).await.unwrap();
        }
        assert_eq!(ids_after(&events, &ids[0]).await, ids[1..]);
        assert_eq!(ids_after(&events, &ids[1]).await, ids[2..]);
        assert!(ids_after(&events, &ids[2]).await.is_empty());
        for unknown in ["1-nothing", "x", "x-call"] {
            assert!(events.replay_events_after(unknown).await.is_err(), "{unknown}");
        }
    }

    #[tokio::test]
    async fn b7_a_stream_that_is_not_over_goes_on() {
        let events = Events::default();
        let first = events.store_event("call", &progress("a")).await.unwrap();
        let mut resumed = events.replay_events_after(&first).await.unwrap();
        assert!(resumed.next().now_or_never().is_none());
        events.store_event("call", &answer()).await.unwrap();
        assert_eq!(resumed.next().await.unwrap().event_id.as_deref(), Some("2-call"));
        assert!(resumed.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn b7_so_many_events_are_kept_for_so_long_and_a_gap_is_no_answer() {
        let events = Events::default();
        let first = events.store_event("call", &progress("a")).await.unwrap();
        let large = progress(&"x".repeat(MAX_BYTES / 4));
        for _ in 0..5 {
            events.store_event("call", &large).await.unwrap();
        }
        assert!(events.kept.lock().bytes <= MAX_BYTES);
        assert!(ids_after(&events, &first).await.is_empty(), "one of them is not kept any more");
        for number in 0..2 * MAX_STREAMS {
            events.store_event(&number.to_string(), &answer()).await.unwrap();
        }
        assert!(events.kept.lock().events.len() <= MAX_EVENTS);
        assert!(events.kept.lock().streams.len() <= MAX_STREAMS);
        tokio::time::advance(KEPT).await;
        let last = events.store_event("call", &answer()).await.unwrap();
        assert_eq!(events.kept.lock().events.len(), 1);
        assert!(ids_after(&events, &last).await.is_empty());
    }
}
