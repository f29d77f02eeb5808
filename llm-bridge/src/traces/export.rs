//! Sends spans to a collector, some at a time.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::body::Bytes;
use registry_core::trace::SpanData;
use reqwest::{
    Client, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use tokio::sync::{mpsc, oneshot};

use super::{Backlog, TraceSettings, otlp};

/// So many spans go into one request.
const BATCH: usize = 512;
/// How long a span waits for others.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a request is tried that the collector could not take, and the pause before the next try.
const TRIES: u32 = 3;
const AGAIN: Duration = Duration::from_millis(500);

pub(super) enum Message {
    /// With about how many bytes it takes.
    Span(Box<SpanData>, usize),
    Flush(oneshot::Sender<()>),
}

pub(super) struct Exporter {
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
    timeout: Duration,
    service: String,
    backlog: Arc<Backlog>,
    /// How many spans the collector has not got since it was said that it does not take them; `None` while it takes them.
    lost: Option<u64>,
}

impl Exporter {
    pub(super) fn new(settings: &TraceSettings, backlog: Arc<Backlog>) -> Result<Self, String> {
        let endpoint =
            Url::parse(&settings.endpoint).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let endpoint = endpoint.ok_or_else(|| {
            format!(
                "traces.endpoint: `{}` is no HTTP address; write one such as http://127.0.0.1:4318",
                settings.endpoint
            )
        })?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &settings.headers {
            let read = || Some((name.parse::<HeaderName>().ok()?, value.parse::<HeaderValue>().ok()?));
            let (name, mut value) = read().ok_or_else(|| format!("traces.headers: `{name}` is no header"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        // Elsewhere is not where the operator wants them.
        let client = toolrack_http::build_client(|| Client::builder().redirect(redirect::Policy::none()));
        let client = client.map_err(|error| error.to_string())?;
        let (timeout, service) = (settings.timeout, settings.service.clone());
        Ok(Self { client, endpoint, headers, timeout, service, backlog, lost: None })
    }

    /// Sends until nobody has a span any more.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<Message>) {
        let (mut spans, mut bytes, mut flushed) = (Vec::new(), 0, Vec::new());
        let mut messages = Vec::new();
        while waiting.recv_many(&mut messages, BATCH).await > 0 {
            let deadline = tokio::time::Instant::now() + PAUSE;
            loop {
                for message in messages.drain(..) {
                    match message {
                        Message::Span(span, size) => {
                            spans.push(*span);
                            bytes += size;
                        }
                        Message::Flush(done) => flushed.push(done),
                    }
                }
                if spans.len() >= BATCH || !flushed.is_empty() {
                    break;
                }
                match tokio::time::timeout_at(deadline, waiting.recv_many(&mut messages, BATCH)).await {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => break,
                }
            }
            if !spans.is_empty() {
                self.send(std::mem::take(&mut spans)).await;
                self.backlog.left(std::mem::take(&mut bytes));
            }
            for done in flushed.drain(..) {
                // Whoever waited may have gone away.
                let _ = done.send(());
            }
        }
    }

    async fn send(&mut self, spans: Vec<SpanData>) {
        let (service, count) = (self.service.clone(), spans.len());
        let made = tokio::task::spawn_blocking(move || Bytes::from(otlp::request(&service, &spans))).await;
        let sent = match made {
            Ok(body) => self.post(body).await,
            Err(error) => Err(error.to_string()),
        };
        let dropped = self.backlog.dropped.swap(0, Ordering::Relaxed);
        let lost = dropped + if sent.is_err() { u64::try_from(count).unwrap_or(u64::MAX) } else { 0 };
        let cause = sent.err().unwrap_or_else(|| "it takes them too slowly".to_owned());
        match (&mut self.lost, lost) {
            (None, 0) => {}
            // Said once, however long it goes on.
            (None, lost) => {
                tracing::warn!(cause, lost, "spans_not_taken");
                self.lost = Some(0);
            }
            (Some(since), 1..) => *since = since.saturating_add(lost),
            (Some(since), 0) => {
                tracing::info!(lost = *since, "spans_taken_again");
                self.lost = None;
            }
        }
    }

    /// Sends a request, as often as it may be taken later. Nothing of the answers is read but their status.
    async fn post(&self, body: Bytes) -> Result<(), String> {
        let mut fault = String::new();
        for number in 0..TRIES {
            if number > 0 {
                tokio::time::sleep(AGAIN * number).await;
            }
            let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone());
            fault = match request.timeout(self.timeout).body(body.clone()).send().await {
                Ok(response) if response.status().is_success() => return Ok(()),
                // As the protocol says, only these come to be taken later.
                Ok(response) if matches!(response.status().as_u16(), 429 | 502..=504) => {
                    format!("status {}", response.status())
                }
                Ok(response) => return Err(format!("status {}", response.status())),
                Err(error) => cause_of(&error),
            };
        }
        Err(fault)
    }
}

/// What went wrong, without the address.
fn cause_of(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
