//! Turns whose events nobody waits for: they stand, and hold up nothing else.

use std::time::Duration;

use axum::{
    Json, Router,
    http::header,
    routing::{get, post},
};
use llm_bridge::{
    turn::{Backend, ChatSettings, Turn},
    upstream::Upstream,
};
use registry_core::{Caller, Registry, ToolPolicy, ToolResult, ToolSpec, handler_fn};
use serde_json::json;
use tokio::net::TcpListener;
use toolrack_apis::{FinishReason, ToolStatus, TurnEvent};

use crate::support::{Answer, Scripted, question, within};

/// Reads to the end: why it ended, and its text.
async fn rest(turn: &mut Turn) -> (FinishReason, String) {
    let mut text = String::new();
    loop {
        match within(turn.next()).await.expect("a turn has a last word") {
            TurnEvent::Text(piece) => text.push_str(&piece),
            TurnEvent::Finished { reason, .. } => return (reason, text),
            TurnEvent::Failed(failure) => panic!("{failure}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn g5_the_time_in_which_nobody_reads_is_not_that_of_the_tools() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let tool = handler_fn(|context, _| async move {
        context.status("at work");
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(ToolResult::new("done"))
    });
    registry
        .register(ToolSpec::new("act", json!({"type": "object"})), ToolPolicy::new(), Some(tool))
        .unwrap();
    let upstream = Scripted::start([]).await;
    upstream.push(Answer::new().call("one", "act", &json!({})));
    upstream.push(Answer::text("Done."));
    // No server is silent for longer than that.
    let model = Upstream::http(&upstream.base(), None, Duration::MAX).unwrap();
    let mut settings = ChatSettings::default();
    settings.limits.max_seconds = 1;
    let backend = Backend::new(registry, model, settings);
    let mut turn = backend.start(question("Go."), Caller::default()).unwrap();
    while !matches!(within(turn.next()).await, Some(TurnEvent::Tool(ToolStatus::Progress { .. }))) {}
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(rest(&mut turn).await, (FinishReason::Stop, "Done.".to_owned()));
}

#[tokio::test]
async fn b14_a_turn_that_nobody_reads_keeps_no_other_from_recognising_the_server() {
    let models = || async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        Json(json!({"object": "list", "data": [{"id": "m", "object": "model"}]}))
    };
    let event = json!({"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]});
    let answer = format!("data: {event}\n\ndata: [DONE]\n\n");
    let answer = move || async move { ([(header::CONTENT_TYPE, "text/event-stream")], answer) };
    let router = Router::new().route("/v1/models", get(models)).route("/v1/chat/completions", post(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let registry = Registry::builder().without_compiled().build().unwrap();
    let backend = Backend::new(
        registry,
        Upstream::http(&base, None, Duration::from_secs(20)).unwrap(),
        ChatSettings::default(),
    );
    let mut first = backend.start(question("Go."), Caller::default()).unwrap();
    let mut second = backend.start(question("Go."), Caller::default()).unwrap();
    assert!(
        tokio::time::timeout(Duration::from_millis(100), async { rest(&mut first).await }).await.is_err()
    );
    assert_eq!(rest(&mut second).await, (FinishReason::Stop, "Hi.".to_owned()));
    assert_eq!(rest(&mut first).await.1, "Hi.");
}
