//! An answer of the model on its way: pieces out of a stream, a whole reply, or the demo model.

use std::{collections::VecDeque, time::Duration};

use serde_json::{Value, json};
use toolrack_apis::{
    openai::{self, Object, Piece},
    sse::SseDecoder,
};

use super::{
    demo,
    upstream::{UpstreamError, cause_of},
};

/// How long the end of a stream is waited for once the model has finished.
const AFTERWARDS: Duration = Duration::from_secs(5);
/// The largest answer that is read, in bytes. A model that writes more does not come to an end.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// An answer on its way.
#[derive(Debug)]
pub struct Answer {
    source: Source,
    inbox: Inbox,
    /// How many bytes have come.
    size: usize,
}

/// What has come of an answer.
#[derive(Debug, Default)]
struct Inbox {
    ready: VecDeque<Result<Piece, UpstreamError>>,
    /// The model has finished: only the usage may still come.
    finished: bool,
    /// The server has said that nothing more comes.
    done: bool,
}

#[derive(Debug)]
enum Source {
    Http { response: reqwest::Response, body: Body, idle_timeout: Duration },
    Demo,
    Ended,
}

#[derive(Debug)]
enum Body {
    Events(SseDecoder),
    Whole(Vec<u8>),
}

impl Answer {
    /// What a server answers to a request that asked for a stream or not. What it is counts more than what was asked for.
    pub(super) fn of(response: reqwest::Response, streamed: bool, idle_timeout: Duration) -> Self {
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let body = match kind.unwrap_or_default() {
            kind if kind.starts_with("text/event-stream") => Body::Events(SseDecoder::default()),
            kind if streamed && !kind.starts_with("application/json") && !kind.starts_with("text/html") => {
                Body::Events(SseDecoder::default())
            }
            _ => Body::Whole(Vec::new()),
        };
        Self { source: Source::Http { response, body, idle_timeout }, inbox: Inbox::default(), size: 0 }
    }

    /// What the built-in demo answers.
    pub(super) fn demo(request: &Object, tools: Option<&str>) -> Self {
        let messages =
            request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let definitions: Vec<Value> =
            tools.and_then(|tools| serde_json::from_str(tools).ok()).unwrap_or_default();
        let text = demo::answer(messages, &definitions);
        let prompt: usize = messages.iter().map(|message| message.to_string().len().div_ceil(4)).sum();
        let pieces: Vec<Piece> = text.split_inclusive(' ').map(|word| Piece::Text(word.to_owned())).collect();
        let usage = json!({
            "prompt_tokens": prompt, "completion_tokens": pieces.len(), "total_tokens": prompt + pieces.len(),
        });
        let ending = [Piece::Finish("stop".into()), Piece::Usage(usage)];
        Self { source: Source::Demo, inbox: Inbox::of(pieces.into_iter().chain(ending)), size: 0 }
    }

    /// An answer that is known already: the text that a server could not read itself.
    pub(crate) fn recovered(text: String) -> Self {
        let pieces = [Piece::Text(text), Piece::Finish("stop".into())];
        Self { source: Source::Ended, inbox: Inbox::of(pieces), size: 0 }
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Piece, UpstreamError>> {
        loop {
            if let Some(piece) = self.inbox.ready.pop_front() {
                if matches!(self.source, Source::Demo) {
                    // Without a breath between its pieces the demo would show nothing of streaming.
                    tokio::time::sleep(Duration::from_millis(4)).await;
                }
                return Some(piece);
            }
            if self.inbox.done {
                // Whether the server closes the connection is its own affair.
                self.source = Source::Ended;
            }
            let Source::Http { response, body, idle_timeout } = &mut self.source else { return None };
            let idle = if self.inbox.finished { (*idle_timeout).min(AFTERWARDS) } else { *idle_timeout };
            match tokio::time::timeout(idle, response.chunk()).await {
                Err(_) | Ok(Err(_)) if self.inbox.finished => self.end(),
                Err(_) => return self.fail(UpstreamError::Stalled(idle)),
                Ok(Err(error)) => return self.fail(UpstreamError::Interrupted(cause_of(&error))),
                Ok(Ok(Some(bytes))) => {
                    self.size += bytes.len();
                    if self.size > MAX_ANSWER {
                        return self.fail(UpstreamError::Failed("its answer is over 64 MiB".into()));
                    }
                    match body {
                        Body::Whole(all) => all.extend_from_slice(&bytes),
                        Body::Events(decoder) => {
                            let inbox = &mut self.inbox;
                            if decoder.push(&bytes, &mut |data| inbox.read_event(&data)).is_err() {
                                let what = "a line of its stream is over 16 MiB";
                                return self.fail(UpstreamError::Failed(what.into()));
                            }
                        }
                    }
                }
                Ok(Ok(None)) => self.end(),
            }
        }
    }

    fn fail(&mut self, error: UpstreamError) -> Option<Result<Piece, UpstreamError>> {
        self.source = Source::Ended;
        Some(Err(error))
    }

    /// The server has closed the stream.
    fn end(&mut self) {
        let Source::Http { body, .. } = std::mem::replace(&mut self.source, Source::Ended) else { return };
        match body {
            Body::Events(mut decoder) => {
                decoder.finish(&mut |data| self.inbox.read_event(&data));
            }
            Body::Whole(bytes) => match openai::read_json(&String::from_utf8_lossy(&bytes)) {
                Ok(answer) => {
                    self.inbox.finished = true;
                    self.inbox.take(openai::read_reply(answer));
                }
                Err(error) => self
                    .inbox
                    .ready
                    .push_back(Err(UpstreamError::Failed(format!("its reply is not JSON: {error}")))),
            },
        }
        if !self.inbox.finished && !self.inbox.ready.iter().any(Result::is_err) {
            let error = UpstreamError::Interrupted("the stream ended before the answer did".into());
            self.inbox.ready.push_back(Err(error));
        }
    }
}

impl Inbox {
    /// An answer that is whole.
    fn of(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self { ready: pieces.into_iter().map(Ok).collect(), finished: true, done: true }
    }

    /// One event of a stream. What is no JSON is skipped: a broken event is not worth the rest of the answer.
    fn read_event(&mut self, data: &str) {
        if data.trim() == "[DONE]" {
            (self.finished, self.done) = (true, true);
            return;
        }
        match openai::read_json(data) {
            Ok(chunk) => self.take(openai::read_chunk(chunk)),
            Err(error) => tracing::warn!(%error, data, "the model server sent an event that is not JSON"),
        }
    }

    fn take(&mut self, read: Result<Vec<Piece>, String>) {
        match read {
            Ok(pieces) => {
                self.finished |= pieces.iter().any(|piece| matches!(piece, Piece::Finish(_)));
                self.ready.extend(pieces.into_iter().map(Ok));
            }
            Err(message) => {
                (self.finished, self.done) = (true, true);
                self.ready.push_back(Err(UpstreamError::Failed(message)));
            }
        }
    }
}
