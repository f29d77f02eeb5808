//! A call that the model has made.

use registry_core::Origin;
use serde_json::{Value, json};
use toolrack_apis::{Call, CallInput, ClientCall, Passing, ToolStatus, json::read_lenient};

use super::offer::Target;

/// What the text of arguments that are no object stands under in the conversation.
const NO_OBJECT: &str = "INVALID_JSON";
/// What calls that the model server has read itself have in place of a dialect.
pub(super) const NATIVE: &str = "native";

/// A call that the model has made.
#[derive(Debug, Clone)]
pub(super) struct FoundCall {
    pub(super) id: String,
    /// The client knows it by this id.
    pub(super) announced: bool,
    /// The name that it has in the conversation.
    pub(super) wire_name: String,
    pub(super) target: Target,
    /// The arguments as JSON text, which may be broken, or as the text that the client's tool takes.
    pub(super) arguments: String,
    pub(super) input: CallInput,
    pub(super) origin: Origin,
    /// The text that the call was read from, for one in the text of an answer.
    pub(super) source: Option<String>,
    /// Whether the answer quotes it.
    pub(super) is_quoted: bool,
    /// The text behind the tag, for a tag line.
    pub(super) raw_argument: Option<String>,
    /// Whether a turn before this one has made it, and was interrupted.
    pub(super) is_interrupted: bool,
    /// What only the model server's API knows of it.
    pub(super) passing: Passing,
}

impl FoundCall {
    /// The server's tool that it calls.
    pub(super) fn server_tool(&self) -> Option<&str> {
        match &self.target {
            Target::Server(name) => Some(name),
            _ => None,
        }
    }

    /// The call as it stands in the conversation, where servers take objects only: arguments that are none are kept in one.
    pub(super) fn in_conversation(&self) -> Call {
        let arguments = match self.input {
            CallInput::Text => self.arguments.clone(),
            CallInput::Json => {
                let object = match self.arguments_value() {
                    Value::String(text) => read_lenient(&text).unwrap_or_default(),
                    value => value,
                };
                if object.is_object() { object } else { json!({ NO_OBJECT: self.arguments }) }.to_string()
            }
        };
        Call { input: self.input, ..Call::new(&self.id, &self.wire_name, arguments) }
    }

    /// The call as the client gets it. Broken JSON is the client's to see as it was written.
    pub(super) fn into_client_call(self) -> ClientCall {
        let is_empty = self.input == CallInput::Json && self.arguments.trim().is_empty();
        let arguments = if is_empty { "{}".to_owned() } else { self.arguments };
        ClientCall {
            call: Call { input: self.input, ..Call::new(self.id, self.wire_name, arguments) },
            passing: self.passing,
        }
    }

    /// The arguments as a value; text that is no JSON stays text.
    pub(super) fn arguments_value(&self) -> Value {
        self.read_arguments().unwrap_or_else(|_| Value::String(self.arguments.clone()))
    }

    /// The arguments as JSON.
    pub(super) fn read_arguments(&self) -> Result<Value, serde_json::Error> {
        if self.arguments.trim().is_empty() { Ok(json!({})) } else { read_lenient(&self.arguments) }
    }

    /// That a tool of the server is called; `None` for a client's.
    pub(super) fn started(&self) -> Option<ToolStatus> {
        let Target::Server(name) = &self.target else { return None };
        let dialect = match &self.origin {
            Origin::Text(dialect) => dialect.to_string(),
            _ => NATIVE.to_owned(),
        };
        let (id, arguments) = (self.id.clone(), self.arguments_value());
        Some(ToolStatus::Started { id, name: name.clone(), arguments, dialect })
    }
}

/// An id that no other call of this server has: nine letters and digits, which is the form that Mistral's templates ask for
/// and all others take.
pub(super) fn new_call_id() -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    (0..9)
        .filter_map(|_| DIGITS.get(fastrand::usize(..DIGITS.len())))
        .map(|digit| char::from(*digit))
        .collect()
}
