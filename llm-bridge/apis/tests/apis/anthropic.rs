//! Anthropic Messages: requests through the front, and answers as their events.

use proptest::{option, prelude::*};
use serde_json::{Value, json};
use toolrack_apis::{
    BadRequest, Call, CallInput, ClientCall, ClientTool, Content, CountTokens, Decoded, Effort, Failure,
    FailureKind, FinishReason, FinishedTool, Front, Media, MediaKind, MediaSource, Message, Part, Passing,
    Provider, RawJson, Reasoning, Request, ResponseFormat, Role, Sampling, Seal, SealKind, Thinking,
    ToolChoice, ToolInput, ToolResult, ToolStatus, TurnEvent, Usage, Wire, anthropic::AnthropicFront,
    openai::chat::OpenAiWire,
};

use crate::strategies::{self, leftover, name, object, text, with};

const API: Provider = Provider::Anthropic;

fn decode(body: &[u8]) -> Result<Decoded, BadRequest> {
    AnthropicFront.decode(&http::Request::new(()).into_parts().0, body)
}

fn decoded(body: &Value) -> Request {
    decode(body.to_string().as_bytes()).unwrap().request
}

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
    let opaque = Just(Content::Opaque(API, RawJson::of(&json!({"type": "search_result", "x": 1}))).into());
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

fn message() -> impl Strategy<Value = Message> {
    let user = content().prop_map(|parts| (Role::User, parts));
    let system = proptest::collection::vec(said(), 0..3).prop_map(|parts| (Role::System, parts));
    let part = prop_oneof![said().boxed(), reasoning().boxed(), call().boxed()];
    let assistant = proptest::collection::vec(part, 0..5).prop_map(|parts| (Role::Assistant, parts));
    let spoken = (prop_oneof![user.boxed(), system.boxed(), assistant.boxed()], passing(&["x", "y"]))
        .prop_map(|((role, parts), passing)| Message { role, parts, passing });
    let result = (name(), content(), any::<bool>(), passing(&["cache_control"])).prop_map(
        |(call_id, parts, is_error, passing)| {
            let result = ToolResult { call_id, name: None, parts, is_error };
            Message::new(Role::Tool, vec![Part { content: Content::Result(result), passing }])
        },
    );
    prop_oneof![3 => spoken, 2 => result]
}

fn request() -> impl Strategy<Value = Request> {
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
            let schema = Some(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
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
fn body(request: &Request) -> Value {
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

fn block(part: &Part) -> Value {
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

proptest! {
    #[test]
    fn issue16_anthropic_a_request_survives_the_front(request in request()) {
        prop_assert_eq!(decoded(&body(&request)), request);
    }

    #[test]
    fn issue16_anthropic_a_body_of_anything_never_panics(
        text in "[\\[\\]{}:,\"a-z0-9 ]{0,60}", bytes in any::<Vec<u8>>(),
    ) {
        let _ = decode(text.as_bytes());
        let _ = decode(&bytes);
    }

    #[test]
    fn issue16_anthropic_a_stream_adds_up_to_the_whole_message(events in proptest::collection::vec(event(), 0..8)) {
        let mut events = events;
        events.push(finished(FinishReason::Stop));
        let whole: Value = serde_json::from_slice(&encoded(false, &events)).unwrap();
        let mut message = Value::Null;
        for event in sent(&encoded(true, &events)) {
            add_up(&mut message, &event);
        }
        prop_assert_eq!(&message["content"], &whole["content"]);
        prop_assert_eq!(&message["stop_reason"], &whole["stop_reason"]);
        prop_assert_eq!(&message["usage"], &whole["usage"]);
    }
}

fn event() -> impl Strategy<Value = TurnEvent> {
    let seal = prop_oneof![
        3 => Just(None),
        1 => Just(Some((API, SealKind::Signature))),
        1 => Just(Some((API, SealKind::Encrypted))),
        1 => Just(Some((Provider::Gemini, SealKind::Signature))),
    ];
    let reasoning = (text(), seal).prop_map(|(text, seal)| {
        let seal = seal.map(|(api, kind)| Seal { api, kind, data: "s".into() });
        let is_encrypted = seal.as_ref().is_some_and(|seal| seal.kind == SealKind::Encrypted);
        TurnEvent::Reasoning { text: if is_encrypted { String::new() } else { text }, seal }
    });
    let calls = proptest::collection::vec(prop_oneof![Just("{\"a\":1}"), Just(""), Just("no object")], 1..3)
        .prop_map(|calls| {
            let calls = calls.into_iter().enumerate();
            TurnEvent::Calls(calls.map(|(at, arguments)| client_call(&format!("c{at}"), arguments)).collect())
        });
    prop_oneof![
        3 => text().prop_map(TurnEvent::Text),
        3 => reasoning,
        1 => calls,
        1 => Just(TurnEvent::Message { id: "s".into(), text: "\nHi.\n".into() }),
        1 => Just(TurnEvent::Notice("n".into())),
    ]
}

/// What an SDK does with an event.
fn add_up(message: &mut Value, event: &Value) {
    let index = event["index"].as_u64().map(|index| usize::try_from(index).unwrap());
    match event["type"].as_str().unwrap() {
        "message_start" => *message = event["message"].clone(),
        "content_block_start" => {
            let content = message["content"].as_array_mut().unwrap();
            assert_eq!(index, Some(content.len()));
            content.push(event["content_block"].clone());
        }
        "content_block_delta" => {
            let block = &mut message["content"][index.unwrap()];
            let delta = &event["delta"];
            let (field, piece) = match delta["type"].as_str().unwrap() {
                "text_delta" => ("text", &delta["text"]),
                "thinking_delta" => ("thinking", &delta["thinking"]),
                "signature_delta" => ("signature", &delta["signature"]),
                _ => {
                    block["input"] = serde_json::from_str(delta["partial_json"].as_str().unwrap()).unwrap();
                    return;
                }
            };
            block[field] = json!(format!("{}{}", block[field].as_str().unwrap(), piece.as_str().unwrap()));
        }
        "message_delta" => {
            message["stop_reason"] = event["delta"]["stop_reason"].clone();
            message["usage"] = event["usage"].clone();
        }
        _ => {}
    }
}

fn client_call(id: &str, arguments: &str) -> ClientCall {
    ClientCall { call: Call::new(id, "f", arguments), passing: Passing::none() }
}

fn finished(reason: FinishReason) -> TurnEvent {
    TurnEvent::Finished { reason, usage: Usage { input: 9, output: 2, ..Usage::default() } }
}

fn encoded(stream: bool, events: &[TurnEvent]) -> Vec<u8> {
    let body = json!({
        "messages": [{"role": "user", "content": "hi"}], "stream": stream, "thinking": {"type": "adaptive"},
    });
    encoded_for(&body, events)
}

fn encoded_for(body: &Value, events: &[TurnEvent]) -> Vec<u8> {
    let mut encoder = decode(body.to_string().as_bytes()).unwrap().encoder;
    let mut out = Vec::new();
    for event in events {
        encoder.event(event.clone(), &mut out);
    }
    encoder.finish(&mut out);
    out
}

/// The data of a stream's events, each of which has its type as its name.
fn sent(stream: &[u8]) -> Vec<Value> {
    let events = std::str::from_utf8(stream).unwrap().split_terminator("\n\n").map(|event| {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["type"], name.strip_prefix("event: ").unwrap());
        data
    });
    events.collect()
}

/// The events between the first and the two last of a message.
fn blocks_of(events: &[TurnEvent]) -> Vec<Value> {
    let mut events = events.to_vec();
    events.push(finished(FinishReason::Stop));
    let sent = sent(&encoded(true, &events));
    let (first, rest) = sent.split_first().unwrap();
    assert_eq!(first["type"], "message_start");
    assert_eq!(rest[rest.len() - 2]["type"], "message_delta");
    assert_eq!(rest[rest.len() - 1], json!({"type": "message_stop"}));
    rest[..rest.len() - 2].to_vec()
}

fn start(index: usize, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: usize, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn tool_use(index: usize, id: &str) -> Value {
    start(index, json!({"type": "tool_use", "id": id, "name": "f", "input": {}}))
}

fn input(index: usize, json: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": json}))
}

fn begun(id: &str) -> TurnEvent {
    TurnEvent::CallBegun { id: id.into(), name: "f".into(), input: CallInput::Json, passing: Passing::none() }
}

fn piece(id: &str, arguments: &str) -> TurnEvent {
    TurnEvent::CallDelta { id: id.into(), arguments: arguments.into() }
}

fn thought(text: &str, seal: Option<(Provider, SealKind)>) -> TurnEvent {
    let seal = seal.map(|(api, kind)| Seal { api, kind, data: "seal".into() });
    TurnEvent::Reasoning { text: text.into(), seal }
}

#[test]
fn issue16_anthropic_text_is_a_block_of_deltas() {
    let events = [TurnEvent::Model("m".into()), TurnEvent::Text("a".into()), TurnEvent::Text("b".into())];
    let sent = sent(&encoded(true, &[&events[..], &[finished(FinishReason::Stop)]].concat()));
    let message = &sent[0]["message"];
    assert!(message["id"].as_str().unwrap().starts_with("msg_"));
    assert_eq!(
        (&message["type"], &message["role"], &message["model"], &message["content"]),
        (&json!("message"), &json!("assistant"), &json!("m"), &json!([]))
    );
    assert_eq!(message["usage"], json!({"input_tokens": 0, "output_tokens": 0}));
    let text = |text| delta(0, json!({"type": "text_delta", "text": text}));
    assert_eq!(
        sent[1..],
        [
            start(0, json!({"type": "text", "text": ""})),
            text("a"),
            text("b"),
            stop(0),
            json!({
                "type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
                "usage": {"input_tokens": 9, "output_tokens": 2},
            }),
            json!({"type": "message_stop"}),
        ]
    );
}

#[test]
fn issue16_anthropic_reasoning_is_a_block_with_its_signature() {
    let thinking = |index| start(index, json!({"type": "thinking", "thinking": "", "signature": ""}));
    let text = |index| start(index, json!({"type": "text", "text": ""}));
    let says = |index, text| delta(index, json!({"type": "text_delta", "text": text}));
    let thinks = |index, text| delta(index, json!({"type": "thinking_delta", "thinking": text}));
    let signed = Some((API, SealKind::Signature));
    let events = [
        thought("a", None),
        thought("b", signed),
        thought("c", Some((Provider::Gemini, SealKind::Signature))),
        TurnEvent::Text("d".into()),
        thought("", Some((API, SealKind::Encrypted))),
        TurnEvent::Text("e".into()),
    ];
    assert_eq!(
        blocks_of(&events),
        [
            thinking(0),
            thinks(0, "a"),
            thinks(0, "b"),
            delta(0, json!({"type": "signature_delta", "signature": "seal"})),
            stop(0),
            thinking(1),
            thinks(1, "c"),
            stop(1),
            text(2),
            says(2, "d"),
            stop(2),
            start(3, json!({"type": "redacted_thinking", "data": "seal"})),
            stop(3),
            text(4),
            says(4, "e"),
            stop(4),
        ]
    );
}

#[test]
fn issue16_anthropic_reasoning_is_shown_to_who_asks_for_it() {
    let events = [thought("hm", None), TurnEvent::Text("a".into()), finished(FinishReason::Stop)];
    for (thinking, shown) in [
        (json!(null), false),
        (json!({"type": "disabled"}), false),
        (json!({"type": "adaptive", "display": "omitted"}), false),
        (json!({"type": "adaptive"}), true),
        (json!({"type": "enabled", "budget_tokens": 1024}), true),
        (json!({"type": "between_tools"}), true),
    ] {
        for stream in [false, true] {
            let messages = json!([{"role": "user", "content": "hi"}]);
            let body = json!({"messages": messages, "thinking": thinking, "stream": stream});
            let answer = String::from_utf8(encoded_for(&body, &events)).unwrap();
            assert_eq!(answer.contains("\"hm\""), shown, "{thinking}");
        }
    }
}

#[test]
fn issue16_anthropic_a_call_comes_whole_or_in_deltas() {
    let whole = TurnEvent::Calls(vec![client_call("a", "{\"x\": 1}"), client_call("b", "")]);
    assert_eq!(
        blocks_of(&[whole]),
        [tool_use(0, "a"), input(0, "{\"x\": 1}"), stop(0), tool_use(1, "b"), input(1, "{}"), stop(1)]
    );
    let calls = vec![client_call("a", "{\"x\":1}"), client_call("b", "{}"), client_call("c", "none")];
    let events = [begun("a"), piece("a", "{\"x\""), begun("b"), piece("a", ":1}"), TurnEvent::Calls(calls)];
    assert_eq!(
        blocks_of(&events),
        [
            tool_use(0, "a"),
            input(0, "{\"x\""),
            tool_use(1, "b"),
            input(0, ":1}"),
            stop(0),
            input(1, "{}"),
            stop(1),
            tool_use(2, "c"),
            input(2, "{\"INVALID_JSON\":\"none\"}"),
            stop(2),
        ]
    );
}

#[test]
fn issue16_anthropic_a_mixed_turn_tells_of_server_tools_in_pings() {
    let tool = FinishedTool { id: "s".into(), name: "f".into(), success: true, ..FinishedTool::default() };
    let events = [
        TurnEvent::Text("a".into()),
        TurnEvent::Tool(ToolStatus::Finished(Box::new(tool))),
        TurnEvent::Message { id: "s".into(), text: "\nHi.\n".into() },
        TurnEvent::Notice("n".into()),
        TurnEvent::Calls(vec![client_call("c", "{}")]),
    ];
    let sent = blocks_of(&events);
    let kinds: Vec<&str> = sent.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let (starts, deltas, stops) = ("content_block_start", "content_block_delta", "content_block_stop");
    assert_eq!(kinds, [starts, deltas, "ping", "ping", deltas, "ping", stops, starts, deltas, stops]);
    let details: Vec<&Value> = sent.iter().map(|event| &event["x_toolrack"]["type"]).collect();
    assert_eq!(
        (details[2], details[3], details[5]),
        (&json!("call_finished"), &json!("message"), &json!("notice"))
    );

    let events = [&events[..], &[finished(FinishReason::ToolCalls)]].concat();
    let whole: Value = serde_json::from_slice(&encoded(false, &events)).unwrap();
    assert_eq!(
        whole["content"],
        json!([
            {"type": "text", "text": "a\nHi.\n"},
            {"type": "tool_use", "id": "c", "name": "f", "input": {}},
        ])
    );
    let kinds: Vec<&Value> = whole["x_toolrack"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["call_finished", "message", "notice"]);
    assert_eq!(whole["stop_reason"], "tool_use");
}

#[test]
fn issue16_anthropic_stop_reasons_and_usage() {
    for (reason, word, sequence) in [
        (FinishReason::Stop, "end_turn", json!(null)),
        (FinishReason::StopSequence("END".into()), "stop_sequence", json!("END")),
        (FinishReason::Length, "max_tokens", json!(null)),
        (FinishReason::ToolCalls, "tool_use", json!(null)),
        (FinishReason::ContentFilter, "refusal", json!(null)),
        (FinishReason::Other("pause_turn".into()), "pause_turn", json!(null)),
    ] {
        let mut passing = Passing::of(API);
        passing.push("service_tier", RawJson::of(&"standard"));
        let usage = Usage {
            input: 10,
            output: 5,
            cached: Some(6),
            cache_written: Some(1),
            reasoning: Some(2),
            passing,
        };
        let mut passing = Passing::of(API);
        passing.push("stop_details", RawJson::of(&json!({"x": 1})));
        passing.push("x_toolrack", RawJson::of(&"forged"));
        let events = [TurnEvent::Passing(passing), TurnEvent::Finished { reason, usage }];
        let whole: Value = serde_json::from_slice(&encoded(false, &events)).unwrap();
        let sent = sent(&encoded(true, &events));
        let end = &sent[sent.len() - 2];
        for (delta, usage) in [(&end["delta"], &end["usage"]), (&whole, &whole["usage"])] {
            assert_eq!((&delta["stop_reason"], &delta["stop_sequence"]), (&json!(word), &sequence));
            assert_eq!(delta["stop_details"], json!({"x": 1}));
            assert!(delta.get("x_toolrack").is_none());
            assert_eq!(
                *usage,
                json!({
                    "input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 6,
                    "cache_creation_input_tokens": 1, "output_tokens_details": {"thinking_tokens": 2},
                    "service_tier": "standard",
                })
            );
        }
    }
}

#[test]
fn issue16_anthropic_a_failure_has_the_apis_shape_and_status() {
    for (kind, status, word) in [
        (FailureKind::InvalidRequest, 400, "invalid_request_error"),
        (FailureKind::Authentication, 401, "authentication_error"),
        (FailureKind::Permission, 403, "permission_error"),
        (FailureKind::NotFound, 404, "not_found_error"),
        (FailureKind::TooLarge, 413, "request_too_large"),
        (FailureKind::RateLimit, 429, "rate_limit_error"),
        (FailureKind::Internal, 500, "api_error"),
        (FailureKind::Upstream, 502, "api_error"),
        (FailureKind::Overloaded, 529, "overloaded_error"),
        (FailureKind::Stopping, 529, "overloaded_error"),
        (FailureKind::Timeout, 504, "timeout_error"),
    ] {
        let reply = AnthropicFront.failure(&Failure::new(kind, "no"));
        assert_eq!(reply.status().as_u16(), status);
        let body: Value = serde_json::from_slice(reply.body()).unwrap();
        assert_eq!(body, json!({"type": "error", "error": {"type": word, "message": "no"}}));
    }
    let failure = Failure::new(FailureKind::ContextLength, "9 tokens");
    let reply = AnthropicFront.failure(&Failure { param: Some("messages".into()), ..failure });
    let body: Value = serde_json::from_slice(reply.body()).unwrap();
    assert_eq!(body["error"]["message"], "prompt is too long: 9 tokens");
    assert_eq!(body["error"]["param"], "messages");
}

#[test]
fn n5_anthropic_an_upstream_error_keeps_its_words() {
    let reply = http::Response::builder().status(429).header("retry-after", "7").body(()).unwrap();
    let body = b"{\"error\":{\"code\":\"busy\",\"message\":\"later\",\"n_ctx\":4096}}";
    let failure = OpenAiWire.failure(&reply.into_parts().0, body);
    let reply = AnthropicFront.failure(&failure);
    assert_eq!((reply.status().as_u16(), &reply.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    let body: Value = serde_json::from_slice(reply.body()).unwrap();
    assert_eq!(
        body["error"],
        json!({"type": "rate_limit_error", "message": "later", "code": "busy", "n_ctx": 4096})
    );
}

#[test]
fn issue16_anthropic_a_failure_ends_the_stream() {
    let failed = TurnEvent::Failed(Failure::new(FailureKind::Overloaded, "no"));
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}});
    let before = sent(&encoded(true, &[TurnEvent::Model("m".into()), failed.clone()]));
    assert_eq!(before, std::slice::from_ref(&error));
    let events = [TurnEvent::Text("a".into()), failed];
    let after = sent(&encoded(true, &events));
    assert_eq!((after.len(), &after[3]), (4, &error));
    assert_eq!(serde_json::from_slice::<Value>(&encoded(false, &events)).unwrap(), error);
}

#[test]
fn issue16_anthropic_a_message_of_results_and_text_is_taken_apart() {
    let request = decoded(&json!({
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                {"type": "tool_use", "id": "b", "name": "f", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "So?"},
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "is_error": true},
                {"type": "text", "text": ""},
            ]},
        ],
        "max_tokens": 100,
        "metadata": {"user_id": "u"},
    }));
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User]);
    assert_eq!(request.messages[3].tool_result().unwrap().parts, [Content::Text("1".into()).into()]);
    let second = request.messages[4].tool_result().unwrap();
    assert_eq!((second.call_id.as_str(), second.is_error, second.parts.len()), ("b", true, 0));
    assert_eq!(request.messages[5].plain_text(), "So?");
    assert_eq!(request.passing.get(API, "metadata"), Some(&RawJson::of(&json!({"user_id": "u"}))));
}

#[test]
fn issue16_anthropic_a_document_of_text_reaches_a_chat_server_as_text() {
    let source = json!({"type": "text", "media_type": "text/plain", "data": "Once."});
    let document = json!({"type": "document", "title": "Tale", "source": source});
    let request = decoded(&json!({"messages": [{"role": "user", "content": [document]}]}));
    let encoded = OpenAiWire.request(&request, "");
    let body: Value = serde_json::from_slice(encoded.http.body()).unwrap();
    assert_eq!(body["messages"][0]["content"], json!([{"type": "text", "text": "Tale\n\nOnce."}]));
    assert_eq!(encoded.omissions[0].to_string(), "`messages[0].parts[0]` sent as text");
}

#[test]
fn issue16_anthropic_tokens_are_counted() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "system": "s"});
    let parts = http::Request::new(()).into_parts().0;
    let request = AnthropicFront.decode_count(&parts, body.to_string().as_bytes()).unwrap();
    assert_eq!((request.model.as_deref(), request.messages.len()), (Some("m"), 2));
    let reply = AnthropicFront.count(12);
    assert_eq!(reply.headers()["content-type"], "application/json");
    assert_eq!(reply.body(), b"{\"input_tokens\":12}");
}

#[test]
fn issue16_anthropic_a_malformed_body_names_the_field() {
    let messages = json!([{"role": "user", "content": "hi"}]);
    let with = |fields: Value| {
        let mut body = json!({"messages": messages});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let block = |role: &str, block: Value| json!({"messages": [{"role": role, "content": [block]}]});
    let tool = |tool: Value| with(json!({"tools": [tool]}));
    let (content, tool_field) = ("messages[0].content[0]", "tools[0]");
    for (body, param) in [
        (json!([]), "body".to_owned()),
        (json!({}), "messages".to_owned()),
        (json!({"messages": []}), "messages".to_owned()),
        (json!({"messages": {}}), "messages".to_owned()),
        (json!({"messages": ["hi"]}), "messages[0]".to_owned()),
        (json!({"messages": [{"content": "hi"}]}), "messages[0].role".to_owned()),
        (json!({"messages": [{"role": "tool", "content": "hi"}]}), "messages[0].role".to_owned()),
        (json!({"messages": [{"role": "user", "content": 1}]}), "messages[0].content".to_owned()),
        (block("user", json!("hi")), content.to_owned()),
        (block("user", json!({"text": "hi"})), format!("{content}.type")),
        (block("user", json!({"type": "text"})), format!("{content}.text")),
        (block("user", json!({"type": "tool_use"})), format!("{content}.type")),
        (block("user", json!({"type": "thinking"})), format!("{content}.type")),
        (block("assistant", json!({"type": "tool_result"})), format!("{content}.type")),
        (block("assistant", json!({"type": "tool_use", "name": "f"})), format!("{content}.id")),
        (block("assistant", json!({"type": "tool_use", "id": "a"})), format!("{content}.name")),
        (
            block("assistant", json!({"type": "tool_use", "id": "a", "name": "f", "input": "{}"})),
            format!("{content}.input"),
        ),
        (block("assistant", json!({"type": "thinking", "thinking": 1})), format!("{content}.thinking")),
        (block("assistant", json!({"type": "redacted_thinking"})), format!("{content}.data")),
        (block("user", json!({"type": "tool_result"})), format!("{content}.tool_use_id")),
        (
            block("user", json!({"type": "tool_result", "tool_use_id": "a", "is_error": 1})),
            format!("{content}.is_error"),
        ),
        (
            block("user", json!({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]})),
            format!("{content}.content[0].text"),
        ),
        (block("user", json!({"type": "image"})), format!("{content}.source")),
        (block("user", json!({"type": "image", "source": {}})), format!("{content}.source.type")),
        (
            block("user", json!({"type": "image", "source": {"type": "base64"}})),
            format!("{content}.source.data"),
        ),
        (
            block("user", json!({"type": "image", "source": {"type": "text", "data": "a"}})),
            format!("{content}.source.type"),
        ),
        (with(json!({"system": 1})), "system".to_owned()),
        (with(json!({"model": 3})), "model".to_owned()),
        (with(json!({"stream": "yes"})), "stream".to_owned()),
        (with(json!({"max_tokens": -1})), "max_tokens".to_owned()),
        (with(json!({"temperature": "hot"})), "temperature".to_owned()),
        (with(json!({"stop_sequences": "a"})), "stop_sequences".to_owned()),
        (with(json!({"stop_sequences": [1]})), "stop_sequences[0]".to_owned()),
        (with(json!({"thinking": {}})), "thinking.type".to_owned()),
        (with(json!({"thinking": {"type": "enabled"}})), "thinking.budget_tokens".to_owned()),
        (with(json!({"output_config": {"effort": "most"}})), "output_config.effort".to_owned()),
        (with(json!({"output_config": {"format": {}}})), "output_config.format.type".to_owned()),
        (with(json!({"output_format": {"type": "json_schema"}})), "output_format.schema".to_owned()),
        (with(json!({"output_format": {}, "output_config": {"format": {}}})), "output_format".to_owned()),
        (with(json!({"tools": {}})), "tools".to_owned()),
        (tool(json!({"type": "web_search_20250305", "name": "web_search"})), format!("{tool_field}.type")),
        (tool(json!({"name": "f"})), format!("{tool_field}.input_schema")),
        (tool(json!({"name": "f", "input_schema": 1})), format!("{tool_field}.input_schema")),
        (tool(json!({"input_schema": {}})), format!("{tool_field}.name")),
        (
            with(json!({"tools": [{"name": "f", "input_schema": {}}, {"name": "f", "input_schema": {}}]})),
            "tools[1]".to_owned(),
        ),
        (with(json!({"tool_choice": "auto"})), "tool_choice".to_owned()),
        (with(json!({"tool_choice": {"type": "maybe"}})), "tool_choice.type".to_owned()),
        (with(json!({"tool_choice": {"type": "tool"}})), "tool_choice.name".to_owned()),
        (with(json!({"mcp_servers": [{"url": "https://a"}]})), "mcp_servers".to_owned()),
        (with(json!({"toolrack": {"deltas": true}})), "toolrack.deltas".to_owned()),
    ] {
        let text = body.to_string();
        let error = decode(text.as_bytes()).map(|decoded| decoded.request).unwrap_err();
        assert_eq!(error.param, param, "{body}: {error}");
        assert!(error.message.len() > 10, "{error}");
        assert_eq!(decode(&text.as_bytes()[..text.len() - 1]).unwrap_err().param, "body");
    }
}

#[test]
fn g13_anthropic_a_streamed_token_makes_few_allocations() {
    let body = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}";
    let mut encoder = decode(body.as_bytes()).unwrap().encoder;
    let mut out = Vec::with_capacity(4096);
    encoder.event(TurnEvent::Text("a".into()), &mut out);
    strategies::assert_few_allocations(encoder, &mut out);
    assert!(out.ends_with(b"\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n"));
}
