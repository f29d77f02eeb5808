//! Two servers of which one has the tools of the other, over the Model Context Protocol or as a module: requirements B3, B5, B7, M8, M10.

use std::time::{Duration, Instant};

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use super::program::{Rack, Serving, client, mock};

/// The far server and the near one, which speaks with it as `hop`.
struct Two {
    far: Rack,
    near: Rack,
    on_far: Serving,
    on_near: Serving,
    far_root: String,
    ada: String,
    root: String,
}

impl Two {
    async fn start(client: &Client) -> Self {
        let two = Self::connected(&|base| {
            format!("[mcp_servers.far]\nurl = \"{base}/mcp\"\nkey_env = \"FAR_KEY\"\npin = true\n")
        });
        until("the far tools", || async { two.state(client).await["state"] == "connected" }).await;
        two
    }

    /// With what the near one has to know of the far one, of its address.
    fn connected(far_settings: &dyn Fn(&str) -> String) -> Self {
        let tools = mock("burn", "permission = \"user\"\neffect = \"destructive\"")
            + &mock("later", "permission = \"user\"");
        let far = Rack::new("", &tools);
        far.done(&["user", "add", "hop"]);
        far.done(&["user", "add", "ada"]);
        far.done(&["user", "add", "root", "--level", "admin"]);
        far.done(&["tools", "disable", "later"]);
        let ((_, hop), (_, far_root)) = (far.key("hop", &["--delegate"]), far.key("root", &[]));
        let on_far = far.serve();
        let near = Rack::new("", &far_settings(&on_far.base)).with_variable("FAR_KEY", &hop);
        near.done(&["user", "add", "ada"]);
        near.done(&["user", "add", "root", "--level", "admin"]);
        let ((_, ada), (_, root)) = (near.key("ada", &[]), near.key("root", &[]));
        let on_near = near.serve();
        Self { far, near, on_far, on_near, far_root, ada, root }
    }

    /// What the near server says of the far one.
    async fn state(&self, client: &Client) -> Value {
        get(&self.on_near, client, &self.root, "/api/mcp-servers").await["mcp_servers"][0].take()
    }
}

async fn get(server: &Serving, client: &Client, key: &str, path: &str) -> Value {
    let answer = client.get(format!("{}{path}", server.base)).bearer_auth(key).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.json().await.unwrap()
}

async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < Duration::from_secs(30), "not seen: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Answers the one approval that waits there, once it does.
async fn answer(server: &Serving, client: &Client, root: &str, approve: bool) {
    let waiting = || async { get(server, client, root, "/api/approvals").await["approvals"].take() };
    until("an approval", || async { waiting().await.as_array().unwrap().len() == 1 }).await;
    let id = waiting().await[0]["id"].as_str().unwrap().to_owned();
    let said = server.post(client, &format!("/api/approvals/{id}"), root, &json!({"approve": approve}));
    assert_eq!(said.send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b5_a_tool_that_two_servers_ask_a_person_about_runs_when_both_have_said_yes() {
    let client = client();
    both_are_asked(&client, &Two::start(&client).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m10_a_modules_tool_that_both_servers_ask_a_person_about_runs_when_both_have_said_yes() {
    let client = client();
    let two = Two::connected(&|base| {
        format!("[module_services]\nfar = {{ url = \"{base}\", key_env = \"FAR_KEY\", timeout = 4 }}\n")
    });
    both_are_asked(&client, &two).await;
}

/// Each person once, for each of three calls.
async fn both_are_asked(client: &Client, two: &Two) {
    for (round, agreed) in [true, false, true].into_iter().enumerate() {
        let arguments = json!({"n": round});
        let body = json!({"tool_name": "far.burn", "arguments": arguments, "approval_wait_seconds": 50});
        let calling = two.on_near.post(client, "/execute", &two.ada, &body).send();
        let calling = tokio::spawn(calling);
        answer(&two.on_near, client, &two.root, true).await;
        let asked = async {
            answer(&two.on_far, client, &two.far_root, agreed).await;
        };
        asked.await;
        let reply: Value = calling.await.unwrap().unwrap().json().await.unwrap();
        assert_eq!(reply["success"], agreed, "{reply}");
        if agreed {
            assert_eq!(reply["result"], "done", "{reply}");
        } else {
            assert!(reply.to_string().contains("refused this call"), "{reply}");
        }
        // Each was asked once.
        for (server, root) in [(&two.on_near, &two.root), (&two.on_far, &two.far_root)] {
            let waiting = get(server, client, root, "/api/approvals").await;
            assert_eq!(waiting["approvals"], json!([]), "{waiting}");
        }
    }
    let ran = |rack: &Rack, tool: &str| {
        let records = rack.export(&["--tool", tool]);
        records.iter().filter(|record| record["success"] == true).count()
    };
    assert_eq!((ran(&two.near, "far.burn"), ran(&two.far, "burn")), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m8_the_state_of_mcp_servers_is_shown_and_their_tools_are_accepted() {
    let client = client();
    let two = Two::start(&client).await;
    let first = two.state(&client).await;
    assert_eq!(
        (&first["pinned"], &first["restarts"], &first["breaker"]),
        (&json!(true), &json!(0), &json!("closed"))
    );
    assert!(first["address"].as_str().unwrap().starts_with(&two.on_far.base), "{first}");
    assert_eq!((&first["changes"], &first["protocol"]), (&json!([]), &json!("2026-07-28")), "{first}");
    let shown = get(&two.on_near, &client, &two.ada, "/api/mcp-servers").await;
    let keys: Vec<&String> = shown["mcp_servers"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "state", "tools", "breaker"], "{shown}");

    two.far.done(&["tools", "enable", "later"]);
    until("the new tool", || async { two.state(&client).await["changes"] != json!([]) }).await;
    let now = two.state(&client).await;
    assert_eq!(now["changes"], json!([{"tool": "far.later", "parts": ["new"]}]));
    let call = async || two.on_near.call(&client, &two.ada, "far.later").await.json::<Value>().await.unwrap();
    assert!(call().await["error"].as_str().unwrap().contains("it is new since the MCP server far"));

    let accept = async |key: &str, server: &str, body: Value| -> Response {
        let path = format!("/api/mcp-servers/{server}/accept");
        two.on_near.post(&client, &path, key, &body).send().await.unwrap()
    };
    let digest = json!({"digest": now["digest"]});
    assert_eq!(accept(&two.ada, "far", digest.clone()).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(accept(&two.root, "far", json!({})).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(accept(&two.root, "fra", digest).await.status(), StatusCode::NOT_FOUND);
    let old = accept(&two.root, "far", json!({"digest": first["digest"]})).await;
    assert_eq!(old.status(), StatusCode::CONFLICT);
    assert_eq!(old.json::<Value>().await.unwrap()["error"]["type"], "digest_changed");
    assert_eq!(call().await["success"], false);

    // The commands ask the server.
    let asked = ["--server", &two.on_near.base, "--key", &two.root];
    let table = two.near.done(&[&["mcp-servers", "list"], &asked[..]].concat());
    let command = format!("toolrack mcp-servers accept far {}", now["digest"].as_str().unwrap());
    for word in ["far (pinned)", "connected", "far.later is new; off until it is accepted", &command] {
        assert!(table.contains(word), "{table}");
    }
    let wrong = two.near.run(&[&["mcp-servers", "accept", "far", "0000"], &asked[..]].concat());
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no longer those"), "{wrong:?}");
    let command: Vec<&str> = command.split(' ').skip(1).collect();
    let table = two.near.done(&[&command[..], &asked].concat());
    assert!(!table.contains("is new"), "{table}");
    assert_eq!(call().await["success"], true);
}

/// A client of an earlier revision that listens.
async fn listens(server: &Serving, client: &Client, key: &str) -> Response {
    let at = format!("{}/mcp", server.base);
    let accepts = "application/json, text/event-stream";
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let begun =
        client.post(&at).bearer_auth(key).header("accept", accepts).json(&begin).send().await.unwrap();
    assert_eq!(begun.status(), StatusCode::OK);
    let session = begun.headers()["mcp-session-id"].clone();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let post = client.post(&at).bearer_auth(key).header("accept", accepts).header("mcp-session-id", &session);
    assert!(post.json(&ready).send().await.unwrap().status().is_success());
    let get = client.get(&at).bearer_auth(key).header("accept", "text/event-stream");
    let stream = get.header("mcp-session-id", session).send().await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_clients_that_listen_do_not_keep_a_server_from_stopping() {
    let client = client();
    let mut two = Two::start(&client).await;
    // The near server is subscribed in the newest revision; this one listens as before.
    let stream = listens(&two.on_far, &client, &two.far_root).await;
    let began = Instant::now();
    two.on_far.terminate();
    let read = tokio::spawn(stream.bytes());
    while two.on_far.runs() {
        assert!(began.elapsed() < Duration::from_secs(5), "{}", two.on_far.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(read.await.unwrap());
    until("that it is gone", || async { two.state(&client).await["state"] == "away" }).await;
    let began = Instant::now();
    two.on_near.terminate();
    while two.on_near.runs() {
        assert!(began.elapsed() < Duration::from_secs(8), "{}", two.on_near.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
