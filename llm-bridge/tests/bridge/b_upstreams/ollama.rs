//! Ollama, asked in its own API.

use std::time::Duration;

use llm_bridge::upstream::{Upstream, UpstreamSettings};
use serde_json::json;

use crate::support::{Act, Answer, Rack, Reply, Scripted, Setup, Site, within};

async fn rack_of(setup: Setup, replies: Vec<Reply>) -> Rack {
    let upstream = Scripted::start_as(Site::of_kind("ollama", &["m"]), replies).await;
    let settings = UpstreamSettings {
        num_ctx: Some(32768),
        keep_alive: Some("30m".into()),
        ..UpstreamSettings::new(upstream.base(), Duration::from_secs(20))
    };
    setup.start_with(upstream, Upstream::server(settings).unwrap()).await
}

#[tokio::test]
async fn b14_the_size_of_the_context_is_that_of_the_settings_and_the_calls_are_run() {
    let replies = vec![
        Answer::new().delta(json!({"reasoning": "Hm."})).call("", "add", &json!({"a": 2, "b": 3})).into(),
        Answer::text("It is 5.").usage(10, 5).into(),
    ];
    let rack = rack_of(Setup::new(), replies).await;
    let reported = rack.ask_with(true, json!({"reasoning_effort": "high", "temperature": 0.5})).await;
    assert_eq!(reported.content, "It is 5.");
    assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))]);
    let asked = rack.upstream.asked();
    assert_eq!(asked[0].path, "/api/chat");
    let body = &asked[0].body;
    assert_eq!(body["options"], json!({"temperature": 0.5, "num_ctx": 32768}));
    assert_eq!((&body["keep_alive"], &body["think"]), (&json!("30m"), &json!("high")));
    assert_eq!(asked[0].tools(), ["add", "math_gcd"]);
    let result = asked[1].messages().last().unwrap();
    assert_eq!((&result["role"], &result["tool_name"]), (&json!("tool"), &json!("add")), "{result}");
    assert_eq!(result["content"], "sum=5");
}

#[tokio::test]
async fn b14_an_error_of_ollama_is_reported_with_its_words() {
    let replies = vec![
        Reply::json(404, &json!({"error": "model 'm' not found"})),
        Reply::Raw {
            status: 200,
            kind: "application/x-ndjson",
            acts: vec![Act::Send(b"{\"message\":{\"role\":\"assistant\",\"content\":\"Well\"},\"done\":false}\n{\"error\":\"out of memory\"}\n".to_vec())],
        },
    ];
    let rack = rack_of(Setup::new(), replies).await;
    let response = rack.post(&json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]})).await;
    assert_eq!(response.status(), 404);
    let text = within(response.text()).await.unwrap();
    assert!(text.contains("model 'm' not found") && !text.contains("end in /v1"), "{text}");
    let response = rack.post(&json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]})).await;
    assert_eq!(response.status(), 502);
    let text = within(response.text()).await.unwrap();
    assert!(text.contains("out of memory"), "{text}");
}
