//! What a turn adds to the conversation.

use std::collections::HashSet;

use registry_core::Origin;
use toolrack_apis::{Content, Media, Message, Part, Reasoning, Role, ToolResult};

use super::{call::FoundCall, offer::Target, reader::Reader};

/// The ids of all calls.
pub(super) fn call_ids(messages: &[Message]) -> HashSet<String> {
    messages.iter().flat_map(Message::calls).map(|call| call.id.clone()).collect()
}

/// An answer with calls, and their results; `None` for a call that the client runs.
pub(super) fn messages_of(answer: &Reader, results: Vec<Option<Answered>>) -> Vec<Message> {
    let mut parts: Vec<Part> = Vec::new();
    let text = format!("{}{}", answer.native_reasoning, answer.reasoning);
    if !text.trim().is_empty() {
        parts.push(Content::Reasoning(Reasoning { text, seal: None }).into());
    }
    // Before a call that was read from the text the template writes the line break; one that the server has read stands behind the text
    // as the model wrote it, and the server's cache holds only for that.
    let is_native = |call: &FoundCall| call.origin == Origin::Native;
    let is_exact = !answer.calls.is_empty() && answer.calls.iter().all(is_native);
    let text = if is_exact { answer.text.as_str() } else { answer.text.trim_end() };
    if !text.trim().is_empty() {
        parts.push(Content::Text(text.to_owned()).into());
    }
    let call = |call: &FoundCall| Part {
        content: Content::Call(call.in_conversation()),
        passing: call.passing.clone(),
    };
    parts.extend(answer.calls.iter().map(call));
    let results =
        answer.calls.iter().zip(results).filter_map(|(call, result)| Some(result_of(call, result?)));
    let mut message = Message::new(Role::Assistant, parts);
    if !answer.calls.is_empty() && !answer.calls.iter().any(is_native) {
        message.written = answer.written.text(&answer.text);
    }
    std::iter::once(message).chain(results).collect()
}

/// The result of a call.
pub(super) fn result_of(call: &FoundCall, answered: Answered) -> Message {
    let (name, is_error) = (Some(call.wire_name.clone()), answered.is_error);
    Message::result(ToolResult { call_id: call.id.clone(), name, parts: answered.parts(), is_error })
}

/// Puts a result in the place of the one that the call of this id has.
pub(super) fn replace_result(messages: &mut [Message], id: &str, answered: Answered) {
    let results = messages.iter_mut().flat_map(|message| &mut message.parts);
    let old = results.filter_map(|part| match &mut part.content {
        Content::Result(result) if result.call_id == id => Some(result),
        _ => None,
    });
    if let Some(result) = old.last() {
        (result.is_error, result.parts) = (answered.is_error, answered.parts());
    }
}

/// What a call gave back to the model.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    pub(super) text: String,
    pub(super) pictures: Vec<Media>,
    pub(super) is_error: bool,
}

impl Answered {
    fn parts(self) -> Vec<Part> {
        let text = (!self.text.is_empty()).then_some(Content::Text(self.text));
        let contents = text.into_iter().chain(self.pictures.into_iter().map(Content::Media));
        contents.map(Part::from).collect()
    }
}

/// Whether the client has to run some of the calls of an answer and does not see all that it will go on from, which is what was added
/// before them.
pub(super) fn is_beyond_client(added: &[Message], answer: &Reader) -> bool {
    let is_client = |call: &FoundCall| call.target == Target::Client;
    let is_seen = || added.is_empty() && !answer.has_thought() && answer.calls.iter().all(is_client);
    answer.calls.iter().any(is_client) && !is_seen()
}
