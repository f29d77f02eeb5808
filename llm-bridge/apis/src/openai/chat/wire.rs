//! Requests to model servers.

use http::response::Parts;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json};

use super::{
    API,
    decode::{StreamDecoder, WholeDecoder, failure_of},
    encode::CallJson,
};
use crate::{
    ClientTool, Content, Decode, Effort, Encoded, Failure, Framing, Media, MediaKind, MediaSource, Message,
    Omission, Part, Provider, Request, ResponseFormat, Role, Thinking, ToolChoice, ToolInput, Wire,
    json::Leftover, passing::Fields, wire::passing_omissions,
};

/// OpenAI's chat completions, spoken to a model server.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiWire;

impl Wire for OpenAiWire {
    fn api(&self) -> Provider {
        API
    }

    fn request(&self, request: &Request, definitions: &str) -> Encoded {
        let mut body = Vec::new();
        Framing::append_json(&mut body, &Body::of(request));
        // Definitions are JSON already, and many; they are spliced in as they are.
        if !definitions.is_empty() || !request.tools.is_empty() {
            body.pop();
            body.extend_from_slice(b",\"tools\":[");
            body.extend_from_slice(definitions.as_bytes());
            for tool in &request.tools {
                if !body.ends_with(b"[") {
                    body.push(b',');
                }
                Framing::append_json(&mut body, &ToolJson(tool));
            }
            body.extend_from_slice(b"]}");
        }
        let mut http = http::Request::new(body);
        *http.method_mut() = http::Method::POST;
        *http.uri_mut() = http::Uri::from_static("/chat/completions");
        let json = http::HeaderValue::from_static("application/json");
        http.headers_mut().insert(http::header::CONTENT_TYPE, json);
        Encoded { http, omissions: omissions(request) }
    }

    fn decoder(&self, content_type: &str) -> Box<dyn Decode> {
        match content_type.starts_with("application/json") || content_type.starts_with("text/html") {
            true => Box::new(WholeDecoder::default()),
            false => Box::new(StreamDecoder::default()),
        }
    }

    fn failure(&self, parts: &Parts, body: &[u8]) -> Failure {
        let mut failure = failure_of(&String::from_utf8_lossy(body), Some(parts.status.as_u16()));
        let after = parts.headers.get(http::header::RETRY_AFTER);
        failure.retry_after = after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        failure
    }
}

/// What of a request this API cannot say.
fn omissions(request: &Request) -> Vec<Omission> {
    let mut all = passing_omissions(request, API);
    let mut add = |path: String, done| all.push(Omission { path, done });
    match request.thinking {
        Some(Thinking::On) => add("thinking".into(), "left out: the model's default holds"),
        Some(Thinking::Budget(_)) => add("thinking".into(), "sent as the nearest effort"),
        _ => {}
    }
    for (at, message) in request.messages.iter().enumerate() {
        let mut last_rank = 0;
        for (part_at, part) in message.parts.iter().enumerate() {
            let path = || format!("messages[{at}].parts[{part_at}]");
            if !is_said(message.role, part) {
                add(path(), "left out: it has no place in this message");
                continue;
            }
            let rank = match &part.content {
                Content::Reasoning(reasoning) => {
                    if reasoning.seal.is_some() {
                        add(path() + ".seal", "left out: only its own API knows it");
                    }
                    0
                }
                Content::Call(_) => 2,
                Content::Media(Media { source: MediaSource::Text(_), .. }) => {
                    add(path(), "sent as text");
                    1
                }
                Content::Result(result) => {
                    if result.is_error {
                        add(path() + ".is_error", "left out: the text has to say it");
                    }
                    for (inner_at, inner) in result.parts.iter().enumerate() {
                        if !is_content(inner) {
                            add(
                                format!("{}.parts[{inner_at}]", path()),
                                "left out: it has no place in a result",
                            );
                        }
                    }
                    1
                }
                _ => 1,
            };
            if rank < last_rank {
                add(path(), "moved: reasoning stands first, calls stand last");
            }
            last_rank = last_rank.max(rank);
        }
    }
    all
}

/// Whether a part is said in a message of that role.
fn is_said(role: Role, part: &Part) -> bool {
    match &part.content {
        Content::Reasoning(_) | Content::Call(_) => role == Role::Assistant,
        Content::Result(_) => role == Role::Tool,
        _ => role != Role::Tool && is_content(part),
    }
}

/// Whether a part can stand in `content`.
fn is_content(part: &Part) -> bool {
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

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    messages: Vec<MessageJson<'a>>,
    stream: bool,
    stream_options: StreamOptions<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<FormatJson<'a>>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

impl<'a> Body<'a> {
    fn of(request: &'a Request) -> Self {
        let sampling = &request.sampling;
        let (passing, format) = (&request.passing, request.format.as_ref());
        let but: &[&str] = match (format, request.thinking) {
            (None, None) => &["stream_options", "json_schema"],
            (None, Some(_)) => &["stream_options", "json_schema", "reasoning_effort"],
            (Some(_), None) => &["stream_options", "json_schema", "response_format"],
            (Some(_), Some(_)) => &["stream_options", "json_schema", "response_format", "reasoning_effort"],
        };
        Self {
            model: request.model.as_deref(),
            messages: request.messages.iter().map(MessageJson).collect(),
            stream: true,
            stream_options: StreamOptions {
                include_usage: true,
                passing: Leftover(passing.get(API, "stream_options")),
            },
            tool_choice: choice_json(&request.choice),
            parallel_tool_calls: request.parallel,
            max_tokens: sampling.max_tokens,
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            top_k: sampling.top_k,
            min_p: sampling.min_p,
            presence_penalty: sampling.presence_penalty,
            frequency_penalty: sampling.frequency_penalty,
            seed: sampling.seed,
            stop: &sampling.stop,
            reasoning_effort: request.thinking.and_then(|thinking| match thinking {
                Thinking::Off => Some("none"),
                Thinking::On => None,
                Thinking::Effort(effort) => Some(effort.as_str()),
                Thinking::Budget(tokens) => Some(Effort::from_budget(tokens).as_str()),
            }),
            response_format: format.map(|format| FormatJson {
                format,
                inner: Leftover(passing.get(API, "json_schema")),
                outer: Leftover(passing.get(API, "response_format")),
            }),
            passing: Fields { fields: passing.to(API), but },
        }
    }
}

#[derive(Serialize)]
struct StreamOptions<'a> {
    include_usage: bool,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

fn choice_json(choice: &ToolChoice) -> Option<Value> {
    let named = |name: &String| json!({"type": "function", "function": {"name": name}});
    Some(match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => named(name),
        ToolChoice::Allowed { names, required } => {
            let mode = if *required { "required" } else { "auto" };
            let tools: Vec<Value> = names.iter().map(named).collect();
            json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}})
        }
    })
}

struct FormatJson<'a> {
    format: &'a ResponseFormat,
    inner: Leftover<'a>,
    outer: Leftover<'a>,
}

impl Serialize for FormatJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Outer<'a> {
            #[serde(rename = "type")]
            kind: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            json_schema: Option<Inner<'a>>,
            #[serde(flatten)]
            passing: Leftover<'a>,
        }
        #[derive(Serialize)]
        struct Inner<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            description: Option<&'a str>,
            schema: &'a Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            strict: Option<bool>,
            #[serde(flatten)]
            passing: Leftover<'a>,
        }
        let (kind, json_schema) = match self.format {
            ResponseFormat::JsonObject => ("json_object", None),
            ResponseFormat::JsonSchema { name, description, schema, strict } => {
                let inner = Inner {
                    // The API requires one.
                    name: name.as_deref().unwrap_or("response"),
                    description: description.as_deref(),
                    schema,
                    strict: *strict,
                    passing: self.inner,
                };
                ("json_schema", Some(inner))
            }
        };
        Outer { kind, json_schema, passing: self.outer }.serialize(serializer)
    }
}

struct ToolJson<'a>(&'a ClientTool);

impl Serialize for ToolJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Inner<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            description: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            parameters: Option<&'a Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            strict: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            format: Option<&'a Value>,
            #[serde(flatten)]
            passing: Leftover<'a>,
        }
        let ClientTool { name, description, input, passing } = self.0;
        let (kind, parameters, strict, format) = match input {
            ToolInput::Json { schema, strict } => ("function", schema.as_ref(), *strict, None),
            ToolInput::Text { format } => ("custom", None, None, format.as_ref()),
        };
        let description = description.as_deref();
        let leftover = Leftover(passing.get(API, kind));
        let inner = Inner { name, description, parameters, strict, format, passing: leftover };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", kind)?;
        map.serialize_entry(kind, &inner)?;
        for (name, value) in passing.to(API).iter().filter(|(name, _)| **name != *kind) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

struct MessageJson<'a>(&'a Message);

impl Serialize for MessageJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Message { role, parts, passing } = self.0;
        let mut map = serializer.serialize_map(None)?;
        let word = match role {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        map.serialize_entry("role", word)?;
        if let Some(result) = self.0.tool_result() {
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
    let media_type = media.media_type.as_deref();
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
