//! All that is kept of a person is erased, and the audit still proves that the calls were made: requirement B21.

use std::{fs, sync::Arc};

use jiff::Timestamp;
use registry_core::{
    guard::approval::{Approval, ApprovalState, Approvals},
    store::{Expected, StateLimits, StateSpace, StateStore},
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use toolrack_stores::{PostgresSettings, SqlStore, SqliteSettings};

use super::{
    program::{Rack, Serving, client, mock},
    servers::postgres,
};

async fn execute(server: &Serving, key: &str, tool: &str, arguments: Value) -> StatusCode {
    let body = json!({"tool_name": tool, "arguments": arguments});
    server.post(&client(), "/execute", key, &body).send().await.unwrap().status()
}

/// What two people leave behind: they talk, call, upload, schedule, are asked.
async fn live(server: &Serving, store: &SqlStore, user: &str, key: &str) -> String {
    let client = client();
    let asked =
        server.post(&client, "/v1/responses", key, &json!({"input": format!("I am {user} of Mill Lane")}));
    let response: Value = asked.send().await.unwrap().json().await.unwrap();
    let upload = client
        .post(format!("{}/api/documents?name=diary.md", server.base))
        .bearer_auth(key)
        .header("content-type", "application/octet-stream");
    let uploaded = upload.body(format!("# Diary\n\n{user} lives in Mill Lane.\n")).send().await.unwrap();
    assert!(uploaded.status().is_success(), "{uploaded:?}");
    let secret = json!({"n": 424_242});
    assert_eq!(execute(server, key, "count.free", secret).await, StatusCode::OK);
    let job = json!({"tool": "count.free", "cron": "0 0 1 1 *", "arguments": {}, "time_zone": "UTC"});
    assert_eq!(execute(server, key, "scheduler.add_job", job).await, StatusCode::OK);
    let space = StateSpace { tenant: "default".into(), user: Some(user.into()), name: "notes".into() };
    let limits = StateLimits::DEFAULT;
    let put = store.put_state(&space, "address", Some("\"Mill Lane\""), Expected::Anything, &limits);
    assert!(put.await.unwrap());
    let now = Timestamp::now();
    let approval = Approval {
        id: format!("approval-{user}"),
        tenant: "default".into(),
        user: user.into(),
        tool: "mail.send".into(),
        version: None,
        arguments_sha256: "0".into(),
        arguments: json!({"to": "Mill Lane"}),
        question: None,
        reason: None,
        remember: Vec::new(),
        tool_sha256: String::new(),
        via: None,
        scope: user.into(),
        requested_at: now,
        expires_at: now + jiff::SignedDuration::from_mins(10),
        state: ApprovalState::Pending,
        call: None,
    };
    assert!(store.request(approval, 10).await.unwrap().is_some());
    response["id"].as_str().unwrap().to_owned()
}

async fn is_erased(of: &[Rack], store: Arc<SqlStore>) {
    let first = &of[0];
    let servers: Vec<Serving> = of.iter().map(Rack::serve).collect();
    for user in ["ada", "bob"] {
        first.done(&["user", "add", user, "--level", "admin"]);
    }
    let ((_, ada), (_, bob)) = (first.key("ada", &[]), first.key("bob", &[]));
    let mut kept = Vec::new();
    for (user, key) in [("ada", &ada), ("bob", &bob)] {
        kept.push(live(&servers[0], &store, user, key).await);
        for server in &servers {
            assert_eq!(execute(server, key, "count.free", json!({"n": 424_242})).await, StatusCode::OK);
        }
    }
    let before = first.export(&[]).len();

    let said = String::from_utf8(first.run(&["user", "erase", "ada"]).stderr).unwrap();
    for part in
        ["1 key", "1 response", "1 document", "1 value that tools kept", "1 scheduled call", "1 approval"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    // No server knows the key any more, nor what belonged to it.
    for server in &servers {
        let began = std::time::Instant::now();
        while execute(server, &ada, "count.free", json!({})).await != StatusCode::UNAUTHORIZED {
            assert!(began.elapsed() < std::time::Duration::from_secs(2), "still known");
        }
        assert_eq!(execute(server, &bob, "count.free", json!({})).await, StatusCode::OK);
    }
    let client = client();
    let get = async |key: &str, id: &str| {
        let address = format!("{}/v1/responses/{id}", servers[0].base);
        client.get(address).bearer_auth(key).send().await.unwrap().status()
    };
    assert_eq!(
        (get(&bob, &kept[0]).await, get(&bob, &kept[1]).await),
        (StatusCode::NOT_FOUND, StatusCode::OK)
    );
    let listed = first.done(&["documents", "list"]);
    assert!(!listed.contains("uploads/ada") && listed.contains("uploads/bob"), "{listed}");
    assert!(store.get("default", "approval-ada").await.unwrap().is_none());
    assert!(store.get("default", "approval-bob").await.unwrap().is_some());
    for server in servers {
        server.end();
    }

    // The records of the calls are there, without what was personal in them, and the chains are whole.
    let records = first.export(&[]);
    assert!(records.len() > before);
    let of_user = |user: &str, tool: &str| {
        let is = |record: &&Value| record["user"] == user && record["tool"] == tool;
        records.iter().filter(is).cloned().collect::<Vec<_>>()
    };
    let calls = of_user("ada", "count.free");
    assert!(calls.len() >= 4, "{records:?}");
    for record in &calls {
        assert!(record["erased_at"].is_string() && record.get("arguments").is_none(), "{record}");
        assert!(record.get("arguments_sha256").is_none() && record["ts"].is_string(), "{record}");
    }
    assert!(of_user("bob", "count.free").iter().any(|record| record["arguments"]["n"] == 424_242));
    let account = records.iter().find(|record| record["tool"] == "toolrack user erase").unwrap();
    assert_eq!(account["arguments"], json!({"user": "ada"}));
    let public: Vec<String> = of.iter().map(|rack| rack.done(&["audit", "key"]).trim().to_owned()).collect();
    let keys: Vec<&str> = public.iter().flat_map(|key| ["--public-key", key]).collect();
    for rack in of {
        let verified = rack.done(&[&["audit", "verify"], &keys[..]].concat());
        assert!(verified.contains(" what is personal was erased; "), "{verified}");
        let whole = verified.lines().filter(|line| line.contains("records, whole"));
        assert_eq!(whole.count(), of.len(), "{verified}");
    }
    assert!(first.done(&["audit", "--user", "ada"]).contains(", erased on "));

    // Twice there is nothing more to erase; and nobody is erased who is unknown.
    for user in ["ada", "nobody"] {
        let output = first.run(&["user", "erase", user]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(&format!("there is no user `{user}`")), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_u29_an_admin_erases_a_person_at_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolrack.db");
    let rack = Rack::new(&format!("url = 'sqlite:{}'", file.display()), &mock("count.free", ""));
    let store = SqliteSettings::new(&file).open().await.unwrap();
    for user in ["ada", "bob"] {
        rack.done(&["user", "add", user, "--level", "admin"]);
    }
    let ((_, ada), (_, bob)) = (rack.key("ada", &[]), rack.key("bob", &[]));
    let server = rack.serve();
    live(&server, &store, "ada", &ada).await;
    let client = client();
    let erase = async || {
        let erased = server.post(&client, "/api/users/ada/erase", &bob, &json!({})).send().await.unwrap();
        (erased.status(), erased.json::<Value>().await.unwrap())
    };
    let (status, erased) = erase().await;
    assert_eq!(status, StatusCode::OK, "{erased}");
    for part in ["keys", "responses", "documents", "values", "jobs", "approvals"] {
        assert_eq!(erased[part], 1, "{part}: {erased}");
    }
    assert!(erased["was_known"] == true && erased["records"].as_u64().unwrap() >= 4, "{erased}");
    let (status, again) = erase().await;
    assert_eq!((status, &again["error"]["type"]), (StatusCode::NOT_FOUND, &json!("user_not_found")));
    let began = std::time::Instant::now();
    while execute(&server, &ada, "count.free", json!({})).await != StatusCode::UNAUTHORIZED {
        assert!(began.elapsed() < std::time::Duration::from_secs(2), "still known");
    }
    server.end();
    let records = rack.export(&[]);
    assert!(!records.iter().any(|record| record.to_string().contains("Mill Lane")), "{records:?}");
    let of_admin = |record: &&Value| record["tool"] == "toolrack user erase" && record["phase"] == "outcome";
    let outcomes: Vec<_> = records.iter().filter(of_admin).collect();
    let seen: Vec<_> = outcomes.iter().map(|record| (&record["user"], &record["success"])).collect();
    assert_eq!(seen, [(&json!("bob"), &json!(true)), (&json!("bob"), &json!(false))]);
    assert!(rack.done(&["audit", "verify"]).contains("records, whole"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_all_of_a_person_is_erased_from_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolrack.db");
    let rack = Rack::new(&format!("url = 'sqlite:{}'", file.display()), &mock("count.free", ""));
    let store = Arc::new(SqliteSettings::new(&file).open().await.unwrap());
    is_erased(&[rack], store.clone()).await;
    drop(store);
    // Of what was said nothing is in the file any more, not even where no row is.
    let beside = fs::read(folder.path().join("toolrack.db-wal")).unwrap_or_default();
    let bytes = [fs::read(&file).unwrap(), beside].concat();
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!has("I am ada of Mill Lane") && has("I am bob of Mill Lane"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_all_of_a_person_is_erased_for_all_servers_that_share_postgresql() {
    let Some(url) = postgres("b21_all_of_a_person_is_erased_for_all_servers_that_share_postgresql") else {
        return;
    };
    let racks = ["one", "two"]
        .map(|server| Rack::new(&format!("url = \"{url}\"\nserver = \"{server}\""), &mock("count.free", "")));
    let store = Arc::new(PostgresSettings::new(&url, "test").open().await.unwrap());
    is_erased(&racks, store).await;
}
