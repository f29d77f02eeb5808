//! Random requests, and their bodies as a client writes them.

use std::sync::Arc;

use proptest::{option, prelude::*};
use serde_json::{Value, json};
use toolrack_apis::{
    Call, ClientTool, Content, Effort, Media, MediaKind, MediaSource, Message, Part, Passing, RawJson,
    Reasoning, Request, ResponseFormat, Role, Sampling, Seal, SealKind, Thinking, ToolChoice, ToolInput,
    ToolResult,
};

use super::API;
use crate::strategies::{self, leftover, name, object, text, with};

fn passing(names: &'static [&'static str]) -> impl Strategy<Value = Passing> {
    strategies::passing(API, names)
}

fn media() -> impl Strategy<Value = Part> {
    let data = "[A-Za-z0-9+/]{1,20}".prop_map(MediaSource::Data);
    let place =
        prop_oneof!["https://a/[a-z]{1,5}".prop_map(MediaSource::Url), name().prop_map(MediaSource::Id)];
    let image = prop_oneof![
        (data.clone(), Just(Some("image/png".to_owned()))).boxed(),
        (place.clone(), Just(None)).boxed()
    ]
    .prop_map(|(source, media_type)| Media { media_type, ..Media::new(MediaKind::Image, source) });
    let file = prop_oneof![
        (data, Just(Some("application/pdf".to_owned()))).boxed(),
        (text().prop_map(MediaSource::Text), Just(Some("text/plain".to_owned()))).boxed(),
        (place, Just(None)).boxed(),
    ];
    let file = (file, option::of(text())).prop_map(|((source, media_type), name)| Media {
        media_type,
        name,
        ..Media::new(MediaKind::File, source)
    });
    let media = prop_oneof![image.boxed(), file.boxed()];
    (media, leftover(API, &["cache_control", "context"], "source"))
        .prop_map(|(media, passing)| Part { content: Content::Media(media), passing })
}

fn said() -> impl Strategy<Value = Part> {
    (text(), passing(&["cache_control", "citations"]))
        .prop_map(|(text, passing)| Part { content: Content::Text(text), passing })
}

fn content() -> impl Strategy<Value = Vec<Part>> {
    let opaque = Just(Content::Opaque(API, RawJson::of(&json!({"type": "container_upload", "x": 1}))).into());
    proptest::collection::vec(
        prop_oneof![3 => said().boxed(), 2 => media().boxed(), 1 => opaque.boxed()],
        0..4,
    )
}

fn reasoning() -> impl Strategy<Value = Part> {
    let seal = |kind| name().prop_map(move |data| Some(Seal { api: API, kind, data }));
    let thinking = (text(), prop_oneof![Just(None).boxed(), seal(SealKind::Signature).boxed()]);
    let redacted = (Just(String::new()), seal(SealKind::Encrypted));
    prop_oneof![thinking.boxed(), redacted.boxed()]
        .prop_map(|(text, seal)| Content::Reasoning(Reasoning { text, seal }).into())
}

fn call() -> impl Strategy<Value = Part> {
    let arguments = prop_oneof![Just("{\"a\":1}"), Just("{}"), Just("{\"b\":{\"c\":[null,\"d\"]}}")];
    (name(), name(), arguments, passing(&["cache_control", "caller"])).prop_map(
        |(id, name, arguments, passing)| Part {
            content: Content::Call(Call::new(id, name, arguments)),
            passing,
        },
    )
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let user = content().prop_map(|parts| (Role::User, parts));
    let system = proptest::collection::vec(said(), 0..3).prop_map(|parts| (Role::System, parts));
    let part = prop_oneof![said().boxed(), reasoning().boxed(), call().boxed()];
    let assistant = proptest::collection::vec(part, 0..5).prop_map(|parts| (Role::Assistant, parts));
    let spoken = (prop_oneof![user.boxed(), system.boxed(), assistant.boxed()], passing(&["x", "y"]))
        .prop_map(|((role, parts), passing)| Message { passing, ..Message::new(role, parts) });
    let result = (name(), content(), any::<bool>(), passing(&["cache_control"])).prop_map(
        |(call_id, parts, is_error, passing)| {
            let result = ToolResult { call_id, name: None, parts, is_error };
            Message::new(Role::Tool, vec![Part { content: Content::Result(result), passing }])
        },
    );
    prop_oneof![3 => spoken, 2 => result]
}

pub(super) fn request() -> impl Strategy<Value = Request> {
    let choice = prop_oneof![
        Just(ToolChoice::Auto),
        Just(ToolChoice::None),
        Just(ToolChoice::Required),
        name().prop_map(ToolChoice::Named),
    ];
    let thinking = prop_oneof![
        Just(Thinking::Off),
        Just(Thinking::On),
        prop::sample::select(&Effort::ALL[..]).prop_map(Thinking::Effort),
        (0_u64..1 << 20).prop_map(Thinking::Budget),
    ];
    let format = option::of(Just(ResponseFormat::JsonSchema {
        name: None,
        description: None,
        schema: json!({"type": "object", "properties": {"a": true}}),
        strict: None,
    }));
    let tool = (name(), option::of(text()), option::of(any::<bool>()), passing(&["cache_control", "x"]))
        .prop_map(|(name, description, strict, passing)| {
            let schema = Some(Arc::new(json!({"type": "object", "properties": {"a": {"type": "string"}}})));
            ClientTool { name, description, input: ToolInput::Json { schema, strict }, passing }
        });
    let sampling = strategies::sampling().prop_map(|sampling| Sampling {
        max_tokens: sampling.max_tokens,
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        top_k: sampling.top_k,
        stop: sampling.stop,
        ..Sampling::default()
    });
    let asked =
        (option::of(name()), choice, option::of(any::<bool>()), sampling, option::of(thinking), format);
    let said = (
        option::of(proptest::collection::vec(said(), 1..3)),
        proptest::collection::vec(message(), 1..6),
        option::of(tool),
        leftover(API, &["metadata", "service_tier", "cache_control"], "output_format"),
    );
    (asked, said).prop_map(
        |((model, choice, parallel, sampling, thinking, format), (system, mut messages, tool, passing))| {
            messages.splice(..0, system.map(|parts| Message::new(Role::System, parts)));
            if messages.len() == 1 && messages[0].role == Role::System {
                messages.push(Message::text(Role::User, "hi"));
            }
            let mut kept = Passing::of(API);
            for (name, value) in passing.to(API) {
                if &**name != "output_format" || format.is_some() {
                    kept.push(name.clone(), value.clone());
                }
            }
            Request {
                model,
                messages,
                tools: tool.into_iter().collect(),
                choice,
                parallel,
                stream: true,
                sampling,
                thinking,
                format,
                passing: kept,
                ..Request::default()
            }
        },
    )
}

/// The body of a request as a client of this API writes it. Results and what the user says after them are one message.
pub(super) fn body(request: &Request) -> Value {
    let (system, rest) = match request.messages.split_first() {
        Some((first, rest))
            if first.role == Role::System && first.passing.is_empty() && !first.parts.is_empty() =>
        {
            (Some(blocks(&first.parts)), rest)
        }
        _ => (None, request.messages.as_slice()),
    };
    let mut messages: Vec<Value> = Vec::new();
    let mut after_result = false;
    for message in rest {
        let content = blocks(&message.parts);
        let is_result = message.role == Role::Tool;
        let role = match message.role {
            Role::Assistant => "assistant",
            Role::System => "system",
            _ => "user",
        };
        if after_result && (is_result || (role == "user" && !message.parts.is_empty())) {
            let last = messages.last_mut().unwrap();
            last["content"].as_array_mut().unwrap().extend(content);
            *last = with(last.take(), &message.passing, API);
        } else {
            messages.push(with(json!({"role": role, "content": content}), &message.passing, API));
        }
        after_result = is_result;
    }
    let effort = match request.thinking {
        Some(Thinking::Effort(effort)) => Some(effort.as_str()),
        _ => None,
    };
    let format = request.format.as_ref().map(|format| match format {
        ResponseFormat::JsonSchema { schema, .. } => json!({"type": "json_schema", "schema": schema}),
        ResponseFormat::JsonObject => panic!("has no form here"),
    });
    let config = object(json!({"effort": effort}));
    let sampling = &request.sampling;
    let body = object(json!({
        "model": request.model,
        "system": system,
        "messages": messages,
        "stream": request.stream,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop_sequences": sampling.stop,
        "tools": request.tools.iter().map(tool_json).collect::<Vec<_>>(),
        "tool_choice": choice_json(request),
        "thinking": request.thinking.map(|thinking| match thinking {
            Thinking::Off => json!({"type": "disabled"}),
            Thinking::On | Thinking::Effort(_) => json!({"type": "adaptive"}),
            Thinking::Budget(tokens) => json!({"type": "enabled", "budget_tokens": tokens}),
        }),
        "output_config": config,
        "output_format": format,
    }));
    with(body, &request.passing, API)
}

fn choice_json(request: &Request) -> Option<Value> {
    let mut choice = match &request.choice {
        ToolChoice::Auto if request.parallel.is_none() => return None,
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": name}),
        ToolChoice::Allowed { .. } => panic!("has no form here"),
    };
    if let Some(parallel) = request.parallel {
        choice["disable_parallel_tool_use"] = json!(!parallel);
    }
    Some(choice)
}

fn tool_json(tool: &ClientTool) -> Value {
    let ToolInput::Json { schema, strict } = &tool.input else { panic!("has no form here") };
    let known = json!({
        "name": tool.name, "description": tool.description, "input_schema": schema, "strict": strict,
    });
    with(object(known), &tool.passing, API)
}

fn blocks(parts: &[Part]) -> Vec<Value> {
    parts.iter().map(block).collect()
}

pub(super) fn block(part: &Part) -> Value {
    let known = match &part.content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Reasoning(Reasoning { text, seal }) => match seal {
            Some(Seal { kind: SealKind::Encrypted, data, .. }) => {
                json!({"type": "redacted_thinking", "data": data})
            }
            seal => {
                let signature = seal.as_ref().map_or("", |seal| seal.data.as_str());
                json!({"type": "thinking", "thinking": text, "signature": signature})
            }
        },
        Content::Media(media) => {
            let (kind, field, data) = match &media.source {
                MediaSource::Data(data) => ("base64", "data", data),
                MediaSource::Text(text) => ("text", "data", text),
                MediaSource::Url(url) => ("url", "url", url),
                MediaSource::Id(id) => ("file", "file_id", id),
            };
            let source = object(json!({"type": kind, field: data, "media_type": media.media_type}));
            let kind = if media.kind == MediaKind::Image { "image" } else { "document" };
            object(json!({"type": kind, "source": source, "title": media.name}))
        }
        Content::Call(call) => {
            let input = call.arguments_object().unwrap();
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
        }
        Content::Result(result) => json!({
            "type": "tool_result", "tool_use_id": result.call_id, "content": blocks(&result.parts),
            "is_error": result.is_error,
        }),
        Content::Opaque(_, json) => serde_json::from_str(json.get()).unwrap(),
    };
    with(known, &part.passing, API)
}
