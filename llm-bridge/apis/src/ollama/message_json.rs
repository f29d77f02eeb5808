//! Messages as they go to model servers, and calls as they go there and to clients.

use std::collections::HashMap;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;

use super::API;
use crate::{
    Call, Content, MediaKind, MediaSource, Message, Part, Passing, Role, json::Leftover, message::plain_text,
    passing::Fields,
};

/// The names of the calls of a conversation, by their ids.
pub(super) type CallNames<'a> = HashMap<&'a str, &'a str>;

/// The messages that a message is: one, or one for each of several results.
pub(super) fn messages_of<'a>(
    message: &'a Message,
    names: &'a CallNames<'a>,
) -> impl Iterator<Item = MessageJson<'a>> {
    let results = message.parts.iter().filter_map(move |part| match &part.content {
        Content::Result(result) if message.role == Role::Tool => {
            let name = result.name.as_deref().or_else(|| names.get(result.call_id.as_str()).copied());
            Some(MessageJson { message, result: Some((&result.call_id, name)), parts: &result.parts })
        }
        _ => None,
    });
    let is_other = message.role != Role::Tool;
    results.chain(is_other.then_some(MessageJson { message, result: None, parts: &message.parts }))
}

/// A message, or one of its results.
pub(super) struct MessageJson<'a> {
    message: &'a Message,
    /// The id and the name of the call that it is the result of.
    result: Option<(&'a str, Option<&'a str>)>,
    parts: &'a [Part],
}

impl Serialize for MessageJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { message, result, parts } = self;
        let mut map = serializer.serialize_map(None)?;
        let role = match message.role {
            Role::System | Role::Developer => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        map.serialize_entry("role", role)?;
        map.serialize_entry("content", &plain_text(parts))?;
        if let Some((id, name)) = result {
            map.serialize_entry("tool_call_id", id)?;
            if let Some(name) = name {
                map.serialize_entry("tool_name", name)?;
            }
        }
        if message.role == Role::Assistant {
            let thinking: String = parts.iter().filter_map(thinking_of).collect();
            if !thinking.is_empty() {
                map.serialize_entry("thinking", &thinking)?;
            }
            let calls: Vec<CallJson<'_>> = parts.iter().filter_map(call_of).collect();
            if !calls.is_empty() {
                map.serialize_entry("tool_calls", &calls)?;
            }
        }
        let images: Vec<&str> = parts.iter().filter_map(image_of).collect();
        if !images.is_empty() {
            map.serialize_entry("images", &images)?;
        }
        for (name, value) in message.passing.to(API) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn thinking_of(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Reasoning(reasoning) => Some(&reasoning.text),
        _ => None,
    }
}

fn call_of(part: &Part) -> Option<CallJson<'_>> {
    match &part.content {
        Content::Call(call) => Some(CallJson::new(call, &part.passing)),
        _ => None,
    }
}

/// The Base64 of a picture. The API takes no other media, and fetches nothing.
pub(super) fn image_of(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Media(media) if media.kind == MediaKind::Image => match &media.source {
            MediaSource::Data(data) => Some(data),
            _ => None,
        },
        _ => None,
    }
}

/// A call. Its arguments are an object in any case.
#[derive(Serialize)]
pub(super) struct CallJson<'a> {
    id: &'a str,
    function: FunctionJson<'a>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

#[derive(Serialize)]
struct FunctionJson<'a> {
    /// Its place among the calls of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    name: &'a str,
    arguments: std::borrow::Cow<'a, RawValue>,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

impl<'a> CallJson<'a> {
    pub(super) fn new(call: &'a Call, passing: &'a Passing) -> Self {
        Self {
            id: &call.id,
            function: FunctionJson {
                index: None,
                name: &call.name,
                arguments: call.arguments_as_object(),
                passing: Leftover(passing.get(API, "function")),
            },
            passing: Fields { fields: passing.to(API), but: &["function"] },
        }
    }

    /// A call of an answer, by its place among them.
    pub(super) fn at(index: u32, call: &'a Call, passing: &'a Passing) -> Self {
        let mut json = Self::new(call, passing);
        json.function.index = Some(index);
        json
    }
}
