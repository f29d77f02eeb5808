//! Answers as they go to clients: named events of a stream, or one message.
//!
//! What happens to a tool of the server rides on `ping` events, which every SDK passes over, and in a message's field `x_toolrack`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    API,
    front::error_body,
    shapes::{Block, Delta, Message, MessageDelta, OWN, UsageJson, send, send_delta},
};
use crate::{
    ClientCall, Encode, FinishReason, Framing, Passing, Seal, SealKind, TurnEvent, Usage, passing::Fields,
};

fn new_id() -> String {
    format!("msg_{:016x}", fastrand::u64(..))
}

fn stop_block(index: usize, out: &mut Vec<u8>) {
    send(out, "content_block_stop", json!({ "index": index }));
}

/// The word for why the model stopped, and the stop sequence that it wrote.
fn stop_of(reason: &FinishReason) -> (&str, Option<&str>) {
    match reason {
        FinishReason::Stop => ("end_turn", None),
        FinishReason::StopSequence(text) => ("stop_sequence", Some(text)),
        FinishReason::Length => ("max_tokens", None),
        FinishReason::ToolCalls => ("tool_use", None),
        FinishReason::ContentFilter => ("refusal", None),
        FinishReason::Other(word) => (word, None),
    }
}

/// The seal, if it is of this API.
fn own_seal(seal: Option<Seal>) -> Option<Seal> {
    seal.filter(|seal| seal.api == API)
}

#[derive(Serialize)]
struct Started<'a> {
    message: Message<'a>,
}

#[derive(Serialize)]
struct BlockStarted<'a> {
    index: usize,
    content_block: &'a Block<'a>,
}

#[derive(Serialize)]
struct Finished<'a> {
    delta: MessageDelta<'a>,
    usage: UsageJson<'a>,
}

/// A block that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
}

/// A call that is being written. Its block stays open until the call is whole: other blocks may be written beside it.
#[derive(Debug)]
struct OpenCall {
    id: String,
    index: usize,
    has_arguments: bool,
}

/// Encodes a turn as the events of a stream.
#[derive(Debug)]
pub(super) struct StreamEncoder {
    model: String,
    shows_thinking: bool,
    begun: bool,
    failed: bool,
    /// How many blocks have begun.
    blocks: usize,
    /// The block of text or thinking that is being written; it is the last but for calls.
    open: Option<(Open, usize)>,
    calls: Vec<OpenCall>,
    /// Passing fields for the end of the message.
    passing: Passing,
}

impl StreamEncoder {
    pub(super) fn new(shows_thinking: bool) -> Self {
        Self {
            model: String::new(),
            shows_thinking,
            begun: false,
            failed: false,
            blocks: 0,
            open: None,
            calls: Vec::new(),
            passing: Passing::of(API),
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let usage = Usage::default();
        let message = Message {
            id: &new_id(),
            kind: "message",
            role: "assistant",
            model: &self.model,
            content: &[],
            stop_reason: None,
            stop_sequence: None,
            usage: UsageJson::of(&usage),
            x_toolrack: &[],
            passing: Fields { fields: &[], but: &[] },
        };
        send(out, "message_start", Started { message });
    }

    /// Begins a block, and ends one of text or thinking.
    fn begin_block(&mut self, block: &Block<'_>, out: &mut Vec<u8>) -> usize {
        self.begin(out);
        self.end_block(out);
        let index = self.blocks;
        self.blocks += 1;
        send(out, "content_block_start", BlockStarted { index, content_block: block });
        index
    }

    fn end_block(&mut self, out: &mut Vec<u8>) {
        if let Some((_, index)) = self.open.take() {
            stop_block(index, out);
        }
    }

    /// Writes to the block of that kind, which begins if it is not open.
    fn write(&mut self, kind: Open, delta: &Delta<'_>, out: &mut Vec<u8>) {
        let index = match self.open {
            Some((open, index)) if open == kind => index,
            _ => {
                let block = match kind {
                    Open::Text => Block::Text { text: "" },
                    Open::Thinking => Block::Thinking { thinking: "", signature: "" },
                };
                let index = self.begin_block(&block, out);
                self.open = Some((kind, index));
                index
            }
        };
        send_delta(index, delta, out);
    }

    fn reasoning(&mut self, text: &str, seal: Option<Seal>, out: &mut Vec<u8>) {
        let seal = own_seal(seal);
        if let Some(Seal { kind: SealKind::Encrypted, data, .. }) = &seal {
            let index = self.begin_block(&Block::RedactedThinking { data }, out);
            return stop_block(index, out);
        }
        if !text.is_empty() {
            self.write(Open::Thinking, &Delta::Thinking { thinking: text }, out);
        }
        if let Some(Seal { data, .. }) = &seal {
            self.write(Open::Thinking, &Delta::Signature { signature: data }, out);
            self.end_block(out);
        }
    }

    fn begin_call(&mut self, id: &str, name: &str, passing: &Passing, out: &mut Vec<u8>) {
        let index = self.begin_block(&Block::call(id, name, None, passing), out);
        self.calls.push(OpenCall { id: id.to_owned(), index, has_arguments: false });
    }

    fn end_calls(&mut self, out: &mut Vec<u8>) {
        self.calls.drain(..).for_each(|call| stop_block(call.index, out));
    }

    /// Ends a call: one that has not come in deltas gets its arguments in one.
    fn end_call(&mut self, ClientCall { call, passing }: &ClientCall, out: &mut Vec<u8>) {
        if !self.calls.iter().any(|open| open.id == call.id) {
            self.begin_call(&call.id, &call.name, passing, out);
        }
        if let Some(at) = self.calls.iter().position(|open| open.id == call.id) {
            let open = self.calls.remove(at);
            if !open.has_arguments {
                let arguments = call.arguments_as_object();
                send_delta(open.index, &Delta::InputJson { partial_json: arguments.get() }, out);
            }
            stop_block(open.index, out);
        }
    }
}

impl Encode for StreamEncoder {
    fn content_type(&self) -> &'static str {
        Framing::Sse.content_type()
    }

    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        if let Some(details) = event.details() {
            send(out, "ping", json!({ "x_toolrack": details }));
        }
        match event {
            TurnEvent::Model(name) => self.model = name,
            // The API takes no empty block.
            TurnEvent::Message { text, .. } if text.is_empty() => {}
            TurnEvent::Text(text) | TurnEvent::Message { text, .. } => {
                self.write(Open::Text, &Delta::Text { text: &text }, out);
            }
            TurnEvent::Reasoning { text, seal } if self.shows_thinking => self.reasoning(&text, seal, out),
            TurnEvent::Reasoning { .. } | TurnEvent::Tool(_) | TurnEvent::Notice(_) => {}
            TurnEvent::CallBegun { id, name, passing, .. } => self.begin_call(&id, &name, &passing, out),
            TurnEvent::CallDelta { id, arguments } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
                    call.has_arguments = true;
                    send_delta(call.index, &Delta::InputJson { partial_json: &arguments }, out);
                }
            }
            TurnEvent::Calls(calls) => calls.iter().for_each(|call| self.end_call(call, out)),
            TurnEvent::Passing(fields) => self.passing.extend(&fields, API),
            TurnEvent::Finished { reason, usage } => {
                self.begin(out);
                self.end_block(out);
                self.end_calls(out);
                let (stop_reason, stop_sequence) = stop_of(&reason);
                let passing = Fields { fields: self.passing.to(API), but: OWN };
                let delta = MessageDelta { stop_reason, stop_sequence, passing };
                send(out, "message_delta", Finished { delta, usage: UsageJson::of(&usage) });
            }
            TurnEvent::Failed(failure) => {
                self.failed = true;
                Framing::Sse.append(out, Some("error"), &error_body(&failure));
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.failed {
            send(out, "message_stop", json!({}));
        }
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        send(out, "ping", json!({}));
    }
}

/// Encodes a turn as one message.
#[derive(Debug)]
pub(super) struct WholeEncoder {
    model: String,
    shows_thinking: bool,
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
                Block::Thinking { thinking: text, signature: signature.as_deref().unwrap_or_default() }
            }
            Self::Redacted(data) => Block::RedactedThinking { data },
            Self::Call(ClientCall { call, passing }) => {
                Block::call(&call.id, &call.name, Some(input), passing)
            }
        }
    }
}

impl WholeEncoder {
    pub(super) fn new(shows_thinking: bool) -> Self {
        Self {
            model: String::new(),
            shows_thinking,
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
            TurnEvent::Reasoning { .. } | TurnEvent::Tool(_) | TurnEvent::Notice(_) => {}
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
        let (stop_reason, stop_sequence) = stop_of(&reason);
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

    fn keep_alive(&self, _: &mut Vec<u8>) {}
}
