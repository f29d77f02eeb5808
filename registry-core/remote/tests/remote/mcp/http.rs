//! Servers at an address, in the newest revision of the protocol.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    http::StatusCode,
    response::IntoResponse,
    routing::{any, post},
};
use registry_core::{
    Caller, Permission, ToolCall,
    trace::{Trace, TraceParent},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    },
    service::{RequestContext, SubscriptionContext},
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::broadcast,
};
use toolrack_remote::{
    BreakerSettings, RemoteKey,
    mcp::{McpServerSettings, McpState},
};

use super::{call, names, registry, report, settled, until};

/// A server by the library's own hand.
#[derive(Clone)]
struct Modern {
    tools: Arc<Mutex<Vec<&'static str>>>,
    changed: broadcast::Sender<()>,
}

impl ServerHandler for Modern {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema: JsonObject = serde_json::from_value(json!({"type": "object"})).unwrap();
        let tools = self.tools.lock().unwrap();
        Ok(ListToolsResult::with_all_items(
            tools.iter().map(|name| Tool::new(*name, "Does something.", schema.clone())).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let said = Value::from(request.arguments.unwrap_or_default()).to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changed = self.changed.subscribe();
        loop {
            tokio::select! {
                _ = changed.recv() => context.sink().notify_tool_list_changed().await.unwrap(),
                () = context.cancelled() => return Ok(()),
            }
        }
    }
}

/// A server in a runtime of its own, with which its connections end too.
pub(super) fn serve(listener: std::net::TcpListener, router: Router) -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    listener.set_nonblocking(true).unwrap();
    runtime.spawn(async move { axum::serve(TcpListener::from_std(listener).unwrap(), router).await });
    runtime
}

fn router(modern: &Modern) -> Router {
    let modern = modern.clone();
    let sessions = Arc::new(LocalSessionManager::default());
    let config = StreamableHttpServerConfig::default();
    Router::new()
        .nest_service("/mcp", StreamableHttpService::new(move || Ok(modern.clone()), sessions, config))
}

#[tokio::test]
async fn b3_a_server_at_an_address_is_followed_lost_and_found() {
    let modern = Modern { tools: Arc::new(Mutex::new(vec!["echo"])), changed: broadcast::Sender::new(4) };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = serve(listener, router(&modern));
    let registry = registry();
    let settings = McpServerSettings::url(format!("http://{address}/mcp?token=tr_hidden"));
    let servers = settled(&registry, &[("h", settings)]).await;
    assert_eq!(report(&servers).protocol.as_deref(), Some("2026-07-28"), "{:?}", report(&servers));
    let echoed = call(&registry, "h.echo", json!({"a": 1})).await.result.unwrap();
    assert_eq!(echoed.value, json!("{\"a\":1}"));

    until(|| modern.changed.receiver_count() > 0).await;
    modern.tools.lock().unwrap().push("more");
    modern.changed.send(()).unwrap();
    until(|| names(&registry) == ["h.echo", "h.more"]).await;

    serving.shutdown_background();
    until(|| report(&servers).state == McpState::Away).await;
    let error = report(&servers).source.error.unwrap();
    assert!(!format!("{error} {:?}", report(&servers)).contains("tr_hidden"), "{error}");
    until(|| names(&registry).is_empty()).await;
    let listener = std::net::TcpListener::bind(address).unwrap();
    let serving = serve(listener, router(&modern));
    until(|| names(&registry) == ["h.echo", "h.more"]).await;
    call(&registry, "h.more", json!({})).await.result.unwrap();
    serving.shutdown_background();
}

#[tokio::test]
async fn b3_a_key_and_headers_are_sent_and_no_redirect_is_followed() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (keys, listener) = (Arc::clone(&seen), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let elsewhere = any(move |request: axum::extract::Request| {
        let sent = ["authorization", "x-team", "x-crate"]
            .map(|name| request.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned());
        keys.lock().unwrap().push((request.uri().path().to_owned(), sent));
        async { (StatusCode::TEMPORARY_REDIRECT, [("location", "/private")]).into_response() }
    });
    let address = listener.local_addr().unwrap();
    let serving = serve(listener, Router::new().fallback(elsewhere));
    let settings = McpServerSettings {
        headers: [("X-Team".to_owned(), "tools".to_owned())].into(),
        // The test runner sets this one.
        headers_env: [("X-Crate".to_owned(), "CARGO_PKG_NAME".to_owned())].into(),
        key: Some(RemoteKey::new("tr_key")),
        ..McpServerSettings::url(format!("http://{address}/mcp"))
    };
    let registry = registry();
    let servers = settled(&registry, &[("h", settings)]).await;
    assert!(report(&servers).source.error.is_some(), "{:?}", report(&servers));
    let seen = seen.lock().unwrap();
    assert!(
        seen.iter()
            .all(|(path, sent)| path == "/mcp" && *sent == ["Bearer tr_key", "tools", env!("CARGO_PKG_NAME")]),
        "{seen:?}"
    );
    serving.shutdown_background();
}

#[tokio::test]
async fn b3_a_server_that_wants_a_key_says_where_it_goes() {
    for (status, challenge) in [(401, true), (401, false), (403, true), (403, false)] {
        for key in [None, Some("tr_key")] {
            let refuse = any(move || async move {
                let mut refusal = StatusCode::from_u16(status).unwrap().into_response();
                if challenge {
                    let value = axum::http::HeaderValue::from_static("Bearer error=\"insufficient_scope\"");
                    refusal.headers_mut().insert("www-authenticate", value);
                }
                refusal
            });
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let serving = serve(listener, Router::new().fallback(refuse));
            let url = McpServerSettings::url(format!("http://{address}/mcp"));
            let settings = McpServerSettings { key: key.map(RemoteKey::new), ..url };
            let registry = registry();
            let servers = settled(&registry, &[("h", settings)]).await;
            let error = report(&servers).source.error.unwrap();
            let expected =
                if key.is_some() { "does not take its key" } else { "name its variable under `key_env`" };
            assert!(error.contains(expected), "{status} {challenge}: {error}");
            serving.shutdown_background();
        }
    }
}

#[tokio::test]
async fn k22_words_about_a_key_in_an_answer_are_no_status() {
    let refuse = any(|body: axum::body::Bytes| async move {
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let error = json!({"code": -32000, "message": "Auth required: HTTP 401 from the index behind me"});
        axum::Json(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).into_response()
    });
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = serve(listener, Router::new().fallback(refuse));
    let registry = registry();
    let settings = McpServerSettings::url(format!("http://{address}/mcp"));
    let servers = settled(&registry, &[("h", settings)]).await;
    let error = report(&servers).source.error.unwrap();
    assert!(error.contains("HTTP 401") && !error.contains("key_env"), "{error}");
    serving.shutdown_background();
}

/// Neither the caller nor the model gets to know where a server is, nor what its URL has in it; the operator does.
#[tokio::test]
async fn k6_where_an_mcp_server_is_is_shown_to_the_operator_alone() {
    let modern = Modern { tools: Arc::new(Mutex::new(vec!["echo"])), changed: broadcast::Sender::new(4) };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = serve(listener, router(&modern));
    let registry = registry();
    let settings = McpServerSettings {
        breaker: BreakerSettings { failures: 1, ..BreakerSettings::default() },
        ..McpServerSettings::url(format!("http://{address}/mcp?token=tr_hidden"))
    };
    let _servers = settled(&registry, &[("h", settings)]).await;
    serving.shutdown_background();
    let broken = call(&registry, "h.echo", json!({})).await.result.unwrap_err();
    let resting = call(&registry, "h.echo", json!({})).await.result.unwrap_err();
    assert!(broken.message().contains("the MCP server h did not answer the call"), "{broken}");
    assert!(resting.message().contains("is open until"), "{resting}");
    for error in [broken, resting] {
        let public = format!("{} {}", error.message(), error.feedback());
        assert!(!public.contains("127.0.0.1") && !public.contains("hidden"), "{public}");
        let detail = error.detail();
        assert!(detail.contains(&address.to_string()) && !detail.contains("hidden"), "{detail}");
    }
}

/// A server of an earlier revision that answers calls of `json` and `events` with very many values, and shows the `_meta` of calls of `fine`.
fn hoard() -> Router {
    let answer = |Json(asked): Json<Value>| async move {
        let values = format!("[{}{{}}]", "{},".repeat(600_000));
        let as_events = |data: String| {
            ([("content-type", "text/event-stream")], format!("data: {data}\n\n")).into_response()
        };
        let (id, called) = (&asked["id"], asked["params"]["name"].as_str().unwrap_or_default());
        let result = match asked["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "hoard", "version": "1"}}),
            "tools/list" => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                json!({"tools": (["json", "events", "fine"].map(tool))})
            }
            "tools/call" if called == "fine" => {
                json!({"content": [{"type": "text", "text": asked["params"]["_meta"].to_string()}]})
            }
            "tools/call" => {
                let values = format!(r#"{{"content": [], "structuredContent": {{"a": {values}}}}}"#);
                let message = format!(r#"{{"jsonrpc": "2.0", "id": {id}, "result": {values}}}"#);
                return match called {
                    "events" => as_events(message),
                    _ => ([("content-type", "application/json")], message).into_response(),
                };
            }
            _ if id.is_null() => return StatusCode::ACCEPTED.into_response(),
            _ => {
                let error = json!({"code": -32601, "message": "unknown"});
                return Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
            }
        };
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        if called == "fine" { as_events(message.to_string()) } else { Json(message).into_response() }
    };
    Router::new().route("/mcp", post(answer))
}

#[tokio::test]
async fn a23_a_message_over_http_has_so_many_values_and_no_more() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = serve(listener, hoard());
    let registry = registry();
    let servers = settled(&registry, &[("h", McpServerSettings::url(format!("http://{address}/mcp")))]).await;
    assert_eq!(report(&servers).source.error, None);
    let call = async |name: &str| call(&registry, name, json!({})).await.result;
    call("h.fine").await.unwrap();
    for name in ["h.json", "h.events"] {
        let error = call(name).await.unwrap_err();
        assert!(!error.message().is_empty(), "{name}");
        until(|| report(&servers).state == McpState::Connected).await;
    }
    call("h.fine").await.unwrap();
    serving.shutdown_background();
}

#[tokio::test]
async fn b21_a_server_is_told_in_which_span_it_is_called() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = serve(listener, hoard());
    let registry = registry();
    let _servers =
        settled(&registry, &[("h", McpServerSettings::url(format!("http://{address}/mcp")))]).await;
    let place: TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
    let context = registry.context(Caller::new("ada", Permission::Admin));
    let trace = Trace::new(place, None).with_state(Some("vendor=1"));
    let made = registry.execute(&context.with_trace(trace), ToolCall::new("h.fine", json!({}))).await;
    let result = made.result.unwrap();
    let meta = result.for_model();
    assert!(meta.contains(&place.to_string()) && meta.contains("vendor=1"), "{meta}");
    serving.shutdown_background();
}
