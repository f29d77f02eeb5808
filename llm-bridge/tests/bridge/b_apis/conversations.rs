//! Conversations that the server keeps for OpenAI's Responses.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Rack, Reply, Setup, within};

async fn respond(rack: &Rack, body: Value) -> (StatusCode, Value) {
    let response = within(rack.client.post(rack.url("/v1/responses")).json(&body).send()).await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    if body["stream"] != true || !status.is_success() {
        return (status, serde_json::from_str(&text).unwrap());
    }
    let data = text.lines().rev().find_map(|line| line.strip_prefix("data: {")).unwrap();
    let last: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
    assert_eq!(last["type"], "response.completed", "{last}");
    (status, last["response"].clone())
}

fn contents(rack: &Rack, asked: usize) -> Vec<String> {
    let messages = rack.upstream.asked()[asked].messages().to_vec();
    let said = |message: &Value| match message.get("tool_calls") {
        Some(calls) => format!("calls {}", calls[0]["function"]["name"].as_str().unwrap()),
        None => message["content"].as_str().unwrap().to_owned(),
    };
    messages.iter().map(said).collect()
}

#[tokio::test]
async fn b13_a_response_continues_what_is_kept_with_the_results_of_tools() {
    for stream in [true, false] {
        let call = Answer::new().call("c", "math_gcd", &json!({"a": 12, "b": 18}));
        let rack = Setup::new()
            .start([call.into(), Reply::text("6"), Reply::text("2 and 3"), Reply::text("Nothing.")])
            .await;
        let ask = |input: &str, previous: Value| json!({"model": "m", "stream": stream, "instructions": "Be brief.", "input": input, "previous_response_id": previous});
        let (status, first) = respond(&rack, ask("GCD?", Value::Null)).await;
        assert_eq!((status, &first["store"]), (StatusCode::OK, &Value::Null), "{first}");
        let (_, second) = respond(&rack, ask("Its factors?", first["id"].clone())).await;
        let expected = ["Be brief.", "GCD?", "calls math_gcd", "gcd=6", "6", "Its factors?"];
        assert_eq!(contents(&rack, 2), expected, "the instructions are those of the request alone");
        respond(&rack, ask("And?", second["id"].clone())).await;
        assert_eq!(contents(&rack, 3)[5..], ["Its factors?", "2 and 3", "And?"]);

        let address = rack.url(&format!("/v1/responses/{}", first["id"].as_str().unwrap()));
        let deleted = within(rack.client.delete(&address).send()).await.unwrap();
        assert_eq!(deleted.json::<Value>().await.unwrap()["deleted"], true);
        assert_eq!(within(rack.client.delete(&address).send()).await.unwrap().status(), 404);
        let (status, refused) = respond(&rack, ask("And?", first["id"].clone())).await;
        assert_eq!(
            (status, &refused["error"]["param"]),
            (StatusCode::NOT_FOUND, &json!("previous_response_id"))
        );
        assert_eq!(rack.upstream.asked().len(), 4);
    }
}

#[tokio::test]
async fn b13_what_is_not_to_be_stored_or_was_never_there_is_not_found() {
    let rack = Setup::bare().start([Reply::text("Hi.")]).await;
    let (_, first) = respond(&rack, json!({"model": "m", "input": "Hello", "store": false})).await;
    for id in [first["id"].clone(), json!("resp_none"), json!("")] {
        let (status, refused) =
            respond(&rack, json!({"model": "m", "input": "x", "previous_response_id": id})).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{id}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("not found"), "{message}");
    }
}

#[tokio::test]
async fn b13_a_call_of_the_clients_tool_is_continued_with_its_result_alone() {
    let both = Answer::new().call("s", "math_gcd", &json!({"a": 4, "b": 6})).call(
        "c",
        "weather",
        &json!({"city": "Oslo"}),
    );
    let rack = Setup::new().start([both.into(), Reply::text("Grey.")]).await;
    let tools = json!([{"type": "function", "name": "weather", "parameters": {"type": "object"}}]);
    let (_, first) = respond(&rack, json!({"model": "m", "input": "Go.", "tools": tools})).await;
    let call =
        first["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let result = json!([{"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}]);
    let then = json!({"model": "m", "input": result, "tools": tools, "previous_response_id": first["id"]});
    let (status, _) = respond(&rack, then).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(contents(&rack, 1), ["Go.", "calls math_gcd", "gcd=2", "rain"]);
}
