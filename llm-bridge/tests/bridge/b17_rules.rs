//! Rules about calls that a person has allowed beforehand, over HTTP: requirement B17.

use std::{sync::Arc, time::Duration};

use registry_core::{
    Caller, Effect, Permission, Registry, ToolCall, ToolPolicy, ToolResult,
    flow::{Reads, Sends},
    guard::audit::{MemoryAudit, Phase},
    store::Store,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Rack, Reply, Setup, with_effect, within};

struct Site {
    rack: Rack,
    audit: Arc<MemoryAudit>,
    store: Arc<registry_core::store::MemoryStore>,
}

/// A server with a tool that needs an approval.
async fn site(replies: impl IntoIterator<Item = Reply>) -> Site {
    let audit = Arc::new(MemoryAudit::new(100));
    let setup = Setup::bare().with(|setup| {
        let builder = Registry::builder().without_compiled().audit(audit.clone()).state(setup.store.clone());
        setup.registry = builder.build().unwrap();
    });
    let store = Arc::clone(&setup.store);
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    // It reads nothing, so that what it gives is nothing that later calls are asked about for.
    let policy = ToolPolicy {
        reads: Some(Reads::NOTHING),
        sends: Some(Sends::Nothing),
        ..with_effect(Effect::Destructive)
    };
    let erase = setup.tool("erase", schema, policy, |_, _| async { Ok(ToolResult::new("erased")) });
    Site { rack: erase.start(replies).await, audit, store }
}

impl Site {
    async fn send(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = self.rack.client.request(method, self.rack.url(path));
        let request = if body.is_null() { request } else { request.json(&body) };
        let response = within(request.send()).await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, Value::Null).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// The status of a call, and the approval that it needs.
    async fn erase(&self, path: &str) -> (u16, String) {
        let call = json!({"tool_name": "erase", "arguments": {"path": path}});
        let (status, reply) = self.send(Method::POST, "/execute", call).await;
        (status, reply["approval"].as_str().unwrap_or_default().to_owned())
    }

    async fn answer(&self, id: &str, body: Value) -> (u16, Value) {
        self.send(Method::POST, &format!("/api/approvals/{id}"), body).await
    }

    async fn rules(&self) -> Vec<Value> {
        self.get("/api/approval-rules").await["rules"].as_array().unwrap().clone()
    }

    /// What the audit says of the last call or change of that name.
    fn outcome(&self, of: &str) -> Value {
        let records = self.audit.records();
        let last = records.iter().rev().find(|record| record.tool == of && record.phase == Phase::Outcome);
        serde_json::to_value(last.unwrap()).unwrap()
    }

    /// The approval that waits.
    async fn waiting(&self) -> String {
        within(async {
            loop {
                if let Some(one) = self.get("/api/approvals").await["approvals"].get(0) {
                    return one["id"].as_str().unwrap().to_owned();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }

    /// Begins a turn of a chat.
    async fn turn(&self, chat: &str) {
        let (status, body) =
            self.send(Method::POST, &format!("/api/chats/{chat}/turn"), json!({"content": "Go."})).await;
        assert!(status < 300, "{body}");
    }

    /// The chat once its turn is over.
    async fn settled(&self, chat: &str) -> Value {
        within(async {
            loop {
                let whole = self.get(&format!("/api/chats/{chat}")).await;
                if whole["turn"].is_null() {
                    return whole;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }

    async fn new_chat(&self) -> String {
        let chat = json!({"title": "Notes", "settings": {"model": "m"}});
        let (_, chat) = self.send(Method::POST, "/api/chats", chat).await;
        chat["id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn b17_what_is_remembered_of_an_approval_is_listed_audited_and_revoked() {
    let site = site([]).await;
    let (status, id) = site.erase("notes/old/a.md").await;
    assert_eq!(status, 202);
    let approval = &site.get("/api/approvals").await["approvals"][0];
    let offered = json!([
        {"scope": "folder", "folder": "notes/old", "argument": "path", "others": {}},
        {"scope": "arguments", "arguments": {"path": "notes/old/a.md"}},
    ]);
    assert_eq!(approval["remember"], offered);
    assert!(
        approval.get("tool_sha256").is_none() && approval.get("arguments_sha256").is_none(),
        "{approval}"
    );
    // What makes no sense, or was not offered, changes nothing, and the call goes on waiting.
    for (body, status) in [
        (json!({"approve": false, "remember": "folder"}), 422),
        (json!({"approve": true, "remember": "folder", "arguments": {"path": "b"}}), 422),
        (json!({"approve": true, "remember": "chat"}), 422),
        (json!({"approve": true, "remember": "everything"}), 400),
    ] {
        let (answered, said) = site.answer(&id, body.clone()).await;
        assert_eq!(answered, status, "{body} {said}");
    }
    assert!(site.rules().await.is_empty());
    assert_eq!(site.answer(&id, json!({"approve": true, "remember": "folder"})).await.0, 200);
    let [rule] = site.rules().await.try_into().unwrap();
    let about = json!([rule["tool"], rule["scope"], rule["folder"], rule["applies"], rule["via"]]);
    assert_eq!(about, json!(["erase", "folder", "notes/old", true, null]));
    assert!(rule.get("tool_sha256").is_none(), "{rule}");
    let made = site.outcome("approval rule add");
    assert_eq!((&made["user"], &made["arguments"]["rule"]), (&json!("ada"), &rule["id"]));
    assert_eq!(made["arguments"]["approval"], json!(id));
    // The call that was asked about, and then another one in the folder without a question.
    assert_eq!(site.erase("notes/old/a.md").await.0, 200);
    assert_eq!(site.outcome("erase")["decision"]["by"], format!("rule:{}", rule["id"].as_str().unwrap()));
    assert_eq!(site.erase("notes/old/b.md").await.0, 200);
    assert_eq!(site.erase("notes/old/../b.md").await.0, 202);
    let address = format!("/api/approval-rules/{}", rule["id"].as_str().unwrap());
    assert_eq!(site.send(Method::DELETE, &address, Value::Null).await.0, 204);
    assert_eq!(site.send(Method::DELETE, &address, Value::Null).await.0, 404);
    assert_eq!(site.outcome("approval rule remove")["arguments"]["rule"], rule["id"]);
    assert_eq!(site.erase("notes/old/c.md").await.0, 202);
    assert!(site.rules().await.is_empty());
}

#[tokio::test]
async fn b17_calls_that_wait_already_are_allowed_with_the_one_that_is_answered() {
    let site = site([]).await;
    let mut waiting = Vec::new();
    for path in ["notes/a.md", "notes/b.md", "other/c.md", "notes/../d.md"] {
        waiting.push(site.erase(path).await.1);
    }
    assert_eq!(site.answer(&waiting[0], json!({"approve": true, "remember": "folder"})).await.0, 200);
    let left = site.get("/api/approvals").await["approvals"].clone();
    let left: Vec<&Value> = left.as_array().unwrap().iter().map(|approval| &approval["id"]).collect();
    assert_eq!(left, [&json!(waiting[2]), &json!(waiting[3])]);
    let (status, said) = site.answer(&waiting[1], json!({"approve": false})).await;
    assert_eq!((status, &said["error"]["type"]), (409, &json!("approval_closed")));
    assert_eq!((site.erase("notes/b.md").await.0, site.erase("other/c.md").await.0), (200, 202));
}

#[tokio::test]
async fn b17_an_approval_that_somebody_else_has_answered_leaves_no_rule() {
    let site = site([]).await;
    let (_, id) = site.erase("notes/a.md").await;
    assert_eq!(site.answer(&id, json!({"approve": false})).await.0, 200);
    let (status, said) = site.answer(&id, json!({"approve": true, "remember": "folder"})).await;
    assert_eq!((status, &said["error"]["type"]), (409, &json!("approval_closed")));
    assert!(site.rules().await.is_empty());
}

#[tokio::test]
async fn b17_an_admin_who_answers_for_another_makes_no_rule() {
    let site = site([]).await;
    let registry = &site.rack.registry;
    let bob = registry.context(Caller::new("bob", Permission::User)).with_approval_wait(Duration::ZERO);
    let call = ToolCall::new("erase", json!({"path": "notes/a.md"}));
    let id = registry.execute(&bob, call).await.result.unwrap_err().approval().unwrap().to_owned();
    let (status, said) = site.answer(&id, json!({"approve": true, "remember": "folder"})).await;
    assert_eq!((status, &said["error"]["type"]), (422, &json!("cannot_be_remembered")));
    assert_eq!(site.answer(&id, json!({"approve": true})).await.0, 200);
    assert!(site.rules().await.is_empty());
    assert!(registry.approval_rules("bob").await.unwrap().is_empty());
}

#[tokio::test]
async fn b17_what_is_allowed_in_a_chat_goes_with_the_chat_and_all_of_it_with_the_person() {
    let call = |path: &str| Answer::new().call("c", "erase", &json!({"path": path})).into();
    let replies = [call("a"), Reply::text("1"), call("b"), Reply::text("2"), call("c"), Reply::text("3")];
    let site = site(replies).await;
    let (one, other) = (site.new_chat().await, site.new_chat().await);
    site.turn(&one).await;
    let id = site.waiting().await;
    assert_eq!(site.answer(&id, json!({"approve": true, "remember": "chat"})).await.0, 200);
    site.settled(&one).await;
    // Nobody is asked in this chat any more.
    site.turn(&one).await;
    site.settled(&one).await;
    assert_eq!(site.rack.ran().len(), 2);
    // And in another one as before.
    site.turn(&other).await;
    let id = site.waiting().await;
    assert_eq!(site.answer(&id, json!({"approve": true, "remember": "arguments"})).await.0, 200);
    site.settled(&other).await;
    let scopes = |rules: Vec<Value>| rules.iter().map(|rule| rule["scope"].clone()).collect::<Vec<_>>();
    assert_eq!(scopes(site.rules().await), ["chat", "arguments"]);
    assert_eq!(site.send(Method::DELETE, &format!("/api/chats/{one}"), Value::Null).await.0, 204);
    assert_eq!(scopes(site.rules().await), ["arguments"]);
    site.store.remove_user("default", "ada", jiff::Timestamp::now()).await.unwrap();
    assert!(site.rules().await.is_empty());
}

#[tokio::test]
async fn b17_nothing_is_remembered_of_a_chat_that_a_client_has_made_up() {
    let call = Answer::new().call("c", "erase", &json!({"path": "a"}));
    let site = site([call.into()]).await;
    let asked = site.rack.ask_with(false, json!({"toolrack": {"chat_id": "mine"}})).await;
    drop(asked);
    let id = site.waiting().await;
    let (status, said) = site.answer(&id, json!({"approve": true, "remember": "chat"})).await;
    assert_eq!((status, &said["error"]["type"]), (422, &json!("cannot_be_remembered")), "{said}");
    assert!(site.rules().await.is_empty());
}
