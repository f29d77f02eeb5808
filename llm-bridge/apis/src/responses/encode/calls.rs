//! The calls of an answer: those that the client runs, and those that the server does.

use serde_json::Value;

use super::{
    super::{
        event::of_item,
        item::{Place, Status, call_events, call_item, server_call_item},
    },
    ResponseEncoder,
};
use crate::{Call, CallInput, FinishedTool, ToolStatus};

/// A call of one of the client's tools.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) place: Place,
    pub(super) call: Call,
    pub(super) is_done: bool,
}

/// A call of one of the server's tools that runs.
#[derive(Debug)]
pub(super) struct ServerCall {
    pub(super) place: Place,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl ResponseEncoder {
    pub(super) fn begin_call(&mut self, id: String, name: String, input: CallInput, out: &mut Vec<u8>) {
        self.close_text(Status::Completed, out);
        let call = Call { id, name, arguments: String::new(), input };
        let prefix = if input == CallInput::Json { "fc" } else { "ctc" };
        let place = self.add_item(prefix, |place| call_item(place, &call, Status::InProgress), out);
        self.calls.push(OpenCall { place, call, is_done: false });
    }

    pub(super) fn write_call(&mut self, at: usize, delta: &str, out: &mut Vec<u8>) {
        let Some(open) = self.calls.get_mut(at).filter(|open| !open.is_done) else { return };
        open.call.arguments.push_str(delta);
        let (_, kind, _) = call_events(open.call.input);
        let body = of_item(&open.place, "delta", delta.into());
        self.emit(kind, body, out);
    }

    pub(super) fn end_call(&mut self, at: usize, status: Status, out: &mut Vec<u8>) {
        let Some(open) = self.calls.get_mut(at).filter(|open| !open.is_done) else { return };
        open.is_done = true;
        let (place, call) = (open.place.clone(), open.call.clone());
        let (field, _, kind) = call_events(call.input);
        self.emit(kind, of_item(&place, field, call.arguments.clone().into()), out);
        self.end_item(&place, call_item(&place, &call, status), out);
    }

    /// Writes a call that is whole; one that came in deltas ends.
    pub(super) fn whole_call(&mut self, call: Call, out: &mut Vec<u8>) {
        let begun = self.calls.iter().position(|open| open.call.id == call.id);
        let at = begun.unwrap_or(self.calls.len());
        if begun.is_none() {
            self.begin_call(call.id, call.name, call.input, out);
            self.write_call(at, &call.arguments, out);
        } else if let Some(open) = self.calls.get_mut(at).filter(|open| !open.is_done) {
            open.call.arguments = call.arguments;
        }
        self.end_call(at, Status::Completed, out);
    }

    pub(super) fn tool(&mut self, status: ToolStatus, out: &mut Vec<u8>) {
        let details = status.details();
        match status {
            ToolStatus::Started { id, name, arguments, .. } => {
                self.close_text(Status::Completed, out);
                let arguments = arguments.to_string();
                let item = |place: &Place| server_call_item(place, &name, "", None);
                let place = self.add_item("mcp", item, out);
                self.server_event("response.mcp_call.in_progress", &place, details, out);
                self.emit(
                    "response.mcp_call_arguments.done",
                    of_item(&place, "arguments", arguments.as_str().into()),
                    out,
                );
                self.server_calls.push(ServerCall { place, id, name, arguments });
            }
            ToolStatus::Progress { id, .. } => {
                let place =
                    self.server_calls.iter().find(|call| call.id == id).map(|call| call.place.clone());
                if let Some(place) = place {
                    self.server_event("response.mcp_call.in_progress", &place, details, out);
                }
            }
            ToolStatus::Finished(tool) => self.finish_tool(&tool, details, out),
            // The call comes whole, and the text of one that is none is given as text.
            ToolStatus::Begun { .. } | ToolStatus::Delta { .. } | ToolStatus::Aborted { .. } => {}
        }
    }

    fn finish_tool(&mut self, tool: &FinishedTool, details: Value, out: &mut Vec<u8>) {
        let Some(at) = self.server_calls.iter().position(|call| call.id == tool.id) else { return };
        let ServerCall { place, name, arguments, .. } = self.server_calls.swap_remove(at);
        let kind = if tool.success { "response.mcp_call.completed" } else { "response.mcp_call.failed" };
        self.server_event(kind, &place, details, out);
        self.end_item(&place, server_call_item(&place, &name, &arguments, Some(tool)), out);
    }

    fn server_event(&mut self, kind: &'static str, place: &Place, details: Value, out: &mut Vec<u8>) {
        self.emit(kind, of_item(place, "x_toolrack", details), out);
    }
}
