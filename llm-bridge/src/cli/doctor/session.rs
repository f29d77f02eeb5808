//! Asks the model short questions, each within bounds, and notes what comes.

use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::Value;
use tokio::time::{Instant, timeout};
use toolrack_apis::{
    FinishReason, Message, Passing, Piece, Provider, Request, Role, Sampling, Thinking, Usage,
};
use toolrack_dialects::{Offered, ScanOptions, dialect, parse, thinking_ends};

use crate::{
    turn::{ChatSettings, NativeCalls, could_not_read, raw_text},
    upstream::{RawQuestion, Route, UpstreamError},
};

/// The tokens of an answer in which a call is looked for: a model may think before.
pub(super) const CALL_TOKENS: u64 = 2048;
/// How much of an answer is read, in bytes.
const MAX_ANSWER: usize = 256 * 1024;
/// How many calls of an answer are read.
const MAX_CALLS: usize = 64;
/// How often, and how long apart, a server is asked again that is still loading its model.
const LOADING: (u32, Duration) = (60, Duration::from_secs(2));

/// A series of questions to one model.
pub(super) struct Session<'s> {
    pub(super) route: Route,
    /// How chats with it are conducted.
    pub(super) chat: &'s ChatSettings,
    /// How many requests were sent.
    pub(super) requests: u32,
    /// The thinking in all answers.
    pub(super) thinking: ThinkingSeen,
    /// Why the server is not asked any more: it went away.
    pub(super) gone: Option<String>,
    until: Instant,
    each: Duration,
    bar: ProgressBar,
}

/// In which form thinking was seen.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ThinkingSeen {
    /// In a field of its own.
    pub(super) in_field: bool,
    /// In the text, between delimiters.
    pub(super) in_text: bool,
    /// In the text, with an end and no beginning.
    pub(super) is_unopened: bool,
}

/// What came of a question.
#[derive(Debug, Default)]
pub(super) struct Answered {
    /// The text as the server sent it.
    pub(super) text: String,
    pub(super) reasoning: String,
    /// The calls in the fields of the API.
    pub(super) calls: NativeCalls,
    /// Whether the arguments of such a call came in pieces.
    pub(super) in_pieces: Option<bool>,
    pub(super) usage: Option<Usage>,
    /// How many pieces of text and thinking came.
    pub(super) pieces: u32,
    /// From the question to the first piece of anything.
    pub(super) first: Option<Duration>,
    /// From the question to the last piece of anything.
    pub(super) last: Duration,
    /// It reached a bound of tokens, bytes or time.
    pub(super) is_cut: bool,
    /// The server could not read what the model wrote, and said so with the text.
    pub(super) is_recovered: bool,
    /// The text begins within the model's thinking.
    pub(super) begins_thinking: bool,
    /// What the server measured itself.
    timings: Option<Value>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The server refused the request, with these words.
    Refused(UpstreamError),
    /// The server could not read what the model wrote, and gave this error in its place.
    Unread(String),
    /// It failed, or was silent.
    Failed(String),
    /// The time for all questions is over.
    Late,
}

impl<'s> Session<'s> {
    /// Questions that end after `all`; each may take a fifth of that.
    pub(super) fn new(route: Route, chat: &'s ChatSettings, all: Duration, bar: ProgressBar) -> Self {
        let (requests, thinking, gone) = Default::default();
        Self { route, chat, requests, thinking, gone, until: Instant::now() + all, each: all / 5, bar }
    }

    /// Shows what is being looked at.
    pub(super) fn look_at(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// A question without tools.
    pub(super) fn question(text: &str, max_tokens: u64) -> Request {
        Request {
            messages: vec![Message::text(Role::User, text)],
            sampling: Sampling { max_tokens: Some(max_tokens), ..Sampling::default() },
            stream: true,
            ..Request::default()
        }
    }

    /// Asks a first question, which may have to wait until the model is loaded.
    pub(super) async fn ask_first(&mut self, request: Request) -> Result<Answered, Unanswered> {
        let each = std::mem::replace(&mut self.each, Duration::MAX);
        let mut answered = self.ask(request.clone()).await;
        for _ in 0..LOADING.0 {
            let Err(Unanswered::Refused(UpstreamError::Refused { status: 503, .. })) = &answered else {
                break;
            };
            tokio::time::sleep(LOADING.1).await;
            answered = self.ask(request.clone()).await;
        }
        self.each = each;
        answered
    }

    /// Asks the chat endpoint.
    pub(super) async fn ask(&mut self, request: Request) -> Result<Answered, Unanswered> {
        self.ask_by(request, None).await
    }

    /// Asks with a prompt from the model's template.
    pub(super) async fn ask_raw(
        &mut self,
        request: Request,
        question: RawQuestion,
    ) -> Result<Answered, Unanswered> {
        self.ask_by(request, Some(question)).await
    }

    async fn ask_by(
        &mut self,
        mut request: Request,
        raw: Option<RawQuestion>,
    ) -> Result<Answered, Unanswered> {
        if let Some(why) = &self.gone {
            return Err(Unanswered::Failed(why.clone()));
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Unanswered::Late);
        }
        self.requests += 1;
        request.model = Some(self.route.model().to_owned());
        let (began, bound) = (Instant::now(), left.min(self.each));
        let begins_thinking = raw.as_ref().map_or(self.chat.thinking, |raw| raw.thinking);
        let mut answered = Answered { begins_thinking, ..Answered::default() };
        let read = timeout(bound, answered.read(&self.route, &request, raw.as_ref(), began)).await;
        match read {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                if let UpstreamError::Unreachable { .. } = error {
                    self.gone = Some(error.to_string());
                }
                let Some(raw) = error.message().and_then(raw_text) else { return Err(error.into()) };
                (answered.text, answered.is_recovered) = (raw.to_owned(), true);
            }
            Err(_) if answered.first.is_some() => answered.is_cut = true,
            Err(_) => return Err(Unanswered::Failed(format!("no answer in {} s", bound.as_secs()))),
        }
        if request.thinking != Some(Thinking::Off) && raw.is_none() {
            self.thinking.note(&answered);
        }
        Ok(answered)
    }

    /// How an answer is read.
    pub(super) fn scan_options(&self, answered: &Answered, only: Option<&str>) -> ScanOptions {
        let options = ScanOptions::default().thinking(answered.begins_thinking).parsing(self.chat.parsing);
        only.and_then(dialect).into_iter().fold(options, ScanOptions::only)
    }
}

impl Answered {
    async fn read(
        &mut self,
        route: &Route,
        request: &Request,
        raw: Option<&RawQuestion>,
        began: Instant,
    ) -> Result<(), UpstreamError> {
        let mut answer = match raw {
            Some(question) => route.ask_raw(request, question).await?,
            None => route.ask(request, "").await?,
        };
        let mut pieces = Vec::new();
        loop {
            let more = answer.next(&mut pieces).await;
            for piece in pieces.drain(..) {
                self.take(piece, began.elapsed());
            }
            if !more? {
                return Ok(());
            }
            let arguments = self.calls.iter().map(|call| call.arguments.len()).sum::<usize>();
            if self.text.len() + self.reasoning.len() + arguments > MAX_ANSWER || self.calls.len() > MAX_CALLS
            {
                self.is_cut = true;
                return Ok(());
            }
        }
    }

    fn take(&mut self, piece: Piece, at: Duration) {
        if let Piece::Text(_) | Piece::Reasoning { .. } | Piece::Call(_) = &piece {
            self.first.get_or_insert(at);
            self.last = at;
        }
        match piece {
            Piece::Text(text) => {
                self.pieces += 1;
                self.text.push_str(&text);
            }
            Piece::Reasoning { text, .. } => {
                self.pieces += 1;
                self.reasoning.push_str(&text);
            }
            Piece::Call(piece) => {
                let part = piece.arguments.len();
                let at = self.calls.push(piece);
                if let Some(call) = self.calls.get(at).filter(|_| part > 0) {
                    *self.in_pieces.get_or_insert(false) |= call.arguments.len() > part;
                }
            }
            Piece::Finish(reason) => self.is_cut |= reason == FinishReason::Length,
            Piece::Usage(usage) => self.usage = Some(usage),
            Piece::Passing(passing) => self.timings = timings(&passing).or(self.timings.take()),
        }
    }

    /// A number that llama.cpp measured, such as `predicted_per_second`.
    pub(super) fn measured(&self, name: &str) -> Option<f64> {
        self.timings.as_ref()?.get(name)?.as_f64()
    }

    /// The text without thinking, in one line.
    pub(super) fn words(&self) -> String {
        let text = toolrack_dialects::strip_thinking(&self.text);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The field `timings` of llama.cpp.
fn timings(passing: &Passing) -> Option<Value> {
    serde_json::from_str(passing.get(Provider::OpenAi, "timings")?.get()).ok()
}

impl ThinkingSeen {
    /// Notes the thinking of an answer.
    pub(super) fn note(&mut self, answered: &Answered) {
        self.in_field |= !answered.reasoning.trim().is_empty();
        let read = |thinking| {
            let options = ScanOptions::default().thinking(thinking);
            parse(&answered.text, Offered::none().into(), options)
        };
        if !read(false).reasoning.trim().is_empty() {
            self.in_text = true;
        } else if thinking_ends().any(|end| answered.text.contains(end)) {
            self.is_unopened |= !read(true).reasoning.trim().is_empty();
        }
    }

    pub(super) fn is_seen(self) -> bool {
        self.in_field || self.in_text || self.is_unopened
    }
}

impl From<UpstreamError> for Unanswered {
    fn from(error: UpstreamError) -> Self {
        if let Some(message) = error.message().filter(|message| could_not_read(message)) {
            return Self::Unread(message.to_owned());
        }
        match error {
            UpstreamError::Refused { .. } | UpstreamError::NoModel(_) | UpstreamError::AnsweredElsewhere => {
                Self::Refused(error)
            }
            error => Self::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use toolrack_apis::CallPiece;

    use super::*;

    #[test]
    fn b16_native_calls_are_put_together_as_in_chats() {
        let mut answered = Answered::default();
        let piece = |id: Option<&str>, name: Option<&str>, arguments: &str| CallPiece {
            index: Some(0),
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            arguments: arguments.to_owned(),
            ..CallPiece::default()
        };
        // Some servers repeat the name in the second piece.
        for piece in [
            piece(Some("1"), Some("add"), ""),
            piece(Some("1"), Some("add"), "{\"a\": 1,"),
            piece(None, None, " \"b\": 2}"),
        ] {
            answered.take(Piece::Call(piece), Duration::ZERO);
        }
        let calls: Vec<_> = answered.calls.iter().map(|call| (&*call.name, &*call.arguments)).collect();
        assert_eq!(calls, [("add", "{\"a\": 1, \"b\": 2}")]);
        assert_eq!(answered.in_pieces, Some(true));
    }
}
