//! Messages of a conversation, and the parts that they consist of.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Passing, Provider, RawJson};

/// One message of a conversation.
///
/// Every front brings a conversation into one form, so that nothing after it has to know two:
/// - A system prompt is a message of role [`System`](Role::System) or [`Developer`](Role::Developer), wherever it stands.
/// - The result of a call is alone in a message of role [`Tool`](Role::Tool). Where an API has several results and the user's text in
///   one message, its front makes one message of each result and puts the text after them.
/// - Only [`Assistant`](Role::Assistant) messages have [`Reasoning`](Content::Reasoning) and [`Call`](Content::Call).
/// - There is no empty text.
///
/// # As JSON
/// Conversations are stored in a form of their own, which is no API's. It can be read by later versions; fields that are unknown or missing are
/// ignored or have their defaults, so that a version can add some. It is JSON text: other formats of serde cannot hold what passes.
///
/// ```
/// use toolrack_apis::{Call, Content, Message, Role, ToolResult};
///
/// let result = ToolResult {
///     call_id: "c1".into(),
///     parts: vec![Content::Text("7 °C".into()).into()],
///     ..ToolResult::default()
/// };
/// let messages = [
///     Message::text(Role::User, "Is it cold?"),
///     Message::new(Role::Assistant, vec![Content::Call(Call::new("c1", "weather", "{}")).into()]),
///     Message::result(result),
/// ];
/// let text = concat!(
///     r#"[{"role":"user","parts":[{"content":{"text":"Is it cold?"}}]},"#,
///     r#"{"role":"assistant","parts":[{"content":{"call":{"id":"c1","name":"weather","arguments":"{}"}}}]},"#,
///     r#"{"role":"tool","parts":[{"content":{"result":{"call_id":"c1","parts":[{"content":{"text":"7 °C"}}]}}}]}]"#,
/// );
/// assert_eq!(serde_json::to_string(&messages)?, text);
/// assert_eq!(serde_json::from_str::<Vec<Message>>(text)?, messages);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What it says, in order.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// What only the client's API knows of the message.
    #[serde(default, skip_serializing_if = "Passing::is_empty")]
    pub passing: Passing,
    /// The answer as the model wrote it, with its calls, where these were read from its text. The parts say the same. No API has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
}

impl Message {
    /// A message of these parts.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, passing: Passing::none(), written: None }
    }

    /// A message of one text, or of nothing where the text is empty.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        let text = text.into();
        let parts = if text.is_empty() { Vec::new() } else { vec![Content::Text(text).into()] };
        Self::new(role, parts)
    }

    /// The message with the result of a call.
    pub fn result(result: ToolResult) -> Self {
        Self::new(Role::Tool, vec![Content::Result(result).into()])
    }

    /// Its texts, one after the other, each in a line of its own.
    pub fn plain_text(&self) -> String {
        plain_text(&self.parts)
    }

    /// Its calls.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match &part.content {
            Content::Call(call) => Some(call),
            _ => None,
        })
    }

    /// About how many bytes it takes in memory.
    pub fn size(&self) -> usize {
        let written = self.written.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.passing.size() + parts_size(&self.parts) + written
    }

    /// The result in it; only messages of role [`Tool`](Role::Tool) have one.
    pub fn tool_result(&self) -> Option<&ToolResult> {
        self.parts.iter().find_map(|part| match &part.content {
            Content::Result(result) => Some(result),
            _ => None,
        })
    }
}

/// Adds a message whose parts may have results. Each of these becomes a message that stands before it; where there is nothing else, it
/// is not added. The passing fields are those of the last message.
pub(crate) fn push_taken_apart(messages: &mut Vec<Message>, role: Role, parts: Vec<Part>, passing: Passing) {
    let (results, parts): (Vec<Part>, Vec<Part>) =
        parts.into_iter().partition(|part| matches!(part.content, Content::Result(_)));
    let has_results = !results.is_empty();
    messages.extend(results.into_iter().map(|result| Message::new(Role::Tool, vec![result])));
    if !parts.is_empty() || !has_results {
        messages.push(Message::new(role, parts));
    }
    if let Some(last) = messages.last_mut() {
        last.passing = passing;
    }
}

/// The texts among parts, one after the other, each in a line of its own.
pub(crate) fn plain_text(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The operator of the model.
    System,
    /// The author of the program; APIs without this role take it as [`System`](Self::System).
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// A part of a message or of a tool's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What it is.
    pub content: Content,
    /// What only the client's API knows of the part, such as `cache_control`.
    #[serde(default, skip_serializing_if = "Passing::is_empty")]
    pub passing: Passing,
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self { content, passing: Passing::none() }
    }
}

/// What a part is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text; not empty.
    Text(String),
    /// What the model thought before it answered.
    Reasoning(Reasoning),
    /// A picture, a recording or a document.
    Media(Media),
    /// A call of a tool.
    Call(Call),
    /// What a call gave back.
    Result(ToolResult),
    /// A part that only one API knows, as it wrote it.
    #[serde(with = "crate::opaque")]
    Opaque(Provider, RawJson),
}

/// What the model thought before it answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The text; empty where the API shows none.
    #[serde(default)]
    pub text: String,
    /// What the API that made it wants back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

/// What a hosted API adds to reasoning and wants back unchanged. It means nothing to any other API: encoders and wires of another
/// one leave it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// Whose it is.
    pub api: Provider,
    /// What it does.
    pub kind: SealKind,
    /// The seal itself, as the API wrote it.
    pub data: String,
}

/// What a [`Seal`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SealKind {
    /// It proves that the model wrote the text (`signature`, `thoughtSignature`).
    Signature,
    /// It is the reasoning, which only the API can read (`redacted_thinking`, `encrypted_content`).
    Encrypted,
}

/// A picture, a recording or a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Media {
    /// What kind it is.
    pub kind: MediaKind,
    /// Where its bytes are.
    pub source: MediaSource,
    /// Its media type, such as `image/png`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its file name, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How closely the model looks at a picture: `low`, `high`, `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Media {
    /// Media of a source, of which nothing else is known.
    pub fn new(kind: MediaKind, source: MediaSource) -> Self {
        Self { kind, source, media_type: None, name: None, detail: None }
    }

    /// Its media type: as it is said, or as the beginning of a picture's bytes in Base64 tells it.
    pub fn known_type(&self) -> Option<&str> {
        const BEGINNINGS: [(&str, &str); 4] = [
            ("iVBORw0KGgo", "image/png"),
            ("/9j/", "image/jpeg"),
            ("R0lGOD", "image/gif"),
            ("UklGR", "image/webp"),
        ];
        let begins = |data: &str| BEGINNINGS.iter().find(|(begins, _)| data.starts_with(begins));
        self.media_type.as_deref().or_else(|| match (&self.source, self.kind) {
            (MediaSource::Data(data), MediaKind::Image) => begins(data).map(|(_, name)| *name),
            _ => None,
        })
    }

    /// Media of a `data:` URL in Base64, or of another text, which is what `other` says.
    pub(crate) fn from_url(kind: MediaKind, url: String, other: fn(String) -> MediaSource) -> Self {
        let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match inline {
            Some((media_type, data)) => Self {
                media_type: Some(media_type.to_owned()).filter(|name| !name.is_empty()),
                ..Self::new(kind, MediaSource::Data(data.to_owned()))
            },
            None => Self::new(kind, other(url)),
        }
    }
}

/// The kind of [`Media`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
    /// A document.
    File,
}

/// Where the bytes of [`Media`] are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaSource {
    /// Here, in Base64. It is passed on as it came and never decoded.
    Data(String),
    /// Here, as text: a document without any format.
    Text(String),
    /// At an address that the model server fetches.
    Url(String),
    /// At the API, which gave it this id.
    Id(String),
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The call's id, which its result repeats; not empty. Where an API has none, its front makes one up with [`CallIds`](crate::CallIds).
    pub id: String,
    /// The tool's name on the wire.
    pub name: String,
    /// What the tool is called with, as the model wrote it. With [`CallInput::Json`] it is meant to be a JSON object; it may be any
    /// text.
    pub arguments: String,
    /// What the arguments are.
    #[serde(default, skip_serializing_if = "CallInput::is_json")]
    pub input: CallInput,
}

impl Call {
    /// A call with JSON arguments.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), input: CallInput::Json }
    }

    /// The arguments as a JSON object, for APIs that take no text; none at all are an empty object. `None` if they are anything
    /// else.
    pub fn arguments_object(&self) -> Option<&RawValue> {
        let text = self.arguments.trim();
        let text = if text.is_empty() { "{}" } else { text };
        let object = serde_json::from_str::<&RawValue>(text).ok()?;
        object.get().starts_with('{').then_some(object)
    }

    /// The arguments as those of a function, which is what a model has called: a free text is the argument `input`.
    pub fn function_arguments(&self) -> Cow<'_, str> {
        match self.input {
            CallInput::Json => Cow::Borrowed(&self.arguments),
            CallInput::Text => Cow::Owned(serde_json::json!({ "input": self.arguments }).to_string()),
        }
    }

    /// The arguments as a JSON object in any case: what is none stands in the field `INVALID_JSON`, as Anthropic recommends.
    pub(crate) fn arguments_as_object(&self) -> Cow<'_, RawValue> {
        self.arguments_object().map_or_else(
            || {
                let wrapped = serde_json::json!({"INVALID_JSON": self.arguments});
                Cow::Owned(serde_json::value::to_raw_value(&wrapped).unwrap_or_default())
            },
            Cow::Borrowed,
        )
    }
}

/// What the arguments of a [`Call`] are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallInput {
    /// A JSON object.
    #[default]
    Json,
    /// Free text, for a tool with [`ToolInput::Text`](crate::ToolInput::Text).
    Text,
}

impl CallInput {
    fn is_json(&self) -> bool {
        *self == Self::Json
    }
}

/// What a call gave back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call's id.
    pub call_id: String,
    /// The tool's name, where the API repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the tool gave back: text, media, or what only one API knows.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl ToolResult {
    /// Its texts, one after the other, each in a line of its own.
    pub fn plain_text(&self) -> String {
        plain_text(&self.parts)
    }
}

fn parts_size(parts: &[Part]) -> usize {
    let content = |content: &Content| match content {
        Content::Text(text) => text.len(),
        Content::Reasoning(reasoning) => {
            reasoning.text.len() + reasoning.seal.as_ref().map_or(0, |seal| seal.data.len())
        }
        Content::Media(media) => match &media.source {
            MediaSource::Data(text)
            | MediaSource::Text(text)
            | MediaSource::Url(text)
            | MediaSource::Id(text) => text.len(),
        },
        Content::Call(call) => call.id.len() + call.name.len() + call.arguments.len(),
        Content::Result(result) => result.call_id.len() + parts_size(&result.parts),
        Content::Opaque(_, json) => json.get().len(),
    };
    parts.iter().map(|part| size_of::<Part>() + part.passing.size() + content(&part.content)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_none() {
        for (text, object) in [
            ("{\"a\": 1}", Some("{\"a\": 1}")),
            ("", Some("{}")),
            (" \n", Some("{}")),
            ("[]", None),
            ("\"a\"", None),
            ("{\"a\"", None),
        ] {
            let call = Call::new("c", "f", text);
            assert_eq!(call.arguments_object().map(RawValue::get), object, "{text}");
        }
    }
}
