//! Sends spans to a collector, some at a time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use registry_core::trace::SpanData;
use reqwest::{
    Client, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::sync::{mpsc, oneshot};

use super::{TraceSettings, otlp};

/// So many spans go into one request.
const BATCH: usize = 512;
/// How long a span waits for others.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a request is tried that the collector could not take, and the pause before the next try.
const TRIES: u32 = 3;
const AGAIN: Duration = Duration::from_millis(500);

pub(super) enum Message {
    Span(Box<SpanData>),
    Flush(oneshot::Sender<()>),
}

pub(super) struct Exporter {
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
    timeout: Duration,
    service: String,
    dropped: Arc<AtomicU64>,
    /// Whether the last request failed, which is logged once.
    failing: bool,
}

impl Exporter {
    pub(super) fn new(settings: &TraceSettings, dropped: Arc<AtomicU64>) -> Result<Self, String> {
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
        let client = toolrack_http::build_client(Client::builder).map_err(|error| error.to_string())?;
        let (timeout, service) = (settings.timeout, settings.service.clone());
        Ok(Self { client, endpoint, headers, timeout, service, dropped, failing: false })
    }

    /// Sends until nobody has a span any more.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<Message>) {
        let (mut spans, mut flushed) = (Vec::new(), Vec::new());
        let mut messages = Vec::new();
        while waiting.recv_many(&mut messages, BATCH).await > 0 {
            let deadline = tokio::time::Instant::now() + PAUSE;
            loop {
                for message in messages.drain(..) {
                    match message {
                        Message::Span(span) => spans.push(*span),
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
                self.send(&std::mem::take(&mut spans)).await;
            }
            for done in flushed.drain(..) {
                // Whoever waited may have gone away.
                let _ = done.send(());
            }
        }
    }

    async fn send(&mut self, spans: &[SpanData]) {
        let body = otlp::request(&self.service, spans);
        let mut sent = Ok(());
        for number in 0..TRIES {
            if number > 0 {
                tokio::time::sleep(AGAIN * number).await;
            }
            let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone());
            sent = match request.timeout(self.timeout).body(body.clone()).send().await {
                Ok(response) if response.status().is_success() => Ok(()),
                // As the protocol says, only these come to be taken later.
                Ok(response) if matches!(response.status().as_u16(), 429 | 502..=504) => {
                    Err(format!("status {}", response.status()))
                }
                Ok(response) => {
                    sent = Err(format!("status {}", response.status()));
                    break;
                }
                Err(error) => Err(cause_of(&error)),
            };
            if sent.is_ok() {
                break;
            }
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "spans_dropped: the collector takes them too slowly");
        }
        match sent {
            Ok(()) => self.failing = false,
            Err(cause) if !self.failing => {
                self.failing = true;
                tracing::warn!(cause, spans = spans.len(), "spans_not_taken");
            }
            Err(_) => {}
        }
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
