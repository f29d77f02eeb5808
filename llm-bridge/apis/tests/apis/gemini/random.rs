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
    let kinds = [
        (MediaKind::Image, "image/png"),
        (MediaKind::Audio, "audio/wav"),
        (MediaKind::Video, "video/mp4"),
        (MediaKind::File, "application/pdf"),
    ];
    let typed = prop::sample::select(kinds.to_vec()).prop_map(|(kind, name)| (kind, Some(name.to_owned())));
    let kind = prop_oneof![typed.boxed(), Just((MediaKind::File, None)).boxed()];
    let data = ("[A-Za-z0-9+/]{1,20}".prop_map(MediaSource::Data), Just("inlineData"));
    let url = ("https://a/[a-z]{1,5}".prop_map(MediaSource::Url), Just("fileData"));
    (
        kind,
        prop_oneof![data.boxed(), url.boxed()],
        option::of(text()),
        passing(&["videoMetadata"]),
        any::<bool>(),
    )
        .prop_map(|((kind, media_type), (source, field), name, mut passing, inner)| {
            if inner {
                passing.push(field, RawJson::of(&json!({"y": 1})));
            }
            let media = Media { media_type, name, ..Media::new(kind, source) };
            Part { content: Content::Media(media), passing }
        })
}

fn said() -> impl Strategy<Value = Part> {
    (text(), passing(&["thoughtSignature", "partMetadata"]))
        .prop_map(|(text, passing)| Part { content: Content::Text(text), passing: signed(passing) })
}

/// The same fields, with a signature that is a text.
fn signed(mut passing: Passing) -> Passing {
    if passing.get(API, "thoughtSignature").is_some() {
        passing.push("thoughtSignature", RawJson::of(&"c2lnbg=="));
    }
    passing
}

fn content() -> impl Strategy<Value = Vec<Part>> {
    let opaque = Just(Content::Opaque(API, RawJson::of(&json!({"executableCode": {"x": 1}}))).into());
    proptest::collection::vec(
        prop_oneof![3 => said().boxed(), 2 => media().boxed(), 1 => opaque.boxed()],
        0..4,
    )
}

/// Messages with calls and their results, whose ids are told or made up.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let user = content().prop_map(|parts| (Role::User, parts));
    let seal = option::of(name())
        .prop_map(|data| data.map(|data| Seal { api: API, kind: SealKind::Signature, data }));
    let thought = (text(), seal).prop_map(|(text, seal)| Content::Reasoning(Reasoning { text, seal }).into());
    let arguments = prop_oneof![Just("{\"a\":1}"), Just("{}"), Just("{\"b\":{\"c\":[null,\"d\"]}}")];
    let call = (name(), name(), arguments, leftover(API, &["thoughtSignature"], "functionCall")).prop_map(
        |(id, name, arguments, passing)| Part {
            content: Content::Call(Call::new(id, name, arguments)),
            passing: signed(passing),
        },
    );
    let part = prop_oneof![said().boxed(), media().boxed(), thought.boxed(), call.boxed()];
    let model = proptest::collection::vec(part, 0..5).prop_map(|parts| (Role::Assistant, parts));
    let spoken = (prop_oneof![user.boxed(), model.boxed()], passing(&["x", "y"]))
        .prop_map(|((role, parts), passing)| Message { passing, ..Message::new(role, parts) });
    let output = (option::of(text()), proptest::collection::vec(media(), 0..2)).prop_map(|(text, media)| {
        text.map(|text| Content::Text(text).into()).into_iter().chain(media).collect::<Vec<Part>>()
    });
    let result =
        (name(), name(), output, any::<bool>(), leftover(API, &["partMetadata"], "functionResponse"))
            .prop_map(|(call_id, name, parts, is_error, passing)| {
                // An error says something.
                let is_error =
                    is_error && matches!(parts.first(), Some(Part { content: Content::Text(_), .. }));
                let result = ToolResult { call_id, name: Some(name), parts, is_error };
                Message::new(Role::Tool, vec![Part { content: Content::Result(result), passing }])
            });
    prop_oneof![3 => spoken.boxed(), 2 => result.boxed()]
}

pub(super) fn request() -> impl Strategy<Value = Request> {
    let choice = prop_oneof![
        Just(ToolChoice::Auto),
        Just(ToolChoice::None),
        Just(ToolChoice::Required),
        name().prop_map(ToolChoice::Named),
        (proptest::collection::vec(name(), 2..4), any::<bool>())
            .prop_map(|(names, required)| ToolChoice::Allowed { names, required }),
    ];
    let thinking = prop_oneof![
        Just(Thinking::Off),
        Just(Thinking::On),
        prop::sample::select(&Effort::ALL[..]).prop_map(Thinking::Effort),
        (1_u64..1 << 20).prop_map(Thinking::Budget),
    ];
    let schema = ResponseFormat::JsonSchema {
        name: None,
        description: None,
        schema: json!({"type": "object", "properties": {"a_b": true}}),
        strict: None,
    };
    let format = option::of(prop_oneof![Just(ResponseFormat::JsonObject), Just(schema)]);
    let schema =
        option::of(Just(Arc::new(json!({"type": "object", "properties": {"a_b": {"type": "string"}}}))));
    let tool = (name(), option::of(text()), schema, passing(&["behavior", "response"])).prop_map(
        |(name, description, schema, passing)| ClientTool {
            name,
            description,
            input: ToolInput::Json { schema, strict: None },
            passing,
        },
    );
    let sampling = strategies::sampling().prop_map(|sampling| Sampling {
        min_p: None,
        repeat_penalty: None,
        ..sampling
    });
    let passing = (
        leftover(API, &["safetySettings", "labels"], "generationConfig"),
        leftover(API, &["safetySettings"], "toolConfig"),
    );
    let passing = passing.prop_map(|(mut one, other)| {
        other.to(API).iter().for_each(|(name, value)| one.push(name.clone(), value.clone()));
        one
    });
    let asked = (choice, sampling, option::of(thinking), format);
    let said = (
        option::of(proptest::collection::vec(said(), 1..3)),
        proptest::collection::vec(message(), 1..6),
        option::of(tool),
        passing,
    );
    (asked, said).prop_map(|((choice, sampling, thinking, format), (system, mut messages, tool, passing))| {
        messages.splice(..0, system.map(|parts| Message::new(Role::System, parts)));
        Request {
            model: Some("m".into()),
            messages,
            tools: tool.into_iter().collect(),
            choice,
            stream: true,
            sampling,
            thinking,
            format,
            passing,
            ..Request::default()
        }
    })
}

/// The body of a request as a client of this API writes it, in camel case.
pub(super) fn body(request: &Request) -> Value {
    let (system, rest) = match request.messages.split_first() {
        Some((first, rest)) if first.role == Role::System => {
            (Some(json!({"parts": parts_of(&first.parts)})), rest)
        }
        _ => (None, request.messages.as_slice()),
    };
    let mut contents: Vec<Value> = Vec::new();
    let mut after_result = false;
    for message in rest {
        let written = parts_of(&message.parts);
        let is_result = message.role == Role::Tool;
        let role = if message.role == Role::Assistant { "model" } else { "user" };
        if after_result && (is_result || (role == "user" && !message.parts.is_empty())) {
            let last = contents.last_mut().unwrap();
            last["parts"].as_array_mut().unwrap().extend(written);
            *last = with(last.take(), &message.passing, API);
        } else {
            contents.push(with(json!({"role": role, "parts": written}), &message.passing, API));
        }
        after_result = is_result;
    }
    let (mode, names) = match &request.choice {
        ToolChoice::Auto => ("AUTO", &[][..]),
        ToolChoice::None => ("NONE", &[][..]),
        ToolChoice::Required => ("ANY", &[][..]),
        ToolChoice::Named(name) => ("ANY", std::slice::from_ref(name)),
        ToolChoice::Allowed { names, required } => (if *required { "ANY" } else { "AUTO" }, names.as_slice()),
    };
    let (budget, level) = match request.thinking {
        None => (None, None),
        Some(Thinking::Off) => (Some(0), None),
        Some(Thinking::On) => (Some(-1), None),
        Some(Thinking::Budget(tokens)) => (Some(i64::try_from(tokens).unwrap()), None),
        Some(Thinking::Effort(effort)) => (None, Some(effort.as_str().to_uppercase())),
    };
    let schema = match &request.format {
        Some(ResponseFormat::JsonSchema { schema, .. }) => Some(schema),
        _ => None,
    };
    let sampling = &request.sampling;
    let config = object(json!({
        "maxOutputTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "topK": sampling.top_k,
        "presencePenalty": sampling.presence_penalty,
        "frequencyPenalty": sampling.frequency_penalty,
        "seed": sampling.seed,
        "stopSequences": sampling.stop,
        "responseMimeType": request.format.as_ref().map(|_| "application/json"),
        "responseJsonSchema": schema,
        "thinkingConfig": object(json!({"thinkingBudget": budget, "thinkingLevel": level})),
    }));
    let declarations: Vec<Value> = request.tools.iter().map(tool_json).collect();
    let body = object(json!({
        "systemInstruction": system,
        "contents": contents,
        "tools": [{"functionDeclarations": declarations}],
        "toolConfig": {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": names}},
        "generationConfig": config,
    }));
    with(body, &request.passing, API)
}

fn tool_json(tool: &ClientTool) -> Value {
    let ToolInput::Json { schema, .. } = &tool.input else { panic!("has no form here") };
    let known = json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": schema});
    with(object(known), &tool.passing, API)
}

fn parts_of(parts: &[Part]) -> Vec<Value> {
    parts.iter().map(part).collect()
}

pub(super) fn part(part: &Part) -> Value {
    let known = match &part.content {
        Content::Text(text) => json!({"text": text}),
        Content::Reasoning(Reasoning { text, seal }) => object(json!({
            "text": text, "thought": true, "thoughtSignature": seal.as_ref().map(|seal| &seal.data),
        })),
        Content::Media(media) => {
            let (field, inner, value) = match &media.source {
                MediaSource::Data(data) => ("inlineData", "data", data),
                MediaSource::Url(url) => ("fileData", "fileUri", url),
                MediaSource::Id(_) | MediaSource::Text(_) => panic!("has no form here"),
            };
            let known = json!({inner: value, "mimeType": media.media_type, "displayName": media.name});
            json!({field: object(known)})
        }
        Content::Call(call) => {
            let args: Value = serde_json::from_str(&call.arguments).unwrap();
            json!({"functionCall": {"id": call.id, "name": call.name, "args": args}})
        }
        Content::Result(result) => {
            let (text, media) = match result.parts.split_first() {
                Some((Part { content: Content::Text(text), .. }, media)) => (text.as_str(), media),
                _ => ("", result.parts.as_slice()),
            };
            let key = if result.is_error { "error" } else { "output" };
            let response = json!({
                "id": result.call_id, "name": result.name, "response": {key: text}, "parts": parts_of(media),
            });
            json!({"functionResponse": response})
        }
        Content::Opaque(_, json) => serde_json::from_str(json.get()).unwrap(),
    };
    with(known, &part.passing, API)
}

/// The same JSON with the names of the API's own fields in snake case.
pub(super) fn snake_case(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| {
                // These hold names and values of the client's own.
                let is_own =
                    ["args", "response", "responseJsonSchema", "parametersJsonSchema"].contains(&&*name);
                let value = if is_own { value } else { snake_case(value) };
                let snake = name.chars().flat_map(|letter| {
                    let underscore = letter.is_ascii_uppercase().then_some('_');
                    underscore.into_iter().chain([letter.to_ascii_lowercase()])
                });
                (snake.collect::<String>(), value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.into_iter().map(snake_case).collect(),
        other => other,
    }
}
