//! Requests of clients.

use serde_json::{Value, json};

use super::{Object, role};
use crate::{Extension, ToolChoice};

/// A tool that the client defines and runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientTool {
    /// Its name.
    pub name: String,
    /// JSON Schema of its arguments, if it has one.
    pub parameters: Option<Value>,
    /// The definition as the client sent it.
    pub definition: Value,
}

/// A request for a chat completion.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The conversation.
    pub messages: Vec<Value>,
    /// The model; `None` for the server's default.
    pub model: Option<String>,
    /// The client's own tools.
    pub tools: Vec<ClientTool>,
    /// Which of the tools the model may or has to call.
    pub tool_choice: ToolChoice,
    /// Whether to stream the answer.
    pub stream: bool,
    /// Whether to send the usage at the end of a stream.
    pub include_usage: bool,
    /// The field `toolrack`.
    pub toolrack: Extension,
    /// All other fields.
    pub rest: Object,
}

/// An invalid request: which field, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    /// The field.
    pub param: &'static str,
    /// What is wrong and what to send.
    pub message: String,
}

fn bad(param: &'static str, message: impl Into<String>) -> BadRequest {
    BadRequest { param, message: message.into() }
}

impl ChatRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// If a field that Toolrack uses is not in its documented form.
    pub fn from_json(body: Value) -> Result<Self, BadRequest> {
        let Value::Object(mut rest) = body else {
            return Err(bad("body", "the request has to be a JSON object"));
        };
        let messages = match rest.shift_remove("messages") {
            Some(Value::Array(messages)) if !messages.is_empty() => messages,
            Some(Value::Array(_)) => return Err(bad("messages", "`messages` is empty; send at least one")),
            Some(_) => return Err(bad("messages", "`messages` has to be an array of messages")),
            None => return Err(bad("messages", "`messages` is missing")),
        };
        for (index, message) in messages.iter().enumerate() {
            if role(message).is_empty() {
                return Err(bad("messages", format!("`messages[{index}]` has no `role`")));
            }
        }
        let model = match rest.shift_remove("model") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name).filter(|name| !name.is_empty()),
            Some(_) => return Err(bad("model", "`model` has to be a string")),
        };
        if rest.get("n").is_some_and(|n| !n.is_null() && n.as_u64() != Some(1)) {
            return Err(bad("n", "`n` has to be 1: a turn with tools has one answer"));
        }
        let stream = match rest.shift_remove("stream") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(stream)) => stream,
            Some(_) => return Err(bad("stream", "`stream` has to be true or false")),
        };
        let include_usage = rest
            .get("stream_options")
            .and_then(|options| options.get("include_usage"))
            .and_then(Value::as_bool)
            .unwrap_or(false);
        let toolrack: Extension = match rest.shift_remove("toolrack") {
            None | Some(Value::Null) => Extension::default(),
            Some(value @ Value::Object(_)) => serde_json::from_value(value)
                .map_err(|error| bad("toolrack", format!("`toolrack` is not understood: {error}")))?,
            // `serde` would deserialize an array into a struct, too.
            Some(_) => return Err(bad("toolrack", "`toolrack` has to be an object")),
        };
        toolrack.check(stream).map_err(|(param, message)| bad(param, message))?;
        let tools = read_tools(rest.shift_remove("tools"))?;
        let tool_choice = read_tool_choice(rest.shift_remove("tool_choice"))?;
        Ok(Self { messages, model, tools, tool_choice, stream, include_usage, toolrack, rest })
    }
}

fn read_tools(value: Option<Value>) -> Result<Vec<ClientTool>, BadRequest> {
    let definitions = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(definitions)) => definitions,
        Some(_) => return Err(bad("tools", "`tools` has to be an array")),
    };
    let mut tools: Vec<ClientTool> = Vec::with_capacity(definitions.len());
    for (index, definition) in definitions.into_iter().enumerate() {
        let function = definition.get("function").or_else(|| definition.get("custom"));
        let name = function.and_then(|function| function.get("name")).and_then(Value::as_str);
        let Some(name) = name.map(str::to_owned) else {
            return Err(bad("tools", format!("`tools[{index}]` has no `function.name`")));
        };
        if tools.iter().any(|tool| tool.name == name) {
            return Err(bad("tools", format!("two tools are named `{name}`")));
        }
        let parameters = function.and_then(|function| function.get("parameters")).cloned();
        tools.push(ClientTool { name, parameters, definition });
    }
    Ok(tools)
}

fn read_tool_choice(value: Option<Value>) -> Result<ToolChoice, BadRequest> {
    const FORMS: &str = "`tool_choice` has to be \"auto\", \"none\", \"required\", \
                         {\"type\": \"function\", \"function\": {\"name\": …}} or {\"type\": \"allowed_tools\", …}";
    let name_of = |tool: &Value| {
        let function = tool.get("function").or_else(|| tool.get("custom")).unwrap_or(tool);
        function.get("name").and_then(Value::as_str).map(str::to_owned)
    };
    match value {
        None | Some(Value::Null) => Ok(ToolChoice::Auto),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" | "any" => Ok(ToolChoice::Required),
            _ => Err(bad("tool_choice", FORMS)),
        },
        Some(Value::Object(choice)) => match choice.get("type").and_then(Value::as_str) {
            Some("allowed_tools") => {
                let inner = choice.get("allowed_tools").and_then(Value::as_object).unwrap_or(&choice);
                let tools =
                    inner.get("tools").and_then(Value::as_array).ok_or_else(|| bad("tool_choice", FORMS))?;
                let required = inner.get("mode").and_then(Value::as_str) == Some("required");
                Ok(ToolChoice::Allowed { names: tools.iter().filter_map(name_of).collect(), required })
            }
            _ => name_of(&Value::Object(choice))
                .map(ToolChoice::Named)
                .ok_or_else(|| bad("tool_choice", FORMS)),
        },
        Some(_) => Err(bad("tool_choice", FORMS)),
    }
}

/// The body of an error response.
pub fn error_body(kind: &str, message: &str, param: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": Value::Null}})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(body: Value) -> Result<ChatRequest, BadRequest> {
        ChatRequest::from_json(body)
    }

    #[test]
    fn unknown_fields_are_kept() {
        let read = request(json!({
            "model": "m", "messages": [{"role": "user", "content": "hi", "x": 1}],
            "temperature": 0.5, "stream": true, "stream_options": {"include_usage": true, "x": 2}, "grammar": "root",
        }))
        .unwrap();
        assert!(read.stream && read.include_usage);
        assert_eq!(read.messages[0]["x"], 1);
        assert_eq!(
            Value::Object(read.rest),
            json!({"temperature": 0.5, "stream_options": {"include_usage": true, "x": 2}, "grammar": "root"})
        );
    }

    #[test]
    fn what_cannot_be_understood_names_the_field() {
        let messages = json!([{"role": "user", "content": "hi"}]);
        for (body, param) in [
            (json!([]), "body"),
            (json!({}), "messages"),
            (json!({"messages": []}), "messages"),
            (json!({"messages": [{"content": "hi"}]}), "messages"),
            (json!({"messages": messages, "model": 3}), "model"),
            (json!({"messages": messages, "n": 2}), "n"),
            (json!({"messages": messages, "n": 0}), "n"),
            (json!({"messages": messages, "n": "2"}), "n"),
            (json!({"messages": messages, "n": 2.0}), "n"),
            (json!({"messages": messages, "stream": "yes"}), "stream"),
            (json!({"messages": messages, "tools": [{"type": "function"}]}), "tools"),
            (json!({"messages": messages, "tools": {}}), "tools"),
            (json!({"messages": messages, "tool_choice": "maybe"}), "tool_choice"),
            (json!({"messages": messages, "tool_choice": {"type": "function"}}), "tool_choice"),
            (json!({"messages": messages, "toolrack": {"level": "owner"}}), "toolrack"),
            (json!({"messages": messages, "toolrack": []}), "toolrack"),
            (json!({"messages": messages, "toolrack": [["add"], null]}), "toolrack"),
            (json!({"messages": messages, "toolrack": "all"}), "toolrack"),
            (json!({"messages": messages, "toolrack": {"deltas": true}}), "toolrack.deltas"),
            (json!({"messages": messages, "toolrack": {"confidence": 5}}), "toolrack.confidence"),
            (json!({"messages": messages, "toolrack": {"confidence": -0.001}}), "toolrack.confidence"),
            (json!({"messages": messages, "toolrack": {"confidence": 1e308}}), "toolrack.confidence"),
            (json!({"messages": messages, "toolrack": {"confidence": "high"}}), "toolrack"),
            (json!({"messages": messages, "toolrack": {"chat_id": ""}}), "toolrack.chat_id"),
            (json!({"messages": messages, "toolrack": {"chat_id": "a\u{0}"}}), "toolrack.chat_id"),
            (json!({"messages": messages, "toolrack": {"chat_id": "x".repeat(257)}}), "toolrack.chat_id"),
            (
                json!({"messages": messages, "toolrack": {"kb_context": "x".repeat((1 << 20) + 1)}}),
                "toolrack.kb_context",
            ),
            (json!({"messages": messages, "toolrack": {"approval_wait_seconds": -1}}), "toolrack"),
        ] {
            assert_eq!(request(body.clone()).unwrap_err().param, param, "{body}");
        }
    }

    #[test]
    fn m8_the_context_of_tools_is_bounded() {
        let messages = json!([{"role": "user", "content": "hi"}]);
        for confidence in [0.0, 0.5, 1.0] {
            let toolrack = json!({
                "confidence": confidence, "chat_id": "x".repeat(256), "kb_context": "x".repeat(1 << 20),
                "approval_wait_seconds": u64::MAX,
            });
            let read = request(json!({"messages": messages, "toolrack": toolrack})).unwrap();
            assert_eq!(read.toolrack.confidence, Some(confidence));
        }
    }

    #[test]
    fn tool_choice_has_its_forms() {
        for (choice, read) in [
            (json!(null), ToolChoice::Auto),
            (json!("none"), ToolChoice::None),
            (json!("required"), ToolChoice::Required),
            (json!({"type": "function", "function": {"name": "f"}}), ToolChoice::Named("f".into())),
            (
                json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}}),
                ToolChoice::Allowed { names: vec!["f".into()], required: true },
            ),
        ] {
            assert_eq!(read_tool_choice(Some(choice)), Ok(read));
        }
    }
}
