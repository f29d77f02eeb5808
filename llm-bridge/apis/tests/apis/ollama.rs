//! Ollama's own API: requests and answers through the canonical types and back.

use std::sync::Arc;

use proptest::{option, prelude::*};
use serde_json::{Value, json};
use toolrack_apis::{
    BadRequest, Call, CallInput, CallPiece, ClientCall, ClientTool, Content, Decode, Decoded, Effort,
    Failure, FailureKind, FinishReason, FinishedTool, Front, ListModels, ListedModel, Media, MediaKind,
    MediaSource, Message, Part, Passing, Piece, Progress, Provider, RawJson, Reasoning, Request,
    ResponseFormat, Role, Seal, SealKind, Thinking, ToolChoice, ToolInput, ToolResult, ToolStatus, TurnEvent,
    Usage, Wire,
    completion::{CompletionForm, CompletionWire},
    ollama::{OllamaFront, OllamaWire, models},
    openai::OpenAiFront,
};

use crate::strategies::{name, passing, sampling, text, without_media_in_results};

const API: Provider = Provider::Ollama;

/// A wire that sends all that the client says.
fn whole() -> OllamaWire {
    OllamaWire { loads: true, ..OllamaWire::default() }
}

fn decode(front: OllamaFront, body: &[u8]) -> Result<Decoded, BadRequest> {
    front.decode(&http::Request::new(()).into_parts().0, body)
}

fn chat(body: &Value) -> Result<Decoded, BadRequest> {
    decode(OllamaFront::Chat, body.to_string().as_bytes())
}

fn wire(request: &Request) -> (Value, Vec<String>) {
    let encoded = whole().request(request, "");
    let omitted = encoded.omissions.iter().map(ToString::to_string).collect();
    (serde_json::from_slice(encoded.http.body()).unwrap(), omitted)
}

fn image() -> impl Strategy<Value = Part> {
    "[A-Za-z0-9+/]{1,20}"
        .prop_map(|data| Content::Media(Media::new(MediaKind::Image, MediaSource::Data(data))).into())
}

fn content() -> impl Strategy<Value = Vec<Part>> {
    let text = option::of(text().prop_map(|text| Content::Text(text).into()));
    (text, proptest::collection::vec(image(), 0..3))
        .prop_map(|(text, images)| text.into_iter().chain(images).collect())
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let plain = (prop_oneof![Just(Role::System), Just(Role::User)], content());
    let thinking =
        option::of(text().prop_map(|text| Content::Reasoning(Reasoning { text, seal: None }).into()));
    let call = (name(), name(), passing(API, &["x", "function"])).prop_map(|(id, name, mut passing)| {
        if passing.get(API, "function").is_some() {
            passing.push("function", RawJson::of(&json!({"y": 1})));
        }
        Part { content: Content::Call(Call::new(id, name, "{\"a\":1}")), passing }
    });
    let assistant = (thinking, content(), proptest::collection::vec(call, 0..3)).prop_map(
        |(thinking, content, calls)| {
            (Role::Assistant, thinking.into_iter().chain(content).chain(calls).collect())
        },
    );
    let result = (name(), name(), content()).prop_map(|(call_id, name, parts)| {
        let result = ToolResult { call_id, name: Some(name), parts, is_error: false };
        (Role::Tool, vec![Content::Result(result).into()])
    });
    (prop_oneof![plain.boxed(), assistant.boxed(), result.boxed()], passing(API, &["x", "y"]))
        .prop_map(|((role, parts), passing)| Message { passing, ..Message::new(role, parts) })
}

fn tools() -> impl Strategy<Value = Vec<ClientTool>> {
    let schema =
        option::of(Just(Arc::new(json!({"type": "object", "properties": {"a": {"type": "string"}}}))));
    let tool = (option::of(text()), schema).prop_map(|(description, schema)| ClientTool {
        name: String::new(),
        description,
        input: ToolInput::Json { schema, strict: None },
        passing: Passing::none(),
    });
    proptest::collection::vec(tool, 0..3).prop_map(|tools| {
        let named = tools.into_iter().enumerate();
        named.map(|(at, tool)| ClientTool { name: format!("tool{at}"), ..tool }).collect()
    })
}

fn request() -> impl Strategy<Value = Request> {
    let effort = prop::sample::select(&[Effort::Low, Effort::Medium, Effort::High][..]);
    let thinking = prop_oneof![Just(Thinking::Off), Just(Thinking::On), effort.prop_map(Thinking::Effort)];
    let schema = ResponseFormat::JsonSchema {
        name: None,
        description: None,
        schema: json!({"type": "object"}),
        strict: None,
    };
    let format = prop_oneof![Just(ResponseFormat::JsonObject), Just(schema)];
    let passing = passing(API, &["keep_alive", "truncate", "options"]).prop_map(|mut passing| {
        for (name, value) in [("options", json!({"num_ctx": 8192})), ("keep_alive", json!("5m"))] {
            if passing.get(API, name).is_some() {
                passing.push(name, RawJson::of(&value));
            }
        }
        passing
    });
    let messages = proptest::collection::vec(message(), 1..5);
    let asked = (option::of(name()), sampling(), option::of(thinking), option::of(format));
    (asked, messages, tools(), passing).prop_map(
        |((model, sampling, thinking, format), messages, tools, passing)| Request {
            model,
            messages: without_media_in_results(messages),
            tools,
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
    fn b13_ollama_a_request_survives_the_wire_and_the_front(request in request()) {
        let encoded = whole().request(&request, "");
        prop_assert_eq!(&encoded.omissions, &[]);
        prop_assert_eq!(encoded.http.uri().path(), "/api/chat");
        prop_assert_eq!(decode(OllamaFront::Chat, encoded.http.body()).unwrap().request, request);
    }

    #[test]
    fn b13_ollama_a_body_of_anything_never_panics(body in "[\\[\\]{}:,\"a-z0-9 ]{0,60}", bytes in any::<Vec<u8>>()) {
        for front in [OllamaFront::Chat, OllamaFront::Generate] {
            let _ = decode(front, body.as_bytes());
            let _ = decode(front, &bytes);
        }
        for content_type in ["application/x-ndjson", "application/json"] {
            let (mut decoder, mut pieces) = (OllamaWire::default().decoder(content_type), Vec::new());
            let _ = decoder.push(format!("{body}\n").as_bytes(), &mut pieces);
            let _ = decoder.push(&bytes, &mut pieces);
            let _ = decoder.finish(&mut pieces);
        }
    }

    #[test]
    fn b13_ollama_an_answer_survives_the_front_and_the_wire(
        texts in proptest::collection::vec((any::<bool>(), text()), 0..6), size in 1_usize..40, stream in any::<bool>(),
    ) {
        let mut events = vec![TurnEvent::Model("m".into())];
        let (mut said, mut thought) = (String::new(), String::new());
        for (is_reasoning, text) in texts {
            if is_reasoning {
                thought += &text;
                events.push(TurnEvent::Reasoning { text, seal: None });
            } else {
                said += &text;
                events.push(TurnEvent::Text(text));
            }
        }
        events.push(TurnEvent::Calls(["c1", "c2"].map(call).to_vec()));
        let usage = Usage { input: 3, output: 2, ..Usage::default() };
        events.push(TurnEvent::Finished { reason: FinishReason::Length, usage });
        let mut read = pieces(&encoded(OllamaFront::Chat, stream, events), stream, size).into_iter().peekable();
        let (mut back_said, mut back_thought) = (String::new(), String::new());
        while let Some(piece) = read.next_if(|piece| matches!(piece, Piece::Text(_) | Piece::Reasoning { .. })) {
            match piece {
                Piece::Text(text) => back_said += &text,
                Piece::Reasoning { text, .. } => back_thought += &text,
                _ => {}
            }
        }
        prop_assert_eq!((back_said, back_thought), (said, thought));
        let rest: Vec<Piece> = read.collect();
        prop_assert_eq!(&rest[..3], [piece("c1"), piece("c2"), Piece::Finish(FinishReason::Length)]);
        let Piece::Usage(usage) = &rest[3] else { panic!("{rest:?}") };
        prop_assert_eq!((usage.input, usage.output), (3, 2));
    }
}

fn call(id: &str) -> ClientCall {
    ClientCall { call: Call::new(id, "f", "{\"a\":1}"), passing: Passing::none() }
}

fn piece(id: &str) -> Piece {
    Piece::Call(CallPiece {
        id: Some(id.into()),
        name: Some("f".into()),
        arguments: "{\"a\":1}".into(),
        ..CallPiece::default()
    })
}

fn encoded(front: OllamaFront, stream: bool, events: Vec<TurnEvent>) -> Vec<u8> {
    let body = json!({"messages": [{"role": "user", "content": "hi"}], "prompt": "hi", "stream": stream});
    let mut encoder = decode(front, body.to_string().as_bytes()).unwrap().encoder;
    let mut out = Vec::new();
    for event in events {
        encoder.event(event, &mut out);
    }
    encoder.finish(&mut out);
    out
}

fn read(decoder: &mut dyn Decode, answer: &[u8], size: usize) -> Result<Vec<Piece>, Failure> {
    let mut pieces = Vec::new();
    for bytes in answer.chunks(size) {
        decoder.push(bytes, &mut pieces)?;
    }
    decoder.finish(&mut pieces)?;
    assert_eq!(decoder.progress(), Progress::Done);
    Ok(pieces)
}

fn pieces(answer: &[u8], stream: bool, size: usize) -> Vec<Piece> {
    let content_type = if stream { "application/x-ndjson" } else { "application/json; charset=utf-8" };
    read(&mut *OllamaWire::default().decoder(content_type), answer, size).unwrap()
}

/// The lines of a stream, without the time.
fn lines(stream: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &mut lines {
        let created = line.as_object_mut().unwrap().shift_remove("created_at");
        if line.get("error").is_none() {
            assert!(created.unwrap().as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
        }
    }
    lines
}

fn message_line(message: Value) -> Value {
    json!({"model": "m", "message": message, "done": false})
}

fn said(text: &str) -> Value {
    message_line(json!({"role": "assistant", "content": text}))
}

#[test]
fn b13_ollama_a_stream_has_these_lines() {
    let text = |text: &str| TurnEvent::Text(text.into());
    let finished =
        |reason| TurnEvent::Finished { reason, usage: Usage { input: 3, output: 2, ..Usage::default() } };
    let started = TurnEvent::Tool(ToolStatus::Started {
        id: "s".into(),
        name: "web.search".into(),
        arguments: json!({}),
        dialect: "native".into(),
    });
    let tool =
        FinishedTool { id: "s".into(), name: "web.search".into(), success: true, ..FinishedTool::default() };
    let mut logprobs = Passing::of(API);
    logprobs.push("logprobs", RawJson::of(&json!([{"token": "a"}])));
    for name in ["x_toolrack", "event", "message.x_toolrack"] {
        logprobs.push(name, RawJson::of(&"forged"));
    }
    let events = vec![
        TurnEvent::Model("m".into()),
        TurnEvent::Reasoning { text: "hm".into(), seal: None },
        started,
        TurnEvent::Tool(ToolStatus::Finished(Box::new(tool))),
        TurnEvent::Message { id: "s".into(), text: "Found.".into(), part: None },
        TurnEvent::Notice("slow".into()),
        TurnEvent::Passing(logprobs),
        text("a"),
        TurnEvent::CallBegun {
            id: "c1".into(),
            name: "f".into(),
            input: CallInput::Json,
            passing: Passing::none(),
        },
        TurnEvent::CallDelta { id: "c1".into(), arguments: "{\"a\":1}".into() },
        TurnEvent::Calls(vec![call("c1"), call("c2")]),
        finished(FinishReason::ToolCalls),
    ];
    let mut lines = lines(&encoded(OllamaFront::Chat, true, events));
    let kinds = |line: &mut Value| {
        line.as_object_mut().unwrap().shift_remove("x_toolrack").map(|status| status["type"].clone())
    };
    let statuses: Vec<Option<Value>> = lines.iter_mut().map(kinds).collect();
    let status = |kind: &str| Some(json!(kind));
    assert_eq!(
        statuses,
        [
            None,
            status("call_started"),
            status("call_finished"),
            status("message"),
            status("notice"),
            None,
            None,
            None
        ]
    );
    let call = |index: u32, id: &str| json!({"id": id, "function": {"index": index, "name": "f", "arguments": {"a": 1}}});
    let with_calls =
        json!({"role": "assistant", "content": "", "tool_calls": [call(0, "c1"), call(1, "c2")]});
    let end = lines.pop().unwrap();
    let mut with_logprobs = said("a");
    with_logprobs["logprobs"] = json!([{"token": "a"}]);
    assert_eq!(
        lines,
        [
            message_line(json!({"role": "assistant", "content": "", "thinking": "hm"})),
            said(""),
            said(""),
            said("Found."),
            said(""),
            with_logprobs,
            message_line(with_calls),
        ]
    );
    assert_eq!((&end["done"], &end["done_reason"]), (&json!(true), &json!("stop")));
    assert_eq!(end["message"], json!({"role": "assistant", "content": ""}));
    assert_eq!((&end["prompt_eval_count"], &end["eval_count"]), (&json!(3), &json!(2)));
    for name in ["total_duration", "prompt_eval_duration", "eval_duration"] {
        assert!(end[name].as_u64().unwrap() > 0, "{name} of {end}");
    }

    for (reason, word) in [
        (FinishReason::Stop, "stop"),
        (FinishReason::StopSequence("x".into()), "stop"),
        (FinishReason::Length, "length"),
        (FinishReason::ContentFilter, "content_filter"),
        (FinishReason::Other("load".into()), "load"),
    ] {
        for stream in [true, false] {
            let out = encoded(OllamaFront::Chat, stream, vec![finished(reason.clone())]);
            let end: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!((&end["done_reason"], &end["done"]), (&json!(word), &json!(true)));
        }
    }
}

#[test]
fn b13_ollama_a_failure_has_its_shape_before_and_after_the_first_word() {
    let failure = Failure::new(FailureKind::NotFound, "no such model");
    let reply = OllamaFront::Chat.failure(&failure);
    assert_eq!(
        (reply.status().as_u16(), reply.body().as_slice()),
        (404, &b"{\"error\":\"no such model\"}"[..])
    );
    let out = encoded(OllamaFront::Chat, true, vec![TurnEvent::Text("a".into()), TurnEvent::Failed(failure)]);
    let lines = lines(&out);
    assert_eq!((lines.len(), &lines[1]), (2, &json!({"error": "no such model"})));
}

#[test]
fn b13_ollama_generate_has_a_response_in_place_of_a_message() {
    let body = json!({"model": "m", "prompt": "hi", "system": "be brief", "images": ["aGk="], "think": "low", "stream": false});
    let request = decode(OllamaFront::Generate, body.to_string().as_bytes()).unwrap().request;
    let image = Content::Media(Media::new(MediaKind::Image, MediaSource::Data("aGk=".into())));
    assert_eq!(
        request.messages,
        [
            Message::text(Role::System, "be brief"),
            Message::new(Role::User, vec![Content::Text("hi".into()).into(), image.into()]),
        ]
    );
    assert_eq!((request.stream, request.thinking), (false, Some(Thinking::Effort(Effort::Low))));
    let events = || {
        vec![
            TurnEvent::Model("m".into()),
            TurnEvent::Reasoning { text: "hm".into(), seal: None },
            TurnEvent::Text("a".into()),
            TurnEvent::Finished { reason: FinishReason::Stop, usage: Usage::default() },
        ]
    };
    let lines = lines(&encoded(OllamaFront::Generate, true, events()));
    assert_eq!(lines[0], json!({"model": "m", "response": "", "thinking": "hm", "done": false}));
    assert_eq!(lines[1], json!({"model": "m", "response": "a", "done": false}));
    assert_eq!((&lines[2]["response"], &lines[2]["done"]), (&json!(""), &json!(true)));
    let reply: Value = serde_json::from_slice(&encoded(OllamaFront::Generate, false, events())).unwrap();
    assert_eq!(
        (&reply["response"], &reply["thinking"], &reply["done"]),
        (&json!("a"), &json!("hm"), &json!(true))
    );
}

#[test]
fn b13_ollama_a_model_of_another_server_has_its_context_and_what_it_can() {
    let show = |entry: Value| -> Value {
        let model = ListedModel::read(entry).unwrap();
        serde_json::from_slice(OllamaFront::Chat.model(&model).body()).unwrap()
    };
    let shown = show(json!({"id": "a", "max_model_len": 4096}));
    let facts =
        json!({"general.architecture": "unknown", "general.basename": "a", "unknown.context_length": 4096});
    assert_eq!((&shown["model_info"], &shown["capabilities"]), (&facts, &json!(["completion", "tools"])));
    let shown = show(json!({"id": "b", "type": "vlm", "arch": "qwen2_vl", "loaded_context_length": 8192}));
    let facts =
        json!({"general.architecture": "qwen2_vl", "general.basename": "b", "qwen2_vl.context_length": 8192});
    assert_eq!(shown["model_info"], facts);
    assert_eq!(shown["capabilities"], json!(["completion", "tools", "vision"]));
    for (entry, more) in [
        (json!({"id": "c", "capabilities": ["completion", "multimodal"]}), "vision"),
        (json!({"id": "d", "architecture": {"input_modalities": ["text", "image"]}}), "vision"),
        (json!({"id": "e", "supported_parameters": ["tools", "reasoning"]}), "thinking"),
    ] {
        let shown = show(entry);
        assert_eq!(shown["capabilities"], json!(["completion", "tools", more]));
        // Without an architecture the command `ollama` panics, and without a size VS Code takes the model for one of no tokens.
        assert_eq!(shown["model_info"]["general.architecture"], "unknown");
        assert!(shown["model_info"]["unknown.context_length"].as_u64() > Some(4096));
        // Swift's clients require these; others look in the template for what the model can do.
        for field in ["license", "modelfile", "parameters", "template"] {
            assert!(shown[field].is_string(), "{field}");
        }
        assert!(shown["template"].as_str().unwrap().contains("{{ .Tools }}"));
    }
    // Of servers like OpenRouter; one that says 0 does not know.
    for (entry, context) in [
        (json!({"id": "f", "context_length": 16_384}), 16_384),
        (json!({"id": "g", "max_model_len": 0, "context_window": 32_768}), 32_768),
        (json!({"id": "h", "meta": {"n_ctx": 8192, "n_ctx_train": 131_072}}), 8192),
    ] {
        let model = ListedModel::read(entry).unwrap();
        assert_eq!(model.context, Some(context));
        let told: Value = serde_json::from_slice(OpenAiFront.model(&model).body()).unwrap();
        assert_eq!((&told["context_length"], &told["max_model_len"]), (&json!(context), &json!(context)));
    }
}

#[test]
fn g12_a_list_says_whether_a_model_sees_pictures_where_its_server_does() {
    for (entry, pictures) in [
        (json!({"id": "a", "architecture": {"input_modalities": ["text", "image"]}}), json!(true)),
        (json!({"id": "b", "architecture": {"input_modalities": ["text"]}}), json!(false)),
        (json!({"id": "c"}), Value::Null),
    ] {
        let model = ListedModel::read(entry).unwrap();
        let told: Value = serde_json::from_slice(OpenAiFront.model(&model).body()).unwrap();
        assert_eq!(told["pictures"], pictures, "{told}");
    }
    // What is set or learned of it counts in Ollama's form as well.
    for (entry, pictures, capabilities) in [
        (json!({"id": "a"}), Some(true), json!(["completion", "tools", "vision"])),
        (json!({"id": "b", "type": "vlm"}), Some(false), json!(["completion", "tools"])),
    ] {
        let mut model = ListedModel::read(entry).unwrap();
        model.pictures = pictures;
        let told: Value = serde_json::from_slice(OllamaFront::Chat.model(&model).body()).unwrap();
        assert_eq!(told["capabilities"], capabilities);
    }
}

#[test]
fn b13_ollama_a_malformed_body_names_the_field() {
    let with = |fields: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let message = |message: Value| json!({"messages": [message]});
    let call = |call: Value| message(json!({"role": "assistant", "tool_calls": [call]}));
    for (body, param) in [
        (json!([]), "body"),
        (json!({}), "messages"),
        (json!({"messages": []}), "messages"),
        (message(json!("hi")), "messages[0]"),
        (message(json!({"content": "hi"})), "messages[0].role"),
        (message(json!({"role": "developer"})), "messages[0].role"),
        (message(json!({"role": "user", "content": [{"type": "text"}]})), "messages[0].content"),
        (message(json!({"role": "user", "images": "aGk="})), "messages[0].images"),
        (message(json!({"role": "user", "images": [1]})), "messages[0].images[0]"),
        (message(json!({"role": "assistant", "thinking": 1})), "messages[0].thinking"),
        (call(json!({})), "messages[0].tool_calls[0].function"),
        (call(json!({"function": {}})), "messages[0].tool_calls[0].function.name"),
        (
            call(json!({"function": {"name": "f", "arguments": "{}"}})),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (message(json!({"role": "tool", "tool_name": 1})), "messages[0].tool_name"),
        (with(json!({"model": 1})), "model"),
        (with(json!({"stream": "yes"})), "stream"),
        (with(json!({"format": "xml"})), "format"),
        (with(json!({"format": 1})), "format"),
        (with(json!({"think": "much"})), "think"),
        (with(json!({"think": 1})), "think"),
        (with(json!({"keep_alive": []})), "keep_alive"),
        (with(json!({"options": []})), "options"),
        (with(json!({"options": {"temperature": "hot"}})), "options.temperature"),
        (with(json!({"options": {"num_predict": 0.5}})), "options.num_predict"),
        (with(json!({"options": {"stop": "a"}})), "options.stop"),
        (with(json!({"tools": [{"type": "function"}]})), "tools[0].function"),
        (with(json!({"tools": [{"type": "custom", "custom": {"name": "f"}}]})), "tools[0].type"),
        (
            with(
                json!({"tools": [{"function": {"name": "f"}}, {"function": {"name": "f", "description": "d"}}]}),
            ),
            "tools[1]",
        ),
        (with(json!({"toolrack": {"level": "owner"}})), "toolrack"),
    ] {
        let error = chat(&body).map(|decoded| decoded.request).unwrap_err();
        assert_eq!(error.param, param, "{body}: {error}");
        assert!(error.message.len() > 10, "{error}");
    }
    for (body, param) in [
        (json!({"prompt": ""}), "prompt"),
        (json!({"prompt": ["a"]}), "prompt"),
        (json!({"prompt": "a", "raw": true}), "raw"),
        (json!({"prompt": "a", "template": "{{ .Prompt }}"}), "template"),
        (json!({"prompt": "a", "suffix": "b"}), "suffix"),
        (json!({"prompt": "a", "context": [1]}), "context"),
        (json!({"prompt": "a", "tools": [{}]}), "tools"),
        (json!({"prompt": "a", "width": 512}), "width"),
    ] {
        let error = decode(OllamaFront::Generate, body.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.param, param, "{body}: {error}");
    }
    let empty =
        json!({"prompt": "a", "raw": false, "template": "", "suffix": "", "context": [], "tools": []});
    assert!(decode(OllamaFront::Generate, empty.to_string().as_bytes()).is_ok());
}

#[test]
fn b13_ollama_what_cannot_be_said_is_reported() {
    let seal = Seal { api: Provider::Anthropic, kind: SealKind::Signature, data: "s".into() };
    let url = Media::new(MediaKind::Image, MediaSource::Url("https://a".into()));
    let mut passing = Passing::of(Provider::OpenAi);
    passing.push("user", RawJson::of(&"u"));
    let text = |text: &str| Part::from(Content::Text(text.into()));
    let result = |id: &str| {
        Content::Result(ToolResult { call_id: id.into(), is_error: true, parts: vec![text(id)], name: None })
            .into()
    };
    let request = Request {
        thinking: Some(Thinking::Budget(2048)),
        choice: ToolChoice::Named("f".into()),
        parallel: Some(false),
        format: Some(ResponseFormat::JsonSchema {
            name: Some("n".into()),
            description: None,
            schema: json!({"type": "object"}),
            strict: Some(true),
        }),
        tools: vec![ClientTool {
            name: "t".into(),
            description: None,
            input: ToolInput::Text { format: None },
            passing: Passing::none(),
        }],
        messages: vec![
            Message::text(Role::Developer, "d"),
            Message::new(Role::User, vec![text("a"), text("b"), Content::Media(url).into()]),
            Message::new(
                Role::Assistant,
                vec![
                    Content::Call(Call::new("c", "f", "[1]")).into(),
                    Content::Reasoning(Reasoning { text: "r".into(), seal: Some(seal) }).into(),
                ],
            ),
            Message::new(Role::Tool, vec![result("c"), result("d")]),
        ],
        passing,
        ..Request::default()
    };
    let encoded = whole().request(&request, "");
    let paths: Vec<&str> = encoded.omissions.iter().map(|omission| omission.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "user",
            "thinking",
            "choice",
            "parallel",
            "format.name",
            "format.strict",
            "tools[0]",
            "messages[0].role",
            "messages[1].parts[1]",
            "messages[1].parts[2]",
            "messages[2].parts[0].arguments",
            "messages[2].parts[1].seal",
            "messages[2].parts[1]",
            "messages[3].parts[0].is_error",
            "messages[3].parts[1].is_error",
        ]
    );
    let (body, _) = wire(&request);
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "d"},
            {"role": "user", "content": "a\nb\n[picture, https://a; not shown: the model server takes no such files]"},
            {"role": "assistant", "content": "", "thinking": "r", "tool_calls": [
                {"id": "c", "function": {"name": "f", "arguments": {"INVALID_JSON": "[1]"}}},
            ]},
            {"role": "tool", "content": "Error: c", "tool_call_id": "c", "tool_name": "f"},
            {"role": "tool", "content": "Error: d", "tool_call_id": "d"},
        ])
    );
    assert_eq!((&body["think"], &body["format"]), (&json!("medium"), &json!({"type": "object"})));
    assert_eq!(body["tools"][0]["function"]["parameters"]["required"], json!(["input"]));
}

#[test]
fn b14_ollama_is_told_by_nobody_else_how_to_load_a_model() {
    let wire = OllamaWire { num_ctx: Some(16_384), keep_alive: Some("1h".into()), loads: false };
    let sent = json!({
        "messages": [{"role": "user", "content": "hi"}],
        "keep_alive": 0,
        "truncate": true,
        "options": {"num_ctx": 1_000_000, "num_gpu": 0, "num_batch": 1, "use_mmap": false, "temperature": 0.5, "repeat_penalty": 1.5},
    });
    let request = chat(&sent).unwrap().request;
    let body: Value = serde_json::from_slice(wire.request(&request, "").http.body()).unwrap();
    assert_eq!(body["options"], json!({"temperature": 0.5, "num_ctx": 16_384, "repeat_penalty": 1.5}));
    assert_eq!((&body["keep_alive"], &body["truncate"]), (&json!("1h"), &json!(true)));
    let left = OllamaWire::default();
    let body: Value = serde_json::from_slice(left.request(&request, "").http.body()).unwrap();
    assert_eq!((&body["options"]["num_ctx"], &body["keep_alive"]), (&Value::Null, &Value::Null));

    let raw = |loads: bool| CompletionWire {
        form: CompletionForm::Ollama,
        prompt: "hi".to_owned(),
        num_ctx: Some(16_384),
        keep_alive: Some("1h".into()),
        loads,
        ..CompletionWire::default()
    };
    let body: Value = serde_json::from_slice(raw(false).request(&request, "").http.body()).unwrap();
    assert_eq!(body["options"], json!({"temperature": 0.5, "num_ctx": 16_384, "repeat_penalty": 1.5}));
    assert_eq!(body["keep_alive"], json!("1h"));
    let body: Value = serde_json::from_slice(raw(true).request(&request, "").http.body()).unwrap();
    assert_eq!((&body["options"]["num_ctx"], &body["keep_alive"]), (&json!(1_000_000), &json!(0)));
}

#[test]
fn b13_ollama_the_operator_sets_what_the_client_does_not() {
    let wire = OllamaWire { num_ctx: Some(16_384), keep_alive: Some("1h".into()), loads: true };
    let sent = |body: Value, definitions: &str| {
        let request = chat(&body).unwrap().request;
        serde_json::from_slice::<Value>(wire.request(&request, definitions).http.body()).unwrap()
    };
    let messages = json!([{"role": "user", "content": "hi"}]);
    let body = sent(json!({"messages": messages, "options": {"temperature": 0.5}}), "{\"a\":1}");
    assert_eq!(body["options"], json!({"temperature": 0.5, "num_ctx": 16_384}));
    assert_eq!((&body["keep_alive"], &body["stream"]), (&json!("1h"), &json!(true)));
    assert_eq!(body["tools"], json!([{"a": 1}]));
    let body = sent(json!({"messages": messages, "options": {"num_ctx": 4096}, "keep_alive": -1}), "");
    assert_eq!((&body["options"], &body["keep_alive"]), (&json!({"num_ctx": 4096}), &json!(-1)));
    let request = Request {
        choice: ToolChoice::None,
        messages: vec![Message::text(Role::User, "hi")],
        ..Request::default()
    };
    let encoded = wire.request(&request, "{\"a\":1}");
    assert_eq!(serde_json::from_slice::<Value>(encoded.http.body()).unwrap().get("tools"), None);
    assert_eq!(encoded.omissions[0].path, "choice");
}

#[test]
fn b13_ollama_servers_may_deviate() {
    let stream = concat!(
        "{\"model\":\"m\",\"created_at\":\"x\",\"message\":{\"role\":\"assistant\",\"thinking\":\"hm\",\"content\":\"\"},\"done\":false}\r\n",
        "\n{\"message\":{\"content\":\"a\\ud83d\",\"x\":1},\"logprobs\":[1],\"done\":false}\n",
        "{\"message\":{\"tool_calls\":[{\"function\":{\"index\":0,\"name\":\"f\",\"arguments\":{\"a\": 1}}},",
        "{\"id\":\"i\",\"function\":{\"index\":0,\"name\":\"g\",\"arguments\":\"{}\"}}]},\"done\":false}\n",
        "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"total_duration\":9,\"load_duration\":1,\"eval_count\":2.0}",
    );
    let mut beside = Passing::of(API);
    beside.push("logprobs", RawJson::of(&json!([1])));
    beside.push("message.x", RawJson::of(&1));
    let mut durations = Passing::of(API);
    durations.push("load_duration", RawJson::of(&1));
    let call = |id: Option<&str>, name: &str, arguments: &str| {
        let (id, name) = (id.map(Into::into), Some(name.into()));
        Piece::Call(CallPiece { id, name, arguments: arguments.into(), ..CallPiece::default() })
    };
    for size in [1, 7, 4096] {
        assert_eq!(
            pieces(stream.as_bytes(), true, size),
            [
                Piece::Reasoning { text: "hm".into(), seal: None },
                Piece::Passing(beside.clone()),
                Piece::Text("a\u{fffd}".into()),
                call(None, "f", "{\"a\": 1}"),
                call(Some("i"), "g", "{}"),
                Piece::Finish(FinishReason::Stop),
                Piece::Usage(Usage { output: 2, passing: durations.clone(), ..Usage::default() }),
            ]
        );
    }
    let whole = "{\n \"message\": {\"content\": \"a\"},\n \"done\": true, \"done_reason\": \"unload\"\n}";
    let expected = [Piece::Text("a".into()), Piece::Finish(FinishReason::Other("unload".into()))];
    assert_eq!(pieces(whole.as_bytes(), false, 3), expected);
    for (answer, message) in [
        ("{\"error\":\"no\"}\n", "no"),
        ("{\"error\":{\"message\":\"no\"}}\n", "no"),
        ("{\"message\":{\"content\":\"a\"},\"done\":false}\n", "ended before"),
        ("{\"message\":{\n", "not JSON"),
    ] {
        let mut decoder = OllamaWire::default().decoder("application/x-ndjson");
        let failure = read(&mut *decoder, answer.as_bytes(), 5).unwrap_err();
        assert!(failure.message.contains(message), "{answer}: {failure}");
    }
    let refused = |status: u16, error: &str| {
        let reply = http::Response::builder().status(status).body(()).unwrap();
        let body = json!({ "error": error }).to_string();
        OllamaWire::default().failure(&reply.into_parts().0, body.as_bytes())
    };
    for (status, error, kind) in [
        (404, "model 'x' not found", FailureKind::NotFound),
        (400, "the input length exceeds the context length", FailureKind::ContextLength),
        (400, "\"m\" does not support thinking", FailureKind::InvalidRequest),
        (503, "server busy", FailureKind::Overloaded),
        (500, "error parsing tool call: raw='{\"a\"', err=unexpected end", FailureKind::Upstream),
    ] {
        let failure = refused(status, error);
        assert_eq!((failure.kind, failure.message.as_str()), (kind, error));
    }
}

#[test]
fn b13_ollama_shapes_of_models_are_those_of_the_server() {
    let list: models::ModelList = serde_json::from_value(json!({"models": [{
        "name": "m:latest", "model": "m:latest", "modified_at": "2026-01-01T00:00:00Z", "size": 1, "digest": "d",
        "details": {"format": "gguf", "families": null}, "expires_at": "x",
    }]})).unwrap();
    assert_eq!((list.models[0].name.as_str(), list.models[0].details.format.as_str()), ("m:latest", "gguf"));
    let show: models::ShowRequest = serde_json::from_value(json!({"name": "m"})).unwrap();
    assert_eq!((show.model.as_str(), show.name.as_str()), ("", "m"));
    let mut info = models::ModelInfo::default();
    info.capabilities = vec!["tools".into()];
    let info = serde_json::to_value(info).unwrap();
    assert_eq!((&info["model_info"], &info["capabilities"]), (&json!({}), &json!(["tools"])));
    assert_eq!((&info["license"], info.get("system")), (&json!(""), None));
    for input in [json!("a"), json!(["a", "b"])] {
        let body = json!({"model": "m", "input": input, "keep_alive": "5m"});
        let request: models::EmbedRequest = serde_json::from_value(body.clone()).unwrap();
        assert_eq!(serde_json::to_value(request).unwrap(), body);
    }
    let reply: models::EmbedReply =
        serde_json::from_value(json!({"model": "m", "embeddings": [[0.5]]})).unwrap();
    assert_eq!(reply.embeddings, [[0.5]]);
}

#[test]
fn g13_ollama_a_streamed_token_makes_few_allocations() {
    const MOST: u64 = 8;
    let body = json!({"messages": [{"role": "user", "content": "hi"}]});
    let mut encoder = chat(&body).unwrap().encoder;
    let mut decoder = OllamaWire::default().decoder("application/x-ndjson");
    let (mut pieces, mut out) = (Vec::with_capacity(8), Vec::with_capacity(4096));
    encoder.event(TurnEvent::Model("some-model".into()), &mut out);
    let line = concat!(
        "{\"model\":\"m\",\"created_at\":\"2026-01-01T00:00:00Z\",\"message\":{\"role\":\"assistant\",",
        "\"content\":\" word\"},\"done\":false}\n"
    );
    let mut token = || {
        out.clear();
        decoder.push(line.as_bytes(), &mut pieces).unwrap();
        for piece in pieces.drain(..) {
            let Piece::Text(text) = piece else { panic!("{piece:?}") };
            encoder.event(TurnEvent::Text(text), &mut out);
        }
        assert!(out.ends_with(b"\"content\":\" word\"},\"done\":false}\n"));
    };
    token();
    let made = allocation_counter::measure(&mut token).count_total;
    println!("allocations of one token: {made}");
    assert!(made <= MOST, "one token makes {made} allocations, more than {MOST}");
}
