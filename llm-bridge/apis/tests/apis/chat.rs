//! OpenAI chat completions: requests and answers through the canonical types and back.

use std::sync::Arc;

use proptest::{option, prelude::*};
use serde_json::{Value, json};
use toolrack_apis::{
    Call, CallInput, CallPiece, ClientCall, ClientTool, Content, Decoded, Effort, Failure, FailureKind,
    FinishReason, FinishedTool, Front, Media, MediaKind, MediaSource, Message, Part, Passing, Piece,
    Progress, Provider, RawJson, Reasoning, Request, ResponseFormat, Role, Seal, SealKind, Thinking,
    ToolChoice, ToolInput, ToolResult, ToolStatus, TurnEvent, Usage, Wire,
    completion::{CompletionForm, CompletionWire},
    ollama::OllamaWire,
    openai::{OpenAiFront, OpenAiWire},
};

use crate::strategies::{self, name, passing, sampling, text};

fn decode(body: &[u8]) -> Result<Decoded, toolrack_apis::BadRequest> {
    let parts = http::Request::new(()).into_parts().0;
    OpenAiFront.decode(&parts, body)
}

fn decoded(body: &Value) -> Request {
    decode(body.to_string().as_bytes()).unwrap().request
}

fn leftover(name: &'static str) -> impl Strategy<Value = Passing> {
    strategies::leftover(Provider::OpenAi, &["cache_control", "x"], name)
}

fn media() -> impl Strategy<Value = Part> {
    let source = |name: &'static str| (Just(name), "[A-Za-z0-9+/]{1,20}");
    let data = |kind, types: &'static [&'static str]| {
        (prop::sample::select(types), "[A-Za-z0-9+/]{1,20}").prop_map(move |(media_type, data)| Media {
            media_type: Some(media_type.to_owned()),
            ..Media::new(kind, MediaSource::Data(data))
        })
    };
    let url = |kind| {
        source("https://a/")
            .prop_map(move |(base, path)| Media::new(kind, MediaSource::Url(format!("{base}{path}"))))
    };
    let image = prop_oneof![data(MediaKind::Image, &["image/png", "image/jpeg"]), url(MediaKind::Image)];
    let image = (image, option::of(Just("low".to_owned())), leftover("image_url")).prop_map(
        |(media, detail, passing)| Part { content: Content::Media(Media { detail, ..media }), passing },
    );
    let audio = data(MediaKind::Audio, &["audio/wav", "audio/mpeg", "audio/flac"]);
    let other = prop_oneof![
        audio,
        url(MediaKind::Audio),
        url(MediaKind::Video),
        data(MediaKind::Video, &["video/mp4"])
    ];
    let file = prop_oneof![
        data(MediaKind::File, &["application/pdf"]),
        "[A-Za-z0-9+/]{1,20}".prop_map(|data| Media::new(MediaKind::File, MediaSource::Data(data))),
        name().prop_map(|id| Media::new(MediaKind::File, MediaSource::Id(id))),
    ];
    let file = (file, option::of(text()), leftover("file")).prop_map(|(media, name, passing)| Part {
        content: Content::Media(Media { name, ..media }),
        passing,
    });
    prop_oneof![image, other.prop_map(|media| Content::Media(media).into()), file]
}

fn content() -> impl Strategy<Value = Vec<Part>> {
    let text = (text(), passing(Provider::OpenAi, &["cache_control"]))
        .prop_map(|(text, passing)| Part { content: Content::Text(text), passing });
    let opaque = Just(Content::Opaque(Provider::OpenAi, RawJson::of(&json!({"type": "x", "x": 1}))).into());
    proptest::collection::vec(prop_oneof![3 => text, 2 => media(), 1 => opaque], 0..4)
}

fn call() -> impl Strategy<Value = Part> {
    let arguments = prop_oneof![Just("{\"a\":1}".to_owned()), text()];
    (name(), name(), arguments, leftover("function")).prop_map(|(id, name, arguments, passing)| Part {
        content: Content::Call(Call::new(id, name, arguments)),
        passing,
    })
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::System), Just(Role::Developer), Just(Role::User)];
    let plain = (role, content()).prop_map(|(role, parts)| (role, parts));
    let reasoning =
        option::of(text().prop_map(|text| Content::Reasoning(Reasoning { text, seal: None }).into()));
    let calls = proptest::collection::vec(call(), 0..3);
    let assistant = (reasoning, content(), calls).prop_map(|(reasoning, content, calls)| {
        (Role::Assistant, reasoning.into_iter().chain(content).chain(calls).collect())
    });
    let result = (name(), option::of(name()), content()).prop_map(|(call_id, name, parts)| {
        (Role::Tool, vec![Content::Result(ToolResult { call_id, name, parts, is_error: false }).into()])
    });
    (
        prop_oneof![plain.boxed(), assistant.boxed(), result.boxed()],
        passing(Provider::OpenAi, &["refusal", "annotations"]),
    )
        .prop_map(|((role, parts), passing)| Message { passing, ..Message::new(role, parts) })
}

fn tool() -> impl Strategy<Value = ClientTool> {
    let schema =
        option::of(Just(Arc::new(json!({"type": "object", "properties": {"a": {"type": "string"}}}))));
    let input =
        (schema, option::of(any::<bool>())).prop_map(|(schema, strict)| ToolInput::Json { schema, strict });
    (name(), option::of(text()), input, leftover("function"))
        .prop_map(|(name, description, input, passing)| ClientTool { name, description, input, passing })
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
    let schema =
        (name(), option::of(text()), option::of(any::<bool>())).prop_map(|(name, description, strict)| {
            let schema = json!({"type": "object", "properties": {"a": true}});
            ResponseFormat::JsonSchema { name: Some(name), description, schema, strict }
        });
    let format = option::of(prop_oneof![Just(ResponseFormat::JsonObject), schema]);
    let asked =
        (option::of(name()), choice, option::of(any::<bool>()), sampling(), option::of(thinking), format);
    let tools = proptest::collection::vec(tool(), 0..3).prop_map(|mut tools| {
        tools.dedup_by(|one, other| one.name == other.name);
        if tools.first().map(|tool| &tool.name) == tools.get(2).map(|tool| &tool.name) {
            tools.truncate(2);
        }
        tools
    });
    let passing =
        passing(Provider::OpenAi, &["user", "store", "grammar", "stream_options"]).prop_map(|mut passing| {
            if passing.get(Provider::OpenAi, "stream_options").is_some() {
                passing.push("stream_options", RawJson::of(&json!({"x": 1})));
            }
            passing
        });
    (asked, proptest::collection::vec(message(), 1..5), tools, passing).prop_map(
        |((model, choice, parallel, sampling, thinking, format), messages, tools, passing)| Request {
            has_grammar: passing.get(Provider::OpenAi, "grammar").is_some(),
            model,
            messages: strategies::without_media_in_results(messages),
            tools,
            choice,
            parallel,
            stream: true,
            logprobs: sampling.top_k.and_then(|count| u64::try_from(count).ok()),
            sampling,
            thinking,
            format,
            passing,
            ..Request::default()
        },
    )
}

proptest! {
    #[test]
    fn b13_a_request_survives_the_wire_and_the_front(request in request()) {
        let encoded = OpenAiWire.request(&request, "");
        prop_assert_eq!(&encoded.omissions, &[]);
        let back = decode(encoded.http.body()).unwrap();
        prop_assert_eq!(back.request, request);
    }

    #[test]
    fn b13_a_body_of_anything_never_panics(body in "[\\[\\]{}:,\"a-z0-9 ]{0,60}", bytes in any::<Vec<u8>>()) {
        let _ = decode(body.as_bytes());
        let _ = decode(&bytes);
        for content_type in ["text/event-stream", "application/json"] {
            let (mut decoder, mut pieces) = (OpenAiWire.decoder(content_type), Vec::new());
            let _ = decoder.push(format!("data: {body}\n\n").as_bytes(), &mut pieces);
            let _ = decoder.push(&bytes, &mut pieces);
            let _ = decoder.finish(&mut pieces);
        }
    }

    #[test]
    fn b13_an_answer_survives_the_front_and_the_wire(
        texts in proptest::collection::vec((any::<bool>(), text()), 0..6), size in 1_usize..40, whole in any::<bool>(),
    ) {
        let mut expected = Vec::new();
        let mut events = vec![TurnEvent::Model("m".into())];
        for (is_reasoning, text) in texts {
            events.push(if is_reasoning {
                TurnEvent::Reasoning { text: text.clone(), seal: None }
            } else {
                TurnEvent::Text(text.clone())
            });
            expected.push((is_reasoning, text));
        }
        let call = Call::new("c1", "f", "{\"a\":1}");
        let custom = Call { input: CallInput::Text, ..Call::new("c2", "g", "x\ny") };
        let calls = [call, custom].map(|call| ClientCall { call, passing: Passing::none() });
        events.push(TurnEvent::Calls(calls.to_vec()));
        let usage = Usage { input: 3, output: 2, cached: Some(1), reasoning: Some(1), ..Usage::default() };
        events.push(TurnEvent::Finished { reason: FinishReason::ToolCalls, usage: usage.clone() });
        let pieces = pieces(&encoded(!whole, events), !whole, size);

        let joined = |wanted: bool| {
            expected.iter().filter(|(kind, _)| *kind == wanted).map(|(_, text)| text.as_str()).collect::<String>()
        };
        let (mut said, mut thought) = (String::new(), String::new());
        let mut rest = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => said += &text,
                Piece::Reasoning { text, .. } => thought += &text,
                other => rest.push(other),
            }
        }
        prop_assert_eq!((said, thought), (joined(false), joined(true)));
        let index = |at| (!whole).then_some(at);
        let piece = |at, id: &str, name: &str, arguments: &str, input| Piece::Call(CallPiece {
            index: index(at), id: Some(id.into()), name: Some(name.into()), arguments: arguments.into(), input,
            passing: Passing::none(),
        });
        prop_assert_eq!(rest, [
            piece(0, "c1", "f", "{\"a\":1}", CallInput::Json),
            piece(1, "c2", "g", "x\ny", CallInput::Text),
            Piece::Finish(FinishReason::ToolCalls),
            Piece::Usage(usage),
        ]);
    }
}

fn encoded(stream: bool, events: Vec<TurnEvent>) -> Vec<u8> {
    let body = json!({
        "messages": [{"role": "user", "content": "hi"}], "stream": stream,
        "stream_options": {"include_usage": true},
    });
    let mut encoder = decode(body.to_string().as_bytes()).unwrap().encoder;
    let mut out = Vec::new();
    for event in events {
        encoder.event(event, &mut out);
    }
    encoder.finish(&mut out);
    out
}

fn pieces(answer: &[u8], stream: bool, size: usize) -> Vec<Piece> {
    let mut decoder = OpenAiWire.decoder(if stream { "text/event-stream" } else { "application/json" });
    let mut pieces = Vec::new();
    for bytes in answer.chunks(size) {
        decoder.push(bytes, &mut pieces).unwrap();
    }
    decoder.finish(&mut pieces).unwrap();
    assert_eq!(decoder.progress(), Progress::Done);
    pieces
}

fn chunks(stream: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    let data = text.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn b13_what_cannot_be_said_is_reported() {
    let seal = Seal { api: Provider::Anthropic, kind: SealKind::Signature, data: "s".into() };
    let mut passing = Passing::of(Provider::Anthropic);
    passing.push("cache_control", RawJson::of(&json!({"type": "ephemeral"})));
    let request = Request {
        thinking: Some(Thinking::Budget(2048)),
        messages: vec![
            Message::new(
                Role::User,
                vec![
                    Part { content: Content::Text("a".into()), passing: passing.clone() },
                    Content::Media(Media::new(MediaKind::File, MediaSource::Url("https://a".into()))).into(),
                    Content::Opaque(Provider::Gemini, RawJson::of(&1)).into(),
                ],
            ),
            Message::new(
                Role::Assistant,
                vec![
                    Content::Call(Call::new("c", "f", "{}")).into(),
                    Content::Reasoning(Reasoning { text: "r".into(), seal: Some(seal) }).into(),
                ],
            ),
            Message::result(ToolResult { call_id: "c".into(), is_error: true, ..ToolResult::default() }),
        ],
        passing,
        ..Request::default()
    };
    let encoded = OpenAiWire.request(&request, "");
    let paths: Vec<&str> = encoded.omissions.iter().map(|omission| omission.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "cache_control",
            "messages[0].parts[0].cache_control",
            "thinking",
            "messages[0].parts[1]",
            "messages[0].parts[2]",
            "messages[1].parts[1].seal",
            "messages[1].parts[1]",
            "messages[2].parts[0].is_error",
        ]
    );
    let body: Value = serde_json::from_slice(encoded.http.body()).unwrap();
    let described = "[file, https://a; not shown: the model server takes no such files]";
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(body["messages"][0], json!({"role": "user", "content": [text("a"), text(described)]}));
    assert_eq!(body["messages"][2]["content"], "Error");
    assert_eq!(body["reasoning_effort"], "medium");
}

/// Model servers have only functions, so that is what they get in place of tools that take free text.
#[test]
fn b13_custom_tools_and_their_calls_go_to_model_servers_as_functions() {
    let grammar = json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a+/"}});
    let request = decoded(&json!({
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "tool_calls": [
                {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "a\nb", "x": 1}},
            ]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ],
        "tools": [
            {"type": "custom", "custom": {"name": "patch", "description": "Patches.", "format": grammar, "x": 1}},
            {"type": "custom", "custom": {"name": "note"}},
        ],
    }));
    assert_eq!(request.tools[0].input, ToolInput::Text { format: Some(Arc::new(grammar)) });
    let call = Call { input: CallInput::Text, ..Call::new("c", "patch", "a\nb") };
    assert_eq!(request.messages[1].calls().collect::<Vec<_>>(), [&call]);
    let function = |name: &str, input: Value| {
        let schema = json!({"type": "object", "properties": {"input": input}, "required": ["input"]});
        json!({"type": "function", "function": {"name": name, "parameters": schema}})
    };
    let described =
        json!({"type": "string", "description": "A text that keeps to this grammar:\nstart: /a+/"});
    let mut patch = function("patch", described);
    patch["function"]["description"] = json!("Patches.");
    let tools = json!([patch, function("note", json!({"type": "string"}))]);
    for (wire, id, arguments) in [
        (&OpenAiWire as &dyn Wire, json!("function"), json!("{\"input\":\"a\\nb\"}")),
        (&OllamaWire::default(), Value::Null, json!({"input": "a\nb"})),
    ] {
        let encoded = wire.request(&request, "");
        let body: Value = serde_json::from_slice(encoded.http.body()).unwrap();
        assert_eq!(body["tools"], tools);
        let call = &body["messages"][1]["tool_calls"][0];
        assert_eq!((&call["type"], &call["custom"]), (&id, &Value::Null));
        assert_eq!(call["function"], json!({"name": "patch", "arguments": arguments}));
        let omitted: Vec<String> = encoded.omissions.iter().map(ToString::to_string).collect();
        for place in ["tools[0]", "tools[1]", "messages[1].parts[0]"] {
            let done = format!("`{place}` sent as a function with one argument, `input`");
            assert!(omitted.contains(&done), "{omitted:?}");
        }
    }
}

#[test]
fn b13_a_stop_sequence_that_the_server_names_is_the_reason() {
    let stopped = FinishReason::StopSequence("END".into());
    for (fields, reason) in [
        (json!({"finish_reason": "stop", "stop_reason": "END"}), stopped.clone()),
        (json!({"finish_reason": "stop", "matched_stop": "END"}), stopped.clone()),
        (json!({"finish_reason": "stop", "stop_reason": 151_645}), FinishReason::Stop),
        (json!({"finish_reason": "stop", "stop_reason": null, "matched_stop": ""}), FinishReason::Stop),
        (json!({"finish_reason": "length", "stop_reason": "END"}), FinishReason::Length),
    ] {
        let mut choice = json!({"index": 0, "message": {"content": "a"}});
        choice.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let answer = json!({"choices": [choice]}).to_string();
        let found = pieces(answer.as_bytes(), false, 1024);
        let found = found.into_iter().find(|piece| matches!(piece, Piece::Finish(_)));
        assert_eq!(found, Some(Piece::Finish(reason)), "{fields}");
    }
    let wire = CompletionWire { form: CompletionForm::LlamaCpp, ..CompletionWire::default() };
    for (word, reason) in [("END", stopped), ("", FinishReason::Stop)] {
        let reply = json!({"content": "a", "stop": true, "stop_type": "word", "stopping_word": word});
        let (mut decoder, mut pieces) = (wire.decoder("application/json"), Vec::new());
        decoder.push(reply.to_string().as_bytes(), &mut pieces).unwrap();
        decoder.finish(&mut pieces).unwrap();
        assert_eq!(pieces, [Piece::Text("a".into()), Piece::Finish(reason)]);
    }
}

#[test]
fn b13_definitions_stand_before_the_tools_of_the_client() {
    let request = decoded(&json!({
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "mine"}}],
    }));
    for (definitions, names) in [("", vec!["mine"]), ("{\"a\":1},{\"a\":2}", vec!["", "", "mine"])] {
        let body: Value =
            serde_json::from_slice(OpenAiWire.request(&request, definitions).http.body()).unwrap();
        let tools = body["tools"].as_array().unwrap();
        let read: Vec<&str> =
            tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default()).collect();
        assert_eq!(read, names);
    }
}

#[test]
fn b13_a_malformed_body_names_the_field() {
    let messages = json!([{"role": "user", "content": "hi"}]);
    let with = |fields: Value| {
        let mut body = json!({"messages": messages});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let message = |message: Value| json!({"messages": [messages[0], message]});
    for (body, param) in [
        (json!([]), "body"),
        (json!({}), "messages"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": {}}), "messages"),
        (json!({"messages": ["hi"]}), "messages[0]"),
        (message(json!({"content": "hi"})), "messages[1].role"),
        (message(json!({"role": "me", "content": "hi"})), "messages[1].role"),
        (message(json!({"role": "user", "content": 1})), "messages[1].content"),
        (message(json!({"role": "user", "content": [{"text": "a"}]})), "messages[1].content[0].type"),
        (message(json!({"role": "user", "content": [{"type": "text"}]})), "messages[1].content[0].text"),
        (
            message(json!({"role": "user", "content": [{"type": "image_url", "image_url": {}}]})),
            "messages[1].content[0].image_url.url",
        ),
        (message(json!({"role": "assistant", "tool_calls": [{}]})), "messages[1].tool_calls[0].function"),
        (
            message(
                json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": [1]}}]}),
            ),
            "messages[1].tool_calls[0].function.arguments",
        ),
        (message(json!({"role": "tool", "tool_call_id": 1})), "messages[1].tool_call_id"),
        (with(json!({"model": 3})), "model"),
        (with(json!({"n": 2})), "n"),
        (with(json!({"n": 2.0})), "n"),
        (with(json!({"n": "1"})), "n"),
        (with(json!({"stream": "yes"})), "stream"),
        (with(json!({"stream_options": {"include_usage": 1}})), "stream_options.include_usage"),
        (with(json!({"temperature": "hot"})), "temperature"),
        (with(json!({"max_tokens": 1.5})), "max_tokens"),
        (with(json!({"stop": 1})), "stop"),
        (with(json!({"stop": [1]})), "stop[0]"),
        (with(json!({"response_format": {}})), "response_format.type"),
        (with(json!({"response_format": {"type": "json_object"}, "json_schema": {}})), "json_schema"),
        (with(json!({"response_format": {"type": "json_schema"}})), "response_format.json_schema"),
        (with(json!({"tools": {}})), "tools"),
        (with(json!({"tools": [{"type": "function"}]})), "tools[0].function"),
        (with(json!({"tools": [{"type": "web_search"}]})), "tools[0].type"),
        (
            with(json!({"tools": [{"function": {"name": "f", "parameters": 1}}]})),
            "tools[0].function.parameters",
        ),
        (
            with(
                json!({"tools": [{"function": {"name": "f"}}, {"function": {"name": "f", "strict": true}}]}),
            ),
            "tools[1]",
        ),
        (with(json!({"functions": [{"name": "f"}], "tools": []})), "functions"),
        (with(json!({"tool_choice": "maybe"})), "tool_choice"),
        (with(json!({"tool_choice": {"type": "function"}})), "tool_choice"),
        (with(json!({"toolrack": {"level": "owner"}})), "toolrack"),
        (with(json!({"toolrack": []})), "toolrack"),
        (with(json!({"toolrack": {"deltas": true}})), "toolrack.deltas"),
        (with(json!({"toolrack": {"chat_id": ""}})), "toolrack.chat_id"),
    ] {
        let text = body.to_string();
        let error = decode(text.as_bytes()).map(|decoded| decoded.request).unwrap_err();
        assert_eq!(error.param, param, "{body}: {error}");
        assert!(error.message.len() > 10, "{error}");
        // Cut off anywhere it is not JSON.
        assert_eq!(decode(&text.as_bytes()[..text.len() - 1]).unwrap_err().param, "body");
    }
}

/// Cursor mixes the forms; clients that join several lists send a tool twice.
#[test]
fn b13_flat_tools_are_read_and_equal_ones_are_one() {
    let body = |tools: Value| json!({"messages": [{"role": "user", "content": "hi"}], "tools": tools});
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let function = json!({"name": "f", "description": "d", "parameters": schema, "strict": true});
    let nested = json!({"type": "function", "function": function});
    let mut flat = function;
    flat["type"] = json!("function");
    let custom = json!({"type": "custom", "name": "g", "description": "e", "format": {"type": "text"}});
    let tools = decoded(&body(json!([flat, custom, nested, custom]))).tools;
    assert_eq!(tools.len(), 2);
    assert_eq!(tools, decoded(&body(json!([nested, {"type": "custom", "custom": {"name": "g", "description": "e", "format": {"type": "text"}}}]))).tools);
}

/// openai-go before 3.43, mistral-vibe and SpeziLLM fail at a comment.
#[test]
fn b13_a_silent_stream_is_kept_alive_by_an_empty_text() {
    let body = json!({"messages": [{"role": "user", "content": "hi"}], "stream": true});
    let (mut encoder, mut out) = (decode(body.to_string().as_bytes()).unwrap().encoder, Vec::new());
    encoder.event(TurnEvent::Model("m".into()), &mut out);
    encoder.keep_alive(&mut out);
    encoder.event(TurnEvent::Text("a".into()), &mut out);
    encoder.keep_alive(&mut out);
    let deltas: Vec<Value> = chunks(&out).iter().map(|chunk| chunk["choices"][0]["delta"].clone()).collect();
    let expected =
        [json!({"role": "assistant", "content": ""}), json!({"content": "a"}), json!({"content": ""})];
    assert_eq!(deltas, expected);
}

#[test]
fn n15_functions_are_tools_and_calls_of_them_go_back_as_function_call() {
    let body = json!({
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "1"},
        ],
        "functions": [{"name": "f", "parameters": {"type": "object"}}],
        "function_call": {"name": "f"},
        "stream": true,
    });
    let Decoded { request, mut encoder } = decode(body.to_string().as_bytes()).unwrap();
    assert_eq!(request.choice, ToolChoice::Named("f".into()));
    assert_eq!((request.tools[0].name.as_str(), request.parallel), ("f", Some(false)));
    let call = request.messages[1].calls().next().unwrap();
    assert_eq!(request.messages[2].tool_result().unwrap().call_id, call.id);
    let sent: Value = serde_json::from_slice(OpenAiWire.request(&request, "").http.body()).unwrap();
    assert_eq!(sent["messages"][1]["tool_calls"][0]["function"]["name"], "f");
    assert_eq!(sent["messages"][2]["role"], "tool");

    let mut out = Vec::new();
    let call = ClientCall { call: Call::new("c", "f", "{\"a\":1}"), passing: Passing::none() };
    encoder.event(TurnEvent::Calls(vec![call]), &mut out);
    encoder.event(TurnEvent::Finished { reason: FinishReason::ToolCalls, usage: Usage::default() }, &mut out);
    let chunks = chunks(&out);
    let delta = &chunks[0]["choices"][0]["delta"];
    assert_eq!(delta["function_call"], json!({"name": "f", "arguments": "{\"a\":1}"}));
    assert_eq!(chunks[1]["choices"][0]["finish_reason"], "function_call");
}

#[test]
fn n15_an_answer_to_functions_has_one_call_and_reports_the_others() {
    let call =
        |id: &str, name: &str| ClientCall { call: Call::new(id, name, "{}"), passing: Passing::none() };
    let begun = |id: &str, name: &str| TurnEvent::CallBegun {
        id: id.into(),
        name: name.into(),
        input: CallInput::Json,
        passing: Passing::none(),
    };
    let delta = |id: &str| TurnEvent::CallDelta { id: id.into(), arguments: "{}".into() };
    let events = || {
        vec![
            begun("a", "f"),
            delta("a"),
            begun("b", "g"),
            delta("b"),
            TurnEvent::Calls(vec![call("a", "f"), call("b", "g"), call("c", "h")]),
            TurnEvent::Finished { reason: FinishReason::ToolCalls, usage: Usage::default() },
        ]
    };
    let asked = |stream: bool| {
        let body = json!({
            "messages": [{"role": "user", "content": "hi"}], "functions": [{"name": "f"}], "stream": stream,
        });
        let (mut encoder, mut out) = (decode(body.to_string().as_bytes()).unwrap().encoder, Vec::new());
        events().into_iter().for_each(|event| encoder.event(event, &mut out));
        encoder.finish(&mut out);
        out
    };
    let chunks = chunks(&asked(true));
    let calls: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["function_call"])
        .filter(|call| !call.is_null())
        .collect();
    assert_eq!(calls, [&json!({"name": "f", "arguments": ""}), &json!({"arguments": "{}"})]);
    let notices: Vec<&str> =
        chunks.iter().filter_map(|chunk| chunk["x_toolrack"]["message"].as_str()).collect();
    assert!(matches!(notices[..], [g, h] if g.contains("`g`") && h.contains("`h`")), "{notices:?}");

    let reply: Value = serde_json::from_slice(&asked(false)).unwrap();
    assert_eq!(reply["choices"][0]["message"]["function_call"], json!({"name": "f", "arguments": "{}"}));
    let notices: Vec<&str> =
        reply["x_toolrack"].as_array().unwrap().iter().filter_map(|one| one["message"].as_str()).collect();
    assert!(matches!(notices[..], [g, h] if g.contains("`g`") && h.contains("`h`")), "{notices:?}");
}

#[test]
fn b13_a_call_of_a_custom_tool_comes_in_deltas_of_its_input() {
    let begun = TurnEvent::CallBegun {
        id: "c".into(),
        name: "f".into(),
        input: CallInput::Text,
        passing: Passing::none(),
    };
    let delta = TurnEvent::CallDelta { id: "c".into(), arguments: "x\ny".into() };
    let end = TurnEvent::Finished { reason: FinishReason::ToolCalls, usage: Usage::default() };
    let out = encoded(true, vec![begun, delta, end]);
    let chunks = chunks(&out);
    let calls: Vec<&Value> =
        chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0]).collect();
    assert_eq!(calls[0]["custom"], json!({"name": "f", "input": ""}));
    assert_eq!(*calls[1], json!({"index": 0, "custom": {"input": "x\ny"}}));
}

#[test]
fn b13_each_result_in_a_message_is_sent() {
    let result = |id: &str| {
        let parts = vec![Content::Text(format!("of {id}")).into()];
        Content::Result(ToolResult { call_id: id.into(), parts, ..ToolResult::default() }).into()
    };
    let request = Request {
        messages: vec![Message::new(Role::Tool, vec![result("a"), result("b")])],
        ..Request::default()
    };
    let encoded = OpenAiWire.request(&request, "");
    assert_eq!(encoded.omissions, []);
    let body: Value = serde_json::from_slice(encoded.http.body()).unwrap();
    assert_eq!(
        body["messages"],
        json!([
            {"role": "tool", "tool_call_id": "a", "content": "of a"},
            {"role": "tool", "tool_call_id": "b", "content": "of b"},
        ])
    );
}

#[test]
fn g1_an_empty_finish_reason_is_none() {
    let mut decoder = OpenAiWire.decoder("text/event-stream");
    let mut pieces = Vec::new();
    let chunk =
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"\"}]}\n\n";
    decoder.push(chunk, &mut pieces).unwrap();
    assert_eq!(
        (pieces.as_slice(), decoder.progress()),
        (&[Piece::Text("a".into())][..], Progress::Answering)
    );
    assert!(decoder.finish(&mut pieces).unwrap_err().message.contains("ended before"));
}

#[test]
fn n2_each_call_has_a_chunk_of_its_own() {
    let call = |id: &str| ClientCall { call: Call::new(id, "f", "{}"), passing: Passing::none() };
    let begun = |id: &str| TurnEvent::CallBegun {
        id: id.into(),
        name: "f".into(),
        input: CallInput::Json,
        passing: Passing::none(),
    };
    let delta = TurnEvent::CallDelta { id: "a".into(), arguments: "{}".into() };
    let calls = TurnEvent::Calls(vec![call("a"), call("b"), call("c")]);
    let chunks = chunks(&encoded(true, vec![begun("a"), delta, calls]));
    let calls: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"]).collect();
    assert!(calls.iter().all(|calls| calls.as_array().unwrap().len() == 1));
    let indices: Vec<&Value> = calls.iter().map(|calls| &calls[0]["index"]).collect();
    assert_eq!(indices, [&json!(0), &json!(0), &json!(1), &json!(2)]);
}

#[test]
fn n5_an_upstream_error_keeps_its_words() {
    let refused = |status: u16, body: &str| {
        let reply = http::Response::builder().status(status).header("retry-after", "7").body(()).unwrap();
        OpenAiWire.failure(&reply.into_parts().0, body.as_bytes())
    };
    let failure = refused(
        400,
        "{\"error\":{\"code\":400,\"message\":\"too long\",\"type\":\"exceed_context_size_error\",\"n_ctx\":4096}}",
    );
    assert_eq!((failure.kind, failure.status), (FailureKind::ContextLength, 400));
    let reply = OpenAiFront.failure(&failure);
    assert_eq!((reply.status().as_u16(), &reply.headers()["retry-after"]), (400, &"7".parse().unwrap()));
    let body: Value = serde_json::from_slice(reply.body()).unwrap();
    assert_eq!(
        body["error"],
        json!({"message": "too long", "type": "exceed_context_size_error", "param": null, "code": 400, "n_ctx": 4096})
    );
    // That the model server refuses this server is nothing to ask again for.
    let reply = OpenAiFront.failure(&refused(401, "{\"error\":\"no key\"}"));
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["x-should-retry"]),
        (424, &"false".parse().unwrap())
    );
    for (status, kept) in [(404, 404), (429, 429), (503, 503), (500, 502)] {
        assert_eq!(refused(status, "no").status, kept);
    }
}

#[test]
fn b13_local_servers_may_deviate() {
    let stream = concat!(
        ": ping\n\ndata: keep-alive\n\n",
        "data: {\"id\":\"x\",\"timings\":{\"ms\":1},\"choices\":[{\"index\":0,\"logprobs\":{\"content\":[]},\"delta\":",
        "{\"reasoning\":\"hm\",\"reasoning_content\":\"hm\",\"content\":\"a\\ud83d\",\"refusal\":null,\"tool_calls\":[",
        "{\"function\":{\"name\":\"f\",\"arguments\":{\"a\": 1}}},{\"index\":3,\"id\":\"\",\"function\":{\"arguments\":",
        "\"{\\\"b\\\"\"}}]},\"finish_reason\":\"stop\"}],\"usage\":null}\n\ndata: [DONE]\n\n",
    );
    for size in [1, 7, 4096] {
        let pieces = pieces(stream.as_bytes(), true, size);
        let mut passing = Passing::of(Provider::OpenAi);
        passing.push("timings", RawJson::of(&json!({"ms": 1})));
        passing.push("choice.logprobs", RawJson::of(&json!({"content": []})));
        let call = |index, name: Option<&str>, arguments: &str| {
            Piece::Call(CallPiece {
                index,
                name: name.map(Into::into),
                arguments: arguments.into(),
                ..CallPiece::default()
            })
        };
        assert_eq!(
            pieces,
            [
                Piece::Passing(passing),
                Piece::Reasoning { text: "hm".into(), seal: None },
                Piece::Text("a\u{fffd}".into()),
                call(None, Some("f"), "{\"a\": 1}"),
                call(Some(3), None, "{\"b\""),
                Piece::Finish(FinishReason::Stop),
            ]
        );
    }
    for (event, message) in [
        ("{\"error\":{\"message\":\"no\",\"code\":500}}", "no"),
        ("{\"error\":\"no\"}", "no"),
        ("{\"object\":\"error\",\"message\":\"no\"}", "no"),
        ("{\"choices\":[{\"delta\"", "not JSON"),
    ] {
        for frame in [format!("data: {event}\n\n"), format!("{event}\n\n")] {
            let failure = OpenAiWire.decoder("text/event-stream").push(frame.as_bytes(), &mut Vec::new());
            assert!(failure.unwrap_err().message.contains(message), "{event}");
        }
    }
    for (reply, message) in [
        ("{\"detail\":\"no such model\"}", "no such model"),
        ("{}", "no answer"),
        ("[]", "no answer"),
        ("<title>Bad Gateway</title>", "no answer"),
        ("{\"choices\":[{\"index\":1,\"message\":{\"content\":\"b\"}}]}", "no answer"),
    ] {
        let mut decoder = OpenAiWire.decoder("application/json");
        decoder.push(reply.as_bytes(), &mut Vec::new()).unwrap();
        let failure = decoder.finish(&mut Vec::new()).unwrap_err();
        assert!(failure.message.contains(message) && failure.message.len() < 400, "{failure}");
    }
}

#[test]
fn b13_passing_fields_of_an_answer_go_with_the_next_chunk() {
    let passing = |ms: u64| {
        let mut passing = Passing::of(Provider::OpenAi);
        passing.push("timings", RawJson::of(&json!({ "ms": ms })));
        passing.push("choice.logprobs", RawJson::of(&json!({"content": [ms]})));
        passing.push("message.refusal", RawJson::of(&"no"));
        for name in ["x_toolrack", "toolrack", "choice.event", "message.x_toolrack"] {
            passing.push(name, RawJson::of(&"forged"));
        }
        TurnEvent::Passing(passing)
    };
    let end = TurnEvent::Finished { reason: FinishReason::Stop, usage: Usage::default() };
    let events = vec![passing(1), passing(2), TurnEvent::Text("a".into()), TurnEvent::Text("b".into()), end];
    for stream in [true, false] {
        assert!(!String::from_utf8(encoded(stream, events.clone())).unwrap().contains("forged"));
    }
    let chunks = chunks(&encoded(true, events.clone()));
    for (at, ms) in [(0, 1), (1, 2)] {
        assert_eq!(chunks[at]["timings"]["ms"], ms);
        assert_eq!(chunks[at]["choices"][0]["logprobs"], json!({"content": [ms]}));
        assert_eq!(chunks[at]["choices"][0]["delta"]["refusal"], "no");
    }
    assert_eq!(chunks[1]["choices"][0]["delta"]["content"], "a");
    assert_eq!(chunks[2].get("timings"), None);
    assert_eq!(chunks[2]["choices"][0]["logprobs"], Value::Null);
    let reply: Value = serde_json::from_slice(&encoded(false, events)).unwrap();
    assert_eq!(reply["choices"][0]["logprobs"], json!({"content": [1, 2]}));
    assert_eq!(reply["choices"][0]["message"]["refusal"], "nono");
}

#[test]
fn b13_what_happens_to_a_tool_rides_on_chunks_with_an_empty_text() {
    let finished = |success, message: Option<&str>| {
        let message = message.map(str::to_owned);
        let tool =
            FinishedTool { id: "c".into(), name: "f".into(), success, message, ..FinishedTool::default() };
        TurnEvent::Tool(ToolStatus::Finished(Box::new(tool)))
    };
    let message = TurnEvent::Message { id: "c".into(), text: "Hi.".into(), part: None };
    let notice = TurnEvent::Notice("n".into());
    let events = vec![finished(true, None), finished(false, Some("none")), message, notice];
    let chunks = chunks(&encoded(true, events.clone()));
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    let lines: Vec<&Value> = chunks.iter().map(|chunk| &chunk["event"]["data"]["description"]).collect();
    assert_eq!(lines, [&json!("f: done in 0 ms"), &json!("f: not done: none"), &Value::Null, &json!("n")]);
    assert_eq!(chunks[2]["x_toolrack"], json!({"type": "message", "id": "c"}));
    let reply: Value = serde_json::from_slice(&encoded(false, events)).unwrap();
    assert_eq!(reply["choices"][0]["message"]["content"], "Hi.");
    let kinds: Vec<&Value> = reply["x_toolrack"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["call_finished", "call_finished", "message", "notice"]);
}

#[test]
fn b13_a_failure_ends_a_stream_without_done() {
    let failure = Failure::new(FailureKind::Stopping, "stopped");
    let out = encoded(true, vec![TurnEvent::Text("a".into()), TurnEvent::Failed(failure)]);
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with("\"type\":\"server_stopping\",\"param\":null,\"code\":null}}\n\n"), "{text}");
}

#[test]
fn g13_a_streamed_token_makes_few_allocations() {
    let body = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}";
    let mut encoder = decode(body.as_bytes()).unwrap().encoder;
    let mut out = Vec::with_capacity(4096);
    encoder.event(TurnEvent::Model("some-model".into()), &mut out);
    strategies::assert_few_allocations(encoder, &mut out);
    assert!(out.ends_with(b"\"system_fingerprint\":\"b1\"}\n\n"));
}
