//! A key that is revoked and a level that is lowered while a request is under way: requirements M9, B8, T3.

use std::{sync::Arc, time::Duration};

use crate::support::{Answer, Reported, Scripted, user, within};
use jiff::Timestamp;
use llm_bridge::{
    server::{self, Access, ServerSettings},
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};
use registry_core::{
    Caller, Effect, ErrorKind, Permission, Registry, ToolPolicy, ToolResult, ToolSpec,
    guard::audit::{AuditRecord, MemoryAudit},
    handler_fn,
    store::{ApiKey, MemoryStore, Store, User},
};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinHandle,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Longer than a key is believed.
const FORGOTTEN: Duration = Duration::from_millis(700);

struct Rack {
    base: String,
    store: Arc<MemoryStore>,
    registry: Registry,
    audit: Arc<MemoryAudit>,
    upstream: Scripted,
    client: Client,
    _stop: DropGuard,
}

impl Rack {
    async fn start() -> Self {
        let audit = Arc::new(MemoryAudit::new(100));
        let store = Arc::new(MemoryStore::default());
        let registry = Registry::builder().without_compiled().audit(audit.clone()).build().unwrap();
        let add = |name: &str, policy: ToolPolicy, handler| {
            registry.register(ToolSpec::new(name, json!({"type": "object"})), policy, Some(handler)).unwrap();
        };
        let erase = ToolPolicy { effect: Effect::Destructive, daily_limit: 1, ..ToolPolicy::new() };
        add("erase", erase, handler_fn(|_, _| async { Ok(ToolResult::new("erased")) }));
        let admins = ToolPolicy { permission: Permission::Admin, ..ToolPolicy::new() };
        let users = Arc::clone(&store);
        let resign = handler_fn(move |context, _| {
            let users = Arc::clone(&users);
            async move {
                put_user(&users, &context.caller().user, Permission::User).await;
                tokio::time::sleep(FORGOTTEN).await;
                Ok(ToolResult::new("resigned"))
            }
        });
        add("resign", admins, resign);
        let settings = ServerSettings {
            access: Access { key_required: true, ..Access::default() },
            grace: Duration::from_secs(1),
            ..ServerSettings::new(Caller::new("local", Permission::Guest), store.clone())
        };
        let upstream = Scripted::start([]).await;
        let model = Upstream::http(&upstream.base(), None, Duration::from_secs(20)).unwrap();
        let backend = Backend::new(registry.clone(), model, ChatSettings::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        tokio::spawn(server::serve(listener, backend, settings, stop.clone()));
        let client = toolrack_http::build_client(|| Client::builder().no_proxy()).unwrap();
        Self { base, store, registry, audit, upstream, client, _stop: stop.drop_guard() }
    }

    /// Adds a user, and gives the id and the secret of a key.
    async fn user(&self, id: &str, level: Permission, delegate: bool) -> (String, String) {
        put_user(&self.store, id, level).await;
        let (key, secret) = ApiKey::generate("default", id, delegate, Timestamp::now()).unwrap();
        let id = key.id.clone();
        self.store.put_key(key).await.unwrap();
        (id, secret)
    }

    async fn revoke(&self, id: &str) {
        assert!(self.store.revoke_key("default", id, Timestamp::now()).await.unwrap());
    }

    /// Calls `erase`, which waits for a person.
    fn erase(&self, secret: &str, on_behalf_of: Option<&str>) -> JoinHandle<Response> {
        let mut body = json!({"tool_name": "erase", "arguments": {}, "approval_wait_seconds": 60});
        if let Some(user) = on_behalf_of {
            body["user_id"] = user.into();
        }
        let request = self.client.post(format!("{}/execute", self.base)).bearer_auth(secret).json(&body);
        tokio::spawn(async move { within(request.send()).await.unwrap() })
    }

    /// Waits until a call waits for a person, lets `meanwhile` happen and be seen, and approves the call.
    async fn approve_after(&self, secret: &str, meanwhile: impl Future<Output = ()>) {
        let id = within(async {
            loop {
                if let Some(approval) = self.registry.pending_approvals().await.unwrap().first() {
                    return approval.id.clone();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        meanwhile.await;
        tokio::time::sleep(FORGOTTEN).await;
        let request = self.client.post(format!("{}/api/approvals/{id}", self.base)).bearer_auth(secret);
        let answered = within(request.json(&json!({"approve": true})).send()).await.unwrap();
        assert_eq!(answered.status(), StatusCode::OK);
    }

    fn last_record(&self) -> AuditRecord {
        self.audit.records().pop().unwrap()
    }
}

async fn put_user(store: &MemoryStore, id: &str, level: Permission) {
    let user = User { id: id.into(), level, personas: Vec::new(), created_at: Timestamp::now() };
    store.put_user("default", user).await.unwrap();
}

#[tokio::test]
async fn m9_a_key_revoked_while_a_person_thinks_stops_the_call() {
    let rack = Rack::start().await;
    let (key, ada) = rack.user("ada", Permission::User, false).await;
    let (_, root) = rack.user("root", Permission::Admin, false).await;
    let waiting = rack.erase(&ada, None);
    rack.approve_after(&root, rack.revoke(&key)).await;
    let refused = waiting.await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let reply: Value = refused.json().await.unwrap();
    assert!(reply["error"].as_str().unwrap().contains("any more"), "{reply}");
    let record = rack.last_record();
    assert_eq!((record.error, record.success), (Some(ErrorKind::PermissionDenied), Some(false)));
    assert_eq!(record.decision.unwrap().by, "user:root");
    let of_call = rack.audit.records().iter().filter(|record| &*record.tool == "erase").count();
    assert_eq!(of_call, 1, "no intent of a call that was not made");

    // What was counted for it is given back: with another key the one call of the day is there.
    let (_, ada) = rack.user("ada", Permission::User, false).await;
    let waiting = rack.erase(&ada, None);
    rack.approve_after(&root, async {}).await;
    assert_eq!(waiting.await.unwrap().status(), StatusCode::OK);
    assert_eq!(rack.erase(&ada, None).await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn m9_whoever_calls_for_another_loses_what_either_of_both_loses() {
    let rack = Rack::start().await;
    let erase = rack.registry.get("erase").unwrap();
    let policy = ToolPolicy { permission: Permission::User, ..*erase.policy() };
    let spec = ToolSpec { version: Some("2.0.0".into()), ..erase.spec().clone() };
    let handler = handler_fn(|_, _| async { Ok(ToolResult::new("erased")) });
    rack.registry.register(spec, policy, Some(handler)).unwrap();
    let (_, root) = rack.user("root", Permission::Admin, false).await;
    let (hop_key, hop) = rack.user("hop", Permission::User, true).await;
    rack.user("bob", Permission::User, false).await;

    let waiting = rack.erase(&hop, Some("bob"));
    rack.approve_after(&root, put_user(&rack.store, "bob", Permission::Guest)).await;
    assert_eq!(waiting.await.unwrap().status(), StatusCode::FORBIDDEN);
    let record = rack.last_record();
    assert_eq!((record.user.as_str(), record.via.as_deref()), ("bob", Some("hop")));
    assert_eq!((record.error, record.level), (Some(ErrorKind::PermissionDenied), Permission::Guest));

    put_user(&rack.store, "bob", Permission::User).await;
    tokio::time::sleep(FORGOTTEN).await;
    let waiting = rack.erase(&hop, Some("bob"));
    rack.approve_after(&root, rack.revoke(&hop_key)).await;
    assert_eq!(waiting.await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn m9_a_level_lowered_in_the_middle_of_a_turn_stops_the_next_call() {
    for stream in [false, true] {
        let rack = Rack::start().await;
        let (_, ada) = rack.user("ada", Permission::Admin, false).await;
        rack.upstream.push(Answer::new().call("one", "resign", &json!({})));
        rack.upstream.push(Answer::new().call("two", "resign", &json!({})));
        rack.upstream.push(Answer::text("Done."));
        let body = json!({"model": "m", "messages": [user("Go.")], "stream": stream});
        let request = rack.client.post(format!("{}/v1/chat/completions", rack.base)).json(&body);
        let reported = within(Reported::read(within(request.bearer_auth(&ada).send()).await.unwrap())).await;
        reported.expect("Done.");
        let finished = reported.details_of("call_finished");
        let said: Vec<_> = finished.iter().map(|call| (&call["id"], &call["success"])).collect();
        assert_eq!(said, [(&json!("one"), &json!(true)), (&json!("two"), &json!(false))]);
        let record = rack.last_record();
        assert_eq!((record.call_id.as_str(), record.level), ("two", Permission::User));
        assert_eq!(record.error, Some(ErrorKind::PermissionDenied));
    }
}

#[tokio::test]
async fn n10_a_key_revoked_while_its_request_is_sent_is_refused_with_a_challenge() {
    let rack = Rack::start().await;
    let (key, secret) = rack.user("ada", Permission::User, false).await;
    let body = json!({"messages": [user("Go.")], "toolrack": {"persona": "any"}}).to_string();
    let (first, last) = body.split_at(1);
    let mut stream = tokio::net::TcpStream::connect(rack.base.trim_start_matches("http://")).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {secret}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + first).as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    rack.revoke(&key).await;
    tokio::time::sleep(FORGOTTEN).await;
    stream.write_all(last.as_bytes()).await.unwrap();
    let mut reply = String::new();
    within(stream.read_to_string(&mut reply)).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 401 "), "{reply}");
    assert!(reply.contains("www-authenticate: Bearer realm=\"toolrack\""), "{reply}");
}

#[tokio::test]
async fn m9_a_key_revoked_in_the_middle_of_a_turn_ends_its_calls_and_not_its_answer() {
    let rack = Rack::start().await;
    let (key, ada) = rack.user("ada", Permission::Admin, false).await;
    rack.upstream.push(Answer::new().call("one", "resign", &json!({})));
    rack.upstream.push(Answer::new().call("two", "nothing_of_that_name", &json!({})));
    rack.upstream.push(Answer::text("Done."));
    let body = json!({"model": "m", "messages": [user("Go.")]});
    let request = rack.client.post(format!("{}/v1/chat/completions", rack.base)).json(&body);
    let asking = tokio::spawn(request.bearer_auth(&ada).send());
    crate::support::until(|| !rack.audit.records().is_empty()).await;
    rack.revoke(&key).await;
    let reported = within(Reported::read(within(asking).await.unwrap().unwrap())).await;
    reported.expect("Done.");
    // Not even that there is no such tool.
    let record = rack.last_record();
    assert_eq!((record.call_id.as_str(), record.error), ("two", Some(ErrorKind::PermissionDenied)));
}

#[tokio::test]
async fn m9_whoever_forges_a_user_leaves_a_record() {
    let rack = Rack::start().await;
    let (_, ada) = rack.user("ada", Permission::User, false).await;
    rack.user("bob", Permission::Owner, false).await;
    let forged = rack.erase(&ada, Some("bob")).await.unwrap();
    assert_eq!(forged.status(), StatusCode::FORBIDDEN);
    let record = rack.last_record();
    assert_eq!((record.tool.as_str(), record.user.as_str()), ("erase", "ada"));
    assert_eq!(record.error, Some(ErrorKind::PermissionDenied));
    assert!(record.error_message.unwrap().contains("may not call for another user"));
}
