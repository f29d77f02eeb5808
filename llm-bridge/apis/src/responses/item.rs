//! The items of an answer.

use serde_json::{Value, json};

use super::SERVER_LABEL;
use crate::{Call, CallInput, FinishedTool};

/// Where an item stands in the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) id: String,
    pub(super) index: usize,
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
    Failed,
}

impl Status {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }
}

/// What a text is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Message,
    /// Reasoning, as the model wrote it.
    Reasoning,
    /// Reasoning in the place of a summary, for clients that asked for one.
    Summary,
}

/// The names of a text's events, behind `response.`, and of its index.
pub(super) struct TextEvents {
    pub(super) part_added: &'static str,
    pub(super) delta: &'static str,
    pub(super) done: &'static str,
    pub(super) part_done: &'static str,
    pub(super) index: &'static str,
}

impl TextKind {
    /// What stands in front of the item's id.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Message => "msg",
            Self::Reasoning | Self::Summary => "rs",
        }
    }

    pub(super) const fn events(self) -> TextEvents {
        let (part_added, part_done) = ("response.content_part.added", "response.content_part.done");
        match self {
            Self::Message => TextEvents {
                part_added,
                delta: "response.output_text.delta",
                done: "response.output_text.done",
                part_done,
                index: "content_index",
            },
            Self::Reasoning => TextEvents {
                part_added,
                delta: "response.reasoning_text.delta",
                done: "response.reasoning_text.done",
                part_done,
                index: "content_index",
            },
            Self::Summary => TextEvents {
                part_added: "response.reasoning_summary_part.added",
                delta: "response.reasoning_summary_text.delta",
                done: "response.reasoning_summary_text.done",
                part_done: "response.reasoning_summary_part.done",
                index: "summary_index",
            },
        }
    }

    pub(super) fn part(self, text: &str) -> Value {
        match self {
            Self::Message => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
            Self::Reasoning => json!({"type": "reasoning_text", "text": text}),
            Self::Summary => json!({"type": "summary_text", "text": text}),
        }
    }

    /// The item with its part, if it has one.
    pub(super) fn item(
        self,
        place: &Place,
        part: Option<Value>,
        seal: Option<&str>,
        status: Status,
    ) -> Value {
        let (parts, status) = (Value::from_iter(part), status.as_str());
        if self == Self::Message {
            return json!({
                "id": place.id, "type": "message", "status": status, "role": "assistant", "content": parts,
            });
        }
        let (summary, content) = if self == Self::Summary { (parts, json!([])) } else { (json!([]), parts) };
        let mut item = json!({"id": place.id, "type": "reasoning", "summary": summary, "status": status});
        if let Value::Object(fields) = &mut item {
            if self == Self::Reasoning {
                fields.insert("content".to_owned(), content);
            }
            fields.extend(seal.map(|seal| ("encrypted_content".to_owned(), seal.into())));
        }
        item
    }
}

/// The name of the arguments of a call, and of the events with them.
pub(super) const fn call_events(input: CallInput) -> (&'static str, &'static str, &'static str) {
    match input {
        CallInput::Json => {
            ("arguments", "response.function_call_arguments.delta", "response.function_call_arguments.done")
        }
        CallInput::Text => {
            ("input", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done")
        }
    }
}

/// A call of one of the client's tools.
pub(super) fn call_item(place: &Place, call: &Call, status: Status) -> Value {
    let Call { id: call_id, name, arguments, input } = call;
    let (id, status) = (&place.id, status.as_str());
    match input {
        CallInput::Json => json!({
            "id": id, "type": "function_call", "status": status, "call_id": call_id, "name": name,
            "arguments": arguments,
        }),
        CallInput::Text => json!({
            "id": id, "type": "custom_tool_call", "status": status, "call_id": call_id, "name": name,
            "input": arguments,
        }),
    }
}

/// A call of one of the server's tools.
pub(super) fn server_call_item(
    place: &Place,
    name: &str,
    arguments: &str,
    outcome: Option<&FinishedTool>,
) -> Value {
    let status = match outcome {
        None => Status::InProgress,
        Some(tool) if tool.success => Status::Completed,
        Some(_) => Status::Failed,
    };
    let output = outcome.and_then(|tool| match tool.result.as_ref()? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    });
    let error = outcome.filter(|tool| !tool.success).map(|tool| {
        let text = tool.error.as_ref().or(tool.message.as_ref()).map_or("not done", String::as_str);
        json!({"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]})
    });
    json!({
        "id": place.id, "type": "mcp_call", "status": status.as_str(), "server_label": SERVER_LABEL, "name": name,
        "arguments": arguments, "output": output, "error": error,
    })
}
