//! Servers at an address that speak the protocol in their own way.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use registry_core::ErrorKind;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolrack_remote::{
    BreakerSettings, BreakerState,
    mcp::{McpServerSettings, McpState},
};

use super::{call, http::serve, names, registry, report, settled};

fn answer(asked: &Value, result: Value) -> Response {
    Json(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).into_response()
}

fn introduction() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}})
}

/// What a server of an earlier revision with one tool answers.
fn usual(asked: &Value) -> Response {
    match asked["method"].as_str().unwrap_or_default() {
        "initialize" => answer(asked, introduction()),
        "tools/list" => {
            answer(asked, json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}))
        }
        "tools/call" => answer(asked, json!({"content": [{"type": "text", "text": "done"}]})),
        _ if asked["id"].is_null() => StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "unknown"});
            Json(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).into_response()
        }
    }
}

/// Such a server, but for what `odd` answers.
fn at(
    odd: impl Fn(&Value, &HeaderMap) -> Option<Response> + Clone + Send + Sync + 'static,
) -> (McpServerSettings, Runtime) {
    let respond = move |headers: HeaderMap, Json(asked): Json<Value>| {
        std::future::ready(odd(&asked, &headers).unwrap_or_else(|| usual(&asked)))
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = McpServerSettings::url(format!("http://{}/mcp", listener.local_addr().unwrap()));
    (settings, serve(listener, Router::new().route("/mcp", post(respond))))
}

fn refusal(id: Value, message: &str) -> Response {
    let error = json!({"code": -32000, "message": message});
    (StatusCode::BAD_REQUEST, Json(json!({"jsonrpc": "2.0", "id": id, "error": error}))).into_response()
}

#[tokio::test]
async fn b3_a_refusal_that_names_no_request_answers_the_one_it_refuses() {
    for id in [Value::Null, json!("server-error")] {
        let (settings, serving) =
            at(move |asked, _| (asked["method"] == "tools/call").then(|| refusal(id.clone(), "Not today")));
        let registry = registry();
        let _servers = settled(&registry, &[("s", settings)]).await;
        let begun = Instant::now();
        let error = call(&registry, "s.echo", json!({})).await.result.unwrap_err();
        assert!(error.feedback().contains("Not today"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        serving.shutdown_background();
    }
}

#[tokio::test]
async fn b3_a_session_that_the_server_has_forgotten_is_renewed_and_the_call_made() {
    let session = Arc::new(AtomicUsize::new(0));
    let sessions = Arc::clone(&session);
    let (settings, serving) = at(move |asked, headers| {
        if asked["method"] == "initialize" {
            let id = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            return Some(
                ([("mcp-session-id", id.to_string())], answer(asked, introduction())).into_response(),
            );
        }
        let known = sessions.load(Ordering::SeqCst).to_string();
        let is_known = headers.get("mcp-session-id").is_none_or(|id| id.as_bytes() == known.as_bytes());
        (!is_known).then(|| refusal(Value::Null, "Bad Request: No valid session ID provided"))
    });
    let registry = registry();
    let servers = settled(&registry, &[("s", settings)]).await;
    // It was started again.
    let before = session.fetch_add(1, Ordering::SeqCst) + 1;
    let done = call(&registry, "s.echo", json!({})).await.result.unwrap();
    assert_eq!((done.value, session.load(Ordering::SeqCst)), (json!("done"), before + 1));
    assert_eq!((report(&servers).state, report(&servers).restarts), (McpState::Connected, 0));
    serving.shutdown_background();
}

#[tokio::test]
async fn b3_a_server_that_fails_at_the_newest_greeting_is_greeted_the_old_way() {
    for is_error in [true, false] {
        let (settings, serving) = at(move |asked, _| {
            (asked["method"] == "server/discover").then(|| match is_error {
                true => (StatusCode::INTERNAL_SERVER_ERROR, "<html>").into_response(),
                false => answer(asked, json!({})),
            })
        });
        let registry = registry();
        let servers = settled(&registry, &[("s", settings)]).await;
        assert_eq!(names(&registry), ["s.echo"], "{:?}", report(&servers));
        serving.shutdown_background();
    }
}

#[tokio::test]
async fn b3_an_introduction_with_lists_for_objects_and_without_a_version_is_read() {
    for is_stream in [false, true] {
        let (settings, serving) = at(move |asked, _| {
            (asked["method"] == "initialize").then(|| {
                let mut odd = introduction();
                odd["capabilities"] = json!({"tools": []});
                odd["serverInfo"] = json!({"name": "odd"});
                let message = json!({"jsonrpc": "2.0", "id": asked["id"], "result": odd});
                match is_stream {
                    true => ([("content-type", "text/event-stream")], format!("data: {message}\n\n"))
                        .into_response(),
                    false => Json(message).into_response(),
                }
            })
        });
        let registry = registry();
        let servers = settled(&registry, &[("s", settings)]).await;
        assert_eq!(names(&registry), ["s.echo"], "{:?}", report(&servers));
        serving.shutdown_background();
    }
}

#[tokio::test]
async fn b19_an_answer_that_is_too_large_is_an_answer() {
    for is_stream in [false, true] {
        let (settings, serving) = at(move |asked, _| {
            (asked["method"] == "tools/call").then(|| {
                let text = "x".repeat(17 << 20);
                let result = json!({"content": [{"type": "image", "data": text, "mimeType": "image/png"}]});
                let message = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
                match is_stream {
                    true => ([("content-type", "text/event-stream")], format!("data: {message}\n\n"))
                        .into_response(),
                    false => Json(message).into_response(),
                }
            })
        });
        let registry = registry();
        let servers = settled(&registry, &[("s", settings)]).await;
        let error = call(&registry, "s.echo", json!({})).await.result.unwrap_err();
        assert!(error.feedback().contains("too large"), "{is_stream}: {error}");
        assert_eq!(report(&servers).restarts, 0);
        serving.shutdown_background();
    }
}

#[tokio::test]
async fn b3_the_transport_of_before_is_named() {
    let events =
        || async { ([("content-type", "text/event-stream")], "event: endpoint\ndata: /messages\n\n") };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = McpServerSettings::url(format!("http://{}/sse", listener.local_addr().unwrap()));
    let serving = serve(listener, Router::new().route("/sse", get(events)));
    let registry = registry();
    let servers = settled(&registry, &[("s", settings)]).await;
    let error = report(&servers).source.error.unwrap();
    assert!(error.contains("HTTP+SSE") && error.contains("/mcp"), "{error}");
    serving.shutdown_background();
}

#[tokio::test]
async fn b3_a_call_that_a_server_turns_away_has_not_run_and_may_be_made_later() {
    for (status, again) in [(429, Some("7")), (429, None), (503, Some("7"))] {
        let (settings, serving) = at(move |asked, _| {
            (asked["method"] == "tools/call").then(|| {
                let status = StatusCode::from_u16(status).unwrap();
                again.map_or(status.into_response(), |again| {
                    (status, [("retry-after", again)]).into_response()
                })
            })
        });
        let breaker = BreakerSettings { failures: 2, rest: Duration::from_secs(30) };
        let registry = registry();
        let servers = settled(&registry, &[("s", McpServerSettings { breaker, ..settings })]).await;
        for _ in 0..4 {
            let error = call(&registry, "s.echo", json!({})).await.result.unwrap_err();
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Busy, true), "{error}");
            let expected = format!("the MCP server s has too much to do (HTTP {status})");
            assert!(error.message() == expected && error.feedback().contains("has not run"), "{error}");
            assert_eq!(error.retry_at().is_some(), again.is_some());
        }
        assert_eq!(report(&servers).source.breaker, BreakerState::Closed);
        serving.shutdown_background();
    }
}
