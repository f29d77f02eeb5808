//! Calls, and the checks around them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use registry_core::{
    Caller, Content, Effect, ErrorKind, Permission, Query, Registry, ToolCall, ToolPolicy, ToolResult,
    ToolSpec,
    clock::Clock,
    guard::audit::{MemoryAudit, Phase},
    handler_fn,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolrack_remote::{BreakerSettings, BreakerState, mcp::McpServerSettings};

use super::{
    ada, call, names,
    peer::{Peer, tool},
    registry, report, settled, until,
};

#[tokio::test]
async fn b3_a_servers_tools_appear_and_are_called_checked_and_audited() {
    let audit = Arc::new(MemoryAudit::new(100));
    let registry = Registry::builder().without_compiled().audit(audit.clone()).build().unwrap();
    let mut echo = tool("echo");
    echo["title"] = "Echo".into();
    echo["inputSchema"] =
        json!({"type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]});
    echo["outputSchema"] = json!({"type": "object"});
    let peer = Peer::new(&[echo]);
    let limited = McpServerSettings { daily_limit: 2, ..peer.settings() };
    let servers = settled(&registry, &[("s", limited)]).await;
    let found = registry.get("s.echo").unwrap();
    assert_eq!((found.module(), found.spec().title.as_deref()), ("s", Some("Echo")));
    assert_eq!(
        (found.policy().effect, found.spec().output_schema.clone()),
        (Effect::Write, json!({"type": "object"}))
    );
    assert!(found.source().to_string().contains("MCP server s"), "{}", found.source());
    let known = report(&servers);
    assert_eq!(
        (known.source.tools, known.protocol.as_deref(), known.server.as_deref()),
        (1, Some("2025-06-18"), Some("peer 1.0"))
    );

    let guest = registry.context(Caller::default());
    let refused = registry.execute(&guest, ToolCall::new("s.echo", json!({"times": 1}))).await;
    assert_eq!(refused.result.unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert!(
        registry.search(&Query::text("echo"), &guest).is_empty(),
        "a listing shows no more than a call lets"
    );
    let wrong = call(&registry, "s.echo", json!({"times": "often"})).await;
    assert_eq!(wrong.result.unwrap_err().kind(), ErrorKind::InvalidArguments);
    assert!(peer.heard("tools/call").is_empty(), "what is refused does not reach the server");

    let echoed = call(&registry, "s.echo", json!({"times": "3"})).await;
    assert_eq!(echoed.result.unwrap().value, json!("{\"times\":3}"), "coerced as for any tool");
    assert!(!peer.heard("tools/call")[0].to_string().contains("ada"), "who the user is stays here");
    call(&registry, "s.echo", json!({"times": 1})).await.result.unwrap();
    let third = call(&registry, "s.echo", json!({"times": 1})).await;
    assert_eq!(third.result.unwrap_err().kind(), ErrorKind::ToolRateLimited);
    let outcomes = audit.records().into_iter().filter(|record| record.phase == Phase::Outcome);
    assert_eq!(outcomes.filter(|record| record.success == Some(true) && record.tool == "s.echo").count(), 2);
}

#[tokio::test]
async fn b3_results_of_every_kind_arrive() {
    let all = ["structured", "said_twice", "blob", "picture", "fails", "huge", "gone"].map(tool);
    let peer = Peer::new(&all);
    let registry = registry();
    let _servers = settled(&registry, &[("s", peer.settings())]).await;
    let structured = call(&registry, "s.structured", json!({})).await.result.unwrap();
    assert_eq!(structured, ToolResult::new(json!({"degrees": 21})));
    let both = call(&registry, "s.said_twice", json!({})).await.result.unwrap();
    assert_eq!((both.value, both.content), (json!({"fileName": "a"}), vec![Content::text("THE FILE")]));
    let blob = call(&registry, "s.blob", json!({})).await.result.unwrap();
    assert!(blob.for_model().contains("words") && blob.for_model().contains("`blob`"), "{blob:?}");
    assert!(blob.content.iter().any(|part| matches!(part, Content::Image { .. })), "{blob:?}");
    let picture = call(&registry, "s.picture", json!({})).await.result.unwrap();
    assert_eq!(picture.value, json!("A cat."));
    assert!(matches!(&picture.content[..], [Content::Image { mime_type, .. }] if mime_type == "image/png"));
    let failed = call(&registry, "s.fails", json!({})).await.result.unwrap_err();
    assert_eq!((failed.kind(), failed.feedback()), (ErrorKind::Failed, "The disk is full."));
    let huge = call(&registry, "s.huge", json!({})).await.result.unwrap_err();
    assert!(huge.message().contains("larger than"), "{huge}");
    let gone = call(&registry, "s.gone", json!({})).await.result.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::ToolNotFound, "{gone}");
}

#[tokio::test]
async fn b7_progress_reaches_the_caller() {
    let peer = Peer::new(&[tool("works")]);
    let registry = registry();
    let _servers = settled(&registry, &[("s", peer.settings())]).await;
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let context = ada(&registry).with_events(Arc::new(move |event| sink.lock().unwrap().push(event)));
    let done = registry.execute(&context, ToolCall::new("s.works", json!({}))).await;
    assert_eq!(done.result.unwrap().value, json!("done"));
    let events = events.lock().unwrap();
    assert!(!events.is_empty());
    assert!(events.iter().all(|event| event.tool_name == "s.works"), "{events:?}");
    let words: Vec<_> = events.iter().map(|event| (event.message.as_str(), event.progress)).collect();
    // Its words come over tasks of their own, so that the last may be heard first; then the one before is old.
    assert!(
        words.iter().all(|word| [("quarter ", Some(0.25)), ("half", Some(0.5))].contains(word)),
        "{words:?}"
    );
}

#[tokio::test]
async fn b7_a_call_that_is_cancelled_or_late_is_cancelled_there_too() {
    let peer = Peer::new(&[tool("waits")]);
    let registry = registry();
    let quick = McpServerSettings { timeout: Duration::from_millis(300), ..peer.settings() };
    let servers = settled(&registry, &[("s", quick)]).await;
    let late = call(&registry, "s.waits", json!({})).await.result.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout);
    until(|| peer.heard("notifications/cancelled").len() == 1).await;

    let stop = CancellationToken::new();
    let context = ada(&registry).with_cancellation(stop.clone());
    let calling = registry.execute(&context, ToolCall::new("s.waits", json!({})));
    let (cancelled, ()) = tokio::join!(calling, async {
        until(|| peer.heard("tools/call").len() == 2).await;
        stop.cancel();
    });
    assert_eq!(cancelled.result.unwrap_err().kind(), ErrorKind::Cancelled);
    until(|| peer.heard("notifications/cancelled").len() == 2).await;
    let ids: Vec<Value> = peer.heard("tools/call").iter().map(|call| call["id"].clone()).collect();
    let cancelled = peer.heard("notifications/cancelled");
    assert_eq!(cancelled.iter().map(|word| word["params"]["requestId"].clone()).collect::<Vec<_>>(), ids);
    assert_eq!(
        (report(&servers).source.tools, peer.connections.load(std::sync::atomic::Ordering::SeqCst)),
        (1, 1),
        "a slow call loses no connection"
    );
}

#[tokio::test]
async fn b3_what_a_server_asks_for_is_declined() {
    let peer = Peer::new(&[tool("asks")]);
    let registry = registry();
    let quick = McpServerSettings { timeout: Duration::from_millis(300), ..peer.settings() };
    let _servers = settled(&registry, &[("s", quick)]).await;
    assert_eq!(peer.heard("initialize")[0]["params"]["capabilities"], json!({}), "nothing is promised");
    call(&registry, "s.asks", json!({})).await.result.unwrap_err();
    let heard = peer.heard.lock().unwrap();
    let answer = heard.iter().find(|message| message["id"] == "e1").unwrap();
    assert_eq!(answer["result"]["action"], "decline", "{answer}");
}

#[tokio::test]
async fn b3_more_calls_than_a_server_may_have_wait_and_are_turned_away() {
    let peer = Peer::new(&[tool("waits")]);
    let registry = registry();
    let narrow = McpServerSettings { concurrency: 1, timeout: Duration::from_millis(500), ..peer.settings() };
    let _servers = settled(&registry, &[("s", narrow)]).await;
    let calls = (0..4).map(|_| call(&registry, "s.waits", json!({})));
    let kinds: Vec<_> = futures_util::future::join_all(calls)
        .await
        .into_iter()
        .map(|done| done.result.unwrap_err().kind())
        .collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == ErrorKind::Busy).count(), 2, "{kinds:?}");
    // One at a time; the second may get its turn in the moment in which the first is given up.
    assert!((1..=2).contains(&peer.heard("tools/call").len()));
}

#[tokio::test]
async fn b3_a_name_belongs_to_the_first_that_has_it() {
    let registry = registry();
    let host = handler_fn(|_, _| async { Ok(ToolResult::new("the host's")) });
    let spec = ToolSpec::new("s.echo", json!({"type": "object"}));
    registry.register(spec, ToolPolicy::new(), Some(host)).unwrap();
    let (one, two) = (Peer::new(&[tool("echo"), tool("b")]), Peer::new(&[tool("echo")]));
    let servers = settled(&registry, &[("s", one.settings()), ("t", two.settings())]).await;
    assert_eq!(call(&registry, "s.echo", json!({})).await.result.unwrap().value, json!("the host's"));
    assert_eq!(
        call(&registry, "t.echo", json!({})).await.result.unwrap().value,
        json!("{}"),
        "no clash between servers"
    );
    let duplicates = report(&servers).source.duplicates;
    assert!(duplicates.len() == 1 && duplicates[0].contains("MCP server s"), "{duplicates:?}");
    assert_eq!(names(&registry), ["s.b", "s.echo", "t.echo"]);
}

#[tokio::test]
async fn b3_a_bad_definition_costs_that_tool_alone() {
    let mut hidden = tool("hidden");
    hidden["description"] = "Adds.\u{e0049}\u{e0067}\u{e006e}".into();
    let mut schema = tool("schema");
    schema["inputSchema"] = json!("none");
    let mut size = tool("size");
    size["description"] = "x".repeat(70_000).into();
    let peer = Peer::new(&[hidden, schema, size, tool("get weather"), tool("echo")]);
    let registry = registry();
    let servers = settled(&registry, &[("s", peer.settings())]).await;
    assert_eq!(names(&registry), ["s.echo", "s.get_weather"]);
    let faults: Vec<_> =
        report(&servers).source.faults.into_iter().map(|fault| (fault.tool, fault.message)).collect();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults.iter().any(|(tool, fault)| tool == "hidden" && fault.contains("U+E0049")), "{faults:?}");
    let weather = call(&registry, "s.get_weather", json!({})).await.result.unwrap_err();
    assert!(weather.message().contains("Unknown tool: get weather"), "asked for by its own name: {weather}");
}

#[tokio::test]
async fn b3_ten_thousand_tools_are_read_and_a_thousand_taken() {
    let many: Vec<_> = (0..10_000).map(|number| tool(&format!("t{number:05}"))).collect();
    let peer = Peer::new(&many);
    let registry = registry();
    let servers = settled(&registry, &[("s", peer.settings())]).await;
    assert_eq!(names(&registry).len(), 1000);
    assert!(report(&servers).source.faults[0].message.contains("`allow`"));
    let level = registry.get("s.t00000").unwrap().policy().permission;
    assert_eq!(level, Permission::User);
}

#[tokio::test(start_paused = true)]
async fn m8_a_server_that_fails_time_and_again_is_left_alone_and_tried_with_one_call() {
    let peer = Peer::new(&[tool("echo"), tool("waits"), tool("fails")]);
    let clock = Arc::new(HandClock::default());
    let registry = Registry::builder().without_compiled().clock(clock.clone()).build().unwrap();
    let breaker = BreakerSettings { failures: 2, rest: Duration::from_secs(30) };
    let quick = McpServerSettings { timeout: Duration::from_millis(200), breaker, ..peer.settings() };
    let servers = settled(&registry, &[("s", quick)]).await;
    for _ in 0..4 {
        call(&registry, "s.fails", json!({})).await.result.unwrap_err();
    }
    assert_eq!(report(&servers).source.breaker, BreakerState::Closed, "an error is an answer");
    for _ in 0..2 {
        let late = call(&registry, "s.waits", json!({})).await.result.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout);
    }
    assert_eq!(report(&servers).source.breaker, BreakerState::Open);
    let asked = peer.heard("tools/call").len();
    let resting = call(&registry, "s.echo", json!({})).await.result.unwrap_err();
    assert_eq!(resting.kind(), ErrorKind::Unavailable);
    assert!(resting.message().contains("the circuit of the MCP server s is open until"), "{resting}");
    assert!(resting.retry_at().is_some());
    assert_eq!(peer.heard("tools/call").len(), asked, "it is not asked");
    clock.advance(31);
    call(&registry, "s.echo", json!({})).await.result.unwrap();
    assert_eq!(report(&servers).source.breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn b3_a_call_that_waits_for_a_person_on_the_other_side_is_made_again_until_they_have_answered() {
    let destructive = |name: &str| {
        let mut tool = tool(name);
        tool["annotations"] = json!({"destructiveHint": true});
        tool
    };
    let peer = Peer::new(&[destructive("approved"), destructive("never_approved")]);
    let registry = Registry::builder().without_compiled().approve_destructive(false).build().unwrap();
    let _servers = settled(&registry, &[("s", peer.settings())]).await;
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let context = ada(&registry).with_events(Arc::new(move |event| sink.lock().unwrap().push(event)));
    let done = registry.execute(&context, ToolCall::new("s.approved", json!({}))).await;
    assert_eq!(done.result.unwrap().value, json!("done"));
    let calls = peer.heard("tools/call");
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[0]["params"]["_meta"]["toolrack/approvalWaitMs"], 15_000, "half the time there is");
    let events = events.lock().unwrap().clone();
    let words: Vec<_> = events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(words, ["Waiting for a person to approve approved on s"]);

    let begun = tokio::time::Instant::now();
    let never = call(&registry, "s.never_approved", json!({})).await.result.unwrap_err();
    assert_eq!((never.kind(), never.message()), (ErrorKind::ApprovalPending, "A person has to approve it."));
    assert!((300..=331).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

/// A clock that a test moves.
#[derive(Default)]
struct HandClock(Mutex<Timestamp>);

impl HandClock {
    fn advance(&self, seconds: u64) {
        let mut now = self.0.lock().unwrap();
        *now = now.checked_add(Duration::from_secs(seconds)).unwrap();
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

#[tokio::test]
async fn m8_slow_calls_of_one_user_keep_a_server_from_nobody_else() {
    let peer = Peer::new(&[tool("waits"), tool("echo")]);
    let registry = registry();
    let breaker = BreakerSettings { failures: 3, rest: Duration::from_secs(30) };
    let quick = McpServerSettings { timeout: Duration::from_millis(500), breaker, ..peer.settings() };
    let servers = settled(&registry, &[("s", McpServerSettings { concurrency: 4, ..quick })]).await;
    let bob = registry.context(Caller::new("bob", Permission::User));
    let echo = || registry.execute(&bob, ToolCall::new("s.echo", json!({})));
    let slow = (0..10).map(|_| call(&registry, "s.waits", json!({})));
    let (slow, ()) = tokio::join!(futures_util::future::join_all(slow), async {
        until(|| peer.heard("tools/call").len() == 2).await;
        echo().await.result.unwrap();
    });
    let kinds: Vec<_> = slow.into_iter().map(|done| done.result.unwrap_err().kind()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == ErrorKind::Busy).count(), 2, "{kinds:?}");
    // Her calls that took too long are hers.
    for _ in 0..3 {
        call(&registry, "s.waits", json!({})).await.result.unwrap_err();
    }
    assert_eq!(report(&servers).source.breaker, BreakerState::Open);
    assert_eq!(call(&registry, "s.echo", json!({})).await.result.unwrap_err().kind(), ErrorKind::Unavailable);
    echo().await.result.unwrap();
}
