//! Servers that are programs: this test program itself, started again.

use std::{path::Path, time::Duration};

use registry_core::ErrorKind;
use serde_json::json;
use toolrack_remote::mcp::{McpServerSettings, McpState};

use super::{
    call, names,
    peer::{Peer, tool},
    registry, report, settled, start, until,
};

/// Set for a program that is to be the server.
const VARIABLE: &str = "TOOLRACK_TEST_PEER";

/// Not a test: the server. The test runner's own words on standard output are what no server should write there.
#[test]
fn program_that_is_a_server() {
    if std::env::var_os(VARIABLE).is_some() {
        Peer::new(&["echo", "environment", "exits", "spawns"].map(tool)).serve_stdio();
    }
}

fn program() -> McpServerSettings {
    let this = std::env::current_exe().unwrap();
    let arguments = ["--exact", "mcp::program::program_that_is_a_server", "--nocapture"];
    McpServerSettings {
        env: [(VARIABLE.to_owned(), "1".to_owned())].into(),
        ..McpServerSettings::command(this.to_str().unwrap(), arguments)
    }
}

#[tokio::test]
async fn b3_a_program_serves_though_it_writes_other_things_too() {
    let registry = registry();
    let servers = settled(&registry, &[("p", program())]).await;
    assert_eq!(
        names(&registry),
        ["p.echo", "p.environment", "p.exits", "p.spawns"],
        "{:?}",
        report(&servers)
    );
    let environment = call(&registry, "p.environment", json!({})).await.result.unwrap();
    let environment = environment.value.as_str().unwrap().to_owned();
    assert!(environment.contains("TOOLRACK_TEST_PEER=1") && environment.contains("PATH="), "{environment}");
    assert!(
        !environment.contains("CARGO_MANIFEST_DIR"),
        "no more of this process's than it needs: {environment}"
    );
    servers.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn b3_a_program_that_ends_is_started_again() {
    let registry = registry();
    let servers = settled(&registry, &[("p", program())]).await;
    let broken = call(&registry, "p.exits", json!({})).await.result.unwrap_err();
    assert_eq!(
        (broken.kind(), broken.is_retryable()),
        (ErrorKind::Failed, false),
        "it may have run: {broken}"
    );
    until(|| report(&servers).state == McpState::Away).await;
    assert_eq!(report(&servers).source.error.as_deref(), Some("the program ended (exit status: 3)"));
    until(|| report(&servers).state == McpState::Connected).await;
    call(&registry, "p.echo", json!({})).await.result.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn b3_whoever_leaves_a_program_ends_it_and_what_it_started() {
    let lives = |id: &str| {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        Path::new(&format!("/proc/{id}")).exists() && !state.contains(") Z ")
    };
    for closes in [true, false] {
        let registry = registry();
        let servers = settled(&registry, &[("p", program())]).await;
        let ids = call(&registry, "p.spawns", json!({})).await.result.unwrap().value;
        let ids: Vec<String> = ids.as_str().unwrap().split(' ').map(str::to_owned).collect();
        assert!(ids.iter().all(|id| lives(id)), "{ids:?}");
        if closes {
            servers.close().await;
        } else {
            drop(servers);
        }
        until(|| ids.iter().all(|id| !lives(id))).await;
    }
}

#[tokio::test]
async fn b3_a_program_that_is_none_or_none_of_ours_is_reported() {
    let registry = registry();
    let none = McpServerSettings::command("toolrack-no-such-program", [""; 0]);
    let servers = settled(&registry, &[("p", none)]).await;
    let error = report(&servers).source.error.unwrap();
    assert!(error.contains("`toolrack-no-such-program` cannot be started: No such file"), "{error}");

    let quick = McpServerSettings {
        start_timeout: Duration::from_millis(300),
        ..McpServerSettings::command("sh", ["-c", "while echo rubbish; do sleep 0.01; done"])
    };
    let servers = start(&registry, &[("p", quick)]);
    assert!(servers.settled(Duration::from_secs(10)).await);
    assert_eq!(report(&servers).source.error.as_deref(), Some("it did not answer within 0.3 s"));

    let servers = settled(&registry, &[("p", McpServerSettings::command("false", [""; 0]))]).await;
    let error = report(&servers).source.error.unwrap();
    assert!(error.contains("exit status: 1") || error.contains("Broken pipe"), "{error}");
}
