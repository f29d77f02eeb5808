//! OpenAI's Responses API: requests into the canonical types, and turns as its events.

use std::sync::Arc;

use proptest::{option, prelude::*};
use serde_json::{Value, json};
use toolrack_apis::{
    BadRequest, Call, CallInput, ClientCall, ClientTool, Content, Conversation, Decoded, EarlierAnswer,
    Effort, Encode, Failure, FailureKind, FinishReason, FinishedTool, Front, Media, MediaKind, MediaSource,
    Message, Part, Passing, Provider, RawJson, Reasoning, Request, ResponseFormat, Role, Sampling, Seal,
    SealKind, SeenAnswer, Thinking, ToolChoice, ToolInput, ToolResult, ToolStatus, TurnEvent, Usage, Wire,
    openai::OpenAiWire,
    responses::{Addition, KeptItems, KeptResponse, ResponsesFront, read_addition, response_of_item},
};

use crate::strategies::{name, passing, sampling, text};

const API: Provider = Provider::Responses;

fn decode(body: &[u8]) -> Result<Decoded, BadRequest> {
    ResponsesFront.decode(&http::Request::new(()).into_parts().0, body)
}

fn decoded(body: &Value) -> Request {
    decode(body.to_string().as_bytes()).unwrap().request
}

/// Adds passing fields to an object.
fn with(mut object: Value, passing: &Passing) -> Value {
    for (name, value) in passing.to(API) {
        object[&**name] = serde_json::from_str(value.get()).unwrap();
    }
    object
}

/// A part of a message or of an output, as the API writes it.
fn part_json(role: Role, part: &Part) -> Value {
    let kind = if role == Role::Assistant { "output_text" } else { "input_text" };
    let json = match &part.content {
        Content::Text(text) => json!({"type": kind, "text": text}),
        Content::Media(media) => {
            let data = |data: &str| format!("data:{};base64,{data}", media.media_type.as_deref().unwrap());
            match (media.kind, &media.source) {
                (MediaKind::Image, MediaSource::Data(bytes)) => {
                    json!({"type": "input_image", "image_url": data(bytes), "detail": media.detail})
                }
                (MediaKind::Image, MediaSource::Id(id)) => json!({"type": "input_image", "file_id": id}),
                (_, MediaSource::Data(bytes)) => {
                    json!({"type": "input_file", "file_data": data(bytes), "filename": media.name})
                }
                (_, MediaSource::Url(url)) => json!({"type": "input_file", "file_url": url}),
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    };
    with(json, &part.passing)
}

/// The items that a message is.
fn items(message: &Message) -> Vec<Value> {
    let (mut items, mut content) = (Vec::new(), Vec::new());
    let mut calls = Vec::new();
    for part in &message.parts {
        match &part.content {
            Content::Reasoning(Reasoning { text, seal }) => {
                let texts: Vec<Value> = (!text.is_empty())
                    .then(|| json!({"type": "reasoning_text", "text": text}))
                    .into_iter()
                    .collect();
                let sealed = seal.as_ref().map(|seal| &seal.data);
                let item = json!({"type": "reasoning", "summary": [], "content": texts, "encrypted_content": sealed});
                items.push(with(item, &part.passing));
            }
            Content::Call(Call { id, name, arguments, input }) => {
                let item = match input {
                    CallInput::Json => {
                        json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
                    }
                    CallInput::Text => {
                        json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": arguments})
                    }
                };
                calls.push(with(item, &part.passing));
            }
            Content::Result(ToolResult { call_id, name, parts, .. }) => {
                let output: Vec<Value> = parts.iter().map(|part| part_json(Role::Tool, part)).collect();
                let item = json!({"type": "function_call_output", "call_id": call_id, "name": name, "output": output});
                items.push(with(item, &message.passing));
            }
            _ => content.push(part_json(message.role, part)),
        }
    }
    let role = match message.role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => return items,
    };
    if !content.is_empty() {
        let item = json!({"type": "message", "role": role, "content": content, "status": "completed"});
        items.push(with(item, &message.passing));
    }
    items.extend(calls);
    items
}

/// The request as the API writes it.
fn body(request: &Request) -> Value {
    let Request {
        model,
        messages,
        conversation,
        tools,
        choice,
        parallel,
        stream,
        sampling,
        thinking,
        format,
        ..
    } = request;
    let skipped = usize::from(conversation.has_instructions);
    let instructions = messages.first().filter(|_| conversation.has_instructions).map(Message::plain_text);
    let named = |name: &String| json!({"type": "function", "name": name});
    let choice = match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => named(name),
        ToolChoice::Allowed { names, required } => {
            let tools: Vec<Value> = names.iter().map(named).collect();
            json!({"type": "allowed_tools", "mode": if *required { "required" } else { "auto" }, "tools": tools})
        }
    };
    let tool = |tool: &ClientTool| {
        let ClientTool { name, description, input, passing } = tool;
        let tool = match input {
            ToolInput::Json { schema, strict } => json!({
                "type": "function", "name": name, "description": description, "parameters": schema, "strict": strict,
            }),
            ToolInput::Text { format } => {
                json!({"type": "custom", "name": name, "description": description, "format": format})
            }
        };
        with(tool, passing)
    };
    let format = format.as_ref().map(|format| match format {
        ResponseFormat::JsonObject => json!({"type": "json_object"}),
        ResponseFormat::JsonSchema { name, description, schema, strict } => json!({
            "type": "json_schema", "name": name, "description": description, "schema": schema, "strict": strict,
        }),
    });
    let effort = thinking.map(|thinking| match thinking {
        Thinking::Effort(effort) => effort.as_str(),
        _ => "none",
    });
    let input: Vec<Value> = messages.iter().skip(skipped).flat_map(items).collect();
    let body = json!({
        "model": model,
        "instructions": instructions,
        "input": input,
        "previous_response_id": conversation.previous_response_id,
        "store": conversation.input.is_some(),
        "tools": tools.iter().map(tool).collect::<Vec<_>>(),
        "tool_choice": choice,
        "parallel_tool_calls": parallel,
        "stream": stream,
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repeat_penalty,
        "seed": sampling.seed,
        "reasoning": effort.map(|effort| json!({ "effort": effort })),
        "text": format.map(|format| json!({ "format": format })),
    });
    with(body, &request.passing)
}

fn content(media: bool) -> impl Strategy<Value = Vec<Part>> {
    let text = (text(), passing(API, &["x"]))
        .prop_map(|(text, passing)| Part { content: Content::Text(text), passing });
    let bytes = || "[A-Za-z0-9+/]{1,20}".prop_map(MediaSource::Data);
    let image = (bytes(), option::of(Just("low".to_owned()))).prop_map(|(source, detail)| Media {
        media_type: Some("image/png".into()),
        detail,
        ..Media::new(MediaKind::Image, source)
    });
    let file = (bytes(), option::of(text_name())).prop_map(|(source, name)| Media {
        media_type: Some("application/pdf".into()),
        name,
        ..Media::new(MediaKind::File, source)
    });
    let others = prop_oneof![
        Just(Media::new(MediaKind::Image, MediaSource::Id("file-1".into()))),
        Just(Media::new(MediaKind::File, MediaSource::Url("https://a/b".into()))),
    ];
    let media_part = prop_oneof![image, file, others].prop_map(|media| Content::Media(media).into());
    let part = prop_oneof![2 => text.boxed(), u32::from(media) => media_part.boxed()];
    proptest::collection::vec(part, 1..3)
}

fn text_name() -> impl Strategy<Value = String> {
    "[a-z]{1,8}\\.pdf"
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::System), Just(Role::Developer), Just(Role::User)];
    let plain = (role, content(true), passing(API, &["id", "phase"]));
    let seal = || option::of(name().prop_map(|data| Seal { api: API, kind: SealKind::Encrypted, data }));
    let reasoning = (text(), seal(), passing(API, &["id"])).prop_map(|(text, seal, passing)| Part {
        content: Content::Reasoning(Reasoning { text, seal }),
        passing,
    });
    let call = (name(), name(), text(), any::<bool>(), passing(API, &["id", "caller"])).prop_map(
        |(id, name, arguments, is_json, passing)| {
            let input = if is_json { CallInput::Json } else { CallInput::Text };
            Part { content: Content::Call(Call { id, name, arguments, input }), passing }
        },
    );
    let calls = proptest::collection::vec(call, 0..3);
    let assistant = (option::of(reasoning), content(false), calls, passing(API, &["id"])).prop_map(
        |(reasoning, content, calls, passing)| {
            (Role::Assistant, reasoning.into_iter().chain(content).chain(calls).collect(), passing)
        },
    );
    let result = (name(), option::of(name()), content(true), passing(API, &["id"])).prop_map(
        |(call_id, name, parts, passing)| {
            let result = ToolResult { call_id, name, parts, is_error: false };
            (Role::Tool, vec![Content::Result(result).into()], passing)
        },
    );
    prop_oneof![plain.boxed(), assistant.boxed(), result.boxed()]
        .prop_map(|(role, parts, passing)| Message { passing, ..Message::new(role, parts) })
}

fn tools() -> impl Strategy<Value = Vec<ClientTool>> {
    let schema =
        option::of(Just(Arc::new(json!({"type": "object", "properties": {"a": {"type": "string"}}}))));
    let json =
        (schema, option::of(any::<bool>())).prop_map(|(schema, strict)| ToolInput::Json { schema, strict });
    let custom =
        option::of(Just(Arc::new(json!({"type": "text"})))).prop_map(|format| ToolInput::Text { format });
    let tool = (option::of(text()), prop_oneof![json, custom], passing(API, &["defer_loading"]));
    proptest::collection::vec(tool, 0..3).prop_map(|tools| {
        let tools = tools.into_iter().enumerate();
        tools
            .map(|(at, (description, input, passing))| ClientTool {
                name: format!("t{at}"),
                description,
                input,
                passing,
            })
            .collect()
    })
}

fn request() -> impl Strategy<Value = Request> {
    let choice = prop_oneof![
        Just(ToolChoice::Auto),
        Just(ToolChoice::None),
        Just(ToolChoice::Required),
        name().prop_map(ToolChoice::Named),
        (proptest::collection::vec(name(), 0..3), any::<bool>())
            .prop_map(|(names, required)| ToolChoice::Allowed { names, required }),
    ];
    let thinking =
        prop_oneof![Just(Thinking::Off), prop::sample::select(&Effort::ALL[..]).prop_map(Thinking::Effort)];
    let schema = (option::of(name()), option::of(text()), option::of(any::<bool>())).prop_map(
        |(name, description, strict)| ResponseFormat::JsonSchema {
            name,
            description,
            schema: json!({"type": "object"}),
            strict,
        },
    );
    let format = option::of(prop_oneof![Just(ResponseFormat::JsonObject), schema]);
    let sampling = sampling().prop_map(|sampling| Sampling { stop: Vec::new(), ..sampling });
    let kept = (option::of(name()), any::<bool>(), option::of(text()));
    let asked =
        (option::of(name()), choice, option::of(any::<bool>()), sampling, option::of(thinking), format);
    let said = (proptest::collection::vec(message(), 1..5), tools());
    (asked, said, kept, any::<bool>(), passing(API, &["user", "truncation", "include"])).prop_map(
        |(asked, (messages, tools), (previous_response_id, store, instructions), stream, passing)| {
            let (model, choice, parallel, sampling, thinking, format) = asked;
            let has_instructions = instructions.is_some();
            let instructions = instructions.map(|text| Message::text(Role::System, text));
            Request {
                model,
                conversation: Conversation {
                    previous_response_id,
                    input: store.then(|| input_of(&messages)),
                    has_instructions,
                    ..Conversation::default()
                },
                messages: instructions.into_iter().chain(messages).collect(),
                tools,
                choice,
                parallel,
                stream,
                sampling,
                thinking,
                format,
                passing,
                ..Request::default()
            }
        },
    )
}

/// Messages as the input of a request.
fn input_of(messages: &[Message]) -> RawJson {
    let items: Vec<Value> = messages.iter().flat_map(items).collect();
    (&*serde_json::value::to_raw_value(&items).unwrap()).into()
}

proptest! {
    #[test]
    fn b13_responses_a_request_survives_the_front(request in request()) {
        prop_assert_eq!(decoded(&body(&request)), request);
    }

    #[test]
    fn b13_responses_a_body_of_anything_never_panics(body in "[\\[\\]{}:,\"a-z0-9 ]{0,60}", bytes in any::<Vec<u8>>()) {
        let _ = decode(body.as_bytes());
        let _ = decode(&bytes);
    }

    /// Whatever happens in a turn: indexes and numbers have no gap, and each item ends once, as in the response.
    #[test]
    fn b13_responses_any_turn_is_a_stream_without_gaps(
        picks in proptest::collection::vec(0..10_usize, 0..12), length in any::<bool>(), items in any::<bool>(),
    ) {
        let mut turn = vec![TurnEvent::Model("m".into())];
        turn.extend(picks.iter().enumerate().flat_map(|(at, pick)| {
            let id = format!("c{at}");
            match pick {
                0..=2 => vec![TurnEvent::Text(format!("t{at}"))],
                3..=4 => vec![TurnEvent::Reasoning { text: format!("r{at}"), seal: None }],
                5 => vec![started(&id)],
                6 => vec![started(&id), finished(&id, at % 2 == 0)],
                7 => vec![begun(&id, CallInput::Json), delta(&id, "{}")],
                8 => vec![begun(&id, CallInput::Text), delta(&id, "x"), calls([(&*id, "x", CallInput::Text)])],
                _ => vec![calls([(&*id, "{}", CallInput::Json)])],
            }
        }));
        let reason = if length { FinishReason::Length } else { FinishReason::Stop };
        turn.push(TurnEvent::Finished { reason, usage: Usage::default() });
        let asked = if items { with_items() } else { json!({"stream": true}) };
        let events = events(&encoded(asked, turn));
        let end = &events.last().unwrap()["response"];
        let mut done: Vec<(u64, &Value)> = Vec::new();
        for event in &events {
            if event["type"] == "response.output_item.done" {
                done.push((event["output_index"].as_u64().unwrap(), &event["item"]));
            }
        }
        done.sort_by_key(|(index, _)| *index);
        let indexes: Vec<u64> = done.iter().map(|(index, _)| *index).collect();
        prop_assert_eq!(indexes, (0..done.len() as u64).collect::<Vec<_>>());
        let items: Vec<&Value> = done.into_iter().map(|(_, item)| item).collect();
        prop_assert_eq!(&end["output"], &json!(items));
    }
}

/// What a client sends that wants calls of the server's tools as items.
pub(crate) fn with_items() -> Value {
    json!({"stream": true, "tools": [{"type": "mcp", "server_label": "toolrack", "require_approval": "never"}]})
}

fn encoder(fields: Value) -> Box<dyn Encode> {
    let mut body = json!({"input": "hi", "model": "asked"});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    decode(body.to_string().as_bytes()).unwrap().encoder
}

fn encoded(fields: Value, turn: Vec<TurnEvent>) -> Vec<u8> {
    let (mut encoder, mut out) = (encoder(fields), Vec::new());
    for event in turn {
        encoder.event(event, &mut out);
    }
    encoder.finish(&mut out);
    out
}

/// The events of a stream, whose names and numbers are right.
fn events(stream: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    let frames = text.split_terminator("\n\n").enumerate().map(|(at, frame)| {
        let (name, data) = frame.split_once('\n').unwrap();
        let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), event["type"].as_str());
        assert_eq!(event["sequence_number"], at);
        event
    });
    frames.collect()
}

/// Events in short: the type behind `response.`, the index, and the one field that says something.
fn short(events: &[Value]) -> Vec<String> {
    let line = |event: &Value| {
        let kind = event["type"].as_str().unwrap().trim_start_matches("response.");
        let index = event.get("output_index").map(|index| format!(" {index}")).unwrap_or_default();
        let said = ["delta", "text", "arguments", "input"].iter().find_map(|name| event[*name].as_str());
        let item = event["item"]["type"]
            .as_str()
            .map(|kind| format!("{kind}:{}", event["item"]["status"].as_str().unwrap_or("-")));
        let said = said.map(str::to_owned).or(item).map(|said| format!(" {said}")).unwrap_or_default();
        format!("{kind}{index}{said}")
    };
    events.iter().map(line).collect()
}

fn begun(id: &str, input: CallInput) -> TurnEvent {
    TurnEvent::CallBegun { id: id.into(), name: "f".into(), input, passing: Passing::none() }
}

fn delta(id: &str, arguments: &str) -> TurnEvent {
    TurnEvent::CallDelta { id: id.into(), arguments: arguments.into() }
}

fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, CallInput)>) -> TurnEvent {
    let call = |(id, arguments, input)| ClientCall {
        call: Call { input, ..Call::new(id, "f", arguments) },
        passing: Passing::none(),
    };
    TurnEvent::Calls(calls.into_iter().map(call).collect())
}

fn started(id: &str) -> TurnEvent {
    TurnEvent::Tool(ToolStatus::Started {
        id: id.into(),
        name: "web.search".into(),
        arguments: json!({"q": 1}),
        dialect: "native".into(),
    })
}

fn finished(id: &str, success: bool) -> TurnEvent {
    let error = (!success).then(|| "no".to_owned());
    let result = success.then(|| json!({"hits": 1}));
    let tool = FinishedTool {
        id: id.into(),
        name: "web.search".into(),
        success,
        result,
        error,
        ..FinishedTool::default()
    };
    TurnEvent::Tool(ToolStatus::Finished(Box::new(tool)))
}

fn end(reason: FinishReason) -> TurnEvent {
    let usage = Usage { input: 5, output: 3, cached: Some(2), reasoning: Some(1), ..Usage::default() };
    TurnEvent::Finished { reason, usage }
}

fn model() -> TurnEvent {
    TurnEvent::Model("m".into())
}

fn said(text: &str) -> TurnEvent {
    TurnEvent::Text(text.into())
}

fn thought(text: &str) -> TurnEvent {
    TurnEvent::Reasoning { text: text.into(), seal: None }
}

/// A turn with all that there is.
pub(crate) fn mixed_turn() -> Vec<TurnEvent> {
    vec![
        model(),
        thought("hm"),
        said("a"),
        said("b"),
        started("s"),
        finished("s", true),
        TurnEvent::Message { id: "s".into(), text: "Found.".into(), part: None },
        TurnEvent::Notice("slow".into()),
        begun("c1", CallInput::Json),
        delta("c1", "{\"a\":"),
        delta("c1", "1}"),
        begun("c2", CallInput::Text),
        delta("c2", "x"),
        calls([
            ("c1", "{\"a\":1}", CallInput::Json),
            ("c2", "x", CallInput::Text),
            ("c3", "{}", CallInput::Json),
        ]),
        end(FinishReason::ToolCalls),
    ]
}

#[test]
fn b13_responses_a_stream_has_these_events() {
    let events = events(&encoded(with_items(), mixed_turn()));
    let expected = [
        "created",
        "in_progress",
        "output_item.added 0 reasoning:in_progress",
        "content_part.added 0",
        "reasoning_text.delta 0 hm",
        "reasoning_text.done 0 hm",
        "content_part.done 0",
        "output_item.done 0 reasoning:completed",
        "output_item.added 1 message:in_progress",
        "content_part.added 1",
        "output_text.delta 1 a",
        "output_text.delta 1 b",
        "output_text.done 1 ab",
        "content_part.done 1",
        "output_item.done 1 message:completed",
        "output_item.added 2 mcp_call:in_progress",
        "mcp_call.in_progress 2",
        "mcp_call_arguments.done 2 {\"q\":1}",
        "mcp_call.completed 2",
        "output_item.done 2 mcp_call:completed",
        "output_item.added 3 message:in_progress",
        "content_part.added 3",
        "output_text.delta 3 Found.",
        "output_text.done 3 Found.",
        "content_part.done 3",
        "output_item.done 3 message:completed",
        "output_item.added 4 function_call:in_progress",
        "function_call_arguments.delta 4 {\"a\":",
        "function_call_arguments.delta 4 1}",
        "output_item.added 5 custom_tool_call:in_progress",
        "custom_tool_call_input.delta 5 x",
        "function_call_arguments.done 4 {\"a\":1}",
        "output_item.done 4 function_call:completed",
        "custom_tool_call_input.done 5 x",
        "output_item.done 5 custom_tool_call:completed",
        "output_item.added 6 function_call:in_progress",
        "function_call_arguments.delta 6 {}",
        "function_call_arguments.done 6 {}",
        "output_item.done 6 function_call:completed",
        "completed",
    ];
    assert_eq!(short(&events), expected);
    let response = &events.last().unwrap()["response"];
    assert_eq!((&response["status"], &response["model"]), (&json!("completed"), &json!("m")));
    assert_eq!(
        response["usage"],
        json!({
            "input_tokens": 5, "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
            "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 8,
        })
    );
    assert_eq!(response["x_toolrack"], json!([{"type": "notice", "message": "slow"}]));
    let output = response["output"].as_array().unwrap();
    assert_eq!(output[0]["content"], json!([{"type": "reasoning_text", "text": "hm"}]));
    assert_eq!(
        output[1]["content"],
        json!([{"type": "output_text", "text": "ab", "annotations": [], "logprobs": []}])
    );
    assert_eq!((&output[2]["output"], &output[2]["error"]), (&json!("{\"hits\":1}"), &Value::Null));
    assert_eq!((&output[4]["call_id"], &output[4]["arguments"]), (&json!("c1"), &json!("{\"a\":1}")));
    assert_eq!((&output[5]["call_id"], &output[5]["input"]), (&json!("c2"), &json!("x")));
    // An event names its item by the id that the item has.
    for event in events.iter().filter(|event| event.get("item_id").is_some()) {
        assert_eq!(
            event["item_id"],
            output[event["output_index"].as_u64().unwrap() as usize]["id"],
            "{event}"
        );
    }

    // The same turn in one body.
    let asked = json!({"tools": with_items()["tools"]});
    let reply: Value = serde_json::from_slice(&encoded(asked, mixed_turn())).unwrap();
    let kinds = |response: &Value| {
        let items = response["output"].as_array().unwrap().iter();
        items.map(|item| item["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((kinds(&reply), &reply["usage"]), (kinds(response), &response["usage"]));
}

#[test]
fn b13_responses_reasoning_is_a_summary_for_who_asks_for_one() {
    let seal = |api| Some(Seal { api, kind: SealKind::Encrypted, data: "sealed".into() });
    let turn = |api| {
        vec![
            model(),
            thought("h"),
            TurnEvent::Reasoning { text: "m".into(), seal: seal(api) },
            end(FinishReason::Stop),
        ]
    };
    let events = events(&encoded(json!({"stream": true, "reasoning": {"summary": "auto"}}), turn(API)));
    assert_eq!(
        short(&events)[2..9],
        [
            "output_item.added 0 reasoning:in_progress",
            "reasoning_summary_part.added 0",
            "reasoning_summary_text.delta 0 h",
            "reasoning_summary_text.delta 0 m",
            "reasoning_summary_text.done 0 hm",
            "reasoning_summary_part.done 0",
            "output_item.done 0 reasoning:completed",
        ]
    );
    let item = &events.last().unwrap()["response"]["output"][0];
    assert_eq!(item["summary"], json!([{"type": "summary_text", "text": "hm"}]));
    assert_eq!((&item["encrypted_content"], item.get("content")), (&json!("sealed"), None));
    // The item comes back as it was said.
    let back = decoded(&json!({"input": [item]}));
    let Content::Reasoning(reasoning) = &back.messages[0].parts[0].content else { panic!("{back:?}") };
    assert_eq!((reasoning.text.as_str(), &reasoning.seal), ("hm", &seal(API)));
    // A seal of another API means nothing here.
    let reply: Value = serde_json::from_slice(&encoded(json!({}), turn(Provider::Anthropic))).unwrap();
    assert_eq!(reply["output"][0].get("encrypted_content"), None);
}

#[test]
fn b13_responses_an_end_says_why() {
    for (reason, status, details) in [
        (FinishReason::Stop, "completed", Value::Null),
        (FinishReason::StopSequence("x".into()), "completed", Value::Null),
        (FinishReason::ToolCalls, "completed", Value::Null),
        (FinishReason::Other("eos".into()), "completed", Value::Null),
        (FinishReason::Length, "incomplete", json!({"reason": "max_output_tokens"})),
        (FinishReason::ContentFilter, "incomplete", json!({"reason": "content_filter"})),
    ] {
        let turn =
            || vec![model(), said("a"), begun("c", CallInput::Json), delta("c", "{"), end(reason.clone())];
        let events = events(&encoded(json!({"stream": true}), turn()));
        let last = events.last().unwrap();
        assert_eq!(last["type"], format!("response.{status}"));
        let response = &last["response"];
        assert_eq!((&response["status"], &response["incomplete_details"]), (&json!(status), &details));
        assert_eq!(response["output"][1]["status"], "incomplete", "a call that never became whole");
        let reply: Value = serde_json::from_slice(&encoded(json!({}), turn())).unwrap();
        assert_eq!((&reply["status"], &reply["incomplete_details"]), (&json!(status), &details));
    }
    let events =
        events(&encoded(json!({"stream": true}), vec![model(), said("a"), end(FinishReason::Length)]));
    assert_eq!(short(&events)[7], "output_item.done 0 message:incomplete");
}

#[test]
fn b13_responses_a_failure_has_its_shape_before_and_after_the_first_word() {
    let failure = Failure::new(FailureKind::ContextLength, "too long");
    let reply = ResponsesFront.failure(&failure);
    let error: Value = serde_json::from_slice(reply.body()).unwrap();
    assert_eq!(reply.status(), 400);
    let expected = json!({
        "message": "too long", "type": "invalid_request_error", "param": null, "code": "context_length_exceeded",
    });
    assert_eq!(error["error"], expected);
    // Until then the failure can be the status of the reply, which SDKs read.
    let mut out = Vec::new();
    encoder(json!({"stream": true})).event(model(), &mut out);
    assert!(out.is_empty());
    let events =
        events(&encoded(with_items(), vec![model(), said("a"), started("s"), TurnEvent::Failed(failure)]));
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    assert_eq!(last["response"]["error"], json!({"code": "context_length_exceeded", "message": "too long"}));
    assert_eq!(last["response"]["output"][1]["status"], "failed");
}

#[test]
fn b13_responses_a_failed_tool_says_why() {
    let events =
        events(&encoded(with_items(), vec![started("s"), finished("s", false), end(FinishReason::Stop)]));
    assert_eq!(short(&events)[5..7], ["mcp_call.failed 0", "output_item.done 0 mcp_call:failed"]);
    assert_eq!(events[5]["x_toolrack"]["type"], "call_finished");
    let error = &events.last().unwrap()["response"]["output"][0]["error"];
    assert_eq!(
        *error,
        json!({"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no"}]})
    );
}

/// Strict clients know no item that they have not asked for: mirascope, MacPaw's OpenAI and earlier versions of rig fail at it.
#[test]
fn b13_responses_a_client_that_asks_for_no_items_is_told_of_calls_beside_them() {
    let tools = json!([{"type": "function", "name": "f"}]);
    let asked = json!({"stream": true, "instructions": "be brief", "tools": tools});
    let turn =
        vec![model(), said("a"), started("s"), finished("s", false), said("b"), end(FinishReason::Stop)];
    let events = events(&encoded(asked, turn.clone()));
    let expected = [
        "created",
        "in_progress",
        "output_item.added 0 message:in_progress",
        "content_part.added 0",
        "output_text.delta 0 a",
        "output_text.done 0 a",
        "content_part.done 0",
        "output_item.done 0 message:completed",
        "in_progress",
        "in_progress",
        "output_item.added 1 message:in_progress",
        "content_part.added 1",
        "output_text.delta 1 b",
        "output_text.done 1 b",
        "content_part.done 1",
        "output_item.done 1 message:completed",
        "completed",
    ];
    assert_eq!(short(&events), expected);
    let told = |event: &Value| event["x_toolrack"]["type"].clone();
    assert_eq!([told(&events[8]), told(&events[9])], ["call_started", "call_finished"]);
    // Only the first two repeat what was asked.
    let (begun, goes_on) = (&events[1]["response"], &events[8]["response"]);
    assert_eq!((&begun["tools"], &begun["instructions"]), (&tools, &json!("be brief")));
    assert_eq!((&goes_on["tools"], &goes_on["instructions"]), (&json!([]), &Value::Null));
    // openai-node 6.45 to 6.49 takes each for all that there is.
    assert_eq!((&goes_on["id"], &goes_on["output"]), (&begun["id"], &json!([events[7]["item"]])));
    let end = &events[16]["response"];
    assert_eq!(
        (told(&json!({"x_toolrack": end["x_toolrack"][1]})), &end["tools"]),
        (json!("call_finished"), &tools)
    );

    let whole: Value = serde_json::from_slice(&encoded(json!({}), turn)).unwrap();
    assert_eq!(whole["output"].as_array().unwrap().len(), 2);
    assert_eq!(whole["x_toolrack"], end["x_toolrack"]);
}

#[test]
fn b13_responses_a_header_asks_for_items_as_well() {
    let decode = |value: &str| {
        let request = http::Request::builder().header("x-toolrack-items", value).body(()).unwrap();
        ResponsesFront.decode(&request.into_parts().0, br#"{"input": "hi"}"#)
    };
    let mut out = Vec::new();
    let mut encoder = decode("mcp_call").unwrap().encoder;
    for event in [started("s"), finished("s", true), end(FinishReason::Stop)] {
        encoder.event(event, &mut out);
    }
    encoder.finish(&mut out);
    let reply: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((&reply["output"][0]["type"], reply.get("x_toolrack")), (&json!("mcp_call"), None));
    assert_eq!(decode("all").unwrap_err().param, "x-toolrack-items");
}

/// openai-go before 3.43, mistral-vibe and SpeziLLM fail at a comment.
#[test]
fn b13_responses_a_silent_stream_is_kept_alive_by_an_event() {
    let (mut encoder, mut out) = (encoder(json!({"stream": true})), Vec::new());
    encoder.event(model(), &mut out);
    encoder.keep_alive(&mut out);
    encoder.event(said("a"), &mut out);
    encoder.keep_alive(&mut out);
    let events = events(&out);
    let expected = [
        "created",
        "in_progress",
        "output_item.added 0 message:in_progress",
        "content_part.added 0",
        "output_text.delta 0 a",
        "in_progress",
    ];
    assert_eq!(short(&events), expected);
    assert_eq!(events[5]["response"]["status"], "in_progress");
    let so_far = &events[5]["response"]["output"][0];
    assert_eq!((&so_far["status"], &so_far["content"][0]["text"]), (&json!("in_progress"), &json!("a")));
}

#[test]
fn b13_responses_what_keeps_a_long_stream_alive_does_not_repeat_it() {
    let (mut encoder, mut out) = (encoder(json!({"stream": true})), Vec::new());
    encoder.event(model(), &mut out);
    for _ in 0..50 {
        encoder.event(said("a"), &mut out);
        encoder.keep_alive(&mut out);
    }
    assert_eq!(events(&out).last().unwrap()["type"], "response.in_progress");
    encoder.event(said(&"a".repeat(64 * 1024)), &mut out);
    let before = out.len();
    encoder.keep_alive(&mut out);
    assert!(out.len() - before < 200, "{}", out.len() - before);
    assert_eq!(events(&out).last().unwrap()["type"], "keepalive");
}

#[test]
fn b13_responses_an_answer_repeats_what_was_asked() {
    let asked = json!({
        "instructions": "be brief", "temperature": 0.5, "metadata": {"a": "b"}, "store": false,
        "previous_response_id": "resp_1", "tools": [{"type": "function", "name": "f"}], "max_output_tokens": 7,
    });
    let reply: Value =
        serde_json::from_slice(&encoded(asked.clone(), vec![model(), end(FinishReason::Stop)])).unwrap();
    for (name, value) in asked.as_object().unwrap() {
        assert_eq!(&reply[name], value, "{name}");
    }
    let reply: Value =
        serde_json::from_slice(&encoded(json!({}), vec![model(), end(FinishReason::Stop)])).unwrap();
    assert_eq!(
        (&reply["parallel_tool_calls"], &reply["tool_choice"], &reply["tools"]),
        (&json!(true), &json!("auto"), &json!([]))
    );
}

#[test]
fn b13_responses_an_answer_is_kept_as_it_was_given() {
    for stream in [false, true] {
        let mut encoder = encoder(json!({"stream": stream, "metadata": {"a": "b"}}));
        let mut out = Vec::new();
        for event in [model(), TurnEvent::Text("hi".into())] {
            encoder.event(event, &mut out);
        }
        assert_eq!(encoder.take_response(), None);
        out.clear();
        encoder.event(end(FinishReason::Stop), &mut out);
        encoder.finish(&mut out);
        let text = String::from_utf8(out).unwrap();
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data: "));
        let given: Value = serde_json::from_str(last.unwrap_or(&text)).unwrap();
        let given = if stream { given["response"].clone() } else { given };
        assert_eq!(encoder.take_response(), Some(given.clone()));
        assert_eq!(encoder.take_response(), None);
        let item = given["output"][0]["id"].as_str().unwrap();
        assert_eq!(response_of_item(item).as_deref(), given["id"].as_str());
    }
    let mut encoder = encoder(json!({}));
    encoder.event(TurnEvent::Failed(Failure::of_upstream("no")), &mut Vec::new());
    assert_eq!(encoder.take_response(), None);
}

fn kept(items: &[Value]) -> KeptItems {
    let raw = |item: &Value| (&*serde_json::value::to_raw_value(item).unwrap()).into();
    items.iter().map(|item| (item["id"].as_str().unwrap().to_owned(), raw(item))).collect()
}

#[test]
fn b13_responses_references_are_read_as_the_items_themselves() {
    let said = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "a", "annotations": []}]});
    let call =
        json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"});
    let result = json!({"type": "function_call_output", "call_id": "c1", "output": "one"});
    let user = json!({"role": "user", "content": "hi"});
    let referring = json!({"input": [
        user, {"type": "item_reference", "id": "msg_1"}, {"id": "fc_1"}, {"type": "item_reference", "id": "fc_1"}, result,
    ]})
    .to_string();
    let whole = decoded(&json!({"input": [user, said, call, result]}));

    let missing = decode(referring.as_bytes()).unwrap().request.conversation;
    assert_eq!((missing.missing_items, missing.input.is_some()), (vec!["msg_1".into(), "fc_1".into()], true));
    let some = ResponsesFront
        .decode_with(&http::HeaderMap::new(), referring.as_bytes(), &kept(std::slice::from_ref(&said)))
        .unwrap();
    assert_eq!(some.request.conversation.missing_items, ["fc_1"]);
    let all = ResponsesFront
        .decode_with(&http::HeaderMap::new(), referring.as_bytes(), &kept(&[said, call]))
        .unwrap();
    assert_eq!(all.request, whole);
    // One that stands for itself ends.
    let own = json!({"type": "item_reference", "id": "x"});
    let own = ResponsesFront.decode_with(
        &http::HeaderMap::new(),
        json!({ "input": [own] }).to_string().as_bytes(),
        &kept(&[own]),
    );
    assert!(own.is_err());
}

#[test]
fn b13_responses_what_is_kept_is_read_again() {
    let input = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "a"},
        {"type": "message", "id": "msg_x", "role": "user", "status": "incomplete", "content": [{"type": "input_text", "text": "b"}]},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
    ]);
    let request = decoded(&json!({ "input": input }));
    let (answer, found) = ([Message::text(Role::Assistant, "c")], vec!["far.tides".to_owned()]);
    let seen = SeenAnswer { conversation: "ab12".into(), read: vec!["cd34".into()] };
    let sent = request.conversation.input.as_ref().unwrap();
    let addition = Addition { input: sent, answer: &answer, found: &found, seen: Some(&seen) };
    let addition = serde_json::to_string(&addition).unwrap();
    let added = read_addition(&addition).unwrap();
    let begin = request.messages.len();
    assert_eq!(added.answer, EarlierAnswer { messages: begin..begin + 1, seen: Some(seen) });
    assert_eq!((added.messages, added.found), ([&request.messages[..], &answer].concat(), found));
    let given = json!({"output": [{"id": "msg_y", "type": "message"}]}).to_string();
    let response =
        KeptResponse { id: "resp_0123456789abcdef0123456789abcdef", addition: &addition, given: &given };
    let id = |prefix: &str, number: u64| format!("{prefix}_0123456789abcdef0123456789abcdef{number:016x}");
    assert_eq!(
        Value::from(response.input().unwrap()),
        json!([
            {"id": id("msg", 0), "type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}], "status": "completed"},
            {"id": id("msg", 1), "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}], "status": "completed"},
            input[2],
            {"id": id("fco", 3), "type": "function_call_output", "call_id": "c1", "output": "one"},
        ])
    );
    assert_eq!(Value::from(response.output().unwrap()), json!([{"id": "msg_y", "type": "message"}]));
    let text = json!({"input": "hi", "answer": []}).to_string();
    let response = KeptResponse { addition: &text, given: "", ..response };
    assert_eq!(response.input().unwrap()[0]["content"], json!([{"type": "input_text", "text": "hi"}]));
    assert_eq!(response.output().unwrap(), Vec::<Value>::new());

    // As earlier versions kept it.
    let messages = serde_json::to_string(&request.messages).unwrap();
    assert_eq!(read_addition(&messages).unwrap().messages, request.messages);
    assert!(KeptResponse { addition: &messages, ..response }.input().unwrap().is_empty());
    for other in ["", "{}", "[1]", r#"{"input": 1, "answer": []}"#] {
        assert!(read_addition(other).is_err(), "{other}");
    }
}

/// A conversation that was begun with a model of OpenAI goes on with one that has none of its tools.
#[test]
fn b13_responses_calls_of_openais_own_tools_are_left_out() {
    let kinds = [
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "computer_call",
        "computer_call_output",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
    ];
    for kind in kinds {
        let input = json!([
            {"role": "user", "content": "hi"},
            {"type": kind, "id": "x_1", "status": "completed"},
            {"type": "message", "role": "assistant", "content": "a"},
            {"role": "user", "content": "go on"},
        ]);
        let encoded = OpenAiWire.request(&decoded(&json!({ "input": input })), "");
        let sent: Value = serde_json::from_slice(encoded.http.body()).unwrap();
        let roles: Vec<&Value> =
            sent["messages"].as_array().unwrap().iter().map(|sent| &sent["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "user"], "{kind}");
        let paths: Vec<&str> = encoded.omissions.iter().map(|omission| omission.path.as_str()).collect();
        assert_eq!(paths, ["messages[1].parts[0]"], "{kind}");
    }
}

#[test]
fn b13_responses_items_of_an_answer_become_one_message() {
    let input = json!([
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "r"}]},
        {"type": "mcp_call", "id": "mcp_1", "server_label": "toolrack", "name": "web.search", "arguments": "{}"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "a", "annotations": []}, {"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
        {"role": "assistant", "content": "b"},
        {"role": "assistant", "content": "c"},
    ]);
    let request = decoded(&json!({ "input": input }));
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    use Role::{Assistant, Tool, User};
    assert_eq!(roles, [User, Assistant, Tool, Tool, Assistant, Assistant]);
    let encoded = OpenAiWire.request(&request, "");
    let sent: Value = serde_json::from_slice(encoded.http.body()).unwrap();
    assert_eq!(sent["messages"][1]["reasoning_content"], "r");
    assert_eq!(sent["messages"][1]["tool_calls"].as_array().unwrap().len(), 2);
    assert_eq!(sent["messages"][3], json!({"role": "tool", "tool_call_id": "c2", "content": "two"}));
    let paths: Vec<&str> = encoded.omissions.iter().map(|omission| omission.path.as_str()).collect();
    let expected = [
        "messages[1].id",
        "messages[1].parts[0].id",
        "messages[1].parts[0].summary",
        "messages[1].parts[4].id",
        "messages[1].parts[1]",
        "messages[1].parts[5]",
    ];
    assert_eq!(paths, expected);
    let kept = Request {
        conversation: Conversation { previous_response_id: Some("resp_1".into()), ..Conversation::default() },
        ..request
    };
    let omissions = OpenAiWire.request(&kept, "").omissions;
    assert!(
        omissions.iter().any(|omission| omission.path == "conversation.previous_response_id"),
        "{omissions:?}"
    );
}

#[test]
fn b13_responses_a_malformed_body_names_the_field() {
    let with = |fields: Value| {
        let mut body = json!({"input": "hi"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let item = |item: Value| json!({"input": [item]});
    let part = |part: Value| item(json!({"role": "user", "content": [part]}));
    let server = |name: &str, value: &str| {
        with(json!({"tools": [{"type": "mcp", "server_label": "toolrack", name: value}]}))
    };
    for (body, param) in [
        (json!([]), "body"),
        (json!({}), "input"),
        (json!({"input": ""}), "input"),
        (json!({"input": []}), "input"),
        (json!({"input": 1}), "input"),
        (item(json!("hi")), "input[0]"),
        (item(json!({"content": "hi"})), "input[0].role"),
        (item(json!({"role": "tool", "content": "hi"})), "input[0].role"),
        (item(json!({"role": "user"})), "input[0].content"),
        (item(json!({"role": "user", "content": 1})), "input[0].content"),
        (part(json!({"text": "a"})), "input[0].content[0].type"),
        (part(json!({"type": "image_url"})), "input[0].content[0].type"),
        (part(json!({"type": "input_text"})), "input[0].content[0].text"),
        (part(json!({"type": "input_image"})), "input[0].content[0].image_url"),
        (part(json!({"type": "input_file"})), "input[0].content[0].file_data"),
        (part(json!({"type": "input_audio"})), "input[0].content[0].input_audio"),
        (item(json!({"type": "item_reference"})), "input[0].id"),
        (item(json!({"type": "compaction"})), "input[0].type"),
        (item(json!({"type": "call"})), "input[0].type"),
        (item(json!({"type": "reasoning", "summary": 1})), "input[0].summary"),
        (item(json!({"type": "reasoning", "summary": [{}]})), "input[0].summary[0].text"),
        (item(json!({"type": "function_call", "call_id": "c"})), "input[0].name"),
        (item(json!({"type": "function_call", "name": "f"})), "input[0].call_id"),
        (item(json!({"type": "function_call", "name": "f", "call_id": "c"})), "input[0].arguments"),
        (
            item(json!({"type": "function_call", "name": "f", "call_id": "c", "arguments": {}})),
            "input[0].arguments",
        ),
        (item(json!({"type": "function_call_output", "output": "a"})), "input[0].call_id"),
        (item(json!({"type": "function_call_output", "call_id": "c"})), "input[0].output"),
        (with(json!({"model": 1})), "model"),
        (with(json!({"instructions": []})), "instructions"),
        (with(json!({"background": true})), "background"),
        (with(json!({"conversation": "conv_1"})), "conversation"),
        (with(json!({"prompt": {"id": "p"}})), "prompt"),
        (with(json!({"store": "no"})), "store"),
        (with(json!({"previous_response_id": 1})), "previous_response_id"),
        (with(json!({"stream": 1})), "stream"),
        (with(json!({"max_output_tokens": -1})), "max_output_tokens"),
        (with(json!({"temperature": "hot"})), "temperature"),
        (with(json!({"reasoning": {"effort": "huge"}})), "reasoning.effort"),
        (with(json!({"text": {"format": {"type": "xml"}}})), "text.format.type"),
        (with(json!({"text": {"format": {"type": "json_schema"}}})), "text.format.schema"),
        (with(json!({"tools": [{}]})), "tools[0].type"),
        (with(json!({"tools": [{"type": "web_search"}]})), "tools[0].type"),
        (with(json!({"tools": [{"type": "mcp", "server_label": "x"}]})), "tools[0].type"),
        (server("server_url", "http://x"), "tools[0].server_url"),
        (server("connector_id", "c"), "tools[0].connector_id"),
        (server("allowed_tools", "f"), "tools[0].allowed_tools"),
        (server("require_approval", "always"), "tools[0].require_approval"),
        (with(json!({"tools": [{"type": "function"}]})), "tools[0].name"),
        (with(json!({"tools": [{"type": "function", "name": "f", "parameters": 1}]})), "tools[0].parameters"),
        (
            with(json!({"tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "f"}]})),
            "tools[1]",
        ),
        (with(json!({"tool_choice": "maybe"})), "tool_choice"),
        (with(json!({"tool_choice": {"type": "file_search"}})), "tool_choice"),
        (with(json!({"tool_choice": {"type": "mcp", "server_label": "x", "name": "f"}})), "tool_choice"),
        (
            with(json!({"tool_choice": {"type": "allowed_tools", "mode": "some", "tools": []}})),
            "tool_choice.mode",
        ),
        (with(json!({"toolrack": {"deltas": true}})), "toolrack.deltas"),
    ] {
        let text = body.to_string();
        let error = decode(text.as_bytes()).map(|decoded| decoded.request).unwrap_err();
        assert_eq!(error.param, param, "{body}: {error}");
        assert!(error.message.len() > 10, "{error}");
        assert_eq!(decode(&text.as_bytes()[..text.len() - 1]).unwrap_err().param, "body");
    }
}

#[test]
fn g13_responses_a_streamed_token_makes_few_allocations() {
    const MOST: u64 = 8;
    let mut encoder = encoder(json!({"stream": true}));
    let mut decoder = OpenAiWire.decoder("text/event-stream");
    let (mut pieces, mut out) = (Vec::with_capacity(8), Vec::with_capacity(1 << 16));
    encoder.event(model(), &mut out);
    let chunk = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";
    let mut token = || {
        out.clear();
        decoder.push(chunk.as_bytes(), &mut pieces).unwrap();
        for piece in pieces.drain(..) {
            let toolrack_apis::Piece::Text(text) = piece else { panic!("{piece:?}") };
            encoder.event(TurnEvent::Text(text), &mut out);
        }
        assert!(out.ends_with(b"\"delta\":\" word\",\"logprobs\":[]}\n\n"));
    };
    token();
    let made = allocation_counter::measure(&mut token).count_total;
    println!("allocations of one token: {made}");
    assert!(made <= MOST, "one token makes {made} allocations, more than {MOST}");
}
