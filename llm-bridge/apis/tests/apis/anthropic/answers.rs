//! Answers and failures as clients get them.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolrack_apis::{
    Call, CallInput, ClientCall, Content, Failure, FailureKind, FinishReason, FinishedTool, Front, Passing,
    Provider, RawJson, Reasoning, Seal, SealKind, ToolStatus, TurnEvent, Usage, Wire,
    anthropic::AnthropicFront, openai::OpenAiWire,
};

use super::{API, decode};
use crate::strategies::{self, text};

/// What stands for the signature of reasoning that no model server has signed.
const UNSIGNED: &str = "dG9vbHJhY2s=";

proptest! {
    #[test]
    fn b13_anthropic_a_stream_adds_up_to_the_whole_message(events in proptest::collection::vec(event(), 0..8)) {
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
        1 => Just(TurnEvent::Message { id: "s".into(), text: "\nHi.\n".into(), part: None }),
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
        "stop_sequences": ["END"],
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
fn b13_anthropic_text_is_a_block_of_deltas() {
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
fn b13_anthropic_reasoning_is_a_block_with_its_signature() {
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
            delta(1, json!({"type": "signature_delta", "signature": UNSIGNED})),
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
fn b13_anthropic_reasoning_is_shown_to_who_asks_for_it() {
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
fn b13_anthropic_a_call_comes_whole_or_in_deltas() {
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
            input(0, ":1}"),
            stop(0),
            tool_use(1, "b"),
            input(1, "{}"),
            stop(1),
            tool_use(2, "c"),
            input(2, "{\"INVALID_JSON\":\"none\"}"),
            stop(2),
        ]
    );
}

#[test]
fn b13_anthropic_blocks_stand_one_behind_the_other() {
    let says = |index, text| delta(index, json!({"type": "text_delta", "text": text}));
    let text = |index| start(index, json!({"type": "text", "text": ""}));
    let calls = vec![client_call("a", "{\"x\":1}"), client_call("b", "{\"y\":2}")];
    // A call whose arguments are whole ends before the next one begins, which is written as it comes.
    let events = [
        begun("a"),
        piece("a", "{\"x\":1}"),
        begun("b"),
        piece("b", "{\"y\""),
        piece("b", ":2}"),
        TurnEvent::Calls(calls.clone()),
    ];
    assert_eq!(
        blocks_of(&events),
        [
            tool_use(0, "a"),
            input(0, "{\"x\":1}"),
            stop(0),
            tool_use(1, "b"),
            input(1, "{\"y\""),
            input(1, ":2}"),
            stop(1),
        ]
    );
    // Text waits for the end of a call that is not whole.
    let events = [
        begun("a"),
        piece("a", "{\"x\""),
        TurnEvent::Text("t".into()),
        begun("b"),
        piece("b", "{"),
        piece("a", ":1}"),
        TurnEvent::Calls(calls),
    ];
    assert_eq!(
        blocks_of(&events),
        [
            tool_use(0, "a"),
            input(0, "{\"x\""),
            input(0, ":1}"),
            stop(0),
            text(1),
            says(1, "t"),
            stop(1),
            tool_use(2, "b"),
            input(2, "{\"y\":2}"),
            stop(2),
        ]
    );
    // A call that is taken back holds nothing up.
    let aborted =
        ToolStatus::Aborted { id: "a".into(), name: "f".into(), source: String::new(), reason: "no".into() };
    let events = [
        begun("a"),
        piece("a", "{"),
        TurnEvent::Text("t".into()),
        aborted.into(),
        TurnEvent::Text("u".into()),
    ];
    let mut sent = blocks_of(&events);
    sent.retain(|event| event["type"] != "ping");
    assert_eq!(
        sent,
        [tool_use(0, "a"), input(0, "{"), stop(0), text(1), says(1, "t"), says(1, "u"), stop(1)]
    );
}

#[test]
fn b13_anthropic_a_stream_begins_with_the_estimated_size_of_the_prompt() {
    let events = [TurnEvent::PromptTokens(41), TurnEvent::Text("a".into()), finished(FinishReason::Stop)];
    let sent = sent(&encoded(true, &events));
    assert_eq!(sent[0]["message"]["usage"], json!({"input_tokens": 41, "output_tokens": 0}));
    assert_eq!(sent[sent.len() - 2]["usage"], json!({"input_tokens": 9, "output_tokens": 2}));

    // Where the model server counts nothing, clients are not to take the conversation for an empty one.
    let uncounted = TurnEvent::Finished { reason: FinishReason::Stop, usage: Usage::default() };
    let events = [TurnEvent::PromptTokens(41), TurnEvent::Text("a".into()), uncounted];
    let sent = self::sent(&encoded(true, &events));
    assert_eq!(sent[sent.len() - 2]["usage"], json!({"input_tokens": 41, "output_tokens": 0}));
}

#[test]
fn b13_anthropic_unsigned_reasoning_has_a_signature_that_means_nothing_when_it_comes_back() {
    let events = [thought("hm", None), finished(FinishReason::Stop)];
    let mut whole: Value = serde_json::from_slice(&encoded(false, &events)).unwrap();
    assert_eq!(whole["content"], json!([{"type": "thinking", "thinking": "hm", "signature": UNSIGNED}]));
    let assistant = json!({"role": "assistant", "content": whole["content"].take()});
    let request = super::decoded(&json!({"messages": [{"role": "user", "content": "hi"}, assistant]}));
    let reasoning = Content::Reasoning(Reasoning { text: "hm".into(), seal: None });
    assert_eq!(request.messages[1].parts, [reasoning.into()]);
    assert_eq!(OpenAiWire.request(&request, "").omissions, []);
}

#[test]
fn b13_anthropic_a_mixed_turn_tells_of_server_tools_in_pings() {
    let tool = FinishedTool { id: "s".into(), name: "f".into(), success: true, ..FinishedTool::default() };
    let events = [
        TurnEvent::Text("a".into()),
        TurnEvent::Tool(ToolStatus::Finished(Box::new(tool))),
        TurnEvent::Message { id: "s".into(), text: "\nHi.\n".into(), part: None },
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
fn b13_anthropic_stop_reasons_and_usage() {
    for (reason, word, sequence) in [
        (FinishReason::Stop, "end_turn", json!(null)),
        (FinishReason::StopSequence("END".into()), "stop_sequence", json!("END")),
        (FinishReason::StopSequence("<|im_end|>".into()), "end_turn", json!(null)),
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
fn b13_anthropic_a_failure_has_the_apis_shape_and_status() {
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
fn b13_anthropic_a_failure_ends_the_stream() {
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
fn g13_anthropic_a_streamed_token_makes_few_allocations() {
    let body = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}";
    let mut encoder = decode(body.as_bytes()).unwrap().encoder;
    let mut out = Vec::with_capacity(4096);
    encoder.event(TurnEvent::Text("a".into()), &mut out);
    strategies::assert_few_allocations(encoder, &mut out);
    assert!(out.ends_with(b"\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n"));
}
