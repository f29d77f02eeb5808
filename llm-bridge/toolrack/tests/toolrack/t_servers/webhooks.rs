//! Webhooks and the gate, as the configuration names them. Requirements T4, L5.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{Router, extract::State, http::StatusCode};
use serde_json::{Value, json};

use super::{
    program::{Rack, client, mock},
    servers::postgres,
};

/// Another program: it keeps what it is sent, and answers as scripted.
#[derive(Clone)]
struct Listener {
    url: String,
    received: Arc<Mutex<Vec<Value>>>,
    answer: Arc<Mutex<(StatusCode, String)>>,
}

impl Listener {
    async fn new(status: StatusCode, body: &str) -> Self {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        let listener =
            Self { url, received: Arc::default(), answer: Arc::new(Mutex::new((status, body.to_owned()))) };
        let app = Router::new().fallback(hear).with_state(listener.clone());
        tokio::spawn(async move { axum::serve(socket, app).await });
        listener
    }

    fn webhook(&self, more: &str) -> String {
        format!("[[webhooks]]\nurl = \"{}/hook?key=hidden\"\n{more}\n", self.url)
    }

    /// The tools that it was notified of, each with its tenant and what has happened.
    fn reported(&self) -> Vec<String> {
        let word = |message: &Value, key: &str| message["data"][key].as_str().unwrap().to_owned();
        let received = self.received.lock().unwrap();
        let line = |message| {
            format!("{} {} {}", word(message, "tenant"), word(message, "tool"), word(message, "kind"))
        };
        received.iter().map(line).collect()
    }

    async fn hears(&self, count: usize) {
        let began = Instant::now();
        while self.received.lock().unwrap().len() < count {
            assert!(began.elapsed() < Duration::from_secs(20), "it never came: {:?}", self.reported());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn hear(State(listener): State<Listener>, body: String) -> (StatusCode, String) {
    listener.received.lock().unwrap().push(serde_json::from_str(&body).unwrap());
    listener.answer.lock().unwrap().clone()
}

const SECRET: &str = "secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"";

/// The folder is blocked by nothing that waits: commands run beside the listeners.
async fn done(rack: &Rack, arguments: &[&str]) -> String {
    let (rack, arguments) =
        (rack.twin(), arguments.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
    let run = move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = rack.run(&arguments);
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "toolrack {arguments:?}: {reported}");
        reported
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

async fn letters(rack: &super::program::Serving, key: &str) -> Value {
    let answer =
        client().get(format!("{}/api/dead-letters", rack.base)).bearer_auth(key).send().await.unwrap();
    answer.json::<Value>().await.unwrap()["dead_letters"].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l5_each_change_is_told_once_whoever_makes_it_and_only_to_those_it_is_for() {
    let test = "l5_each_change_is_told_once_whoever_makes_it";
    let Some(url) = postgres(test) else { return };
    let ours = Listener::new(StatusCode::OK, "").await;
    let theirs = Listener::new(StatusCode::OK, "").await;
    let all = Listener::new(StatusCode::OK, "").await;
    let tools = mock("count.free", "")
        + &ours.webhook(SECRET)
        + &theirs.webhook(&format!("{SECRET}\ntenant = \"acme\""))
        + &all.webhook(&format!("{SECRET}\ntenant = \"*\""));
    let racks =
        ["one", "two"].map(|server| Rack::new(&format!("url = \"{url}\"\nserver = \"{server}\""), &tools));
    let acme = ["--tenant", "acme"];
    done(&racks[0], &["user", "add", "root", "--level", "admin"]).await;
    done(&racks[0], &[&["user", "add", "root", "--level", "admin"][..], &acme].concat()).await;
    let (_, root) = racks[0].key("root", &[]);
    let boss = racks[0].done(&[&["key", "create", "root"][..], &acme].concat()).trim().to_owned();
    let (servers, client) = (racks.each_ref().map(Rack::serve), client());
    // Both have both tenants at hand.
    for server in &servers {
        for key in [&root, &boss] {
            assert_eq!(server.call(&client, key, "count.free").await.status(), StatusCode::OK);
        }
    }
    let off = json!({"enabled": false});
    for key in [&root, &boss] {
        let answer = servers[0].post(&client, "/api/tools/count.free", key, &off).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
    }
    all.hears(2).await;
    for tenant in ["default", "acme"] {
        done(&racks[1], &["tools", "enable", "count.free", "--tenant", tenant]).await;
        // It is so already, which is no change.
        done(&racks[1], &["tools", "enable", "count.free", "--tenant", tenant]).await;
    }
    // The time in which a server would tell of what another has done.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(ours.reported(), ["default count.free disabled", "default count.free enabled"]);
    assert_eq!(theirs.reported(), ["acme count.free disabled", "acme count.free enabled"]);
    assert_eq!(
        all.reported(),
        [
            "default count.free disabled",
            "acme count.free disabled",
            "default count.free enabled",
            "acme count.free enabled"
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l5_a_command_that_nobody_hears_leaves_a_dead_letter_for_its_tenant() {
    let hears = Listener::new(StatusCode::INTERNAL_SERVER_ERROR, "").await;
    let rack =
        Rack::new("", &(mock("count.free", "") + &hears.webhook(&format!("{SECRET}\ntenant = \"acme\""))));
    for tenant in ["default", "acme"] {
        done(&rack, &["user", "add", "root", "--level", "admin", "--tenant", tenant]).await;
        done(&rack, &["user", "add", "ada", "--tenant", tenant]).await;
    }
    let key =
        |user: &str, tenant: &str| rack.done(&["key", "create", user, "--tenant", tenant]).trim().to_owned();
    let (root, boss, ada) = (key("root", "default"), key("root", "acme"), key("ada", "acme"));
    done(&rack, &["tools", "disable", "count.free"]).await;
    assert_eq!(hears.reported(), [""; 0], "it is for another tenant");
    let reported = done(&rack, &["tools", "disable", "count.free", "--tenant", "acme"]).await;
    assert!(
        reported.contains("warning: ") && reported.contains("500") && !reported.contains("hidden"),
        "{reported}"
    );
    assert_eq!(hears.reported(), ["acme count.free disabled"; 2], "two attempts");

    let (server, client) = (rack.serve(), client());
    let buried = letters(&server, &boss).await;
    assert_eq!((buried.as_array().unwrap().len(), &buried[0]["event"]["tenant"]), (1, &json!("acme")));
    assert!(!buried.to_string().contains("hidden"), "{buried}");
    assert_eq!(letters(&server, &root).await, json!([]), "of another tenant");
    let answer =
        client.get(format!("{}/api/dead-letters", server.base)).bearer_auth(&ada).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let path = format!("/api/dead-letters/{}", buried[0]["id"].as_str().unwrap());
    for (key, status) in [(&root, 404), (&ada, 403)] {
        let answer = server.post(&client, &path, key, &json!({})).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status);
    }
    hears.answer.lock().unwrap().0 = StatusCode::OK;
    let answer = server.post(&client, &path, &boss, &json!({})).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
    hears.hears(3).await;
    assert_eq!(letters(&server, &boss).await, json!([]));
    let answer = server.post(&client, &path, &boss, &json!({})).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t4_the_gate_of_the_configuration_is_asked_through_every_door() {
    let gate = Listener::new(StatusCode::OK, r#"{"answer": "approved"}"#).await;
    let table = format!("[gate]\nurl = \"{}\"\nname = \"policy\"\nfails_closed = true\n", gate.url);
    let rack =
        Rack::new("", &(mock("count.gated", "requires_gate = true") + &mock("count.free", "") + &table));
    let (server, client) = (rack.serve(), client());
    let answer = |status, body: &str| *gate.answer.lock().unwrap() = (status, body.to_owned());
    let asked = || gate.received.lock().unwrap().len();
    let outcome = |decision: &str| rack.export(&["--decision", decision, "--tool", "count.gated"]).len();

    assert_eq!(server.call(&client, "", "count.free").await.status(), StatusCode::OK);
    assert_eq!(asked(), 0, "a tool that wants no gate");
    assert_eq!(server.call(&client, "", "count.gated").await.status(), StatusCode::OK);
    done(&rack, &["call", "count.gated", "{\"n\": 3}"]).await;
    assert_eq!(asked(), 2);
    let question = gate.received.lock().unwrap()[1].clone();
    assert_eq!(question["arguments"], json!({"n": 3}));
    assert_eq!(
        question["caller"],
        json!({"user": "local", "level": "admin", "via": null, "tenant": "default"})
    );
    assert_eq!(question["tool"]["tool_name"], "count.gated");
    assert_eq!(outcome("approved"), 4);

    answer(StatusCode::OK, r#"{"answer": "blocked", "reason": "Not on Sundays."}"#);
    let reply: Value = server.call(&client, "", "count.gated").await.json().await.unwrap();
    assert_eq!((&reply["success"], &reply["result"]), (&json!(false), &Value::Null), "{reply}");
    assert_eq!(reply["message"], "Not on Sundays.");
    answer(StatusCode::OK, r#"{"answer": "pending"}"#);
    assert_eq!(server.call(&client, "", "count.gated").await.status(), StatusCode::ACCEPTED);
    answer(StatusCode::BAD_GATEWAY, "");
    let reply: Value = server.call(&client, "", "count.gated").await.json().await.unwrap();
    assert!(reply["message"].as_str().unwrap().contains("policy"), "{reply}");
    assert_eq!((outcome("blocked"), outcome("pending")), (2, 1));
    let blocked = rack.export(&["--decision", "blocked"]);
    assert!(blocked.iter().all(|record| record["decision"]["by"] == "policy"), "{blocked:?}");

    // What cannot be asked is reported at the start.
    let rack = Rack::new("", &format!("{table}secret_env = \"NOBODY_SETS_THIS\"\n"));
    let reported = rack.run(&["call", "calculate"]);
    let reported = String::from_utf8_lossy(&reported.stderr).into_owned();
    assert!(reported.contains("gate.secret_env") && reported.contains("NOBODY_SETS_THIS"), "{reported}");
    rack.done(&["user", "list"]);
}

#[test]
fn l5_nothing_is_switched_where_nobody_could_be_told() {
    let hook = "[[webhooks]]\nurl = \"http://127.0.0.1:1/\"\nsecret_env = \"NOBODY_SETS_THIS\"\n";
    let rack = Rack::new("", &(mock("count.free", "") + hook));
    let output = rack.run(&["tools", "disable", "count.free"]);
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && reported.contains("webhooks.secret_env"), "{reported}");
    assert!(rack.does_not_serve_on("127.0.0.1:0").contains("webhooks.secret_env"));
    rack.done(&["call", "count.free"]);
    assert!(rack.done(&["tools", "list", "--json"]).contains("count.free"));
}
