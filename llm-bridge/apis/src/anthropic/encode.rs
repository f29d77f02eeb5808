//! Answers as they go to clients: named events of a stream. In one message they are in [`whole`](super::whole).
//!
//! What happens to a tool of the server rides on `ping` events, which every SDK passes over, and in a message's field `x_toolrack`.

use std::collections::HashSet;

use serde::{Serialize, de::IgnoredAny};
use serde_json::json;

use super::{
    API, UNSIGNED,
    front::error_body,
    shapes::{Block, Delta, Message, MessageDelta, OWN, UsageJson, send, send_delta},
};
use crate::{
    ClientCall, Encode, FinishReason, Framing, Passing, Seal, SealKind, ToolStatus, TurnEvent, Usage,
    passing::Fields,
};

pub(super) fn new_id() -> String {
    format!("msg_{:016x}", fastrand::u64(..))
}

fn stop_block(index: usize, out: &mut Vec<u8>) {
    send(out, "content_block_stop", json!({ "index": index }));
}

/// The word for why the model stopped, and the stop sequence that it wrote, if that is one of the request: model servers have some of their own.
pub(super) fn stop_of<'r>(reason: &'r FinishReason, stops: &[String]) -> (&'r str, Option<&'r str>) {
    match reason {
        FinishReason::StopSequence(text) if stops.contains(text) => ("stop_sequence", Some(text)),
        FinishReason::Stop | FinishReason::StopSequence(_) => ("end_turn", None),
        FinishReason::Length => ("max_tokens", None),
        FinishReason::ToolCalls => ("tool_use", None),
        FinishReason::ContentFilter => ("refusal", None),
        FinishReason::Other(word) => (word, None),
    }
}

/// The seal, if it is of this API.
pub(super) fn own_seal(seal: Option<Seal>) -> Option<Seal> {
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
#[derive(Debug, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
    /// A call, with its arguments so far.
    Call {
        id: String,
        arguments: String,
    },
}

impl Open {
    /// Whether nothing more can belong to it.
    fn is_whole(&self) -> bool {
        match self {
            Self::Call { arguments, .. } => serde_json::from_str::<IgnoredAny>(arguments).is_ok(),
            _ => true,
        }
    }
}

/// Encodes a turn as the events of a stream. Its blocks stand one behind the other: what comes while a call is not whole waits for its end.
#[derive(Debug)]
pub(super) struct StreamEncoder {
    model: String,
    /// About how many tokens the prompt has.
    prompt: u64,
    shows_thinking: bool,
    /// The stop sequences of the request.
    stops: Vec<String>,
    begun: bool,
    failed: bool,
    /// How many blocks have begun.
    blocks: usize,
    /// The last block, if it is being written.
    open: Option<Open>,
    /// The ids of the calls whose blocks have ended.
    called: HashSet<String>,
    /// Whether something waits for the end of the open call.
    is_awaited: bool,
    /// Text and reasoning that wait for that.
    waiting: Vec<TurnEvent>,
    /// Passing fields for the end of the message.
    passing: Passing,
}

impl StreamEncoder {
    pub(super) fn new(shows_thinking: bool, stops: Vec<String>) -> Self {
        Self {
            model: String::new(),
            prompt: 0,
            shows_thinking,
            stops,
            begun: false,
            failed: false,
            blocks: 0,
            open: None,
            called: HashSet::new(),
            is_awaited: false,
            waiting: Vec::new(),
            passing: Passing::of(API),
        }
    }

    /// What was used. Where the model server has not counted, what was said at the beginning still holds.
    fn counted(&self, usage: Usage) -> Usage {
        let input = if usage.input == 0 { self.prompt } else { usage.input };
        Usage { input, ..usage }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let usage = self.counted(Usage::default());
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

    /// Begins a block behind the last one; gives its index.
    fn begin_block(&mut self, block: &Block<'_>, out: &mut Vec<u8>) -> usize {
        self.begin(out);
        self.end_block(out);
        let index = self.blocks;
        self.blocks += 1;
        send(out, "content_block_start", BlockStarted { index, content_block: block });
        index
    }

    fn end_block(&mut self, out: &mut Vec<u8>) {
        let Some(open) = self.open.take() else { return };
        self.is_awaited = false;
        let index = self.last_index();
        match open {
            Open::Text => {}
            Open::Thinking => send_delta(index, &Delta::Signature { signature: UNSIGNED }, out),
            Open::Call { id, .. } => drop(self.called.insert(id)),
        }
        stop_block(index, out);
    }

    fn last_index(&self) -> usize {
        self.blocks.saturating_sub(1)
    }

    /// Writes to the block of text or thinking, which begins if it is not open.
    fn write(&mut self, kind: Open, delta: &Delta<'_>, out: &mut Vec<u8>) {
        if self.open.as_ref() != Some(&kind) {
            let block = match kind {
                Open::Thinking => Block::Thinking { thinking: "", signature: "" },
                _ => Block::Text { text: "" },
            };
            self.begin_block(&block, out);
            self.open = Some(kind);
        }
        send_delta(self.last_index(), delta, out);
    }

    /// Whether the next block has to wait for the end of a call. What comes after one that waits does so, too: the arguments are read once.
    fn has_to_wait(&mut self) -> bool {
        self.is_awaited = self.is_awaited || self.open.as_ref().is_some_and(|open| !open.is_whole());
        self.is_awaited
    }

    /// Writes text or reasoning, or has it wait.
    fn say(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        if self.has_to_wait() {
            return self.waiting.push(event);
        }
        match event {
            TurnEvent::Reasoning { text, seal } => self.reasoning(&text, seal, out),
            TurnEvent::Text(text) | TurnEvent::Message { text, .. } => {
                self.write(Open::Text, &Delta::Text { text: &text }, out);
            }
            _ => {}
        }
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
            self.open = None;
            stop_block(self.last_index(), out);
        }
    }

    /// Begins a call, unless another is not whole: then it is written when it is whole itself.
    fn begin_call(&mut self, id: String, name: &str, passing: &Passing, out: &mut Vec<u8>) {
        if !self.has_to_wait() {
            self.begin_block(&Block::call(&id, name, None, passing), out);
            self.open = Some(Open::Call { id, arguments: String::new() });
        }
    }

    fn write_arguments(&mut self, of: &str, text: &str, out: &mut Vec<u8>) {
        let index = self.last_index();
        if let Some(Open::Call { id, arguments }) = &mut self.open
            && id == of
        {
            arguments.push_str(text);
            send_delta(index, &Delta::InputJson { partial_json: text }, out);
        }
    }

    fn has_open(&self, call: &str) -> bool {
        matches!(&self.open, Some(Open::Call { id, .. }) if id == call)
    }

    /// Ends a call: one that has not come in deltas gets its arguments in one.
    fn end_call(&mut self, ClientCall { call, passing }: &ClientCall, out: &mut Vec<u8>) {
        if self.called.remove(&call.id) {
            return;
        }
        if !self.has_open(&call.id) {
            self.end_open_call(out);
            self.begin_call(call.id.clone(), &call.name, passing, out);
        }
        if matches!(&self.open, Some(Open::Call { arguments, .. }) if arguments.is_empty()) {
            self.write_arguments(&call.id, call.arguments_as_object().get(), out);
        }
        self.end_open_call(out);
        self.called.remove(&call.id);
    }

    /// Ends the call that is open, and writes what has waited for that.
    fn end_open_call(&mut self, out: &mut Vec<u8>) {
        if matches!(self.open, Some(Open::Call { .. })) {
            self.end_block(out);
        }
        for event in std::mem::take(&mut self.waiting) {
            self.say(event, out);
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
            TurnEvent::PromptTokens(tokens) => self.prompt = tokens,
            // The API takes no empty block.
            TurnEvent::Message { text, .. } if text.is_empty() => {}
            TurnEvent::Reasoning { .. } if !self.shows_thinking => {}
            TurnEvent::Text(_) | TurnEvent::Message { .. } | TurnEvent::Reasoning { .. } => {
                self.say(event, out)
            }
            TurnEvent::Tool(ToolStatus::Aborted { id, .. }) if self.has_open(&id) => self.end_open_call(out),
            TurnEvent::Tool(_) | TurnEvent::Notice(_) => {}
            TurnEvent::CallBegun { id, name, passing, .. } => self.begin_call(id, &name, &passing, out),
            TurnEvent::CallDelta { id, arguments } => self.write_arguments(&id, &arguments, out),
            TurnEvent::Calls(calls) => calls.iter().for_each(|call| self.end_call(call, out)),
            TurnEvent::Passing(fields) => self.passing.extend(&fields, API),
            TurnEvent::Finished { reason, usage } => {
                self.begin(out);
                self.end_open_call(out);
                self.end_block(out);
                let (stop_reason, stop_sequence) = stop_of(&reason, &self.stops);
                let passing = Fields { fields: self.passing.to(API), but: OWN };
                let delta = MessageDelta { stop_reason, stop_sequence, passing };
                let usage = self.counted(usage);
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

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        send(out, "ping", json!({}));
    }
}
