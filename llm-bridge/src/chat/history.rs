//! The conversation of a turn: what the client sent, and what the turn has added to it.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolrack_apis::openai;

use super::{
    offer::Target,
    reader::{FoundCall, Reader},
};

/// The messages of a turn.
#[derive(Debug)]
pub(super) struct History {
    sent: Vec<Value>,
    added: Vec<Value>,
}

impl History {
    pub(super) fn new(sent: Vec<Value>) -> Self {
        Self { sent, added: Vec::new() }
    }

    /// All messages.
    pub(super) fn messages(&self) -> Vec<Value> {
        self.sent.iter().chain(&self.added).cloned().collect()
    }

    /// What the turn has added.
    pub(super) fn added(&self) -> &[Value] {
        &self.added
    }

    /// The ids of all calls.
    pub(super) fn call_ids(&self) -> HashSet<String> {
        let calls = self.sent.iter().chain(&self.added).filter_map(|message| message.get("tool_calls"));
        let calls = calls.filter_map(Value::as_array).flatten();
        calls.filter_map(|call| call.get("id")?.as_str().map(str::to_owned)).collect()
    }

    /// Adds an answer and the results of its calls.
    pub(super) fn add(&mut self, answer: &Reader, results: Vec<Option<String>>) {
        let calls: Vec<Value> = answer
            .calls
            .iter()
            .map(|call| openai::tool_call(&call.id, &call.wire_name, &call.arguments_object().to_string()))
            .collect();
        let text = answer.text.trim_end();
        let content = if text.is_empty() { Value::Null } else { text.into() };
        let mut message = json!({"role": "assistant", "content": content, "tool_calls": calls});
        if let Value::Object(fields) = &mut message
            && !answer.native_reasoning.is_empty()
        {
            fields.insert("reasoning_content".into(), answer.native_reasoning.as_str().into());
        }
        self.added.push(message);
        let results = answer.calls.iter().zip(results);
        self.added.extend(
            results.filter_map(|(call, result)| result.map(|text| openai::tool_message(&call.id, &text))),
        );
    }

    /// Whether the client has to run some of these calls and has not seen all that it will go on from.
    pub(super) fn is_beyond_client(&self, calls: &[FoundCall]) -> bool {
        let is_client = |call: &FoundCall| call.target == Target::Client;
        calls.iter().any(is_client) && !(self.added.is_empty() && calls.iter().all(is_client))
    }
}
