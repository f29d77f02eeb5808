//! An answer of the model on its way: of a server, or of the demo model.

use std::{collections::VecDeque, pin::Pin, time::Duration};

use axum::body::Bytes;
use registry_core::UserPlace;
use tokio::time::{Instant, Sleep, sleep};
use toolrack_apis::{Decode, Failure, FinishReason, Omission, Piece, Progress, Request, Usage};

use super::{
    context::{Cut, SentSize},
    demo,
    error::UpstreamError,
    http::cause_of,
};
use crate::beside::beside;

/// How long the end of a stream is waited for once the model has finished.
const AFTERWARDS: Duration = Duration::from_secs(5);
/// The maximum size of an answer, in bytes. A model that writes more does not come to an end.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// The longest time that a server may be silent: longer ones are not told from it.
const LONGEST_SILENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How much of what has come is decoded at once, in bytes. The server may have sent far more, which waits in one piece.
const AT_ONCE: usize = 8 * 1024;
/// How long the demo model rests between its words, without which it would show nothing of streaming.
const REST: Duration = Duration::from_millis(4);

/// An answer on its way.
#[derive(Debug)]
pub struct Answer {
    source: Source,
    /// The size of the request, and whether the server has cut it.
    sent: Option<SentSize>,
    cut: Option<Cut>,
    /// What of the request the server's API cannot say.
    omissions: Vec<Omission>,
    /// Its place at the server, until its end.
    place: Option<UserPlace>,
}

#[derive(Debug)]
enum Source {
    Http(Box<HttpAnswer>),
    Demo(VecDeque<Piece>),
    Known(Vec<Piece>),
    Ended,
}

#[derive(Debug)]
struct HttpAnswer {
    response: reqwest::Response,
    /// `None` at the end.
    decoder: Option<Box<dyn Decode>>,
    idle_timeout: Duration,
    /// Kept for all that is waited for: one for each token would take longer than to read it.
    timeout: Pin<Box<Sleep>>,
    /// What has come and is not decoded yet.
    undecoded: Bytes,
    /// How many bytes have come.
    size: usize,
}

impl Answer {
    pub(super) fn of(response: reqwest::Response, decoder: Box<dyn Decode>, idle_timeout: Duration) -> Self {
        let idle_timeout = idle_timeout.min(LONGEST_SILENCE);
        let (timeout, undecoded) = (Box::pin(sleep(idle_timeout)), Bytes::new());
        let decoder = Some(decoder);
        let http = HttpAnswer { response, decoder, idle_timeout, timeout, undecoded, size: 0 };
        Self::new(Source::Http(Box::new(http)))
    }

    /// With what is known of the request that it answers.
    pub(super) fn to(self, sent: SentSize, omissions: Vec<Omission>) -> Self {
        Self { sent: Some(sent), omissions, ..self }
    }

    fn new(source: Source) -> Self {
        Self { source, sent: None, cut: None, omissions: Vec::new(), place: None }
    }

    /// With its place at the server.
    pub(super) fn at(self, place: Option<UserPlace>) -> Self {
        Self { place, ..self }
    }

    /// Whether the server has read less than half of what it was sent, as its count of tokens says. Known when the answer is at its end.
    pub(crate) fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// What of the request was not sent as it was.
    pub(crate) fn omissions(&self) -> &[Omission] {
        &self.omissions
    }

    /// What the demo model answers.
    pub(super) fn demo(request: &Request, definitions: &str) -> Self {
        let text = demo::answer(request, definitions);
        let mut pieces: VecDeque<Piece> =
            text.split_inclusive(' ').map(|word| Piece::Text(word.to_owned())).collect();
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let input = request.messages.iter().map(|message| message.plain_text().len().div_ceil(4)).sum();
        let usage = Usage { input: count(input), output: count(pieces.len()), ..Usage::default() };
        pieces.extend([Piece::Finish(FinishReason::Stop), Piece::Usage(usage)]);
        Self::new(Source::Demo(pieces))
    }

    /// An answer that is known already: the text that a server could not read itself.
    pub(crate) fn recovered(text: String) -> Self {
        Self::new(Source::Known(vec![Piece::Text(text), Piece::Finish(FinishReason::Stop)]))
    }

    /// Waits for the next pieces and appends them; whether there may be more.
    ///
    /// # Errors
    /// When the server fails or falls silent. The pieces that came before it are appended all the same.
    pub async fn next(&mut self, pieces: &mut Vec<Piece>) -> Result<bool, UpstreamError> {
        let before = pieces.len();
        let more = match &mut self.source {
            Source::Ended => Ok(false),
            Source::Known(known) => {
                pieces.append(known);
                Ok(false)
            }
            Source::Demo(words) => {
                tokio::time::sleep(REST).await;
                pieces.extend(words.pop_front());
                Ok(!words.is_empty())
            }
            Source::Http(answer) => answer.next(pieces).await,
        };
        for piece in pieces.iter().skip(before) {
            if let (Piece::Usage(usage), Some(sent)) = (piece, &self.sent) {
                self.cut = sent.compare(usage);
            }
        }
        if !matches!(more, Ok(true)) {
            // Whether the server closes the connection is its own affair.
            (self.source, self.place) = (Source::Ended, None);
        }
        more
    }
}

impl HttpAnswer {
    async fn next(&mut self, pieces: &mut Vec<Piece>) -> Result<bool, UpstreamError> {
        let failed = |failure| UpstreamError::Failed(Box::new(failure));
        if self.undecoded.is_empty() && !self.receive().await? {
            let is_whole = self.progress() != Progress::Answering;
            return match self.finish(pieces).await {
                Err(_) if is_whole => Ok(false),
                finished => finished.map(|()| false).map_err(failed),
            };
        }
        let bytes = self.undecoded.split_to(self.undecoded.len().min(AT_ONCE));
        self.size += bytes.len();
        if self.size > MAX_ANSWER {
            return Err(UpstreamError::failed("its answer is over 64 MiB"));
        }
        let Some(decoder) = &mut self.decoder else { return Ok(false) };
        decoder.push(&bytes, pieces).map_err(failed)?;
        Ok(decoder.progress() != Progress::Done)
    }

    /// Takes the end of the answer, beside the runtime: one that is not streamed is read only then.
    async fn finish(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let Some(mut decoder) = self.decoder.take() else { return Ok(()) };
        let finished = beside(self.size, move || {
            let mut last = Vec::new();
            let finished = decoder.finish(&mut last);
            (finished, last)
        });
        let stopped = || (Err(Failure::of_upstream("this server is being stopped")), Vec::new());
        let (finished, mut last) = finished.await.unwrap_or_else(stopped);
        pieces.append(&mut last);
        finished
    }

    fn progress(&self) -> Progress {
        self.decoder.as_ref().map_or(Progress::Done, |decoder| decoder.progress())
    }

    /// Waits for more bytes; whether there are any.
    async fn receive(&mut self) -> Result<bool, UpstreamError> {
        let is_finished = self.progress() == Progress::Finished;
        let idle = if is_finished { self.idle_timeout.min(AFTERWARDS) } else { self.idle_timeout };
        self.timeout.as_mut().reset(Instant::now() + idle);
        let received = tokio::select! {
            biased;
            received = self.response.chunk() => Some(received),
            () = &mut self.timeout => None,
        };
        match received {
            // Only the usage may be missing.
            None | Some(Err(_)) if is_finished => Ok(false),
            None => Err(UpstreamError::Stalled(idle)),
            Some(Err(error)) => Err(UpstreamError::Interrupted(cause_of(&error))),
            Some(Ok(None)) => Ok(false),
            Some(Ok(Some(bytes))) => {
                self.undecoded = bytes;
                Ok(true)
            }
        }
    }
}
