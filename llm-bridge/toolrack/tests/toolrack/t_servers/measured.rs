//! What a server measures of its modules and MCP servers: requirements M2, M8, B3.

use std::time::Duration;

use serde_json::json;

use super::{
    program::{Rack, Serving, client, mock},
    servers::free_port,
};
use crate::support::Scraped;

async fn scrape(server: &Serving, client: &reqwest::Client, key: &str) -> Scraped {
    let request = client.get(format!("{}/metrics", server.base)).bearer_auth(key);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    Scraped::parse(&answer.text().await.unwrap())
}

/// Scrapes until something holds.
async fn until(
    server: &Serving,
    client: &reqwest::Client,
    key: &str,
    holds: impl Fn(&Scraped) -> bool,
) -> Scraped {
    for _ in 0..600 {
        let scraped = scrape(server, client, key).await;
        if holds(&scraped) {
            return scraped;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it does not come to that: {:?}", scrape(server, client, key).await);
}

/// The one state that something is in.
#[track_caller]
fn state<'s>(scraped: &'s Scraped, metric: &str, label: &str, name: &str) -> &'s str {
    let of = |state: &&str| scraped.find(metric, &[(label, name), ("state", state)]) == Some(1.0);
    let states: Vec<&str> = scraped.values(metric, "state").into_iter().filter(of).collect();
    assert_eq!(states.len(), 1, "{metric} {name}: {states:?}");
    states[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m8_modules_and_mcp_servers_are_measured_as_they_come_and_go() {
    let far = Rack::new("", &mock("count.free", "permission = \"guest\""));
    far.top("module_name = \"far\"\ndefault_guest_modules = \"count\"");
    far.done(&["user", "add", "hop"]);
    let (_, hop) = far.key("hop", &["--delegate"]);
    let port = free_port();
    let mut on_far = far.serve_on(&format!("127.0.0.1:{port}"));
    let (program, folder) = (env!("CARGO_BIN_EXE_toolrack"), tempfile::tempdir().unwrap());
    let near = Rack::new(
        "",
        &format!(
            "[breaker]\nfailures = 2\nrest = 60\n\
             [module_services]\nfar = {{ url = \"http://127.0.0.1:{port}\", key_env = \"FAR_KEY\", pin = true }}\ndead = \"http://127.0.0.1:9\"\n\
             [mcp_servers.rack]\ncommand = {program:?}\nargs = [\"mcp\"]\ncwd = {:?}\nallow = [\"calculate\"]\n\
             [mcp_servers.gone]\ncommand = \"toolrack-no-such-program\"\n",
            folder.path()
        ),
    )
    .with_variable("FAR_KEY", &hop);
    near.done(&["user", "add", "root", "--level", "admin"]);
    let (_, key) = near.key("root", &[]);
    let (server, client) = (near.serve(), client());

    let up = until(&server, &client, &key, |scraped| {
        scraped.find("toolrack_mcp_server_tools", &[("server", "rack")]) == Some(1.0)
            && scraped.find("toolrack_module_state", &[("module", "far"), ("state", "reachable")])
                == Some(1.0)
            && scraped.find("toolrack_module_state", &[("module", "dead"), ("state", "away")]) == Some(1.0)
            && scraped.find("toolrack_mcp_server_state", &[("server", "gone"), ("state", "away")])
                == Some(1.0)
    })
    .await;
    assert_eq!(state(&up, "toolrack_module_breaker_state", "module", "far"), "closed");
    assert_eq!(state(&up, "toolrack_mcp_server_state", "server", "rack"), "connected");
    assert!(up.count("toolrack_module_tools", &[("module", "far")]) > 1);
    assert_eq!(up.find("toolrack_module_tools", &[("module", "dead")]), Some(0.0));
    assert_eq!(up.find("toolrack_module_tools_quarantined", &[]), Some(0.0));
    assert!(up.find("toolrack_module_manifest_age_seconds", &[("module", "far")]).is_some());
    assert_eq!(up.find("toolrack_module_manifest_age_seconds", &[("module", "dead")]), None);
    assert!(up.count("toolrack_tools", &[("kind", "compiled")]) > 0);
    assert_eq!(up.count("toolrack_tools", &[("kind", "mcp")]), 1);

    for tool in ["far.count.free", "dead.x"] {
        server.call(&client, &key, tool).await;
    }
    let sum = json!({"tool_name": "rack.calculate", "arguments": {"expression": "6*7"}});
    assert_eq!(server.post(&client, "/execute", &key, &sum).send().await.unwrap().status(), 200);
    let after = scrape(&server, &client, &key).await;
    for (tool, kind, outcome) in [
        ("far.count.free", "module", "success"),
        ("unknown", "none", "failed"),
        ("rack.calculate", "mcp", "success"),
    ] {
        let labels = [("tool", tool), ("kind", kind), ("outcome", outcome), ("source", "http")];
        assert_eq!(after.count("toolrack_calls_total", &labels), 1, "{tool}");
    }

    // It goes, and is not called any more after two calls that failed; then it is asked for its tools.
    on_far.kill();
    for _ in 0..3 {
        server.call(&client, &key, "far.count.free").await;
    }
    let away = scrape(&server, &client, &key).await;
    assert_eq!(state(&away, "toolrack_module_breaker_state", "module", "far"), "open");
    assert_eq!(state(&away, "toolrack_module_state", "module", "far"), "reachable", "nobody has asked yet");
    let unavailable = [("tool", "far.count.free"), ("outcome", "unavailable")];
    assert_eq!(away.count("toolrack_calls_total", &unavailable), 1);
    server.post(&client, "/refresh-tools", &key, &json!({})).send().await.unwrap();
    let away = scrape(&server, &client, &key).await;
    assert_eq!(state(&away, "toolrack_module_state", "module", "far"), "away");

    // It comes back with another tool, which is off until somebody has looked at it.
    far.write("", &(mock("count.free", "permission = \"guest\"") + &mock("count.more", "")));
    far.top("module_name = \"far\"\ndefault_guest_modules = \"count\"");
    let _on_far = far.serve_on(&format!("127.0.0.1:{port}"));
    server.post(&client, "/refresh-tools", &key, &json!({})).send().await.unwrap();
    let back = scrape(&server, &client, &key).await;
    assert_eq!(state(&back, "toolrack_module_state", "module", "far"), "reachable");
    assert_eq!(back.count("toolrack_module_tools_quarantined", &[("module", "far")]), 1);
    assert_eq!(
        back.count("toolrack_module_tools", &[("module", "far")]),
        up.count("toolrack_module_tools", &[("module", "far")]) + 1
    );
}
