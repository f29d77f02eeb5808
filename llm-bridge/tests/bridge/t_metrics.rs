//! What `/metrics` says of calls, whatever their entry point: requirements B5, T3, B7.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::support::{Answer, Rack, Reply, Scraped, Setup, until, with_effect, within};
use registry_core::{Caller, Effect, Permission, ToolCall, ToolError, ToolPolicy, ToolResult};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

const CALLS: &str = "toolrack_calls_total";
const RETRIES: &str = "toolrack_call_retries_total";
const DURATIONS: &str = "toolrack_call_duration_seconds_count";

async fn scrape(rack: &Rack) -> Scraped {
    let answer = within(rack.client.get(rack.url("/metrics")).send()).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    Scraped::parse(&answer.text().await.unwrap())
}

async fn execute(rack: &Rack, tool: &str, arguments: Value) -> Value {
    let body = json!({"tool_name": tool, "arguments": arguments});
    within(rack.client.post(rack.url("/execute")).json(&body).send()).await.unwrap().json().await.unwrap()
}

/// A call through `/mcp`, in the revision that needs no session.
async fn mcp(rack: &Rack, tool: &str, arguments: Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = rack.client.post(rack.url("/mcp")).json(&body);
    let request = request.header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", "2026-07-28");
    let request = request.header("mcp-method", "tools/call").header("mcp-name", tool);
    within(async { request.send().await.unwrap().text().await }).await.unwrap()
}

fn seen(scraped: &Scraped, tool: &str, outcome: &str, source: &str) -> u64 {
    scraped.count(CALLS, &[("tool", tool), ("outcome", outcome), ("source", source)])
}

#[tokio::test]
async fn b5_each_call_counts_once_whatever_door_it_came_through() {
    let daily = ToolPolicy { daily_limit: 1, ..ToolPolicy::new() };
    let owners = ToolPolicy { permission: Permission::Owner, ..ToolPolicy::new() };
    let setup = Setup::new()
        .plain_tool("once", daily, |_| async { Ok(ToolResult::new("done")) })
        .plain_tool("owners", owners, |_| async { Ok(ToolResult::new("done")) })
        .plain_tool("fails", ToolPolicy::new(), |_| async { Err(ToolError::failed("no luck")) })
        .plain_tool("vain", ToolPolicy::new(), |_| async { Ok(ToolResult::unsuccessful("nothing there")) })
        .plain_tool("panics", ToolPolicy::new(), |_| async { panic!("boo") })
        .with(|setup| setup.caller = Caller::new("ada", Permission::Admin));
    let rack = setup.start([]).await;
    let before = scrape(&rack).await;
    assert!(!before.families.contains(CALLS) && !before.families.contains(DURATIONS));

    let sum = json!({"a": 2, "b": 3});
    for _ in 0..3 {
        assert_eq!(execute(&rack, "add", sum.clone()).await["success"], true);
    }
    execute(&rack, "add", json!({"a": "x"})).await;
    for tool in ["once", "once", "owners", "fails", "vain", "panics"] {
        execute(&rack, tool, json!({})).await;
    }
    rack.upstream.push(Answer::new().call("c1", "math.gcd", &json!({"a": 4, "b": 6})));
    rack.upstream.push(Answer::text(
        "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}</tool_call>",
    ));
    rack.upstream.push(Answer::text("Done."));
    assert_eq!(rack.ask(true).await.finish.as_deref(), Some("stop"));
    let reported = mcp(&rack, "add", sum.clone()).await;
    assert!(reported.contains("sum=5"), "{reported}");
    mcp(&rack, "nothing", json!({})).await;
    let context = rack.registry.context(Caller::new("bob", Permission::Guest));
    rack.registry.execute(&context, ToolCall::new("add", sum)).await;

    let after = scrape(&rack).await;
    for (tool, outcome, source, calls) in [
        ("add", "success", "http", 3),
        ("add", "invalid_arguments", "http", 1),
        ("once", "success", "http", 1),
        ("once", "tool_rate_limited", "http", 1),
        ("owners", "permission_denied", "http", 1),
        ("fails", "failed", "http", 1),
        ("vain", "unsuccessful", "http", 1),
        ("panics", "panicked", "http", 1),
        ("math.gcd", "success", "native", 1),
        ("add", "success", "text", 1),
        ("add", "success", "mcp", 1),
        ("unknown", "tool_not_found", "mcp", 1),
        ("add", "success", "library", 1),
    ] {
        assert_eq!(seen(&after, tool, outcome, source), calls, "{tool} {outcome} {source}");
    }
    assert_eq!(after.count(CALLS, &[]), 15);
    assert_eq!(rack.outcomes().len(), 15, "as many as the audit has");
    assert_eq!(after.count(CALLS, &[("tool", "add"), ("kind", "host")]), 7);
    assert_eq!(after.find(RETRIES, &[]), None);
    // Only those that ran took time.
    for (tool, ran) in [("add", 6), ("once", 1), ("fails", 1), ("vain", 1), ("panics", 1)] {
        assert_eq!(after.count(DURATIONS, &[("tool", tool)]), ran, "{tool}");
    }
    assert_eq!(after.find(DURATIONS, &[("tool", "owners")]), None);
    assert_eq!(after.find(DURATIONS, &[("tool", "unknown")]), None);

    assert_eq!(
        after.count("toolrack_upstream_requests_total", &[("upstream", "default"), ("outcome", "success")]),
        3
    );
    assert_eq!(after.count("toolrack_upstream_response_seconds_count", &[("upstream", "default")]), 3);
    assert_eq!(after.count("toolrack_tools", &[("kind", "host")]), 7);
    assert_eq!(after.count("toolrack_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1);
}

#[tokio::test]
async fn b5_names_that_models_make_up_are_one_series() {
    let rack = Setup::new().start([]).await;
    execute(&rack, "add", json!({})).await;
    let hostile = ["", "a\"b", "a\\", "line\nbreak", "{}", "toolrack.x", "😀", "unknown", "add ", "Add"];
    for name in hostile {
        execute(&rack, name, json!({})).await;
    }
    // That the metrics were read is seen the next time.
    scrape(&rack).await;
    let series = scrape(&rack).await.len();
    for at in 0..200 {
        execute(&rack, &format!("made.up_{at}"), json!({"a": 1})).await;
        rack.registry
            .execute(
                &rack.registry.context(Caller::new(format!("user{at}"), Permission::User)),
                ToolCall::new("x", json!({})),
            )
            .await;
    }
    let after = scrape(&rack).await;
    // One more for the entry point of the library.
    assert_eq!(after.len(), series + 1);
    assert_eq!(after.values(CALLS, "tool"), ["add", "unknown"].into());
    assert_eq!(seen(&after, "unknown", "tool_not_found", "http"), 200 + hostile.len() as u64);
    assert_eq!(after.count(CALLS, &[("tool", "unknown"), ("kind", "none")]), 400 + hostile.len() as u64);
}

#[tokio::test]
async fn b5_a_name_with_every_character_is_escaped() {
    let name = "odd\"name\\with\nall";
    let setup = Setup::bare().plain_tool(name, ToolPolicy::new(), |_| async { Ok(ToolResult::new("done")) });
    let rack = setup.start([]).await;
    execute(&rack, name, json!({})).await;
    assert_eq!(seen(&scrape(&rack).await, name, "success", "http"), 1);
}

#[tokio::test]
async fn m11_a_call_that_is_tried_again_counts_once_and_as_a_retry() {
    let failed_once = Arc::new(AtomicBool::new(false));
    let setup = Setup::bare().plain_tool("flaky", with_effect(Effect::Read), move |_| {
        let fails = !failed_once.swap(true, Ordering::SeqCst);
        async move {
            match fails {
                true => Err(ToolError::failed("try again").retryable()),
                false => Ok(ToolResult::new("done")),
            }
        }
    });
    let rack =
        setup.start([Answer::new().call("c1", "flaky", &json!({})).into(), Reply::text("Done.")]).await;
    rack.ask(true).await;
    let after = scrape(&rack).await;
    assert_eq!((seen(&after, "flaky", "failed", "native"), after.count(CALLS, &[])), (1, 1));
    let retried = [("tool", "flaky"), ("outcome", "success"), ("source", "native")];
    assert_eq!((after.count(RETRIES, &retried), after.count(RETRIES, &[])), (1, 1));
    assert_eq!(after.count(DURATIONS, &[("tool", "flaky")]), 2);
}

#[tokio::test]
async fn b7_calls_that_run_and_wait_are_seen_while_they_do() {
    let gate = Arc::new(Semaphore::new(0));
    let open = Arc::clone(&gate);
    let policy = ToolPolicy { max_concurrent: 1, ..ToolPolicy::new() };
    let setup = Setup::bare().plain_tool("slow", policy, move |_| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            tokio::time::sleep(Duration::from_millis(30)).await;
            Ok(ToolResult::new("done"))
        }
    });
    let rack = Arc::new(setup.start([]).await);
    let idle = scrape(&rack).await;
    assert_eq!(idle.find("toolrack_calls_running", &[]), Some(0.0));
    assert_eq!(idle.find("toolrack_tool_calls_running", &[]), None);
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let rack = Arc::clone(&rack);
            tokio::spawn(async move { execute(&rack, "slow", json!({})).await })
        })
        .collect();
    until(|| rack.registry.queues().all.waiting == 2).await;
    let busy = scrape(&rack).await;
    for (name, value) in [
        ("toolrack_calls_running", 1.0),
        ("toolrack_calls_waiting", 2.0),
        ("toolrack_tool_calls_running", 1.0),
        ("toolrack_tool_calls_waiting", 2.0),
    ] {
        let labels: &[_] = if name.contains("_tool_") { &[("tool", "slow")] } else { &[] };
        assert_eq!(busy.find(name, labels), Some(value), "{name}");
    }
    assert_eq!(busy.find(CALLS, &[]), None, "none has ended");
    open.add_permits(3);
    for call in calls {
        assert_eq!(within(call).await.unwrap()["success"], true);
    }
    let after = scrape(&rack).await;
    assert_eq!(after.find("toolrack_calls_running", &[]), Some(0.0));
    assert_eq!(after.find("toolrack_calls_waiting", &[]), Some(0.0));
    let bucket = |le| after.count("toolrack_call_duration_seconds_bucket", &[("tool", "slow"), ("le", le)]);
    assert_eq!((bucket("0.025"), bucket("+Inf")), (0, 3), "the time of waiting is not theirs");
    assert!(after.find("toolrack_call_duration_seconds_sum", &[]).unwrap() >= 0.09);
}

#[tokio::test]
async fn b5_a_model_server_that_fails_is_seen() {
    let rack = Setup::bare().start([Reply::error(500, "out of memory")]).await;
    rack.ask(false).await;
    let after = scrape(&rack).await;
    assert_eq!(
        after.count("toolrack_upstream_requests_total", &[("upstream", "default"), ("outcome", "refused")]),
        1
    );
    assert_eq!(after.find("toolrack_upstream_response_seconds_count", &[("upstream", "default")]), None);
}

#[tokio::test]
async fn b5_requests_are_counted_by_route_and_status() {
    let rack = Setup::new().start([]).await;
    for path in ["/healthz", "/healthz", "/made-up/7", "/made-up/8", "/api/chats/none"] {
        within(rack.client.get(rack.url(path)).send()).await.unwrap();
    }
    let after = scrape(&rack).await;
    for (route, status, requests) in
        [("/healthz", "200", 2), ("unknown", "404", 2), ("/api/chats/{id}", "404", 1)]
    {
        let labels = [("route", route), ("status", status)];
        assert_eq!(after.count("toolrack_http_requests_total", &labels), requests, "{route}");
    }
    assert_eq!(after.count("toolrack_http_response_seconds_count", &[("route", "/healthz")]), 2);
    assert_eq!(after.count("toolrack_store_up", &[]), 1);
    assert!(after.families.contains("toolrack_store_answer_seconds"));
}
