//! Answers and failures as clients get them.

use serde_json::{Value, json};
use toolrack_apis::{
    Call, CallInput, ClientCall, Failure, FailureKind, FinishReason, FinishedTool, Front, Passing, Provider,
    RawJson, ResponseFormat, Seal, SealKind, ToolStatus, TurnEvent, UpstreamDetails, Usage,
    gemini::GeminiFront,
};

use super::{API, decode, parts};
use crate::strategies;

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
fn b13_gemini_a_word_of_an_enum_comes_whole_and_without_quotation_marks() {
    let schema = json!({"type": "STRING", "enum": ["Percussion", "Keyboard"]});
    let body = json!({
        "contents": [{"parts": [{"text": "A piano?"}]}],
        "generationConfig": {"responseMimeType": "text/x.enum", "responseSchema": schema},
    });
    for (said, word) in [(["\"Key", "board\""], "Keyboard"), (["Key", "board"], "Keyboard")] {
        let events =
            [TurnEvent::Text(said[0].into()), TurnEvent::Text(said[1].into()), finished(FinishReason::Stop)];
        for method in ["generateContent", "streamGenerateContent?alt=sse"] {
            let path = format!("/v1/models/m:{method}");
            let decoded = GeminiFront.decode(&parts(&path), body.to_string().as_bytes()).unwrap();
            let Some(ResponseFormat::JsonSchema { schema, .. }) = &decoded.request.format else {
                panic!("{:?}", decoded.request)
            };
            assert_eq!(*schema, json!({"type": "string", "enum": ["Percussion", "Keyboard"]}));
            let (mut encoder, mut out) = (decoded.encoder, Vec::new());
            events.iter().for_each(|event| encoder.event(event.clone(), &mut out));
            encoder.finish(&mut out);
            let text = String::from_utf8(out).unwrap();
            let answer: Value = serde_json::from_str(text.trim_start_matches("data: ")).unwrap();
            assert_eq!(answer["candidates"][0]["content"]["parts"], json!([{"text": word}]));
        }
    }
}

#[test]
fn b13_gemini_each_piece_is_a_chunk() {
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
fn b13_gemini_what_happens_to_a_tool_rides_on_chunks_with_an_empty_text() {
    let tool = FinishedTool { id: "s".into(), name: "f".into(), success: true, ..FinishedTool::default() };
    let events = [
        TurnEvent::Text("a".into()),
        TurnEvent::Tool(ToolStatus::Finished(Box::new(tool))),
        TurnEvent::Message { id: "s".into(), text: "\nHi.\n".into(), part: None },
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
fn b13_gemini_finish_reasons_and_usage() {
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
fn b13_gemini_a_failure_has_the_apis_shape_and_status() {
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
    let upstream = UpstreamDetails {
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
fn b13_gemini_a_failure_ends_the_stream() {
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
fn g13_gemini_a_streamed_token_makes_few_allocations() {
    let encoder = decode(b"{\"contents\":[{\"parts\":[{\"text\":\"hi\"}]}]}").unwrap().encoder;
    let mut out = Vec::with_capacity(4096);
    strategies::assert_few_allocations(encoder, &mut out);
    assert!(String::from_utf8(out).unwrap().contains("{\"text\":\" word\"}"));
}
