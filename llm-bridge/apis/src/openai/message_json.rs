//! Messages as they go to model servers.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json};

use super::{API, call::CallJson};
use crate::{Content, Media, MediaKind, MediaSource, Message, Part, Role, ToolResult, json::Leftover};

/// Whether a part can stand in `content`.
pub(super) fn is_content(part: &Part) -> bool {
    match &part.content {
        Content::Text(_) => true,
        Content::Media(media) => match media.source {
            MediaSource::Data(_) | MediaSource::Text(_) => true,
            MediaSource::Url(_) => media.kind != MediaKind::File,
            MediaSource::Id(_) => media.kind == MediaKind::File,
        },
        Content::Opaque(api, _) => *api == API,
        _ => false,
    }
}

/// The messages that a message is: one, or one for each of several results.
pub(super) fn messages_of(message: &Message) -> impl Iterator<Item = MessageJson<'_>> {
    let results = message.parts.iter().filter_map(|part| match &part.content {
        Content::Result(result) if message.role == Role::Tool => {
            Some(MessageJson { message, result: Some(result) })
        }
        _ => None,
    });
    let is_other = message.role != Role::Tool;
    results.chain(is_other.then_some(MessageJson { message, result: None }))
}

/// A message, or one of its results.
pub(super) struct MessageJson<'a> {
    message: &'a Message,
    result: Option<&'a ToolResult>,
}

impl Serialize for MessageJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Message { role, parts, passing, .. } = self.message;
        let mut map = serializer.serialize_map(None)?;
        let word = match role {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        map.serialize_entry("role", word)?;
        if let Some(result) = self.result {
            map.serialize_entry("tool_call_id", &result.call_id)?;
            if let Some(name) = &result.name {
                map.serialize_entry("name", name)?;
            }
            map.serialize_entry("content", &ContentJson(&result.parts))?;
        } else {
            let reasoning: Vec<&str> = parts.iter().filter_map(reasoning_of).collect();
            if !reasoning.is_empty() {
                map.serialize_entry("reasoning_content", &reasoning.concat())?;
            }
            let calls: Vec<CallJson<'_>> = match role {
                Role::Assistant => parts.iter().filter_map(call_json).collect(),
                _ => Vec::new(),
            };
            let content = ContentJson(parts);
            map.serialize_entry("content", &(calls.is_empty() || !content.is_empty()).then_some(content))?;
            if !calls.is_empty() {
                map.serialize_entry("tool_calls", &calls)?;
            }
        }
        // `function_call` has become one of the calls.
        for (name, value) in passing.to(API).iter().filter(|(name, _)| **name != *"function_call") {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn reasoning_of(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Reasoning(reasoning) => Some(&reasoning.text),
        _ => None,
    }
}

fn call_json(part: &Part) -> Option<CallJson<'_>> {
    match &part.content {
        Content::Call(call) => {
            Some(CallJson::new(&call.id, &call.name, &call.arguments, call.input, &part.passing))
        }
        _ => None,
    }
}

/// The content of a message: a text where there is nothing else, as some servers take no parts.
#[derive(Clone, Copy)]
struct ContentJson<'a>(&'a [Part]);

impl ContentJson<'_> {
    fn is_empty(self) -> bool {
        !self.0.iter().any(is_content)
    }
}

impl Serialize for ContentJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut parts = self.0.iter().filter(|part| is_content(part));
        match (parts.next(), parts.next()) {
            (None, _) => serializer.serialize_str(""),
            (Some(Part { content: Content::Text(text), passing }), None) if passing.to(API).is_empty() => {
                serializer.serialize_str(text)
            }
            _ => serializer.collect_seq(self.0.iter().filter(|part| is_content(part)).map(PartJson)),
        }
    }
}

struct PartJson<'a>(&'a Part);

impl Serialize for PartJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Part { content, passing } = self.0;
        let (kind, inner) = match content {
            Content::Opaque(_, json) => return json.serialize(serializer),
            Content::Media(media) => media_json(media),
            Content::Text(text) => ("text", json!(text)),
            _ => ("text", json!("")),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", kind)?;
        match (&inner, passing.get(API, kind)) {
            (Value::Object(known), leftover @ Some(_)) => {
                #[derive(Serialize)]
                struct Merged<'a> {
                    #[serde(flatten)]
                    known: &'a serde_json::Map<String, Value>,
                    #[serde(flatten)]
                    passing: Leftover<'a>,
                }
                map.serialize_entry(kind, &Merged { known, passing: Leftover(leftover) })?;
            }
            _ => map.serialize_entry(kind, &inner)?,
        }
        for (name, value) in passing.to(API).iter().filter(|(name, _)| **name != *kind) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn media_json(media: &Media) -> (&'static str, Value) {
    // Ollama's clients do not say it, and servers want it.
    let media_type = media.known_type();
    let data_url = |data: &str| format!("data:{};base64,{data}", media_type.unwrap_or_default());
    let url = match &media.source {
        MediaSource::Text(text) => {
            let title = media.name.as_ref().map(|name| format!("{name}\n\n")).unwrap_or_default();
            return ("text", json!(title + text));
        }
        MediaSource::Data(data) => data_url(data),
        MediaSource::Url(url) => url.clone(),
        MediaSource::Id(id) => id.clone(),
    };
    let (kind, mut inner) = match (media.kind, &media.source) {
        (MediaKind::Image, _) => ("image_url", json!({ "url": url })),
        (MediaKind::Video, _) => ("video_url", json!({ "url": url })),
        (MediaKind::Audio, MediaSource::Data(data)) => {
            let format = media_type.map(|name| match name {
                "audio/mpeg" => "mp3",
                "audio/x-wav" => "wav",
                other => other.strip_prefix("audio/").unwrap_or(other),
            });
            let mut audio = json!({ "data": data });
            add(&mut audio, "format", format);
            ("input_audio", audio)
        }
        (MediaKind::Audio, _) => ("audio_url", json!({ "url": url })),
        (MediaKind::File, MediaSource::Id(id)) => ("file", json!({ "file_id": id })),
        (MediaKind::File, MediaSource::Data(data)) if media_type.is_none() => {
            ("file", json!({ "file_data": data }))
        }
        (MediaKind::File, _) => ("file", json!({ "file_data": url })),
    };
    match media.kind {
        MediaKind::Image => add(&mut inner, "detail", media.detail.as_deref()),
        MediaKind::File => add(&mut inner, "filename", media.name.as_deref()),
        _ => {}
    }
    (kind, inner)
}

fn add(object: &mut Value, name: &str, text: Option<&str>) {
    if let (Value::Object(fields), Some(text)) = (object, text) {
        fields.insert(name.to_owned(), text.into());
    }
}
