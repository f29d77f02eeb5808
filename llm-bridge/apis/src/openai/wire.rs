//! Requests to model servers.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{
    API, FORMAT_REST, SCHEMA_REST,
    client_tools::ToolJson,
    decode::{read_answer, read_frame},
    message_json::{MessageJson, is_content, messages_of},
};
use crate::{
    CallInput, Content, Decode, Effort, Encoded, Framing, Media, MediaSource, Message, Omission, Part,
    Provider, Request, ResponseFormat, Role, Thinking, ToolChoice, ToolInput, Wire,
    decoder::{StreamDecoder, WholeDecoder},
    json::Leftover,
    passing::Fields,
    results::in_text_and_functions,
    wire::{AS_FUNCTION, media_omission, passing_omissions, post},
};

/// OpenAI's chat completions, spoken to a model server.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiWire;

impl Wire for OpenAiWire {
    fn api(&self) -> Provider {
        API
    }

    fn request(&self, request: &Request, definitions: &str) -> Encoded {
        let tools = request.tools.iter().map(|tool| ToolJson::new(tool, API));
        let messages = in_text_and_functions(&request.messages, is_content);
        let http = post("/chat/completions", &Body::of(request, &messages), definitions, tools);
        Encoded { http, omissions: omissions(request) }
    }

    fn decoder(&self, content_type: &str) -> Box<dyn Decode> {
        match content_type.starts_with("application/json") || content_type.starts_with("text/html") {
            true => Box::new(WholeDecoder::new(read_answer)),
            false => Box::new(StreamDecoder::new(Framing::Sse, read_frame)),
        }
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
    for (at, tool) in request.tools.iter().enumerate() {
        if matches!(tool.input, ToolInput::Text { .. }) {
            add(format!("tools[{at}]"), AS_FUNCTION);
        }
    }
    for (at, message) in request.messages.iter().enumerate() {
        let mut last_rank = 0;
        for (part_at, part) in message.parts.iter().enumerate() {
            let path = || format!("messages[{at}].parts[{part_at}]");
            let is_media = matches!(part.content, Content::Media(_)) && message.role != Role::Tool;
            if !is_said(message.role, part) {
                add(
                    path(),
                    if is_media {
                        media_omission(false)
                    } else {
                        "left out: it has no place in this message"
                    },
                );
                continue;
            }
            let rank = match &part.content {
                Content::Reasoning(reasoning) => {
                    if reasoning.seal.is_some() {
                        add(path() + ".seal", "left out: only its own API knows it");
                    }
                    0
                }
                Content::Call(call) => {
                    if call.input == CallInput::Text {
                        add(path(), AS_FUNCTION);
                    }
                    2
                }
                Content::Media(Media { source: MediaSource::Text(_), .. }) => {
                    add(path(), "sent as text");
                    1
                }
                Content::Result(result) => {
                    if result.is_error {
                        add(path() + ".is_error", "said in the text");
                    }
                    for (inner_at, inner) in result.parts.iter().enumerate() {
                        let done = match &inner.content {
                            Content::Media(_) => media_omission(is_content(inner)),
                            _ if !is_content(inner) => "left out: it has no place in a result",
                            _ => continue,
                        };
                        add(format!("{}.parts[{inner_at}]", path()), done);
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
    /// At llama.cpp and LM Studio.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat_penalty: Option<f64>,
    /// At vLLM and SGLang; each leaves out what it does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u64>,
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
    fn of(request: &'a Request, messages: &'a [Cow<'_, Message>]) -> Self {
        let sampling = &request.sampling;
        let (passing, format) = (&request.passing, request.format.as_ref());
        let but: &[&str] = match request.thinking {
            None => &["stream_options", FORMAT_REST, SCHEMA_REST],
            Some(_) => &["stream_options", FORMAT_REST, SCHEMA_REST, "reasoning_effort"],
        };
        Self {
            model: request.model.as_deref(),
            messages: messages.iter().flat_map(|message| messages_of(message)).collect(),
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
            repeat_penalty: sampling.repeat_penalty,
            repetition_penalty: sampling.repeat_penalty,
            seed: sampling.seed,
            logprobs: request.logprobs.map(|_| true),
            top_logprobs: request.logprobs.filter(|count| *count > 0),
            stop: &sampling.stop,
            reasoning_effort: request.thinking.and_then(|thinking| match thinking {
                Thinking::Off => Some("none"),
                Thinking::On => None,
                Thinking::Effort(effort) => Some(effort.as_str()),
                Thinking::Budget(tokens) => Some(Effort::from_budget(tokens).as_str()),
            }),
            response_format: format.map(|format| FormatJson {
                format,
                inner: Leftover(passing.get(API, SCHEMA_REST)),
                outer: Leftover(passing.get(API, FORMAT_REST)),
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
