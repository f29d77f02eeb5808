//! Servers that change, go, come back, or never come. Time stands still where nothing happens.

use std::{sync::atomic::Ordering, time::Duration};

use registry_core::ErrorKind;
use serde_json::json;
use tokio::time::{Instant, sleep};
use toolrack_remote::mcp::{GRACE, McpServerSettings, McpState, PAUSES};

use super::{
    call, names,
    peer::{Peer, tool},
    registry, report, settled, start, until,
};
use crate::log::Log;

#[tokio::test(start_paused = true)]
async fn b3_the_tools_follow_list_changed_over_all_pages() {
    let peer = Peer::new(&[tool("a"), tool("b"), tool("c")]);
    peer.page.store(2, Ordering::SeqCst);
    let registry = registry();
    let servers = settled(&registry, &[("s", peer.settings())]).await;
    assert_eq!(names(&registry), ["s.a", "s.b", "s.c"]);
    let before = registry.get("s.a").unwrap();
    registry.set_enabled("s.a", false).unwrap();
    peer.set_tools(&[tool("a"), tool("d")]);
    until(|| names(&registry) == ["s.a", "s.d"]).await;
    assert!(
        !registry.get("s.a").unwrap().is_enabled()
            && before.policy() == registry.get("s.a").unwrap().policy()
    );
    assert_eq!((report(&servers).source.tools, peer.connections.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn b3_the_tools_go_with_the_server_and_come_back_with_it() {
    let peer = Peer::new(&[tool("echo")]);
    let registry = registry();
    let servers = settled(&registry, &[("s", peer.settings())]).await;
    peer.drop_all(false);
    until(|| report(&servers).state == McpState::Away).await;
    assert_eq!(names(&registry), ["s.echo"], "for a short while it may only be restarting");
    let gone = call(&registry, "s.echo", json!({})).await.result.unwrap_err();
    assert_eq!((gone.kind(), gone.is_retryable()), (ErrorKind::Unavailable, true));
    sleep(GRACE).await;
    until(|| names(&registry).is_empty()).await;
    assert_eq!(report(&servers).source.tools, 0);
    let unknown = call(&registry, "s.echo", json!({})).await.result.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::ToolNotFound);

    peer.is_up.store(true, Ordering::SeqCst);
    until(|| report(&servers).state == McpState::Connected).await;
    assert_eq!(call(&registry, "s.echo", json!({})).await.result.unwrap().value, json!("{}"));
    assert_eq!(report(&servers).source.error, None);
}

#[tokio::test(start_paused = true)]
async fn b3_a_short_break_is_not_seen() {
    let peer = Peer::new(&[tool("echo")]);
    let registry = registry();
    let mut changes = registry.subscribe();
    let servers = settled(&registry, &[("s", peer.settings())]).await;
    changes.try_recv().unwrap();
    peer.drop_all(true);
    until(|| peer.connections.load(Ordering::SeqCst) == 2 && report(&servers).state == McpState::Connected)
        .await;
    assert!(changes.try_recv().is_err(), "no tool went or came");
    call(&registry, "s.echo", json!({})).await.result.unwrap();
}

#[tokio::test(start_paused = true)]
async fn b3_a_server_that_is_not_there_is_tried_less_and_less_often() {
    let peer = Peer::new(&[tool("echo")]);
    peer.is_up.store(false, Ordering::SeqCst);
    let registry = registry();
    let begun = Instant::now();
    let servers = start(&registry, &[("s", peer.settings())]);
    assert!(begun.elapsed().is_zero(), "starting waits for nobody");
    assert!(servers.settled(Duration::from_secs(1)).await, "an answer is also that it is not there");
    let first = report(&servers);
    assert_eq!((first.state, first.source.error.as_deref()), (McpState::Away, Some("nobody is there")));
    // 1 + 2 + 4 + … + 32 s, then every 60 s.
    sleep(Duration::from_secs(64)).await;
    assert_eq!(peer.connections.load(Ordering::SeqCst), 7);
    sleep(PAUSES[1] * 10).await;
    assert_eq!(peer.connections.load(Ordering::SeqCst), 17);
    peer.is_up.store(true, Ordering::SeqCst);
    until(|| names(&registry) == ["s.echo"]).await;
}

#[tokio::test(start_paused = true)]
async fn b3_one_that_comes_and_goes_is_not_tried_faster_for_that() {
    let peer = Peer::new(&[tool("echo")]);
    let registry = registry();
    let servers = settled(&registry, &[("s", peer.settings())]).await;
    let begun = Instant::now();
    for round in 2..7 {
        peer.drop_all(true);
        until(|| {
            peer.connections.load(Ordering::SeqCst) == round && report(&servers).state == McpState::Connected
        })
        .await;
    }
    assert!(begun.elapsed() >= Duration::from_secs(1 + 2 + 4 + 8 + 16), "{:?}", begun.elapsed());
    // After it was there for a while it is new again.
    sleep(Duration::from_secs(61)).await;
    let begun = Instant::now();
    peer.drop_all(true);
    until(|| peer.connections.load(Ordering::SeqCst) == 7).await;
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    peer.drop_all(true);
    until(|| report(&servers).state == McpState::Connected).await;
}

#[tokio::test(start_paused = true)]
async fn b3_a_server_that_never_answers_holds_nobody_up() {
    let mute = Peer::new(&[tool("echo")]);
    mute.is_mute.store(true, Ordering::SeqCst);
    let well = Peer::new(&[tool("echo")]);
    let registry = registry();
    let servers = start(&registry, &[("mute", mute.settings()), ("well", well.settings())]);
    assert!(!servers.settled(Duration::from_secs(5)).await);
    assert_eq!(names(&registry), ["well.echo"]);
    assert!(servers.settled(Duration::from_secs(60)).await);
    assert_eq!(report(&servers).source.error.as_deref(), Some("it did not answer within 60 s"));
}

#[tokio::test(start_paused = true)]
async fn b3_one_that_hangs_later_is_found_out_by_a_call() {
    let peer = Peer::new(&[tool("echo")]);
    let registry = registry();
    let quick = McpServerSettings { timeout: Duration::from_secs(2), ..peer.settings() };
    let servers = settled(&registry, &[("s", quick)]).await;
    peer.is_mute.store(true, Ordering::SeqCst);
    let late = call(&registry, "s.echo", json!({})).await.result.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout);
    until(|| report(&servers).source.error.as_deref() == Some("it does not answer any more")).await;
    peer.is_mute.store(false, Ordering::SeqCst);
    until(|| report(&servers).state == McpState::Connected).await;
    call(&registry, "s.echo", json!({})).await.result.unwrap();
}

#[tokio::test]
async fn b3_whoever_leaves_the_servers_leaves_no_tools() {
    let peer = Peer::new(&[tool("echo")]);
    let registry = registry();
    let servers = settled(&registry, &[("s", peer.settings())]).await;
    let other = servers.clone();
    drop(servers);
    assert_eq!(names(&registry), ["s.echo"]);
    other.close().await;
    assert!(names(&registry).is_empty());
    assert_eq!(report(&other).state, McpState::Closed);

    let again = settled(&registry, &[("s", peer.settings())]).await;
    assert_eq!(names(&registry), ["s.echo"]);
    drop(again);
    assert!(names(&registry).is_empty());
}

#[tokio::test(start_paused = true)]
async fn b3_a_fault_is_logged_once_until_it_changes() {
    let log = Log::start();
    let mut hidden = tool("hidden");
    hidden["description"] = "\u{202e}".into();
    let peer = Peer::new(&[tool("echo"), hidden]);
    peer.is_up.store(false, Ordering::SeqCst);
    let registry = registry();
    let servers = settled(&registry, &[("s", peer.settings())]).await;
    sleep(Duration::from_secs(600)).await;
    assert_eq!(log.count("mcp_server_failed"), 1, "{}", log.text());
    peer.is_up.store(true, Ordering::SeqCst);
    until(|| report(&servers).state == McpState::Connected).await;
    let same = peer.tools.lock().unwrap().clone();
    peer.set_tools(&same);
    sleep(Duration::from_secs(120)).await;
    assert_eq!((log.count("tool_fault"), log.count("mcp_server_connected")), (1, 1), "{}", log.text());
    peer.drop_all(false);
    until(|| report(&servers).state == McpState::Away).await;
    sleep(Duration::from_secs(600)).await;
    assert_eq!(log.count("it closed the connection"), 1, "{}", log.text());
    assert_eq!(log.count("nobody is there"), 2, "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn b3_a_list_that_fails_once_or_twice_ends_no_connection() {
    let peer = Peer::new(&[tool("a")]);
    let registry = registry();
    let servers = settled(&registry, &[("s", peer.settings())]).await;
    peer.failing.store(2, Ordering::SeqCst);
    peer.set_tools(&[tool("a"), tool("b")]);
    until(|| names(&registry) == ["s.a", "s.b"]).await;
    assert_eq!((peer.connections.load(Ordering::SeqCst), report(&servers).restarts), (1, 0));
    peer.failing.store(3, Ordering::SeqCst);
    peer.set_tools(&[tool("c")]);
    until(|| names(&registry) == ["s.c"]).await;
    assert_eq!(peer.connections.load(Ordering::SeqCst), 2, "then it is given up, and reached anew");
}

#[tokio::test(start_paused = true)]
async fn b3_a_server_that_reports_changes_where_there_are_none_is_listed_less_and_less_often() {
    let peer = Peer::new(&[tool("a")]);
    let registry = registry();
    let _servers = settled(&registry, &[("s", peer.settings())]).await;
    let same = peer.tools.lock().unwrap().clone();
    for _ in 0..1800 {
        peer.set_tools(&same);
        sleep(Duration::from_millis(333)).await;
    }
    let lists = peer.lists.load(Ordering::SeqCst);
    assert!((5..40).contains(&lists), "{lists} lists in ten minutes");
    sleep(Duration::from_secs(240)).await;
    let begun = Instant::now();
    peer.set_tools(&[tool("b")]);
    until(|| names(&registry) == ["s.b"]).await;
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "after a quiet minute it is as at first: {:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn b3_a_variable_that_is_not_set_costs_that_server_alone() {
    let peer = Peer::new(&[tool("echo")]);
    let (registry, unset) = (registry(), Some("TOOLRACK_NO_SUCH".to_owned()));
    let keyed =
        McpServerSettings { key_env: unset.clone(), ..McpServerSettings::url("http://127.0.0.1:9/mcp") };
    let passed = McpServerSettings {
        pass_env: unset.into_iter().collect(),
        ..McpServerSettings::command("toolrack-no-such", [""; 0])
    };
    let off = McpServerSettings { enabled: false, ..peer.settings() };
    let all = [("keyed", keyed), ("off", off), ("passed", passed), ("well", peer.settings())];
    let servers = settled(&registry, &all).await;
    assert_eq!(names(&registry), ["well.echo"]);
    let reports = servers.reports();
    let states: Vec<_> = reports.iter().map(|report| (&*report.source.name, report.state)).collect();
    assert_eq!(
        states,
        [("keyed", McpState::Away), ("passed", McpState::Away), ("well", McpState::Connected)],
        "who is switched off is not there"
    );
    for report in &reports[..2] {
        assert!(report.source.error.as_ref().unwrap().contains("TOOLRACK_NO_SUCH"), "{report:?}");
    }
}
