//! Tools in namespaces of OpenAI's Responses, as coding agents send them.

use serde_json::{Value, json};
use toolrack_apis::{
    BadRequest, Call, CallInput, ClientCall, Content, Decoded, FinishReason, Front, Passing, TurnEvent,
    Usage, responses::ResponsesFront,
};

fn decode(body: &Value) -> Result<Decoded, BadRequest> {
    ResponsesFront.decode(&http::Request::new(()).into_parts().0, body.to_string().as_bytes())
}

fn function(name: &str) -> Value {
    json!({"type": "function", "name": name, "description": "Closes.", "parameters": {"type": "object"}})
}

fn namespace(name: &str, tools: &[Value]) -> Value {
    json!({"type": "namespace", "name": name, "description": "Agents.", "tools": tools})
}

#[test]
fn b13_responses_a_tool_in_a_namespace_has_one_name_for_the_model() {
    let body = json!({
        "input": [
            {"role": "user", "content": "Close it."},
            {"type": "function_call", "call_id": "c0", "namespace": "agents", "name": "close", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c0", "output": "closed"},
        ],
        "tools": [function("close"), namespace("agents", &[function("close")]), namespace("mcp__files__", &[function("read")])],
        "stream": true,
    });
    let Decoded { request, mut encoder } = decode(&body).unwrap();
    let names: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["close", "agents__close", "mcp__files__read"]);
    let Content::Call(call) = &request.messages[1].parts[0].content else { panic!("{request:?}") };
    assert_eq!(call.name, "agents__close");

    let mut out = Vec::new();
    let call =
        |id: &str, name: &str| ClientCall { call: Call::new(id, name, "{}"), passing: Passing::none() };
    let name = "agents__close".to_owned();
    for event in [
        TurnEvent::Model("m".into()),
        TurnEvent::CallBegun { id: "c1".into(), name, input: CallInput::Json, passing: Passing::none() },
        TurnEvent::Calls(vec![call("c1", "agents__close"), call("c2", "close")]),
        TurnEvent::Finished { reason: FinishReason::ToolCalls, usage: Usage::default() },
    ] {
        encoder.event(event, &mut out);
    }
    encoder.finish(&mut out);
    let events = std::str::from_utf8(&out).unwrap().lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = events.map(|data| serde_json::from_str(data).unwrap()).collect();
    let of = |kind: &str| -> Vec<(Value, Value)> {
        let events = events.iter().filter(|event| event["type"] == kind);
        events.map(|event| (event["item"]["namespace"].clone(), event["item"]["name"].clone())).collect()
    };
    let expected = [(json!("agents"), json!("close")), (Value::Null, json!("close"))];
    assert_eq!(of("response.output_item.added"), expected);
    assert_eq!(of("response.output_item.done"), expected);
    let output = &events.last().unwrap()["response"]["output"];
    assert_eq!((&output[0]["namespace"], &output[0]["name"]), (&json!("agents"), &json!("close")));
}

#[test]
fn b13_responses_a_bad_namespace_names_the_field() {
    for (tools, param, reported) in [
        (json!([namespace("a", &[namespace("b", &[])])]), "tools[0].tools[0].type", "not offered"),
        (json!([{"type": "namespace", "tools": []}]), "tools[0].name", "missing"),
        (json!([{"type": "namespace", "name": "a", "tools": 1}]), "tools[0].tools", "array"),
        (json!([function("a__b"), namespace("a", &[function("b")])]), "tools[1].tools[0]", "two tools"),
        (json!([namespace("a", &[function("b")]), function("a__b")]), "tools[1]", "two tools"),
    ] {
        let error = decode(&json!({"input": "hi", "tools": tools})).unwrap_err();
        assert!(
            error.param == param && error.message.contains(reported),
            "{tools}: {} {}",
            error.param,
            error.message
        );
    }
}
