//! What the console does with everything that is stored: people are erased, accounts revoked, backups sent. Review row U29.

use std::{
    collections::BTreeMap,
    io::{Seek, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use llm_bridge::{
    server::{Access, BackupFault, BackupFile, ErasePerson, Erased, Examination, MakeBackup, TryTool},
    traces::Traces,
    turn::TurnsElsewhere,
};
use registry_core::{
    Caller, Permission, Registry,
    guard::audit::Phase,
    store::{ConnectionStore, Expected, MemoryStore, StateLimits, StateSpace, StateStore, StoredConnection},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use toolrack_remote::mcp::{
    McpServerSettings,
    oauth::{Connections, SealingKey},
};

use crate::{b17_console::send, t_access::Rack};

/// Notes who is erased; knows ada.
#[derive(Default)]
struct Noting(Mutex<Vec<String>>);

#[async_trait]
impl ErasePerson for Noting {
    async fn erase(&self, tenant: &str, user: &str) -> Result<Erased, String> {
        self.0.lock().unwrap().push(format!("{tenant}/{user}"));
        match user {
            "ada" => Ok(Erased { was_known: true, keys: 1, ..Erased::default() }),
            "broken" => Err("the disk is gone".to_owned()),
            _ => Ok(Erased::default()),
        }
    }
}

#[tokio::test]
async fn u29_an_admin_erases_people_and_nobody_above() {
    let eraser = Arc::new(Noting::default());
    let of_server = eraser.clone();
    let owner = Caller::new("local", Permission::Owner);
    let rack = Rack::start_set(owner, |settings| settings.eraser = Some(of_server)).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    rack.user("default", "boss", Permission::Owner).await;
    rack.user("default", "ada", Permission::User).await;
    let other = rack.user("acme", "eve", Permission::Admin).await;
    let erase = async |key: &str, user: &str| {
        send(&rack, Method::POST, &format!("/api/users/{user}/erase"), key, Value::Null).await
    };
    // `local` is no stored user, and has the level of the configuration.
    for above in ["boss", "local"] {
        let (status, answer) = erase(&root, above).await;
        assert_eq!((status, &answer["error"]["type"]), (StatusCode::FORBIDDEN, &json!("permission_denied")));
    }
    // Nobody takes what one did as an admin with one.
    let (status, answer) = erase(&root, "root").await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
    assert!(eraser.0.lock().unwrap().is_empty(), "nobody was erased");
    let (status, erased) = erase(&root, "ada").await;
    assert_eq!((status, &erased["keys"]), (StatusCode::OK, &json!(1)), "{erased}");
    let (status, answer) = erase(&root, "nobody").await;
    assert_eq!((status, &answer["error"]["type"]), (StatusCode::NOT_FOUND, &json!("user_not_found")));
    let (status, answer) = erase(&root, "broken").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!answer.to_string().contains("disk"), "the cause is for the log: {answer}");
    // In the own tenant only.
    assert_eq!(erase(&other, "ada").await.0, StatusCode::OK);
    let asked = ["default/ada", "default/nobody", "default/broken", "acme/ada"];
    assert_eq!(*eraser.0.lock().unwrap(), asked);
    let records = rack.audit.records();
    let ended = records
        .iter()
        .filter(|record| record.phase == Phase::Outcome && record.tool == "toolrack user erase");
    let seen: Vec<_> = ended.map(|record| (record.user.as_str(), record.success)).collect();
    assert_eq!(
        seen,
        [("root", Some(true)), ("root", Some(false)), ("root", Some(false)), ("eve", Some(true))]
    );

    let without = Rack::start(Access::default()).await;
    let root = without.user("default", "root", Permission::Admin).await;
    let (status, answer) = send(&without, Method::POST, "/api/users/ada/erase", &root, Value::Null).await;
    assert_eq!((status, &answer["error"]["type"]), (StatusCode::NOT_FOUND, &json!("erasure_not_found")));
}

#[tokio::test]
async fn b21_the_last_traces_go_with_an_erased_person() {
    let owner = Caller::new("local", Permission::Owner);
    let rack = Rack::start_set(owner, |settings| {
        settings.eraser = Some(Arc::new(Noting::default()));
        settings.traces = Some(Traces::in_memory(true, 1.0));
    })
    .await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let call = json!({"tool_name": "echo", "arguments": {"text": "hi"}});
    assert_eq!(send(&rack, Method::POST, "/execute", &ada, call).await.0, StatusCode::OK);
    let traces = async || {
        let (_, listed) = send(&rack, Method::GET, "/api/traces", &root, Value::Null).await;
        listed["traces"].as_array().unwrap().len()
    };
    assert_eq!(traces().await, 1);
    let (status, _) = send(&rack, Method::POST, "/api/users/ada/erase", &root, Value::Null).await;
    assert_eq!((status, traces().await), (StatusCode::OK, 0));
}

#[tokio::test]
async fn b8_nobody_adds_a_user_or_makes_a_key_under_the_id_of_a_configured_user_above() {
    let rack = Rack::start_set(Caller::new("local", Permission::Owner), |_| {}).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let post = async |path: &str, body: Value| {
        let (status, answer) = send(&rack, Method::POST, path, &root, body).await;
        (status, answer["error"]["type"].clone())
    };
    let denied = (StatusCode::FORBIDDEN, json!("permission_denied"));
    assert_eq!(post("/api/users", json!({"id": "local", "level": "user"})).await, denied);
    // Somebody has added it before.
    rack.user("default", "local", Permission::User).await;
    assert_eq!(post("/api/keys", json!({"user": "local"})).await, denied);
    assert_eq!(post("/api/users/local", json!({"level": "guest"})).await, denied);
    assert_eq!(post("/api/users", json!({"id": "eve", "level": "user"})).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn b8_an_admin_answers_for_nobody_above() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let waits = async |id: &str, level: Permission| -> (String, String) {
        let key = rack.user("default", id, level).await;
        let call = json!({"tool_name": "files.erase", "arguments": {"text": "hi"}});
        let (_, reply) = send(&rack, Method::POST, "/execute", &key, call).await;
        (key, reply["approval"].as_str().unwrap().to_owned())
    };
    let (boss, of_boss) = waits("boss", Permission::Owner).await;
    let (_, of_peer) = waits("peer", Permission::Admin).await;
    let listed = async |key: &str| {
        let (_, listed) = send(&rack, Method::GET, "/api/approvals", key, Value::Null).await;
        let listed = listed["approvals"].as_array().unwrap().clone();
        listed.iter().map(|waits| waits["user"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(!listed(&root).await.contains(&"boss".to_owned()));
    assert!(listed(&root).await.contains(&"peer".to_owned()));
    assert!(listed(&boss).await.contains(&"peer".to_owned()));
    let answer = async |key: &str, id: &str| {
        let changed = json!({"approve": true, "arguments": {"text": "mine"}});
        send(&rack, Method::POST, &format!("/api/approvals/{id}"), key, changed).await.0
    };
    assert_eq!(answer(&root, &of_boss).await, StatusCode::NOT_FOUND);
    assert_eq!(answer(&root, &of_peer).await, StatusCode::OK);
    assert_eq!(answer(&boss, &of_boss).await, StatusCode::OK);
}

#[tokio::test]
async fn b21_an_account_is_connected_at_an_address_that_a_client_cannot_choose() {
    let store = Arc::new(MemoryStore::default());
    let key = SealingKey::new(&[7; SealingKey::LEN]).unwrap();
    let connections =
        Connections::new(&BTreeMap::<String, McpServerSettings>::new(), store, key, None).unwrap();
    let rack = Rack::start_set(Caller::new("local", Permission::Owner), |settings| {
        settings.connections = Some(connections);
    })
    .await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let status = async |host: Option<&str>| {
        let request = rack.client.post(format!("{}/api/connections/notes", rack.base)).bearer_auth(&ada);
        let request = host.into_iter().fold(request, |request, host| request.header("host", host));
        request.send().await.unwrap().status()
    };
    for host in ["evil.example", "203.0.113.9:80"] {
        assert_eq!(status(Some(host)).await, StatusCode::MISDIRECTED_REQUEST, "{host}");
    }
    // There is no such server, and that is said.
    assert_eq!(status(None).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn u29_an_admin_lists_and_revokes_accounts_on_mcp_servers() {
    let store = Arc::new(MemoryStore::default());
    let account = |tenant: &str, user: &str| StoredConnection {
        tenant: tenant.into(),
        user: user.into(),
        server: "notes".into(),
        sealed: "with another key".into(),
        created_at: jiff::Timestamp::now(),
    };
    for (tenant, user) in
        [("default", "ada"), ("default", "boss"), ("default", "max"), ("acme", "ada"), ("", "")]
    {
        store.put_connection(account(tenant, user)).await.unwrap();
    }
    let key = SealingKey::new(&[7; SealingKey::LEN]).unwrap();
    let connections =
        Connections::new(&BTreeMap::<String, McpServerSettings>::new(), store.clone(), key, None).unwrap();
    let local = Caller::new("local", Permission::User);
    let rack = Rack::start_set(local, |settings| settings.connections = Some(connections)).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let eve = rack.user("acme", "eve", Permission::Admin).await;
    for (user, level) in [("ada", Permission::User), ("max", Permission::User), ("boss", Permission::Owner)] {
        rack.user("default", user, level).await;
    }
    let list = async |key: &str| {
        let (status, listed) = send(&rack, Method::GET, "/api/connected-accounts", key, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{listed}");
        let accounts = listed["accounts"].as_array().unwrap().clone();
        accounts.iter().map(|account| account["user"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(list(&root).await, [Value::Null, json!("ada"), json!("boss"), json!("max")]);
    assert_eq!(list(&eve).await, [Value::Null, json!("ada")]);
    let revoke = async |key: &str, query: &str| {
        send(&rack, Method::DELETE, &format!("/api/connected-accounts/notes{query}"), key, Value::Null)
            .await
            .0
    };
    assert_eq!(revoke(&eve, "").await, StatusCode::FORBIDDEN, "the shared one is the operator's");
    assert_eq!(revoke(&root, "?user=boss").await, StatusCode::FORBIDDEN, "an owner's");
    assert_eq!(revoke(&root, "?users=ada").await, StatusCode::BAD_REQUEST);
    assert_eq!(revoke(&root, "?user=ada").await, StatusCode::NO_CONTENT);
    assert_eq!(revoke(&root, "?user=ada").await, StatusCode::NOT_FOUND);
    assert_eq!(revoke(&root, "").await, StatusCode::NO_CONTENT);
    // Who is removed takes the accounts along.
    assert_eq!(
        send(&rack, Method::DELETE, "/api/users/max", &root, Value::Null).await.0,
        StatusCode::NO_CONTENT
    );
    assert_eq!(list(&root).await, [json!("boss")]);
    assert_eq!(list(&eve).await, [json!("ada")]);
    let records = rack.audit.records();
    let revoked = records
        .iter()
        .filter(|record| record.phase == Phase::Intent && record.tool == "toolrack connections revoke");
    let whose: Vec<_> = revoked.map(|record| record.arguments.clone().unwrap()["user"].clone()).collect();
    assert_eq!(whose, [json!("ada"), json!("ada"), Value::Null]);
}

/// Gives the same backup each time, of more than the system keeps for a client; or has no room.
struct Given {
    has_room: AtomicBool,
    bytes: usize,
}

#[async_trait]
impl MakeBackup for Given {
    async fn make(&self) -> Result<BackupFile, BackupFault> {
        match self.has_room.load(Ordering::Relaxed) {
            false => Err(BackupFault::NoRoom("the disk has 1 MiB left".to_owned())),
            true => {
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(&vec![b'b'; self.bytes]).unwrap();
                file.rewind().unwrap();
                Ok(BackupFile { file, bytes: self.bytes as u64, place: Box::new(()) })
            }
        }
    }
}

#[tokio::test]
async fn u29_one_backup_is_sent_at_a_time_to_the_operator_alone() {
    let given = Arc::new(Given { has_room: AtomicBool::new(true), bytes: 64 << 20 });
    let of_server = given.clone();
    let local = Caller::new("local", Permission::User);
    let rack = Rack::start_set(local, |settings| settings.backup = Some(of_server)).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let eve = rack.user("acme", "eve", Permission::Owner).await;
    let ask = async |key: &str| rack.post("/api/backup", key, &json!({})).send().await.unwrap();
    assert_eq!(ask(&eve).await.status(), StatusCode::FORBIDDEN, "it has the data of all tenants");
    let first = ask(&root).await;
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!(first.headers()["cache-control"], "no-store");
    // As long as it is being read.
    let busy = ask(&root).await;
    assert_eq!(busy.status(), StatusCode::CONFLICT);
    assert_eq!(busy.json::<Value>().await.unwrap()["error"]["type"], "backup_busy");
    assert_eq!(first.bytes().await.unwrap().len(), given.bytes);
    // Also where a client goes away in the middle.
    drop(ask(&root).await);
    let free = async { while ask(&root).await.status() == StatusCode::CONFLICT {} };
    crate::support::within(free).await;
    given.has_room.store(false, Ordering::Relaxed);
    let refused = async {
        loop {
            let answer = ask(&root).await;
            if answer.status() != StatusCode::CONFLICT {
                return answer;
            }
        }
    };
    let refused = crate::support::within(refused).await;
    assert_eq!(refused.status(), StatusCode::INSUFFICIENT_STORAGE);
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["type"], "no_room");
}

#[tokio::test]
async fn u29_turns_of_other_servers_are_listed_and_stopped_there() {
    let store = Arc::new(MemoryStore::default());
    let local = Caller::new("local", Permission::User);
    let elsewhere = TurnsElsewhere::new(store.clone(), "one");
    let rack = Rack::start_set(local, |settings| settings.elsewhere = Some(elsewhere)).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let eve = rack.user("acme", "eve", Permission::Admin).await;
    // What the server `two` tells.
    let space = StateSpace { tenant: "default".into(), user: None, name: "server:turns".into() };
    let turn = json!({"id": 7, "user": "ada", "chat": null, "since": "2026-03-01T12:00:00Z", "model": "qwen3", "rounds": 2, "tools": ["add"]});
    let told = json!({"at": jiff::Timestamp::now(), "turns": [turn]}).to_string();
    let put = store.put_state(&space, "told/two", Some(&told), Expected::Anything, &StateLimits::DEFAULT);
    assert!(put.await.unwrap());
    let list =
        async |key: &str| send(&rack, Method::GET, "/api/turns", key, Value::Null).await.1["turns"].clone();
    let listed = list(&root).await;
    let expected = json!([{"id": "7", "server": "two", "user": "ada", "chat": null, "since": "2026-03-01T12:00:00Z", "model": "qwen3",
        "rounds": 2, "tools": ["add"], "trace_id": null}]);
    assert_eq!(listed, expected);
    assert_eq!(list(&eve).await, json!([]), "of another tenant");
    let stop = async |key: &str, id: &str| {
        send(&rack, Method::DELETE, &format!("/api/turns/{id}"), key, Value::Null).await.0
    };
    assert_eq!(stop(&eve, "7?server=two").await, StatusCode::NOT_FOUND);
    assert_eq!(stop(&root, "7").await, StatusCode::NOT_FOUND, "none of this server");
    assert_eq!(stop(&root, "8?server=two").await, StatusCode::NOT_FOUND);
    assert_eq!(stop(&root, "7?server=three").await, StatusCode::NOT_FOUND);
    assert_eq!(stop(&root, "7?at=two").await, StatusCode::BAD_REQUEST);
    assert_eq!(store.state(&space, "stop/two").await.unwrap(), None);
    assert_eq!(stop(&root, "7?server=two").await, StatusCode::NO_CONTENT);
    let asked = store.state(&space, "stop/two").await.unwrap().unwrap();
    assert_eq!(asked, r#"[{"id":7,"since":"2026-03-01T12:00:00Z"}]"#);
    let records = rack.audit.records();
    let [intent, outcome] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((intent.tool.as_str(), outcome.success), ("turns.stop", Some(true)));
    assert_eq!(intent.arguments, Some(json!({"id": "7", "user": "ada", "server": "two"})));
}

/// Tries a tool for as long as there is no permit.
struct Trying(Arc<tokio::sync::Semaphore>);

impl TryTool for Trying {
    fn begin(
        &self,
        registry: &Registry,
        caller: Caller,
        tool: &str,
        tries: u32,
    ) -> Result<Examination, String> {
        if registry.get(tool).is_none() {
            return Err(format!("there is no tool `{tool}`"));
        }
        let (ends, report) = (self.0.clone(), json!({"model": "m", "tries": tries, "by": caller.user}));
        let report = async move {
            ends.acquire().await.unwrap().forget();
            Ok(report)
        };
        Ok(Examination { looks_at: Box::new(|| "1/10".to_owned()), report: Box::pin(report) })
    }
}

#[tokio::test]
async fn u29_an_admin_sees_whether_the_model_chooses_a_tool() {
    let ends = Arc::new(tokio::sync::Semaphore::new(0));
    let trying = Arc::new(Trying(ends.clone()));
    let rack = Rack::start_set(Caller::new("local", Permission::User), |settings| {
        settings.trials = Some(trying);
    })
    .await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let eve = rack.user("acme", "eve", Permission::Admin).await;
    let ask = async |method: Method, key: &str, body: Value| {
        let (status, answer) = send(&rack, method, "/api/tool-trial", key, body).await;
        (status, answer["error"]["type"].as_str().unwrap_or_default().to_owned(), answer)
    };
    for method in [Method::GET, Method::POST, Method::DELETE] {
        assert_eq!(ask(method, &ada, Value::Null).await.0, StatusCode::FORBIDDEN);
    }
    for (body, status, kind) in [
        (json!({"tool": "echo", "tries": 0}), StatusCode::BAD_REQUEST, "invalid_request_error"),
        (json!({"tool": "echo", "tries": 21}), StatusCode::BAD_REQUEST, "invalid_request_error"),
        (json!({"tool": "ecko"}), StatusCode::CONFLICT, "tool_not_tried"),
    ] {
        let (got, of_kind, answer) = ask(Method::POST, &root, body).await;
        assert_eq!((got, &*of_kind), (status, kind), "{answer}");
    }
    let begin = json!({"tool": "echo", "tries": 20});
    let (status, _, begun) = ask(Method::POST, &root, begin.clone()).await;
    assert_eq!((status, &begun["looks_at"]), (StatusCode::ACCEPTED, &json!("1/10")), "{begun}");
    // Another tenant does not have the tool.
    for (key, why) in [(&root, "trial_busy"), (&eve, "tool_not_tried")] {
        let (status, kind, _) = ask(Method::POST, key, json!({"tool": "echo"})).await;
        assert_eq!((status, &*kind), (StatusCode::CONFLICT, why));
    }
    let (_, _, theirs) = ask(Method::GET, &eve, Value::Null).await;
    assert_eq!((&theirs["tool"], &theirs["running"]), (&Value::Null, &json!(false)), "another tenant's");
    assert_eq!(ask(Method::DELETE, &eve, Value::Null).await.0, StatusCode::NO_CONTENT);
    let ended = async || loop {
        let (_, _, state) = ask(Method::GET, &root, Value::Null).await;
        if state["running"] == false {
            return state;
        }
    };
    ends.add_permits(1);
    let state = ended().await;
    assert_eq!(state["report"], json!({"model": "m", "tries": 20, "by": "root"}));
    assert_eq!(ask(Method::POST, &root, begin).await.0, StatusCode::ACCEPTED);
    assert_eq!(ask(Method::DELETE, &root, Value::Null).await.0, StatusCode::NO_CONTENT);
    let state = ended().await;
    assert_eq!((&state["report"], &state["error"]), (&Value::Null, &json!("it was stopped")));
    let records = rack.audit.records();
    let tried = records.iter().filter(|one| one.phase == Phase::Outcome && one.tool == "toolrack try");
    let tried: Vec<_> = tried.map(|one| (&*one.user, one.success)).collect();
    let [refused, begun] = [("root", Some(false)), ("root", Some(true))];
    assert_eq!(tried, [refused, begun, refused, ("eve", Some(false)), begun]);
}
