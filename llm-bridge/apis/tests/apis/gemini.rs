//! Gemini's `generateContent`: requests through the front, and answers as its chunks.

use proptest::{option, prelude::*};
use serde_json::{Value, json};
use toolrack_apis::{
    BadRequest, Call, CallInput, ClientCall, ClientTool, Content, CountTokens, Decoded, Effort, Failure,
    FailureKind, FinishReason, FinishedTool, Front, Media, MediaKind, MediaSource, Message, Part, Passing,
    Provider, RawJson, Reasoning, Request, ResponseFormat, Role, Sampling, Seal, SealKind, Thinking,
    ToolChoice, ToolInput, ToolResult, ToolStatus, TurnEvent, Usage, gemini::GeminiFront,
};

use crate::strategies::{self, leftover, name, object, text, with};

const API: Provider = Provider::Gemini;

fn parts(path: &str) -> http::request::Parts {
    http::Request::builder().uri(path).body(()).unwrap().into_parts().0
}

fn decode(body: &[u8]) -> Result<Decoded, BadRequest> {
    GeminiFront.decode(&parts("/v1beta/models/m:streamGenerateContent?alt=sse"), body)
}

fn decoded(body: &Value) -> Request {
    decode(body.to_string().as_bytes()).unwrap().request
}

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
fn message() -> impl Strategy<Value = Message> {
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
        .prop_map(|((role, parts), passing)| Message { role, parts, passing });
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

fn request() -> impl Strategy<Value = Request> {
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
    let schema = option::of(Just(json!({"type": "object", "properties": {"a_b": {"type": "string"}}})));
    let tool = (name(), option::of(text()), schema, passing(&["behavior", "response"])).prop_map(
        |(name, description, schema, passing)| ClientTool {
            name,
            description,
            input: ToolInput::Json { schema, strict: None },
            passing,
        },
    );
    let sampling = strategies::sampling().prop_map(|sampling| Sampling { min_p: None, ..sampling });
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
fn body(request: &Request) -> Value {
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

fn part(part: &Part) -> Value {
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
fn snake_case(value: Value) -> Value {
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

proptest! {
    #[test]
    fn issue16_gemini_a_request_survives_the_front(request in request()) {
        prop_assert_eq!(decoded(&body(&request)), request);
    }

    #[test]
    fn issue16_gemini_snake_case_is_understood(request in request()) {
        // What passes keeps its names below the first level.
        let plain = Request { passing: Passing::none(), ..request };
        let written = body(&plain);
        prop_assume!(!written.to_string().contains("executableCode"));
        prop_assert_eq!(decoded(&snake_case(written.clone())), decoded(&written));
    }

    #[test]
    fn issue16_gemini_a_body_of_anything_never_panics(
        text in "[\\[\\]{}:,\"a-z0-9 ]{0,60}", bytes in any::<Vec<u8>>(), path in "/[a-z:/%0-9]{0,30}",
    ) {
        let _ = decode(text.as_bytes());
        let _ = decode(&bytes);
        let _ = GeminiFront.decode(&parts(&path.replace('%', "%25")), b"{}");
    }
}

fn client_call(id: &str, arguments: &str) -> ClientCall {
    ClientCall { call: Call::new(id, "f", arguments), passing: Passing::none() }
}

fn finished(reason: FinishReason) -> TurnEvent {
    TurnEvent::Finished { reason, usage: Usage { input: 9, output: 2, ..Usage::default() } }
}

fn encoded(method: &str, thoughts: bool, events: &[TurnEvent]) -> Vec<u8> {
    let config = json!({"thinkingConfig": {"includeThoughts": thoughts}});
    let body = json!({"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": config});
    let path = format!("/v1/models/m:{method}");
    let mut encoder = GeminiFront.decode(&parts(&path), body.to_string().as_bytes()).unwrap().encoder;
    let mut out = Vec::new();
    encoder.keep_alive(&mut out);
    for event in events {
        encoder.event(event.clone(), &mut out);
        encoder.keep_alive(&mut out);
    }
    encoder.finish(&mut out);
    out
}

fn whole(thoughts: bool, events: &[TurnEvent]) -> Value {
    serde_json::from_slice(&encoded("generateContent", thoughts, events)).unwrap()
}

/// The chunks of a stream, which are the same as events and as an array.
fn chunks(events: &[TurnEvent]) -> Vec<Value> {
    let stream = encoded("streamGenerateContent?alt=sse", true, events);
    let data =
        std::str::from_utf8(&stream).unwrap().split("\n\n").map(str::trim).filter(|data| !data.is_empty());
    let mut chunks: Vec<Value> =
        data.map(|data| serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap()).collect();
    let mut array: Vec<Value> =
        serde_json::from_slice(&encoded("streamGenerateContent", true, events)).unwrap();
    for chunk in chunks.iter_mut().chain(&mut array) {
        if let Some(fields) = chunk.as_object_mut() {
            fields.remove("responseId");
        }
    }
    assert_eq!(chunks, array);
    chunks
}

fn chunk(parts: Value) -> Value {
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "modelVersion": "m",
    })
}

fn last_chunk() -> Value {
    json!({
        "candidates": [{
            "content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11},
        "modelVersion": "m",
    })
}

#[test]
fn issue16_gemini_each_piece_is_a_chunk() {
    let seal = |api| Some(Seal { api, kind: SealKind::Signature, data: "s".into() });
    let thought = |text: &str, seal| TurnEvent::Reasoning { text: text.into(), seal };
    let begun = TurnEvent::CallBegun {
        id: "c".into(),
        name: "f".into(),
        input: CallInput::Json,
        passing: Passing::none(),
    };
    let mut passing = Passing::of(API);
    passing.push("thoughtSignature", RawJson::of(&"t"));
    let signed = ClientCall { passing, ..client_call("d", "no object") };
    let events = [
        TurnEvent::Model("m".into()),
        thought("a", None),
        thought("b", seal(API)),
        thought("c", seal(Provider::Anthropic)),
        TurnEvent::Text("d".into()),
        TurnEvent::Text("e".into()),
        begun,
        TurnEvent::CallDelta { id: "c".into(), arguments: "{}".into() },
        TurnEvent::Calls(vec![client_call("c", "{\"x\": 1}"), signed]),
        finished(FinishReason::ToolCalls),
    ];
    let call = |id: &str, args: Value| json!({"id": id, "name": "f", "args": args});
    assert_eq!(
        chunks(&events),
        [
            chunk(json!([{"text": "a", "thought": true}])),
            chunk(json!([{"text": "b", "thought": true, "thoughtSignature": "s"}])),
            chunk(json!([{"text": "c", "thought": true}])),
            chunk(json!([{"text": "d"}])),
            chunk(json!([{"text": "e"}])),
            chunk(json!([
                {"functionCall": call("c", json!({"x": 1}))},
                {"functionCall": call("d", json!({"INVALID_JSON": "no object"})), "thoughtSignature": "t"},
            ])),
            last_chunk(),
        ]
    );
    let answer = whole(true, &events);
    assert_eq!(
        answer["candidates"][0]["content"]["parts"],
        json!([
            {"text": "ab", "thought": true, "thoughtSignature": "s"},
            {"text": "c", "thought": true},
            {"text": "de"},
            {"functionCall": call("c", json!({"x": 1}))},
            {"functionCall": call("d", json!({"INVALID_JSON": "no object"})), "thoughtSignature": "t"},
        ])
    );
    let silent = whole(false, &events);
    assert_eq!(
        silent["candidates"][0]["content"]["parts"][0],
        json!({"text": "de"}),
        "thoughts were not asked for"
    );
}

#[test]
fn issue16_gemini_what_happens_to_a_tool_rides_on_chunks_with_an_empty_text() {
    let tool = FinishedTool { id: "s".into(), name: "f".into(), success: true, ..FinishedTool::default() };
    let events = [
        TurnEvent::Text("a".into()),
        TurnEvent::Tool(ToolStatus::Finished(Box::new(tool))),
        TurnEvent::Message { id: "s".into(), text: "\nHi.\n".into() },
        TurnEvent::Notice("n".into()),
        TurnEvent::Calls(vec![client_call("c", "{}")]),
        finished(FinishReason::ToolCalls),
    ];
    let chunks = chunks(&events);
    let told: Vec<(&Value, &Value)> = chunks
        .iter()
        .map(|chunk| (&chunk["candidates"][0]["content"]["parts"][0]["text"], &chunk["x_toolrack"]["type"]))
        .collect();
    let none = Value::Null;
    assert_eq!(
        told,
        [
            (&json!("a"), &none),
            (&json!(""), &json!("call_finished")),
            (&json!("\nHi.\n"), &json!("message")),
            (&json!(""), &json!("notice")),
            (&none, &none),
            (&json!(""), &none),
        ]
    );
    let answer = whole(false, &events);
    let parts = answer["candidates"][0]["content"]["parts"].as_array().unwrap();
    assert_eq!((parts.len(), &parts[0]), (2, &json!({"text": "a\nHi.\n"})));
    let kinds: Vec<&Value> =
        answer["x_toolrack"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["call_finished", "message", "notice"]);
}

#[test]
fn issue16_gemini_finish_reasons_and_usage() {
    for (reason, word, message) in [
        (FinishReason::Stop, "STOP", json!(null)),
        (FinishReason::StopSequence("END".into()), "STOP", json!(null)),
        (FinishReason::ToolCalls, "STOP", json!(null)),
        (FinishReason::Length, "MAX_TOKENS", json!(null)),
        (FinishReason::ContentFilter, "SAFETY", json!(null)),
        (FinishReason::Other("RECITATION".into()), "RECITATION", json!(null)),
        (FinishReason::Other("abort".into()), "OTHER", json!("abort")),
    ] {
        let usage = Usage { input: 10, output: 5, cached: Some(6), reasoning: Some(2), ..Usage::default() };
        let mut passing = Passing::of(API);
        passing.push("safetyRatings", RawJson::of(&json!([])));
        passing.push("content", RawJson::of(&"forged"));
        let events = [TurnEvent::Passing(passing), TurnEvent::Finished { reason, usage }];
        let answer = whole(false, &events);
        let chunks = chunks(&events);
        assert_eq!(chunks.len(), 1);
        for end in [&answer, &chunks[0]] {
            let candidate = &end["candidates"][0];
            assert_eq!((&candidate["finishReason"], &candidate["finishMessage"]), (&json!(word), &message));
            assert_eq!(candidate["safetyRatings"], json!([]));
            assert_eq!(candidate["content"], json!({"parts": [{"text": ""}], "role": "model"}));
            assert_eq!(
                end["usageMetadata"],
                json!({
                    "promptTokenCount": 10, "candidatesTokenCount": 3, "totalTokenCount": 15,
                    "cachedContentTokenCount": 6, "thoughtsTokenCount": 2,
                })
            );
        }
    }
}

#[test]
fn issue16_gemini_a_failure_has_the_apis_shape_and_status() {
    for (kind, code, status) in [
        (FailureKind::InvalidRequest, 400, "INVALID_ARGUMENT"),
        (FailureKind::ContextLength, 400, "INVALID_ARGUMENT"),
        (FailureKind::Authentication, 401, "UNAUTHENTICATED"),
        (FailureKind::Permission, 403, "PERMISSION_DENIED"),
        (FailureKind::NotFound, 404, "NOT_FOUND"),
        (FailureKind::TooLarge, 413, "INVALID_ARGUMENT"),
        (FailureKind::RateLimit, 429, "RESOURCE_EXHAUSTED"),
        (FailureKind::Internal, 500, "INTERNAL"),
        (FailureKind::Upstream, 502, "UNAVAILABLE"),
        (FailureKind::Overloaded, 503, "UNAVAILABLE"),
        (FailureKind::Stopping, 503, "UNAVAILABLE"),
        (FailureKind::Timeout, 504, "DEADLINE_EXCEEDED"),
    ] {
        let reply = GeminiFront.failure(&Failure::new(kind, "no"));
        assert_eq!(reply.status().as_u16(), code);
        let body: Value = serde_json::from_slice(reply.body()).unwrap();
        assert_eq!(body, json!({"error": {"code": code, "message": "no", "status": status}}));
    }
}

#[test]
fn n5_gemini_an_upstream_error_keeps_its_words() {
    let upstream = toolrack_apis::UpstreamDetails {
        error_type: None,
        code: Some(RawJson::of(&"busy")),
        others: vec![("n_ctx".into(), RawJson::of(&4096))],
    };
    let failure = Failure {
        param: Some("contents".into()),
        upstream: Some(Box::new(upstream)),
        retry_after: Some("7".into()),
        ..Failure::new(FailureKind::RateLimit, "later")
    };
    let reply = GeminiFront.failure(&failure);
    assert_eq!(reply.headers()["retry-after"], "7");
    let body: Value = serde_json::from_slice(reply.body()).unwrap();
    let kind = |name: &str| format!("type.googleapis.com/google.rpc.{name}");
    assert_eq!(
        body["error"]["details"],
        json!([
            {"@type": kind("BadRequest"), "fieldViolations": [{"field": "contents", "description": "later"}]},
            {"@type": kind("ErrorInfo"), "reason": "busy", "domain": "upstream", "metadata": {"n_ctx": "4096"}},
            {"@type": kind("RetryInfo"), "retryDelay": "7s"},
        ])
    );
}

#[test]
fn issue16_gemini_a_failure_ends_the_stream() {
    let failed = TurnEvent::Failed(Failure::new(FailureKind::Overloaded, "no"));
    let error = json!({"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}});
    assert_eq!(chunks(std::slice::from_ref(&failed)), std::slice::from_ref(&error));
    let events = [TurnEvent::Text("a".into()), failed];
    let sent = chunks(&events);
    assert_eq!((sent.len(), &sent[1]), (2, &error));
    assert_eq!(whole(false, &events), error);
    // SDKs look for a chunk that begins so.
    let stream = encoded("streamGenerateContent?alt=sse", false, &events);
    assert!(String::from_utf8(stream).unwrap().contains("data: {\"error\":{\"code\":503"));
}

#[test]
fn issue16_gemini_the_address_has_the_model_and_the_method() {
    let body = b"{\"contents\":{\"role\":\"user\",\"parts\":{\"text\":\"hi\"}}}";
    for (path, model, stream, content_type) in [
        ("/v1beta/models/m:generateContent", "m", false, "application/json"),
        ("/v1/models/m:streamGenerateContent", "m", true, "application/json"),
        ("/v1beta/models/m:streamGenerateContent?key=k&alt=sse", "m", true, "text/event-stream"),
        ("/v1beta/models/m:streamGenerateContent?%24alt=sse", "m", true, "text/event-stream"),
        ("/v1beta/models/hf.co%2Fa%2Fb:Q4:generateContent", "hf.co/a/b:Q4", false, "application/json"),
        (
            "/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
            "m",
            false,
            "application/json",
        ),
    ] {
        let Decoded { request, encoder } = GeminiFront.decode(&parts(path), body).unwrap();
        assert_eq!((request.model.as_deref(), request.stream), (Some(model), stream), "{path}");
        assert_eq!(encoder.content_type(), content_type, "{path}");
    }
    for path in ["/v1/models/m", "/v1/models/:generateContent", "/v1/models/m:predict", "/m:generateContent"]
    {
        let error = GeminiFront.decode(&parts(path), body).unwrap_err();
        assert_eq!(error.param, "model", "{path}");
        assert!(error.message.contains("generateContent"), "{error}");
    }
}

#[test]
fn issue16_gemini_tokens_are_counted() {
    let contents = json!([{"parts": [{"text": "hi"}]}]);
    let inner =
        json!({"model": "models/m", "contents": contents, "systemInstruction": {"parts": [{"text": "s"}]}});
    for (body, messages) in [
        (json!({"contents": contents}), 1),
        (json!({"generateContentRequest": inner}), 2),
        (json!({"generate_content_request": inner}), 2),
    ] {
        let path = parts("/v1beta/models/m:countTokens");
        let request = GeminiFront.decode_count(&path, body.to_string().as_bytes()).unwrap();
        assert_eq!((request.model.as_deref(), request.messages.len()), (Some("m"), messages));
    }
    assert_eq!(GeminiFront.count(12).body(), b"{\"totalTokens\":12}");
}

#[test]
fn issue16_gemini_calls_without_ids_find_their_results() {
    let request = decoded(&json!({
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [
                {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s"},
                {"functionCall": {"name": "g"}},
                {"text": "", "thoughtSignature": "t"},
            ]},
            {"role": "function", "parts": [
                {"text": "So?"},
                {"functionResponse": {"name": "g", "response": {"temperature": 7}}},
                {"functionResponse": {"name": "f", "response": {"error": {"code": 5}}}},
            ]},
        ],
    }));
    let calls: Vec<&Call> = request.messages[1].calls().collect();
    assert_eq!((calls[0].id.as_str(), calls[1].id.as_str()), ("call00000", "call00001"));
    assert_eq!(calls[1].arguments, "{}");
    assert_eq!(
        request.messages[1].parts[2].content,
        Content::Opaque(API, RawJson::of(&json!({"text": "", "thoughtSignature": "t"})))
    );
    let (g, f) = (request.messages[2].tool_result().unwrap(), request.messages[3].tool_result().unwrap());
    assert_eq!((g.call_id.as_str(), f.call_id.as_str()), ("call00001", "call00000"));
    assert_eq!((g.is_error, f.is_error), (false, true));
    assert_eq!(g.parts, [Content::Text("{\"temperature\":7}".into()).into()]);
    assert_eq!(f.parts, [Content::Text("{\"code\":5}".into()).into()]);
    assert_eq!(request.messages[4].plain_text(), "So?");
}

#[test]
fn issue16_gemini_schemas_and_modes() {
    let request = decoded(&json!({
        "contents": [{"parts": [{"text": "hi"}]}],
        "tools": {"function_declarations": [
            {"name": "f", "parameters": {"type": "OBJECT", "properties": {"a_b": {"type": "STRING"}}}},
        ]},
        "tool_config": {"function_calling_config": {"mode": "validated"}},
        "generation_config": {
            "response_mime_type": "application/json", "response_schema": {"type": "ARRAY", "max_items": "2"},
            "top_k": 40.0, "thinking_config": {"thinking_level": "LOW"},
        },
    }));
    let schema = json!({"type": "object", "properties": {"a_b": {"type": "string"}}});
    assert_eq!(request.tools[0].input, ToolInput::Json { schema: Some(schema), strict: Some(true) });
    assert_eq!((request.choice, request.sampling.top_k), (ToolChoice::Auto, Some(40)));
    assert_eq!(request.thinking, Some(Thinking::Effort(Effort::Low)));
    let Some(ResponseFormat::JsonSchema { schema, .. }) = request.format else { panic!() };
    assert_eq!(schema, json!({"type": "array", "maxItems": 2}));
}

#[test]
fn issue16_gemini_a_malformed_body_names_the_field() {
    let contents = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
    let with = |fields: Value| {
        let mut body = json!({"contents": contents});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let part = |role: &str, part: Value| json!({"contents": [{"role": role, "parts": [part]}]});
    let config = |config: Value| with(json!({"generationConfig": config}));
    let tool = |tool: Value| with(json!({"tools": [tool]}));
    let at = "contents[0].parts[0]";
    let declared = "tools[0].functionDeclarations";
    for (body, param) in [
        (json!([]), "body".to_owned()),
        (json!({}), "contents".to_owned()),
        (json!({"contents": []}), "contents".to_owned()),
        (json!({"contents": "hi"}), "contents".to_owned()),
        (json!({"contents": ["hi"]}), "contents[0]".to_owned()),
        (json!({"contents": [{"role": "system", "parts": []}]}), "contents[0].role".to_owned()),
        (json!({"contents": [{"parts": "hi"}]}), "contents[0].parts".to_owned()),
        (part("user", json!("hi")), at.to_owned()),
        (part("user", json!({})), at.to_owned()),
        (part("user", json!({"text": 1})), format!("{at}.text")),
        (part("user", json!({"text": "a", "thought": true})), format!("{at}.thought")),
        (part("user", json!({"inlineData": {}})), format!("{at}.inlineData.data")),
        (part("user", json!({"file_data": {}})), format!("{at}.fileData.fileUri")),
        (part("user", json!({"functionCall": {"name": "f"}})), format!("{at}.functionCall")),
        (part("model", json!({"functionCall": {}})), format!("{at}.functionCall.name")),
        (
            part("model", json!({"functionCall": {"name": "f", "args": "{}"}})),
            format!("{at}.functionCall.args"),
        ),
        (part("model", json!({"functionResponse": {"name": "f"}})), format!("{at}.functionResponse")),
        (part("user", json!({"functionResponse": {}})), format!("{at}.functionResponse.name")),
        (
            part("user", json!({"functionResponse": {"name": "f", "response": "a"}})),
            format!("{at}.functionResponse.response"),
        ),
        (with(json!({"systemInstruction": "s"})), "systemInstruction".to_owned()),
        (with(json!({"cachedContent": "cachedContents/a"})), "cachedContent".to_owned()),
        (config(json!([])), "generationConfig".to_owned()),
        (config(json!({"candidateCount": 2})), "generationConfig.candidateCount".to_owned()),
        (config(json!({"maxOutputTokens": -1})), "generationConfig.maxOutputTokens".to_owned()),
        (config(json!({"top_p": "all"})), "generationConfig.topP".to_owned()),
        (config(json!({"stopSequences": [1]})), "generationConfig.stopSequences[0]".to_owned()),
        (
            config(json!({"responseModalities": ["IMAGE"]})),
            "generationConfig.responseModalities[0]".to_owned(),
        ),
        (config(json!({"responseMimeType": "text/x.enum"})), "generationConfig.responseMimeType".to_owned()),
        (config(json!({"responseSchema": 1})), "generationConfig.responseSchema".to_owned()),
        (
            config(json!({"responseSchema": {}, "responseJsonSchema": {}})),
            "generationConfig.responseSchema".to_owned(),
        ),
        (
            config(json!({"thinkingConfig": {"thinkingLevel": "MOST"}})),
            "generationConfig.thinkingConfig.thinkingLevel".to_owned(),
        ),
        (
            config(json!({"thinkingConfig": {"thinkingBudget": -2}})),
            "generationConfig.thinkingConfig.thinkingBudget".to_owned(),
        ),
        (
            config(json!({"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "LOW"}})),
            "generationConfig.thinkingConfig.thinkingBudget".to_owned(),
        ),
        (tool(json!({"googleSearch": {}})), "tools[0].googleSearch".to_owned()),
        (tool(json!({"code_execution": {}})), "tools[0].codeExecution".to_owned()),
        (tool(json!({"functionDeclarations": [{}]})), format!("{declared}[0].name")),
        (
            tool(json!({"functionDeclarations": [{"name": "f", "parameters": 1}]})),
            format!("{declared}[0].parameters"),
        ),
        (tool(json!({"functionDeclarations": [{"name": "f"}, {"name": "f"}]})), format!("{declared}[1]")),
        (
            with(json!({"toolConfig": {"functionCallingConfig": {"mode": "MAYBE"}}})),
            "toolConfig.functionCallingConfig.mode".to_owned(),
        ),
        (with(json!({"toolrack": {"chat_id": ""}})), "toolrack.chat_id".to_owned()),
    ] {
        let text = body.to_string();
        let error = decode(text.as_bytes()).map(|decoded| decoded.request).unwrap_err();
        assert_eq!(error.param, param, "{body}: {error}");
        assert!(error.message.len() > 10, "{error}");
        assert_eq!(decode(&text.as_bytes()[..text.len() - 1]).unwrap_err().param, "body");
    }
}

#[test]
fn g13_gemini_a_streamed_token_makes_few_allocations() {
    let encoder = decode(b"{\"contents\":[{\"parts\":[{\"text\":\"hi\"}]}]}").unwrap().encoder;
    let mut out = Vec::with_capacity(4096);
    strategies::assert_few_allocations(encoder, &mut out);
    assert!(String::from_utf8(out).unwrap().contains("{\"text\":\" word\"}"));
}
