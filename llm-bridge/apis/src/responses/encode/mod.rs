//! Answers as they go to clients: the events of a stream, or one response. Both have the same items.
//!
//! A call of a tool of the server is an item of type `mcp_call`, which is how the API says that a server runs a tool, for clients that
//! ask for such items: strict ones fail at an item that they have not asked for. Details for programs are in the field `x_toolrack` of
//! its events; without items, of events of type `response.in_progress` and of the response. Notices are in that field of the response.

mod calls;

use std::time::{SystemTime, UNIX_EPOCH};

use calls::{OpenCall, ServerCall};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    API,
    event::{Delta, Event, of_part, usage_json},
    front::response_error,
    item::{Place, Status, TextKind, call_item, server_call_item},
    kept::{new_item_id, new_response_id},
    namespace::Namespaces,
};
use crate::{
    ClientCall, Encode, Failure, FinishReason, FinishedTool, Framing, Seal, SealKind, ToolStatus, TurnEvent,
    Usage, logprobs::tokens_of, openai::error_body,
};

/// How many bytes of events a response may have whose items are repeated while it goes on.
const MAX_REPEATED: usize = 64 * 1024;

/// Encodes a turn.
#[derive(Debug)]
pub(super) struct ResponseEncoder {
    stream: bool,
    /// How the client reads reasoning.
    reasoning: TextKind,
    /// The fields of the request that the response repeats.
    echo: Map<String, Value>,
    namespaces: Namespaces,
    /// Whether calls of the server's tools are items.
    has_server_items: bool,
    id: String,
    created_at: u64,
    model: String,
    begun: bool,
    sequence_number: u64,
    /// How many bytes the events have so far, without those that repeat.
    written: usize,
    /// The finished items at their index; null for those that are not finished.
    output: Vec<Value>,
    text: Option<OpenText>,
    /// How likely the tokens of the next piece of text were.
    logprobs: Vec<Value>,
    calls: Vec<OpenCall>,
    server_calls: Vec<ServerCall>,
    /// What the field `x_toolrack` of the response says.
    details: Vec<Value>,
    /// The response, when the turn has finished.
    ended: Option<Value>,
    /// The error, when it has failed.
    failure: Option<Value>,
}

/// The text or reasoning that is being written.
#[derive(Debug)]
struct OpenText {
    kind: TextKind,
    place: Place,
    text: String,
    logprobs: Vec<Value>,
    seal: Option<String>,
}

impl ResponseEncoder {
    pub(super) fn new(
        stream: bool,
        has_summary: bool,
        echo: Map<String, Value>,
        namespaces: Namespaces,
        has_server_items: bool,
    ) -> Self {
        Self {
            stream,
            reasoning: if has_summary { TextKind::Summary } else { TextKind::Reasoning },
            echo,
            namespaces,
            has_server_items,
            id: new_response_id(),
            created_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            model: String::new(),
            begun: false,
            sequence_number: 0,
            written: 0,
            output: Vec::new(),
            text: None,
            logprobs: Vec::new(),
            calls: Vec::new(),
            server_calls: Vec::new(),
            details: Vec::new(),
            ended: None,
            failure: None,
        }
    }

    fn emit(&mut self, kind: &'static str, body: impl Serialize, out: &mut Vec<u8>) {
        if self.stream {
            let (event, before) = (Event { kind, sequence_number: self.sequence_number, body }, out.len());
            Framing::Sse.append(out, Some(kind), &event);
            self.sequence_number += 1;
            self.written += out.len() - before;
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.begun {
            self.begun = true;
            for kind in ["response.created", "response.in_progress"] {
                let response = self.response("in_progress", Ending::default());
                self.emit(kind, json!({ "response": response }), out);
            }
        }
    }

    fn response(&self, status: &str, ending: Ending<'_>) -> Value {
        let output: Vec<&Value> = self.output.iter().filter(|item| !item.is_null()).collect();
        let mut response = self.head(status, ending);
        response.insert("output".to_owned(), json!(output));
        response.extend(self.echo.clone());
        if !self.details.is_empty() {
            response.insert("x_toolrack".to_owned(), json!(self.details));
        }
        response.into()
    }

    /// The response without what can be large.
    fn head(&self, status: &str, ending: Ending<'_>) -> Map<String, Value> {
        let head = [
            ("id", json!(self.id)),
            ("object", json!("response")),
            ("created_at", json!(self.created_at)),
            ("status", json!(status)),
            ("error", json!(ending.failure.map(response_error))),
            ("incomplete_details", json!(ending.incomplete.map(|reason| json!({ "reason": reason })))),
            ("model", json!(self.model)),
            ("output", json!([])),
            ("usage", json!(ending.usage.and_then(Usage::counted).map(usage_json))),
        ];
        head.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Says that the answer goes on, and what happens to a tool. Clients take the response of the event for all that there is, so that it has
    /// the items so far; where these are large, the event is one without a response.
    fn go_on(&mut self, details: Option<Value>, out: &mut Vec<u8>) {
        let written = self.written;
        let mut body = Map::new();
        let kind = if written > MAX_REPEATED {
            "keepalive"
        } else {
            let mut response = self.head("in_progress", Ending::default());
            response.insert("output".to_owned(), self.items_so_far().into());
            response.extend(self.echo.clone());
            response.extend([("tools".to_owned(), json!([])), ("instructions".to_owned(), Value::Null)]);
            body.insert("response".to_owned(), response.into());
            "response.in_progress"
        };
        body.extend(details.map(|details| ("x_toolrack".to_owned(), details)));
        self.emit(kind, body, out);
        self.written = written;
    }

    /// The finished items, and the open ones with what they have.
    fn items_so_far(&self) -> Vec<Value> {
        let text = self.text.iter().map(|OpenText { kind, place, text, seal, .. }| {
            let part = (!text.is_empty()).then(|| kind.part(text));
            (place, kind.item(place, part, seal.as_deref(), Status::InProgress))
        });
        let calls = self.calls.iter().filter(|open| !open.is_done);
        let calls = calls.map(|open| (&open.place, call_item(&open.place, &open.call, Status::InProgress)));
        let server_calls = self.server_calls.iter().map(|ServerCall { place, name, arguments, .. }| {
            (place, server_call_item(place, name, arguments, None))
        });
        let mut items = self.output.clone();
        for (place, item) in text.chain(calls).chain(server_calls) {
            if let Some(slot) = items.get_mut(place.index) {
                *slot = self.namespaces.restore(item);
            }
        }
        items
    }

    /// Begins an item at the next index.
    fn add_item(&mut self, prefix: &str, item: impl FnOnce(&Place) -> Value, out: &mut Vec<u8>) -> Place {
        let place = Place { id: new_item_id(&self.id, prefix), index: self.output.len() };
        self.output.push(Value::Null);
        let item = self.namespaces.restore(item(&place));
        self.emit("response.output_item.added", json!({"output_index": place.index, "item": item}), out);
        place
    }

    fn end_item(&mut self, place: &Place, item: Value, out: &mut Vec<u8>) {
        let item = self.namespaces.restore(item);
        self.emit("response.output_item.done", json!({"output_index": place.index, "item": &item}), out);
        if let Some(slot) = self.output.get_mut(place.index) {
            *slot = item;
        }
    }

    fn write_text(&mut self, kind: TextKind, delta: &str, out: &mut Vec<u8>) {
        self.open_text(kind, out);
        let Some(mut open) = self.text.take() else { return };
        let events = kind.events();
        if !delta.is_empty() {
            if open.text.is_empty() {
                let part = kind.part("");
                self.emit(events.part_added, of_part(&open.place, events.index, "part", part), out);
            }
            open.text.push_str(delta);
            let mut logprobs = std::mem::take(&mut self.logprobs);
            self.emit(events.delta, Delta { kind, place: &open.place, delta, logprobs: &logprobs }, out);
            open.logprobs.append(&mut logprobs);
        }
        self.text = Some(open);
    }

    fn open_text(&mut self, kind: TextKind, out: &mut Vec<u8>) {
        if self.text.as_ref().is_some_and(|open| open.kind != kind) {
            self.close_text(Status::Completed, out);
        }
        if self.text.is_none() {
            let item = |place: &Place| kind.item(place, None, None, Status::InProgress);
            let place = self.add_item(kind.prefix(), item, out);
            self.text = Some(OpenText { kind, place, text: String::new(), logprobs: Vec::new(), seal: None });
        }
    }

    fn close_text(&mut self, status: Status, out: &mut Vec<u8>) {
        let Some(OpenText { kind, place, text, logprobs, seal }) = self.text.take() else { return };
        let events = kind.events();
        let logprobs = Value::Array(logprobs);
        let mut part = (!text.is_empty()).then(|| kind.part(&text));
        if let (TextKind::Message, Some(Value::Object(fields))) = (kind, &mut part) {
            fields.insert("logprobs".to_owned(), logprobs.clone());
        }
        if let Some(part) = &part {
            let mut done = of_part(&place, events.index, "text", text.into());
            if let (TextKind::Message, Value::Object(fields)) = (kind, &mut done) {
                fields.insert("logprobs".to_owned(), logprobs);
            }
            self.emit(events.done, done, out);
            self.emit(events.part_done, of_part(&place, events.index, "part", part.clone()), out);
        }
        self.end_item(&place, kind.item(&place, part, seal.as_deref(), status), out);
    }

    /// The seal at the end of reasoning. That of another API means nothing here.
    fn write_seal(&mut self, seal: Seal, out: &mut Vec<u8>) {
        if seal.api == API && seal.kind == SealKind::Encrypted {
            self.open_text(self.reasoning, out);
            if let Some(open) = &mut self.text {
                open.seal = Some(seal.data);
            }
            self.close_text(Status::Completed, out);
        }
    }

    fn end(&mut self, reason: &FinishReason, usage: &Usage, out: &mut Vec<u8>) {
        let incomplete = match reason {
            FinishReason::Length => Some("max_output_tokens"),
            FinishReason::ContentFilter => Some("content_filter"),
            _ => None,
        };
        let status = if incomplete.is_some() { Status::Incomplete } else { Status::Completed };
        self.close(status, out);
        let response =
            self.response(status.as_str(), Ending { incomplete, usage: Some(usage), ..Ending::default() });
        let kind = if incomplete.is_some() { "response.incomplete" } else { "response.completed" };
        self.emit(kind, json!({ "response": &response }), out);
        self.ended = Some(response);
    }

    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        self.close(Status::Incomplete, out);
        let response = self.response("failed", Ending { failure: Some(failure), ..Ending::default() });
        self.emit("response.failed", json!({ "response": response }), out);
        self.failure = Some(error_body(failure));
    }

    /// Ends what is open. A call that never became whole is incomplete.
    fn close(&mut self, status: Status, out: &mut Vec<u8>) {
        self.close_text(status, out);
        for at in 0..self.calls.len() {
            self.end_call(at, Status::Incomplete, out);
        }
        for ServerCall { place, id, name, arguments } in std::mem::take(&mut self.server_calls) {
            let error = Some("the answer broke off while the tool ran".to_owned());
            let tool = FinishedTool { id, error, ..FinishedTool::default() };
            self.end_item(&place, server_call_item(&place, &name, &arguments, Some(&tool)), out);
        }
    }
}

impl Encode for ResponseEncoder {
    fn content_type(&self) -> &'static str {
        if self.stream { Framing::Sse.content_type() } else { "application/json" }
    }

    fn take_response(&mut self) -> Option<Value> {
        self.ended.take()
    }

    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        // The model server may still refuse, and an answer that has not begun can have that as its status.
        match event {
            TurnEvent::Model(name) => return self.model = name,
            TurnEvent::PromptTokens(_) => return,
            _ => self.begin(out),
        }
        match event {
            TurnEvent::Model(_) | TurnEvent::PromptTokens(_) => {}
            TurnEvent::Passing(fields) => self.logprobs.extend(tokens_of(&fields).unwrap_or_default()),
            TurnEvent::Message { text, .. } if text.is_empty() => {}
            TurnEvent::Text(text) | TurnEvent::Message { text, .. } => {
                self.write_text(TextKind::Message, &text, out);
            }
            TurnEvent::Reasoning { text, seal } => {
                if !text.is_empty() {
                    // Of reasoning the API does not say it.
                    self.logprobs.clear();
                    self.write_text(self.reasoning, &text, out);
                }
                if let Some(seal) = seal {
                    self.write_seal(seal, out);
                }
            }
            TurnEvent::Tool(status) if self.has_server_items => self.tool(status, out),
            TurnEvent::Tool(ref status) => {
                if matches!(status, ToolStatus::Started { .. }) {
                    self.close_text(Status::Completed, out);
                }
                self.details.extend(event.details_of_whole());
                self.go_on(event.details(), out);
            }
            TurnEvent::Notice(_) => self.details.extend(event.details()),
            TurnEvent::CallBegun { id, name, input, .. } => self.begin_call(id, name, input, out),
            TurnEvent::CallDelta { id, arguments } => {
                if let Some(at) = self.calls.iter().position(|open| open.call.id == id) {
                    self.write_call(at, &arguments, out);
                }
            }
            TurnEvent::Calls(calls) => {
                for ClientCall { call, .. } in calls {
                    self.whole_call(call, out);
                }
            }
            TurnEvent::Finished { reason, usage } => self.end(&reason, &usage, out),
            TurnEvent::Failed(failure) => self.fail(&failure, out),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if self.stream {
            return;
        }
        match self.failure.as_ref().or(self.ended.as_ref()) {
            Some(whole) => Framing::append_json(out, whole),
            None => Framing::append_json(out, &self.response("completed", Ending::default())),
        }
    }

    /// With an event: readers in use fail at a comment, or take it for the end.
    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        match self.begun {
            true => self.go_on(None, out),
            false => self.begin(out),
        }
    }
}

/// How a response ends; nothing while it goes on.
#[derive(Clone, Copy, Default)]
struct Ending<'a> {
    failure: Option<&'a Failure>,
    incomplete: Option<&'static str>,
    usage: Option<&'a Usage>,
}
