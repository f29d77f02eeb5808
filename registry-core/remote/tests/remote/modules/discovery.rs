//! M1 to M7: finding modules and keeping what they have.

use std::time::{Duration, Instant};

use registry_core::{
    Permission, Registry, ToolPolicy, ToolResult, ToolSpec, handler_fn,
    store::{Kept, MANIFEST_TTL, ManifestCache, ManifestStore},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolrack_remote::{
    BreakerState,
    module::{ModuleSettings, Modules, RETRY},
};

use super::{
    HandClock, Server, TestCache, ada,
    peer::{Answer, Peer, manifest, tool},
    quick, until, user,
};

/// An address where nobody listens.
async fn dead() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// A module that takes every request and says nothing.
async fn silent() -> Peer {
    let nothing = Answer::talk(|stream| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    });
    Peer::with(nothing.clone(), nothing).await
}

#[tokio::test]
async fn m6_the_seeds_worked_example() {
    let research = Peer::new(
        "research",
        &[tool("research.web_search", "guest"), tool("research.fetch_webpage", "guest")],
    )
    .await;
    let files = [tool("file_manager.create_document", "guest"), tool("file_manager.delete_file", "user")];
    let files = Peer::new("file_manager", &files).await;
    let code = [tool("code_executor.run_python", "user"), tool("code_executor.run_shell", "admin")];
    let code = Peer::new("code_executor", &code).await;
    let scheduler = Peer::new("scheduler", &[tool("scheduler.add_job", "admin")]).await;
    let modules = [
        ("research", ModuleSettings::new(&research.url)),
        ("file_manager", ModuleSettings::new(&files.url)),
        ("code_executor", ModuleSettings::new(&code.url)),
        ("scheduler", ModuleSettings::new(&scheduler.url)),
    ];
    let server = Server::new(quick(&modules));
    server.modules.ready().await;

    let context = ada();
    let persona = context.caller().clone().only_modules(["research", "file_manager", "code_executor"]);
    let context = context.with_caller(persona);
    let names: Vec<_> =
        server.registry.select(&context).tools().iter().map(|t| t.name().to_owned()).collect();
    assert_eq!(
        names,
        [
            "code_executor.run_python",
            "file_manager.create_document",
            "file_manager.delete_file",
            "research.fetch_webpage",
            "research.web_search",
        ]
    );
    assert_eq!(
        server.error("code_executor.run_shell").await.kind(),
        registry_core::ErrorKind::PermissionDenied
    );

    let definition: Value =
        server.registry.get("research.web_search").unwrap().definition("research.web_search");
    assert_eq!(
        definition["function"]["parameters"],
        json!({"type": "object", "properties": {"query": {"type": "string", "description": "What for"}}, "required": []})
    );
}

#[tokio::test]
async fn m1_fifty_modules_of_which_ten_time_out_take_one_timeout() {
    let good = Peer::new("good", &[tool("f", "guest")]).await;
    let silent = silent().await;
    let named: Vec<(String, ModuleSettings)> = (0..50)
        .map(|n| (format!("m{n:02}"), ModuleSettings::new(if n % 5 == 0 { &silent.url } else { &good.url })))
        .collect();
    let named: Vec<_> = named.iter().map(|(name, module)| (name.as_str(), module.clone())).collect();
    let server = Server::new(quick(&named));
    let began = Instant::now();
    server.modules.ready().await;
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(500) && took < Duration::from_secs(4), "{took:?}");
    assert_eq!(server.registry.len(), 40);
    let silent: Vec<_> =
        server.modules.reports().into_iter().filter_map(|report| report.source.error).collect();
    assert_eq!(silent, vec!["it took longer than 0.5 s"; 10]);
}

#[tokio::test]
async fn m4_a_hundred_first_requests_ask_each_module_once() {
    let slow = Answer::Later(Duration::from_millis(100), manifest("m", &[tool("f", "guest")]).to_string());
    let peer = Peer::with(slow, Answer::json(&json!({}))).await;
    let server =
        Server::new(quick(&[("m", ModuleSettings::new(&peer.url)), ("n", ModuleSettings::new(&peer.url))]));
    let requests: Vec<_> = (0..100)
        .map(|_| {
            let (modules, registry) = (server.modules.clone(), server.registry.clone());
            tokio::spawn(async move {
                modules.ready().await;
                registry.len()
            })
        })
        .collect();
    for request in requests {
        assert_eq!(request.await.unwrap(), 2);
    }
    assert_eq!(peer.manifests_asked(), 2);
    assert_eq!(peer.requests("GET /manifest ")[0].headers["x-toolrack-hops"], "1");
}

#[tokio::test]
async fn m4_who_wants_a_refresh_at_the_same_time_shares_one() {
    let slow = Answer::Later(Duration::from_millis(50), manifest("m", &[]).to_string());
    let peer = Peer::with(slow, Answer::json(&json!({}))).await;
    let server = Server::with("m", &peer.url).await;
    let refreshes: Vec<_> = (0..50)
        .map(|_| {
            let modules = server.modules.clone();
            tokio::spawn(async move { modules.refresh().await.len() })
        })
        .collect();
    for refresh in refreshes {
        assert_eq!(refresh.await.unwrap(), 1);
    }
    // The one at the start, one for those who came first, and one for those who came while that was running.
    assert!(peer.manifests_asked() <= 3, "{}", peer.manifests_asked());
    server.modules.refresh().await;
    assert!(peer.manifests_asked() >= 3);
}

#[tokio::test]
async fn m3_a_start_takes_the_cache_and_asks_nobody() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let (clock, cache) = (HandClock::new(), TestCache::new());
    let settings = quick(&[("m", ModuleSettings::new(&peer.url))]);
    Server::start(settings.clone(), &clock, &cache).modules.ready().await;
    assert_eq!(peer.manifests_asked(), 1);

    clock.advance(60);
    let second = Server::start(settings, &clock, &cache);
    second.modules.ready().await;
    assert_eq!(second.names(), ["m.f"]);
    assert_eq!(peer.manifests_asked(), 1);
    assert_eq!(second.modules.reports()[0].age, Some(60));
    assert_eq!(second.call("m.f").await.for_model(), "done");
}

#[tokio::test]
async fn m2_the_cache_has_the_manifest_as_the_module_gave_it() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    let kept = server.cache.get("m").await.unwrap().unwrap();
    assert_eq!(kept, manifest("m", &[tool("f", "guest")]).to_string());
    assert!(server.cache.kept("m", Kept::LastGood).await.unwrap().is_some());
}

#[tokio::test]
async fn m3_tools_stay_while_the_module_is_away_also_over_a_restart() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let (clock, cache) = (HandClock::new(), TestCache::new());
    let settings = quick(&[("m", ModuleSettings::new(&peer.url))]);
    let server = Server::start(settings.clone(), &clock, &cache);
    server.modules.ready().await;
    drop(peer);

    clock.advance(MANIFEST_TTL.as_secs());
    cache.expire();
    server.modules.ready().await;
    until(|| server.modules.reports()[0].source.error.is_some()).await;
    assert_eq!(server.names(), ["m.f"]);
    let error = server.error("m.f").await;
    assert!(error.message().starts_with("Tool execution error: "), "{error}");

    let restarted = Server::start(settings, &clock, &cache);
    restarted.modules.ready().await;
    assert_eq!(restarted.names(), ["m.f"], "the hour says when to ask again, not when to forget");
    assert_eq!(restarted.modules.reports()[0].age, Some(3600));
}

#[tokio::test]
async fn m3_after_an_hour_it_asks_again_by_itself() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    peer.set_tools("m", &[tool("g", "guest")]);
    server.clock.advance(MANIFEST_TTL.as_secs() - 1);
    server.cache.expire();
    server.modules.ready().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.names(), ["m.f"], "not before its time");

    server.clock.advance(1);
    server.modules.ready().await;
    until(|| server.names() == ["m.g"]).await;
    assert_eq!(peer.manifests_asked(), 2);
}

#[tokio::test]
async fn m3_after_an_hour_it_reads_the_cache_first() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    // Another server has asked meanwhile.
    server.cache.put_text("m", manifest("m", &[tool("h", "guest")]).to_string());
    server.clock.advance(MANIFEST_TTL.as_secs());
    server.modules.ready().await;
    until(|| server.names() == ["m.h"]).await;
    assert_eq!(peer.manifests_asked(), 1);
}

#[tokio::test]
async fn m4_a_failure_is_kept_for_a_while() {
    let url = dead().await;
    let server = Server::with("m", &url).await;
    assert!(server.modules.reports()[0].source.error.as_ref().unwrap().contains("onnection refused"));
    // Nobody waits again for a module that does not answer.
    let server = Server::with("m", &silent().await.url).await;
    let began = Instant::now();
    for _ in 0..100 {
        server.clock.advance(1);
        server.modules.ready().await;
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn m4_a_module_that_comes_up_is_found_after_the_pause_or_at_once_when_asked() {
    let peer = Peer::with(Answer::Http(503, "", "starting".into()), Answer::json(&json!({}))).await;
    let server = Server::with("m", &peer.url).await;
    assert_eq!(
        server.modules.reports()[0].source.error.as_deref(),
        Some("Module returned status 503: starting")
    );
    server.modules.ready().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(peer.manifests_asked(), 1, "not twice in a second");
    peer.set_tools("m", &[tool("f", "guest")]);
    server.clock.advance(RETRY.as_secs());
    server.modules.ready().await;
    until(|| server.names() == ["m.f"]).await;

    peer.set_tools("m", &[tool("f", "guest"), tool("g", "guest")]);
    let reports = server.modules.refresh().await;
    assert_eq!(server.names(), ["m.f", "m.g"]);
    let report = &reports[0];
    assert_eq!((report.source.tools, report.source.error.as_ref(), report.age), (2, None, Some(0)));
    assert_eq!((report.source.breaker, report.version.as_deref()), (BreakerState::Closed, Some("1.0.0")));
    assert_eq!(report.url, peer.url);
}

#[tokio::test]
async fn s4_a_module_that_was_not_there_yet_is_asked_again_by_the_first_request_once_for_all() {
    let late = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = late.local_addr().unwrap();
    drop(late);
    let server = Server::with("m", &format!("http://{address}")).await;
    assert!(server.modules.reports()[0].source.error.is_some());

    let peer = Peer::at(address, "m", &[tool("f", "guest")]).await;
    server.clock.advance(3);
    let requests = (0..100).map(|_| server.modules.ready());
    futures_util::future::join_all(requests).await;
    assert_eq!((server.names(), peer.manifests_asked()), (vec!["m.f".to_owned()], 1));
}

#[tokio::test]
async fn s8_a_call_of_a_module_that_was_never_reached_is_answered_in_the_seeds_words() {
    let url = dead().await;
    let server = Server::with("m", &url).await;
    let error = server.error("m.f").await;
    assert!(error.message().starts_with("Tool execution error: "), "{error}");
    assert!(error.is_retryable() && error.message().contains("onnection refused"), "{error}");
    assert!(!error.message().contains("127.0.0.1"), "{error}");
    let persona = ada().caller().clone().only_modules(["other"]);
    let elsewhere = server.registry.execute_tool("m.f", json!({}), &ada().with_caller(persona), None).await;
    assert_eq!(elsewhere.result.unwrap_err().message(), "The module m has no tool named f.");
}

#[tokio::test]
async fn m2_a_cache_that_is_away_costs_no_tool() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let (clock, cache) = (HandClock::new(), TestCache::new());
    let settings = quick(&[("m", ModuleSettings::new(&peer.url))]);
    let server = Server::start(settings.clone(), &clock, &cache);
    server.modules.ready().await;
    cache.set_down(true);
    clock.advance(MANIFEST_TTL.as_secs());
    server.modules.ready().await;
    until(|| peer.manifests_asked() == 2).await;
    assert_eq!(server.call("m.f").await.for_model(), "done");
    let started_without = Server::start(settings, &clock, &cache);
    started_without.modules.ready().await;
    assert_eq!(started_without.names(), ["m.f"]);
    cache.set_down(false);
    assert_eq!(server.modules.refresh().await[0].source.error, None);
    assert_eq!(server.names(), ["m.f"]);
}

#[tokio::test]
async fn c3_a_tool_named_like_one_of_this_server_is_left_out_and_reported() {
    let peer = Peer::new("m", &[tool("f", "guest"), tool("g", "guest")]).await;
    let server = Server::new(quick(&[("m", ModuleSettings::new(&peer.url))]));
    let ours = handler_fn(|_, _| async { Ok(ToolResult::new("ours")) });
    server
        .registry
        .register(ToolSpec::new("m.f", json!({"type": "object"})), ToolPolicy::new(), Some(ours))
        .unwrap();
    server.modules.ready().await;
    assert_eq!(server.call("m.f").await.for_model(), "ours");
    let report = &server.modules.reports()[0];
    assert_eq!(
        report.source.duplicates,
        [format!(
            "two tools are named m.f: host stays, module m at {} is left out; rename one of them",
            peer.url
        )]
    );
    server.registry.remove("m.f");
    assert_eq!(server.call("m.f").await.for_model(), "done");
    assert!(server.modules.reports()[0].source.duplicates.is_empty());
}

#[tokio::test]
async fn m7_unknown_names_are_reported_in_fixed_words() {
    let peer = Peer::new("research", &[tool("research.web_search", "guest")]).await;
    let server = Server::with("research", &peer.url).await;
    let format = server.error("xyz").await;
    assert_eq!(format.message(), "Invalid tool name format: xyz. Expected 'module.tool_name'.");
    assert_eq!(server.error("xyz.f").await.message(), "Unknown module: xyz");
    let near = server.error("research.web_serch").await;
    assert_eq!(near.nearest(), ["research.web_search"]);
}

#[tokio::test]
async fn m5_a_tool_of_unknown_level_is_the_owners() {
    let peer = Peer::new("m", &[tool("f", "superuser")]).await;
    let server = Server::with("m", &peer.url).await;
    let may = |level| server.registry.select(&user(level)).tools().len();
    assert_eq!((may(Permission::Admin), may(Permission::Owner)), (0, 1));
    let fault = &server.modules.reports()[0].source.faults[0];
    assert!(
        fault.taken && fault.message.contains("\"superuser\"") && fault.message.contains("owner"),
        "{fault:?}"
    );
}

#[tokio::test]
async fn l5_every_tenant_has_the_modules() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    let other = server.registry.for_tenant("other");
    assert_eq!(other.execute_tool("m.f", json!({}), &ada(), None).await.for_model(), "done");
    peer.set_tools("m", &[tool("g", "guest")]);
    server.modules.refresh().await;
    assert!(other.get("m.f").is_none() && other.get("m.g").is_some());
}

#[tokio::test]
async fn m12_a_wrong_module_is_reported_with_its_name() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    for (name, url) in [("a.b", "http://a"), ("a", "nowhere"), ("local", "http://a")] {
        let settings = quick(&[(name, ModuleSettings::new(url))]);
        let error = Modules::new(&registry, settings, TestCache::new(), TestCache::new()).unwrap_err();
        assert!(error.to_string().starts_with(&format!("module_services.{name}: ")), "{error}");
    }
}
