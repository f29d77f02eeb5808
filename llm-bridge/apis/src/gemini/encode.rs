//! Answers as they go to clients: server-sent events, an array of JSON, or one answer.
//!
//! What happens to a tool of the server rides on a chunk with an empty text, in the field `x_toolrack`: SDKs pass over fields that
//! they do not know there, but not within a candidate.

use serde_json::Value;

use super::{
    API,
    front::error_body,
    shapes::{Answer, AnswerPart, Candidate, ContentJson, Details, OF_CANDIDATE, UsageJson},
};
use crate::{
    Encode, Failure, FinishReason, Framing, Passing, SealKind, TurnEvent, Usage,
    logprobs::{as_gemini, tokens_of},
    passing::Fields,
};

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Sse,
    Array,
}

/// What a client wants to see of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) thoughts: bool,
    /// The answer is a word, which the model writes as JSON: what it is comes without the quotation marks, when it is whole.
    pub(super) is_word: bool,
}

/// The API's words for why a model stopped that canonical reasons do not have.
const OTHER_REASONS: &[&str] = &[
    "BLOCKLIST",
    "LANGUAGE",
    "MALFORMED_FUNCTION_CALL",
    "PROHIBITED_CONTENT",
    "RECITATION",
    "SPII",
    "UNEXPECTED_TOOL_CALL",
];

/// The API's word for why the model stopped, and the server's own where the API has none.
fn reason_of(reason: &FinishReason) -> (&str, Option<&str>) {
    match reason {
        FinishReason::Stop | FinishReason::StopSequence(_) | FinishReason::ToolCalls => ("STOP", None),
        FinishReason::Length => ("MAX_TOKENS", None),
        FinishReason::ContentFilter => ("SAFETY", None),
        FinishReason::Other(word) if OTHER_REASONS.contains(&word.as_str()) => (word, None),
        FinishReason::Other(word) => ("OTHER", Some(word)),
    }
}

/// Encodes a turn.
#[derive(Debug)]
pub(super) struct AnswerEncoder {
    form: Form,
    id: String,
    model: String,
    shown: Shown,
    /// The text so far, where it is a word.
    word: String,
    /// Whether the array has begun.
    begun: bool,
    /// What has not been written.
    parts: Vec<AnswerPart>,
    details: Vec<Value>,
    end: Option<(FinishReason, Usage)>,
    failure: Option<Failure>,
    /// How likely the tokens were that have not been written.
    logprobs: Vec<Value>,
    /// Passing fields for the last chunk.
    passing: Passing,
}

impl AnswerEncoder {
    pub(super) fn new(form: Form, shown: Shown) -> Self {
        Self {
            form,
            id: format!("{:016x}", fastrand::u64(..)),
            model: String::new(),
            shown,
            word: String::new(),
            begun: false,
            parts: Vec::new(),
            details: Vec::new(),
            end: None,
            failure: None,
            logprobs: Vec::new(),
            passing: Passing::of(API),
        }
    }

    /// Adds a part. A text goes on with the text before it, and so does a thought.
    fn add(&mut self, part: AnswerPart) {
        match (self.parts.last_mut(), part) {
            (Some(AnswerPart::Text(before)), AnswerPart::Text(text)) => before.push_str(&text),
            (
                Some(AnswerPart::Thought { text: before, signature: before_signature @ None }),
                AnswerPart::Thought { text, signature },
            ) => {
                before.push_str(&text);
                *before_signature = signature;
            }
            (_, part) => self.parts.push(part),
        }
    }

    /// Writes what has been added.
    fn write(&mut self, out: &mut Vec<u8>) {
        if let Some(failure) = self.failure.take() {
            return frame(self.form, &mut self.begun, &error_body(&failure), out);
        }
        if self.parts.is_empty() {
            // SDKs expect a part in every chunk.
            self.parts.push(AnswerPart::Text(String::new()));
        }
        let end = self.end.take();
        let (finish_reason, finish_message) = match &end {
            Some((reason, _)) => {
                let (word, message) = reason_of(reason);
                (Some(word), message)
            }
            None => (None, None),
        };
        let passing = if end.is_some() { self.passing.to(API) } else { &[] };
        let logprobs = std::mem::take(&mut self.logprobs);
        let candidate = Candidate {
            content: ContentJson { parts: &self.parts, role: "model" },
            finish_reason,
            finish_message,
            index: 0,
            logprobs_result: (!logprobs.is_empty()).then(|| as_gemini(&logprobs)),
            passing: Fields { fields: passing, but: OF_CANDIDATE },
        };
        let x_toolrack = match (self.form, self.details.as_slice()) {
            (_, []) => None,
            (Form::Whole, all) => Some(Details::All(all)),
            (_, [first, ..]) => Some(Details::One(first)),
        };
        let answer = Answer {
            candidates: [candidate],
            usage_metadata: end.as_ref().and_then(|(_, usage)| usage.counted()).map(UsageJson::of),
            model_version: &self.model,
            response_id: &self.id,
            x_toolrack,
        };
        frame(self.form, &mut self.begun, &answer, out);
        self.parts.clear();
        self.details.clear();
    }
}

fn frame(form: Form, begun: &mut bool, body: &impl serde::Serialize, out: &mut Vec<u8>) {
    match form {
        Form::Sse => return Framing::Sse.append(out, None, body),
        Form::Array => out.extend_from_slice(if std::mem::replace(begun, true) { b",\n" } else { b"[" }),
        Form::Whole => {}
    }
    Framing::append_json(out, body);
}

impl Encode for AnswerEncoder {
    fn content_type(&self) -> &'static str {
        match self.form {
            Form::Sse => Framing::Sse.content_type(),
            Form::Array | Form::Whole => "application/json",
        }
    }

    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        let is_whole = self.form == Form::Whole;
        self.details.extend(if is_whole { event.details_of_whole() } else { event.details() });
        match event {
            TurnEvent::Model(name) => self.model = name,
            TurnEvent::Message { text, .. } if text.is_empty() => {}
            TurnEvent::Text(text) if self.shown.is_word => self.word.push_str(&text),
            TurnEvent::Text(text) | TurnEvent::Message { text, .. } => self.add(AnswerPart::Text(text)),
            TurnEvent::Reasoning { text, seal } if self.shown.thoughts => {
                let own = seal.filter(|seal| seal.api == API && seal.kind == SealKind::Signature);
                let signature = own.map(|seal| seal.data);
                if !text.is_empty() || signature.is_some() {
                    self.add(AnswerPart::Thought { text, signature });
                }
            }
            TurnEvent::Reasoning { .. }
            | TurnEvent::PromptTokens(_)
            | TurnEvent::Tool(_)
            | TurnEvent::Notice(_) => {}
            // The API has no pieces of calls: they come whole.
            TurnEvent::CallBegun { .. } | TurnEvent::CallDelta { .. } => {}
            TurnEvent::Calls(calls) => calls.into_iter().for_each(|call| self.add(AnswerPart::Call(call))),
            TurnEvent::Passing(fields) => {
                self.logprobs.extend(tokens_of(&fields).unwrap_or_default());
                self.passing.extend(&fields, API);
            }
            TurnEvent::Finished { reason, usage } => {
                let word = std::mem::take(&mut self.word);
                if !word.is_empty() {
                    let text = serde_json::from_str::<String>(&word).unwrap_or(word);
                    self.add(AnswerPart::Text(text));
                }
                self.end = Some((reason, usage));
            }
            TurnEvent::Failed(failure) => self.failure = Some(failure),
        }
        let has_news = !self.parts.is_empty()
            || !self.details.is_empty()
            || self.end.is_some()
            || self.failure.is_some();
        if has_news && !is_whole {
            self.write(out);
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        match self.form {
            Form::Whole => self.write(out),
            Form::Sse => {}
            Form::Array => out.extend_from_slice(if self.begun { b"]" } else { b"[]" }),
        }
    }

    /// Blank lines: the API's SDKs take a comment for a broken event.
    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        match self.form {
            Form::Whole => {}
            Form::Sse => out.extend_from_slice(b"\n\n"),
            Form::Array => out.push(b'\n'),
        }
    }
}
