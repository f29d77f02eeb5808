//! M1: what the log says, and that it says it once.

use std::time::Duration;

use toolrack_remote::module::{ModuleSettings, RETRY};

use super::{
    Server,
    peer::{Answer, Peer, tool},
    quick, until,
};
use crate::log::Log;

#[tokio::test]
async fn m1_s14_each_fault_is_logged_once_with_its_cause_until_it_changes() {
    let log = Log::start();
    let mut hidden = tool("g", "guest");
    hidden["title"] = "\u{202e}".into();
    let peer = Peer::new("m", &[tool("f", "guest"), hidden]).await;
    let server = Server::new(quick(&[("m", ModuleSettings::new(&peer.url))]));
    server.modules.ready().await;
    assert_eq!(
        log.take(),
        [
            "WARN tool_fault module=\"m\" tool=\"g\" \
             cause=\"its definition has a character that nobody sees, U+202E, and may say more to a model than to you\" taken=false",
            "INFO module_discovered module=\"m\" tools=1",
        ]
    );

    for second in 0..3 {
        peer.set_manifest(Answer::Http(500, "", format!("oops at {second}")));
        server.modules.refresh().await;
    }
    assert_eq!(log.take(), ["WARN module_manifest_error module=\"m\" status=500"]);
    peer.set_manifest(Answer::Http(200, "", "<html>".into()));
    for _ in 0..3 {
        server.modules.refresh().await;
    }
    assert_eq!(
        log.take(),
        [
            "WARN module_unreachable module=\"m\" error=\"the manifest cannot be read: expected value at line 1 column 1\""
        ]
    );
    drop(peer);
    for _ in 0..3 {
        server.clock.advance(RETRY.as_secs());
        server.modules.ready().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until(|| server.modules.reports()[0].source.error.as_ref().unwrap().contains("refused")).await;
    // The connection that was open breaks first; then there is nobody.
    let lines = log.take();
    let unreachable = |line: &String| line.starts_with("WARN module_unreachable module=\"m\" error=");
    assert!(lines.iter().all(unreachable) && lines.len() <= 2, "{lines:?}");
    let refused = lines.iter().filter(|line| line.contains("onnection refused")).count();
    assert_eq!(refused, 1, "{lines:?}");
}

#[tokio::test]
async fn m8_a_change_and_a_breaker_are_logged_once() {
    let log = Log::start();
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    peer.set_tools("m", &[tool("f", "user")]);
    log.take();
    server.modules.refresh().await;
    server.modules.refresh().await;
    let changed =
        log.take().into_iter().filter(|line| !line.contains("module_discovered")).collect::<Vec<_>>();
    assert_eq!(changed, ["WARN tool_changed module=\"m\" tool=\"m.f\" parts=\"rules\" off=false"]);

    peer.set_execute(Answer::Http(503, "", "down".into()));
    for _ in 0..8 {
        server.call("m.f").await;
    }
    assert_eq!(log.take(), ["WARN circuit_open module=\"m\" cause=\"Module returned status 503: down\""]);
    peer.set_execute(Answer::json(&super::peer::done("ok")));
    server.clock.advance(30);
    server.call("m.f").await;
    assert_eq!(log.take(), ["INFO circuit_closed module=\"m\""]);
}
