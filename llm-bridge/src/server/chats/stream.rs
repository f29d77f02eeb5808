//! `GET /api/chats/{id}/turn`: the events of the running turn, from any place.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use registry_core::store::ChatMessage;
use serde::Deserialize;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Access, NOT_FOUND,
    message::{Shown, Status},
    readers::Reader,
    reading,
    running::{Live, answer_of, frame},
};
use crate::{
    beside::beside,
    server::{
        App,
        callers::identity::Identity,
        openapi::Operation,
        requests::{api_error::ApiError, name::Name, query::QueryParameters},
    },
};

/// How often a silent stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
const ALIVE: &[u8] = b": alive\n\n";
/// How often a turn on another server is looked at.
const POLL: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    #[serde(default)]
    after: Option<u64>,
}

pub(super) fn operation() -> Operation {
    Operation::new(Method::GET, "Chats", "chat_turn_events", "The events of the running turn of a chat")
        .details("Chunks of chat completions, then `done` with the whole message; `snapshot` with the message as it is now stands for chunks that are not there.")
        .path("id", "The chat's id.")
        .query("after", "The position behind which the events begin: the `id` of an event, or `position` of the turn.")
        .header("last-event-id", "The same, as browsers send it.")
        .answers_with(200, "text/event-stream", "The events.")
        .answers_nothing(204, "No turn runs.")
        .refuses(400, "`after` is no number (`invalid_request_error`).")
        .refuses(404, NOT_FOUND)
        .refuses(429, "As many requests as may read this turn already (`too_many_requests`).")
        .refuses(503, "As much as may be is being read of the user's conversations, or of everybody's (`server_busy`).")
}

pub(super) async fn events(
    State(app): State<App>,
    access: Access,
    Name(id): Name,
    headers: HeaderMap,
    QueryParameters(Place { after }): QueryParameters<Place>,
) -> Result<Response, ApiError> {
    let chat = access.chat(&id).await?;
    let last = headers.get("last-event-id").and_then(|last| last.to_str().ok()?.trim().parse().ok());
    let after = last.or(after).unwrap_or(0);
    let running = chat.running(access.since());
    let reader = || access.turns.readers.enter(access.chat_id(&id));
    let live = access.turns.of(&access.chat_id(&id));
    // One that has ended here may be followed by one on another server.
    if let Some(live) = live.filter(|live| !live.has_ended() || running.is_none()) {
        let changes = live.watch();
        // A position of another turn of the chat.
        let after = if after > live.position() { 0 } else { after };
        let held = Held { identity: access.identity.clone(), bytes: 0, _reader: reader()? };
        let ready = VecDeque::new();
        let mut here = Here { live, changes, after, ready, is_last: false, held, closing: app.closing };
        here.take().await?;
        return Ok(response(Body::from_stream(stream::unfold(Some(here), Here::next))));
    }
    let Some(turn) = running else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let message = answer_of(&turn.id).to_owned();
    let held = Held { identity: access.identity.clone(), bytes: 0, _reader: reader()? };
    let elsewhere = Elsewhere {
        held,
        access,
        chat: id,
        message,
        claim: turn.id.clone(),
        before: None,
        silent: 0,
        closing: app.closing,
    };
    Ok(response(Body::from_stream(stream::unfold(Some(elsewhere), Elsewhere::next))))
}

fn response(body: Body) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies would hold the stream back until it is whole.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

type Sent = Result<Bytes, Infallible>;

/// What a reader has a share of, as long as it reads.
struct Held {
    identity: Identity,
    /// How much of it was counted.
    bytes: usize,
    _reader: Reader,
}

impl Held {
    /// Counts what the reader gets at once like the body of a request: it is in memory until it is read.
    fn count(&mut self, bytes: usize) -> Result<(), ApiError> {
        if bytes > self.bytes {
            self.identity.hold(bytes - self.bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }
}

/// The reader of a turn on this server.
struct Here {
    live: Arc<Live>,
    changes: watch::Receiver<u64>,
    after: u64,
    /// What is to be sent next.
    ready: VecDeque<Bytes>,
    /// Whether nothing comes behind that.
    is_last: bool,
    held: Held,
    closing: CancellationToken,
}

impl Here {
    /// Takes what has come since.
    async fn take(&mut self) -> Result<(), ApiError> {
        if let Some(piece) = self.live.behind(self.after).await {
            self.held.count(piece.frames.iter().map(Bytes::len).sum())?;
            (self.after, self.is_last) = (piece.position, piece.is_last);
            self.ready.extend(piece.frames);
        }
        Ok(())
    }

    async fn next(here: Option<Self>) -> Option<(Sent, Option<Self>)> {
        let mut here = here?;
        loop {
            if here.ready.is_empty() {
                here.changes.mark_unchanged();
                // It comes again where it has taken as much as may be.
                here.take().await.ok()?;
            }
            if let Some(bytes) = here.ready.pop_front() {
                let goes_on = !here.is_last || !here.ready.is_empty();
                return Some((Ok(bytes), goes_on.then_some(here)));
            }
            let changed = tokio::select! {
                changed = timeout(HEARTBEAT, here.changes.changed()) => changed,
                // Its end comes, unless the store is what the server waits for.
                () = here.closing.cancelled(), if here.live.has_ended() => return None,
            };
            match changed {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some((Ok(Bytes::from_static(ALIVE)), Some(here))),
            }
        }
    }
}

/// The reader of a turn on another server: what that keeps is looked at again and again. Its frames have no positions, which are those
/// of the server's log.
struct Elsewhere {
    held: Held,
    access: Access,
    chat: String,
    message: String,
    claim: String,
    before: Option<ChatMessage>,
    silent: u64,
    closing: CancellationToken,
}

impl Elsewhere {
    async fn next(reader: Option<Self>) -> Option<(Sent, Option<Self>)> {
        let mut reader = reader?;
        loop {
            // Neither the chat nor the message may be there any more. What a turn has kept at its end was kept before it gave up its claim.
            let chat = reader.access.chat(&reader.chat).await.ok()?;
            let is_running = chat.running(reader.access.since()).is_some_and(|turn| turn.id == reader.claim);
            let key = reader.access.key(&reader.chat);
            let kept = reader.access.store.chat_message(key, &reader.message).await.ok()??;
            // As it is kept, as it is sent, and as it was before.
            let bytes = reading::bytes(&kept);
            reader.held.count(3 * bytes).ok()?;
            if !is_running {
                let mut shown = beside(bytes, move || Shown::of(&kept)).await?.ok()?;
                if matches!(shown.status, Status::Running | Status::CutOff) {
                    reader.access.cut_off(vec![&mut shown]).await.ok()?;
                }
                let done = beside(bytes, move || frame(None, "done", &shown)).await?;
                return Some((Ok(done.into()), None));
            }
            // What has not changed is not read again.
            if reader.before.as_ref() != Some(&kept) {
                let read = kept.clone();
                let snapshot = beside(bytes, move || {
                    let shown = Shown { status: Status::Running, ..Shown::of(&read)? };
                    Ok::<_, ApiError>(frame(None, "snapshot", &shown))
                });
                let snapshot = snapshot.await?.ok()?;
                (reader.before, reader.silent) = (Some(kept), 0);
                return Some((Ok(snapshot.into()), Some(reader)));
            }
            reader.silent += 1;
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                () = reader.closing.cancelled() => return None,
            }
            if reader.silent.is_multiple_of(HEARTBEAT.as_secs()) {
                return Some((Ok(Bytes::from_static(ALIVE)), Some(reader)));
            }
        }
    }
}
