//! M7 to M9 and M11: a call on its way to a module and back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use registry_core::{
    Caller, Effect, ErrorKind, Origin, Permission, Resources, ToolCall, ToolContext, ToolResult,
    trace::{Trace, TraceParent},
};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;
use toolrack_remote::{
    BreakerSettings, BreakerState, RemoteKey,
    module::{Hops, MAX_HOPS, ModuleSettings, ModulesSettings},
};

use super::{
    Server, ada,
    peer::{Answer, Peer, done, manifest, tool},
    quick, until,
};

fn slow(pause: Duration) -> Answer {
    Answer::Later(pause, done("late").to_string())
}

#[tokio::test]
async fn m8_a_call_goes_to_the_module_under_its_own_name() {
    let peer = Peer::new("searcher", &[tool("searcher.web_search", "guest")]).await;
    let full = json!({"tool_name": "searcher.web_search", "success": true, "result": {"hits": 2}, "message": "Two.",
        "side_effects": ["cached:rust"], "audit": {"engine": "x"}});
    peer.set_execute(Answer::json(&full));
    let server = Server::with("research", &peer.url).await;
    let call = ToolCall::new("research.web_search", json!({"query": "rust"})).with_origin(Origin::Native);
    let outcome = server.registry.execute(&ada(), call).await;
    let expected = ToolResult::new(json!({"hits": 2})).with_message("Two.").with_side_effect("cached:rust");
    assert_eq!(outcome.result.as_ref().unwrap(), &expected.with_audit("engine", "x"));
    assert_eq!(outcome.to_reply().tool_name, "research.web_search");

    let request = &peer.calls()[0];
    let expected =
        json!({"tool_name": "searcher.web_search", "arguments": {"query": "rust"}, "user_id": "ada"});
    assert_eq!(request.body, expected);
    assert_eq!(request.headers["content-type"], "application/json");
    assert_eq!(request.headers["x-toolrack-hops"], "1");
    assert!(!request.headers.contains_key("authorization"));
}

#[tokio::test]
async fn b21_a_module_is_told_in_which_span_it_is_called() {
    let peer = Peer::new("m", &[tool("m.f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    let place: TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00".parse().unwrap();
    let context = ada().with_trace(Trace::new(place, None).with_state(Some("vendor=1")));
    let call = || ToolCall::new("m.f", json!({"query": "q"}));
    server.registry.execute(&context, call()).await;
    assert_eq!(peer.calls()[0].headers["traceparent"], place.to_string());
    assert_eq!(peer.calls()[0].headers["tracestate"], "vendor=1");
    server.registry.execute(&ada(), call()).await;
    assert!(!peer.calls()[1].headers.contains_key("traceparent"));
    assert!(!peer.calls()[1].headers.contains_key("tracestate"));
}

#[tokio::test]
async fn s11_a_user_id_that_a_model_makes_up_does_not_reach_a_module_with_an_open_schema() {
    let open = json!({"name": "f", "description": "", "required_permission": "guest",
        "input_schema": {"type": "object"}});
    let peer = Peer::new("m", &[open]).await;
    let server = Server::with("m", &peer.url).await;
    let arguments = json!({"query": "q", "user_id": "somebody"});
    server.registry.execute_tool("m.f", arguments.clone(), &ada(), None).await;
    assert_eq!(peer.calls()[0].body["arguments"], json!({"query": "q", "user_id": "ada"}));
    server.registry.execute_tool("m.f", arguments, &ToolContext::default(), None).await;
    assert_eq!(peer.calls()[1].body["arguments"], json!({"query": "q"}));
}

#[tokio::test]
async fn k7_users_of_two_tenants_never_go_by_one_id() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    let acme = server.registry.for_tenant("acme");
    for (registry, user) in [
        (&server.registry, "ada"),
        (&acme, "ada"),
        (&server.registry, "acme/ada"),
        (&server.registry, "acme%2Fada"),
        (&acme, "a/da"),
    ] {
        let context = ToolContext::new(Caller::new(user, Permission::User));
        registry.execute_tool("m.f", json!({}), &context, None).await;
    }
    let ids: Vec<_> = peer.calls().iter().map(|call| call.body["user_id"].clone()).collect();
    assert_eq!(ids, ["ada", "acme/ada", "acme%2Fada", "acme%252Fada", "acme/a%2Fda"]);
}

#[tokio::test]
async fn m9_a_caller_cannot_say_who_it_is() {
    let mut open = tool("f", "guest");
    open["parameters"] = json!([{"name": "user_id", "type": "string", "description": "", "required": false}]);
    let peer = Peer::new("m", &[open]).await;
    let server = Server::with("m", &peer.url).await;
    let forged = json!({"user_id": "root"});
    server.registry.execute_tool("m.f", forged.clone(), &ada(), None).await;
    let hers = json!({"tool_name": "f", "arguments": {"user_id": "ada"}, "user_id": "ada"});
    assert_eq!(peer.calls()[0].body, hers);

    // Nobody in particular has no id, and one server that calls for another's user says that user's.
    server.registry.execute_tool("m.f", forged.clone(), &ToolContext::default(), None).await;
    assert_eq!(peer.calls()[1].body, json!({"tool_name": "f", "arguments": {}}));
    let delegate =
        Caller::new("other-server", Permission::Admin).on_behalf_of(Caller::new("bob", Permission::User));
    server.registry.execute_tool("m.f", json!({}), &ToolContext::new(delegate), None).await;
    assert_eq!(peer.calls()[2].body["user_id"], "bob");
}

#[tokio::test]
async fn m8_a_key_is_sent_to_its_module_and_shown_nowhere() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let module = ModuleSettings { key: Some(RemoteKey::new("tr_hidden")), ..ModuleSettings::new(&peer.url) };
    let server = Server::new(quick(&[("m", module)]));
    server.modules.ready().await;
    server.call("m.f").await;
    let sent = |begin: &str| peer.requests(begin)[0].headers["authorization"].clone();
    assert_eq!([sent("GET /manifest"), sent("POST /execute")], ["Bearer tr_hidden", "Bearer tr_hidden"]);
    let shown =
        format!("{:?} {:?} {:?}", server.modules, server.modules.settings(), server.modules.reports());
    assert!(!shown.contains("tr_hidden"), "{shown}");
}

#[tokio::test]
async fn m8_errors_are_reported_in_the_seeds_words() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    for (answer, message, kind, retryable) in [
        (
            Answer::Http(500, "", "Internal Server Error".into()),
            "Module returned status 500: Internal Server Error",
            ErrorKind::Failed,
            true,
        ),
        (Answer::Http(503, "", String::new()), "Module returned status 503: ", ErrorKind::Failed, true),
        (
            Answer::Http(404, "", "{\"detail\":\"Not Found\"}".into()),
            "Module returned status 404: {\"detail\":\"Not Found\"}",
            ErrorKind::Failed,
            false,
        ),
        (
            Answer::Http(302, "location: http://127.0.0.1:1/\r\n", "moved".into()),
            "Module returned status 302: moved",
            ErrorKind::Failed,
            false,
        ),
        (
            Answer::json(&json!({"tool_name": "f", "success": false, "error": "No such file."})),
            "No such file.",
            ErrorKind::Failed,
            false,
        ),
        (
            Answer::json(
                &json!({"tool_name": "f", "success": false, "error": "Try again.", "retryable": true}),
            ),
            "Try again.",
            ErrorKind::Failed,
            true,
        ),
        (
            Answer::Http(200, "", "<html>".into()),
            "Tool execution error: the module's answer cannot be read: expected value at line 1 column 1",
            ErrorKind::Failed,
            false,
        ),
    ] {
        peer.set_execute(answer);
        let error = server.error("m.f").await;
        assert_eq!((error.message(), error.kind(), error.is_retryable()), (message, kind, retryable));
    }
    // A Toolrack refuses under a status that says why, and the reply says more.
    let refusal = json!({"tool_name": "f", "success": false, "error": "too often", "audit": {}, "retryable": false,
        "retry_at": "2026-03-02T00:00:00Z"});
    peer.set_execute(Answer::Http(429, "", refusal.to_string()));
    let error = server.error("m.f").await;
    assert_eq!(
        (error.message(), error.retry_at().unwrap().to_string().as_str()),
        ("too often", "2026-03-02T00:00:00Z")
    );
    let url = peer.url.clone();
    drop(peer);
    // The first finds its connection broken.
    let broken = server.error("m.f").await;
    assert!(broken.message().starts_with("Tool execution error: ") && broken.is_retryable(), "{broken}");
    let error = server.error("m.f").await;
    assert!(
        error.message().starts_with("Tool execution error: ")
            && error.message().contains("onnection refused"),
        "{error}"
    );
    assert!(error.is_retryable());
    assert!(
        !error.message().contains(&url["http://".len()..]),
        "the address is not the model's affair: {error}"
    );
}

#[tokio::test]
async fn m8_a_call_that_takes_too_long_is_reported_with_its_limit() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    peer.set_execute(slow(Duration::from_secs(60)));
    let modules = [("m", ModuleSettings::new(&peer.url)), ("slow", ModuleSettings::new(&peer.url))];
    let settings = ModulesSettings {
        module_timeout: Duration::from_secs(1),
        tool_execution_timeout: Duration::from_secs(2),
        slow_modules: ["slow".to_owned()].into(),
        ..quick(&modules)
    };
    let server = Server::new(settings);
    server.modules.ready().await;
    let began = Instant::now();
    let (usual, slow) = tokio::join!(server.error("m.f"), server.error("slow.f"));
    assert_eq!(usual.message(), "Tool execution timed out (1s).");
    assert_eq!(slow.message(), "Tool execution timed out (2s).");
    assert!(usual.kind() == ErrorKind::Timeout && usual.is_retryable());
    assert!(began.elapsed() < Duration::from_secs(20));
    let defaults = ModulesSettings::default();
    assert_eq!((defaults.module_timeout.as_secs(), defaults.tool_execution_timeout.as_secs()), (30, 120));
}

#[tokio::test]
async fn m11_a_failure_that_may_pass_is_tried_once_more_where_the_tool_only_reads() {
    let mut wipe = tool("wipe", "guest");
    wipe["effect"] = json!("destructive");
    let mut note = tool("note", "guest");
    note["effect"] = json!("write");
    let peer = Peer::new("m", &[tool("f", "guest"), note, wipe]).await;
    let reading = ModuleSettings { effect: Effect::Read, ..ModuleSettings::new(&peer.url) };
    let server = Server::new(quick(&[("m", reading)]));
    let registry =
        registry_core::Registry::builder().without_compiled().approve_destructive(false).build().unwrap();
    let modules = toolrack_remote::module::Modules::new(
        &registry,
        server.modules.settings().clone(),
        server.cache.clone(),
        server.cache.clone(),
    );
    modules.unwrap().ready().await;

    peer.set_execute(Answer::Http(502, "", "bad gateway".into()));
    let call =
        async |name: &str| registry.execute(&ada(), ToolCall::new(name, json!({})).with_retries(1)).await;
    assert!(call("m.f").await.result.unwrap_err().is_retryable());
    assert_eq!(peer.calls().len(), 2);
    assert!(call("m.note").await.result.is_err());
    assert!(call("m.wipe").await.result.is_err());
    assert_eq!(peer.calls().len(), 4);
    peer.set_execute(Answer::Http(400, "", "no".into()));
    assert!(call("m.f").await.result.is_err());
    assert_eq!(peer.calls().len(), 5);
    assert_eq!(registry.get("m.wipe").unwrap().policy().effect, Effect::Destructive);
}

#[tokio::test]
async fn m8_connections_are_used_again() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    for _ in 0..20 {
        assert!(server.call("m.f").await.is_success());
    }
    assert_eq!((peer.calls().len(), peer.connections()), (20, 1));
}

#[tokio::test]
async fn m8_a_call_that_is_cancelled_lets_go_of_the_module() {
    let gone = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&gone);
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    peer.set_execute(Answer::talk(move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            use tokio::io::AsyncReadExt;
            let _ = stream.read(&mut [0; 16]).await;
            seen.fetch_add(1, Ordering::SeqCst);
        }
    }));
    let settings = ModulesSettings {
        module_timeout: Duration::from_secs(30),
        ..quick(&[("m", ModuleSettings::new(&peer.url))])
    };
    let server = Server::new(settings);
    server.modules.ready().await;
    for _ in 0..10 {
        let stop = CancellationToken::new();
        let context = ada().with_cancellation(stop.clone());
        let (registry, calls) = (server.registry.clone(), peer.calls().len());
        let call =
            tokio::spawn(async move { registry.execute(&context, ToolCall::new("m.f", json!({}))).await });
        until(|| peer.calls().len() > calls).await;
        stop.cancel();
        assert_eq!(call.await.unwrap().result.unwrap_err().kind(), ErrorKind::Cancelled);
    }
    until(|| gone.load(Ordering::SeqCst) == 10).await;
    assert_eq!(
        server.modules.reports()[0].source.breaker,
        BreakerState::Closed,
        "it is no fault of the module"
    );
}

#[tokio::test]
async fn m8_no_more_calls_run_than_may_and_as_many_wait() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    peer.set_execute(slow(Duration::from_millis(200)));
    let module = ModuleSettings {
        concurrency: 2,
        timeout: Some(Duration::from_secs(5)),
        ..ModuleSettings::new(&peer.url)
    };
    let server = Arc::new(Server::new(quick(&[("m", module)])));
    server.modules.ready().await;
    let began = Instant::now();
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let server = Arc::clone(&server);
            tokio::spawn(async move { server.call("m.f").await })
        })
        .collect();
    let mut busy = 0;
    for call in calls {
        match call.await.unwrap().result {
            Ok(_) => {}
            Err(error) => {
                assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Busy, true));
                busy += 1;
            }
        }
    }
    assert_eq!((busy, peer.calls().len()), (2, 4));
    assert!(began.elapsed() >= Duration::from_millis(400), "two at a time: {:?}", began.elapsed());
}

fn breaking(url: &str) -> ModulesSettings {
    let breaker = BreakerSettings { failures: 3, rest: Duration::from_secs(30) };
    ModulesSettings { breaker, ..quick(&[("m", ModuleSettings::new(url))]) }
}

#[tokio::test]
async fn m8_a_module_that_fails_time_and_again_is_left_alone_and_tried_by_one() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::new(breaking(&peer.url));
    server.modules.ready().await;
    let state = || server.modules.reports()[0].source.breaker;
    peer.set_execute(Answer::Http(500, "", "oops".into()));
    for _ in 0..3 {
        assert_eq!(state(), BreakerState::Closed);
        server.call("m.f").await;
    }
    assert_eq!(state(), BreakerState::Open);
    let error = server.error("m.f").await;
    assert_eq!(
        error.message(),
        "the circuit of the module m is open until 2026-03-01T12:00:30Z, as its last calls failed: Module returned status 500: oops"
    );
    assert_eq!(error.retry_at(), Some("2026-03-01T12:00:30Z".parse().unwrap()));
    assert_eq!((error.kind(), error.is_retryable(), peer.calls().len()), (ErrorKind::Unavailable, false, 3));
    assert_eq!(server.names(), ["m.f"], "its tools stay");

    // The rest is over: one tries, the others wait for what it finds.
    server.clock.advance(30);
    peer.set_execute(Answer::Later(Duration::from_millis(100), done("ok").to_string()));
    let (first, second) = tokio::join!(server.call("m.f"), async {
        until(|| peer.calls().len() == 4).await;
        assert_eq!(state(), BreakerState::HalfOpen);
        server.call("m.f").await
    });
    assert!(first.is_success());
    assert!(second.result.unwrap_err().message().contains("while another call tries it"));
    assert_eq!(state(), BreakerState::Closed);
    assert!(server.call("m.f").await.is_success());
}

#[tokio::test]
async fn m8_a_call_that_has_waited_too_long_for_its_turn_says_nothing_about_the_module() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    peer.set_execute(slow(Duration::from_millis(300)));
    let timeout = Some(Duration::from_millis(450));
    let module = ModuleSettings { concurrency: 1, timeout, ..ModuleSettings::new(&peer.url) };
    let breaker = BreakerSettings { failures: 1, rest: Duration::from_secs(30) };
    let server = Server::new(ModulesSettings { breaker, ..quick(&[("m", module)]) });
    server.modules.ready().await;
    let (one, other) = tokio::join!(server.call("m.f"), server.call("m.f"));
    let failures = [one, other].into_iter().filter_map(|call| call.result.err());
    assert_eq!(failures.map(|error| error.kind()).collect::<Vec<_>>(), [ErrorKind::Timeout]);
    assert_eq!(server.modules.reports()[0].source.breaker, BreakerState::Closed);
}

#[tokio::test]
async fn m8_timeouts_count_as_failures_and_wrong_answers_do_not() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let settings = ModulesSettings { module_timeout: Duration::from_millis(50), ..breaking(&peer.url) };
    let server = Server::new(settings);
    server.modules.ready().await;
    for answer in [
        Answer::Http(404, "", "no".into()),
        Answer::Http(200, "", "garbage".into()),
        Answer::json(&json!({"success": false, "error": "no", "retryable": true})),
    ] {
        peer.set_execute(answer);
        for _ in 0..4 {
            server.call("m.f").await;
        }
        assert_eq!(server.modules.reports()[0].source.breaker, BreakerState::Closed);
    }
    peer.set_execute(slow(Duration::from_secs(60)));
    for _ in 0..3 {
        assert_eq!(server.error("m.f").await.message(), "Tool execution timed out (0.05s).");
    }
    assert_eq!(server.modules.reports()[0].source.breaker, BreakerState::Open);
}

#[tokio::test]
async fn m7_a_call_does_not_go_in_a_circle() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    let come_through = |hops| ada().with_resources(Resources::new().with(Hops(hops)));
    let call = || ToolCall::new("m.f", json!({}));
    assert!(server.registry.execute(&come_through(MAX_HOPS - 1), call()).await.is_success());
    assert_eq!(peer.calls()[0].headers["x-toolrack-hops"], MAX_HOPS.to_string());
    let error = server.registry.execute(&come_through(MAX_HOPS), call()).await.result.unwrap_err();
    assert!(error.message().contains("modules of each other"), "{error}");
    assert_eq!(peer.calls().len(), 1);
}

#[tokio::test]
async fn m8_arguments_are_checked_before_they_are_sent() {
    let nested = json!({"name": "f", "description": "", "required_permission": "guest", "input_schema": {"type": "object",
        "properties": {"at": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
        "required": ["at"]}});
    let peer = Peer::new("m", &[nested]).await;
    let server = Server::with("m", &peer.url).await;
    let call =
        async |arguments: Value| server.registry.execute(&ada(), ToolCall::new("m.f", arguments)).await;
    assert_eq!(call(json!({"at": {}})).await.result.unwrap_err().kind(), ErrorKind::InvalidArguments);
    assert!(peer.calls().is_empty());
    assert!(call(json!({"at": {"x": "3"}})).await.is_success());
    assert_eq!(peer.calls()[0].body["arguments"], json!({"at": {"x": 3}}));
}

#[tokio::test]
async fn m8_a_connection_that_breaks_off_in_the_middle_is_a_failure_that_may_pass() {
    let peer = Peer::with(
        Answer::json(&manifest("m", &[tool("f", "guest")])),
        Answer::talk(|mut stream| async move {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"success\":").await;
        }),
    )
    .await;
    let server = Server::with("m", &peer.url).await;
    let error = server.error("m.f").await;
    assert!(error.message().starts_with("Tool execution error: ") && error.is_retryable(), "{error}");
    peer.set_execute(Answer::talk(|stream| async move { drop(stream) }));
    let error = server.error("m.f").await;
    assert!(error.message().starts_with("Tool execution error: ") && error.is_retryable(), "{error}");
}
