//! What clients of the transport over HTTP do otherwise than it has it.

use reqwest::{Client, Response};
use serde_json::{Value, json};

use crate::support::Setup;

async fn initialize(url: &str, accept: Option<&str>) -> Response {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let request = Client::new().post(url).json(&body);
    let request = match accept {
        Some(accept) => request.header("accept", accept),
        None => request,
    };
    request.send().await.unwrap()
}

#[tokio::test]
async fn b7_a_client_is_served_whatever_of_the_two_kinds_it_accepts() {
    let rack = Setup::new().start([]).await;
    let url = rack.url("/mcp");
    for accept in [None, Some("*/*"), Some("application/json"), Some("text/event-stream")] {
        let answer = initialize(&url, accept).await;
        assert_eq!(answer.status(), 200, "{accept:?}");
        assert!(answer.headers().contains_key("mcp-session-id"));
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        let text = answer.text().await.unwrap();
        let message = match accept {
            Some("application/json") => {
                assert_eq!(kind, "application/json");
                text
            }
            _ => text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned(),
        };
        let message: Value = serde_json::from_str(&message).unwrap();
        assert_eq!(message["result"]["protocolVersion"], "2025-06-18", "{accept:?}: {message}");
    }
    assert_eq!(initialize(&url, Some("text/html")).await.status(), 406);
}

#[tokio::test]
async fn b7_a_stream_begins_with_a_message() {
    let rack = Setup::new().start([]).await;
    let url = rack.url("/mcp");
    let both = "application/json, text/event-stream";
    let begun = initialize(&url, Some(both)).await;
    let session = begun.headers()["mcp-session-id"].clone();
    let ask = async |message: Value| {
        let request =
            Client::new().post(&url).header("accept", both).header("mcp-session-id", session.clone());
        request.json(&message).send().await.unwrap().text().await.unwrap()
    };
    let mut streams = vec![begun.text().await.unwrap()];
    ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    streams.push(ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await);
    for stream in streams {
        let first = stream.lines().find_map(|line| line.strip_prefix("data:")).unwrap();
        assert!(first.contains("jsonrpc") && !stream.contains("retry:"), "{stream}");
    }
}

#[tokio::test]
async fn b7_a_batch_of_2025_03_26_is_answered_and_what_is_no_message_refused() {
    let rack = Setup::new().start([]).await;
    let url = rack.url("/mcp");
    let begun = initialize(&url, None).await;
    let session = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let post = |body: String, more: Option<&'static str>| {
        let request = Client::new().post(&url).header("content-type", "application/json");
        let request = request.header("mcp-session-id", &session).body(body);
        match more {
            Some(revision) => request.header("mcp-protocol-version", revision),
            None => request,
        }
        .send()
    };
    let message = |id: Option<u32>, method: &str| match id {
        Some(id) => json!({"jsonrpc": "2.0", "id": id, "method": method}),
        None => json!({"jsonrpc": "2.0", "method": method}),
    };
    let batch = json!([
        message(None, "notifications/initialized"),
        message(Some(2), "tools/list"),
        message(Some(3), "ping"),
    ]);
    let answer = post(batch.to_string(), Some("2025-03-26")).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["content-type"].as_bytes()),
        (200, &b"application/json"[..])
    );
    let answers: Vec<Value> = answer.json().await.unwrap();
    assert_eq!(answers.iter().map(|answer| answer["id"].clone()).collect::<Vec<_>>(), [json!(2), json!(3)]);
    assert!(answers[0]["result"]["tools"].is_array() && answers[1]["result"].is_object(), "{answers:?}");
    let told = json!([message(None, "notifications/initialized")]);
    assert_eq!(post(told.to_string(), None).await.unwrap().status(), 202);
    for (body, revision, code) in [
        (batch.to_string(), Some("2025-06-18"), -32600),
        ("{".to_owned(), None, -32700),
        (json!({"jsonrpc": "2.0", "id": {}, "method": "ping"}).to_string(), None, -32600),
    ] {
        let refused = post(body, revision).await.unwrap();
        assert_eq!(refused.status(), 400);
        assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], code);
    }
}
