//! Answers as they go to clients: one message.

use std::borrow::Cow;

use serde_json::{Value, value::RawValue};

use super::{
    API, UNSIGNED,
    encode::{new_id, own_seal, stop_of},
    front::error_body,
    shapes::{Block, Message, OWN, UsageJson},
};
use crate::{
    ClientCall, Encode, FinishReason, Framing, Passing, Seal, SealKind, TurnEvent, Usage, passing::Fields,
};

/// Encodes a turn as one message.
#[derive(Debug)]
pub(super) struct WholeEncoder {
    model: String,
    shows_thinking: bool,
    /// The stop sequences of the request.
    stops: Vec<String>,
    blocks: Vec<Whole>,
    details: Vec<Value>,
    end: Option<TurnEvent>,
    passing: Passing,
}

/// A block of a whole message.
#[derive(Debug)]
enum Whole {
    Text(String),
    Thinking { text: String, signature: Option<String> },
    Redacted(String),
    Call(ClientCall),
}

impl Whole {
    /// The arguments of a call.
    fn input(&self) -> Cow<'_, RawValue> {
        match self {
            Self::Call(ClientCall { call, .. }) => call.arguments_as_object(),
            _ => Cow::default(),
        }
    }

    fn shape<'a>(&'a self, input: &'a RawValue) -> Block<'a> {
        match self {
            Self::Text(text) => Block::Text { text },
            Self::Thinking { text, signature } => {
                Block::Thinking { thinking: text, signature: signature.as_deref().unwrap_or(UNSIGNED) }
            }
            Self::Redacted(data) => Block::RedactedThinking { data },
            Self::Call(ClientCall { call, passing }) => {
                Block::call(&call.id, &call.name, Some(input), passing)
            }
        }
    }
}

impl WholeEncoder {
    pub(super) fn new(shows_thinking: bool, stops: Vec<String>) -> Self {
        Self {
            model: String::new(),
            shows_thinking,
            stops,
            blocks: Vec::new(),
            details: Vec::new(),
            end: None,
            passing: Passing::of(API),
        }
    }

    fn text(&mut self, text: String) {
        match self.blocks.last_mut() {
            Some(Whole::Text(before)) => before.push_str(&text),
            _ => self.blocks.push(Whole::Text(text)),
        }
    }

    fn reasoning(&mut self, text: String, seal: Option<Seal>) {
        let signature = match own_seal(seal) {
            Some(Seal { kind: SealKind::Encrypted, data, .. }) => {
                return self.blocks.push(Whole::Redacted(data));
            }
            None if text.is_empty() => return,
            seal => seal.map(|seal| seal.data),
        };
        match self.blocks.last_mut() {
            Some(Whole::Thinking { text: before, signature: open @ None }) => {
                before.push_str(&text);
                *open = signature;
            }
            _ => self.blocks.push(Whole::Thinking { text, signature }),
        }
    }
}

impl Encode for WholeEncoder {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn event(&mut self, event: TurnEvent, _: &mut Vec<u8>) {
        self.details.extend(event.details_of_whole());
        match event {
            TurnEvent::Model(name) => self.model = name,
            TurnEvent::Message { text, .. } if text.is_empty() => {}
            TurnEvent::Text(text) | TurnEvent::Message { text, .. } => self.text(text),
            TurnEvent::Reasoning { text, seal } if self.shows_thinking => self.reasoning(text, seal),
            TurnEvent::Reasoning { .. }
            | TurnEvent::PromptTokens(_)
            | TurnEvent::Tool(_)
            | TurnEvent::Notice(_) => {}
            // The calls come whole.
            TurnEvent::CallBegun { .. } | TurnEvent::CallDelta { .. } => {}
            TurnEvent::Calls(calls) => self.blocks.extend(calls.into_iter().map(Whole::Call)),
            TurnEvent::Passing(fields) => self.passing.extend(&fields, API),
            end @ (TurnEvent::Finished { .. } | TurnEvent::Failed(_)) => self.end = Some(end),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let (reason, usage) = match self.end.take() {
            Some(TurnEvent::Failed(failure)) => return Framing::append_json(out, &error_body(&failure)),
            Some(TurnEvent::Finished { reason, usage }) => (reason, usage),
            _ => (FinishReason::Stop, Usage::default()),
        };
        let (stop_reason, stop_sequence) = stop_of(&reason, &self.stops);
        let inputs: Vec<_> = self.blocks.iter().map(Whole::input).collect();
        let blocks = self.blocks.iter().zip(&inputs);
        let content: Vec<Block<'_>> = blocks.map(|(block, input)| block.shape(input)).collect();
        let message = Message {
            id: &new_id(),
            kind: "message",
            role: "assistant",
            model: &self.model,
            content: &content,
            stop_reason: Some(stop_reason),
            stop_sequence,
            usage: UsageJson::of(&usage),
            x_toolrack: &self.details,
            passing: Fields { fields: self.passing.to(API), but: OWN },
        };
        Framing::append_json(out, &message);
    }

    fn keep_alive(&mut self, _: &mut Vec<u8>) {}
}
