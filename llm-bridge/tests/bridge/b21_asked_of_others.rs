//! What a tool asks one person, nobody else sees or answers, and the turn goes on for nobody else: requirements B19, B21.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use registry_core::{
    Effect, Permission, Registry, ToolContext, ToolError, ToolPolicy, ToolResult,
    guard::approval::MemoryApprovals,
    store::{ApiKey, MemoryStore, Store, User},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{Answer, Rack, Reply, Reported, Setup, user, within};

async fn balance(context: ToolContext) -> Result<ToolResult, ToolError> {
    let account = context.ask("Which account?", ["Savings", "Joint"]).await?;
    Ok(ToolResult::new(format!("{account}: 40 EUR")))
}

/// What the servers of one database share.
#[derive(Default)]
struct Shared {
    store: Arc<MemoryStore>,
    approvals: Arc<MemoryApprovals>,
}

impl Shared {
    async fn key(&self, tenant: &str, id: &str, level: Permission) -> String {
        let user = User { id: id.into(), level, personas: Vec::new(), created_at: Timestamp::now() };
        self.store.put_user(tenant, user).await.unwrap();
        let (key, secret) = ApiKey::generate(tenant, id, false, Timestamp::now()).unwrap();
        self.store.put_key(key).await.unwrap();
        secret
    }

    async fn server(&self, replies: Vec<Reply>) -> Rack {
        let builder = Registry::builder().without_compiled().approvals(self.approvals.clone());
        let registry = builder.state(self.store.clone()).build().unwrap();
        let setup = Setup::bare().with(|setup| {
            (setup.registry, setup.store) = (registry, Arc::clone(&self.store));
            setup.access.key_required = true;
        });
        let asks = ToolPolicy { resumable: true, ..ToolPolicy::new() };
        let erases = ToolPolicy { effect: Effect::Destructive, ..ToolPolicy::new() };
        let setup = setup.plain_tool("balance", asks, balance);
        setup.plain_tool("erase", erases, |_| async { Ok(ToolResult::new("erased")) }).start(replies).await
    }
}

/// One request of somebody.
async fn send(
    rack: &Rack,
    key: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (StatusCode, Value) {
    let request = rack.client.request(method, rack.url(path)).bearer_auth(key);
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let reply = within(request.send()).await.unwrap();
    (reply.status(), reply.json().await.unwrap_or_default())
}

async fn listed(rack: &Rack, key: &str, what: &str) -> Vec<Value> {
    let (_, listed) = send(rack, key, Method::GET, &format!("/api/{what}"), None).await;
    listed[what].as_array().unwrap_or_else(|| panic!("{listed}")).clone()
}

/// The question or approval that somebody has; waits until there is one.
async fn first(rack: &Rack, key: &str, what: &str) -> String {
    within(async {
        loop {
            match listed(rack, key, what).await.pop() {
                Some(asked) => break asked["id"].as_str().unwrap().to_owned(),
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
    .await
}

fn execute(rack: &Rack, key: &str, tool: &str) -> JoinHandle<Value> {
    let body = json!({"tool_name": tool, "approval_wait_seconds": 300});
    let request = rack.client.post(rack.url("/execute")).bearer_auth(key).json(&body);
    tokio::spawn(async move { within(request.send()).await.unwrap().json().await.unwrap() })
}

async fn chat(rack: &Rack, key: &str, messages: Value, wait: u64) -> Reported {
    let body = json!({"model": "m", "messages": messages, "toolrack": {"question_wait_seconds": wait}});
    let request = rack.client.post(rack.url("/v1/chat/completions")).bearer_auth(key).json(&body);
    Reported::read(within(request.send()).await.unwrap()).await
}

/// Nobody of these comes to a question, whatever they try.
async fn nobody_comes_to(rack: &Rack, question: &str, others: &[String]) {
    let path = format!("/api/questions/{question}");
    for key in others {
        assert!(listed(rack, key, "questions").await.is_empty());
        assert!(listed(rack, key, "approvals").await.is_empty());
        let tries = [
            (Method::GET, path.clone(), None),
            (Method::POST, path.clone(), Some(json!({"answer": "Joint"}))),
            (Method::POST, path.clone(), Some(json!({"decline": true}))),
            (Method::POST, format!("/api/approvals/{question}"), Some(json!({"approve": true}))),
            (Method::POST, format!("/api/approvals/{question}"), Some(json!({"approve": false}))),
        ];
        for (method, path, body) in tries {
            let (status, told) = send(rack, key, method, &path, body).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {told}");
            assert!(!told.to_string().contains("account"), "{told}");
        }
    }
}

#[tokio::test]
async fn b21_nobody_else_sees_or_answers_what_a_tool_asks_neither_while_it_waits_nor_after_its_server() {
    let shared = Shared::default();
    let one = shared.server(Vec::new()).await;
    let ada = shared.key("default", "ada", Permission::User).await;
    let others = [
        shared.key("default", "bob", Permission::User).await,
        shared.key("default", "root", Permission::Owner).await,
        shared.key("acme", "ada", Permission::Owner).await,
        shared.key("default", "guest", Permission::Guest).await,
    ];
    let waiting = execute(&one, &ada, "balance");
    let question = first(&one, &ada, "questions").await;
    nobody_comes_to(&one, &question, &others).await;
    // The same call of others asks these themselves.
    let of_bob = execute(&one, &others[0], "balance");
    let bobs = first(&one, &others[0], "questions").await;
    assert_ne!(bobs, question);
    let answer = |text: &str| Some(json!({"answer": text}));
    let path = |id: &str| format!("/api/questions/{id}");
    assert_eq!(
        send(&one, &ada, Method::POST, &path(&bobs), answer("Savings")).await.0,
        StatusCode::NOT_FOUND
    );
    assert_eq!(send(&one, &others[0], Method::POST, &path(&bobs), answer("Joint")).await.0, StatusCode::OK);
    assert_eq!(of_bob.await.unwrap()["result"], "Joint: 40 EUR");
    assert!(!waiting.is_finished());

    // Its server is gone: the call waits in the store.
    one.registry.leave_questions();
    waiting.abort();
    let two = shared.server(Vec::new()).await;
    nobody_comes_to(&two, &question, &others).await;
    assert_eq!(send(&two, &ada, Method::POST, &path(&question), answer("Savings")).await.0, StatusCode::OK);
    let done = within(async {
        loop {
            let (_, asked) = send(&two, &ada, Method::GET, &path(&question), None).await;
            if asked["call"]["state"] == "done" {
                break asked;
            }
            // Also not what has become of it.
            nobody_comes_to(&two, &question, &others).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert_eq!(done.await["call"]["result"]["result"], "Savings: 40 EUR");
    nobody_comes_to(&two, &question, &others).await;
    // The result is for her next call like it, not for that of somebody else.
    for key in &others[..2] {
        let body = Some(json!({"tool_name": "balance"}));
        assert_eq!(send(&two, key, Method::POST, "/execute", body).await.0, StatusCode::ACCEPTED);
    }
    assert_eq!(execute(&two, &ada, "balance").await.unwrap()["result"], "Savings: 40 EUR");
}

#[tokio::test]
async fn b21_a_turn_that_asked_goes_on_for_its_own_user_alone() {
    let shared = Shared::default();
    let call = || Reply::from(Answer::new().call("c", "balance", &json!({})));
    let one = shared.server(vec![call()]).await;
    let ada = shared.key("default", "ada", Permission::User).await;
    let others = [
        shared.key("default", "root", Permission::Owner).await,
        shared.key("acme", "ada", Permission::User).await,
    ];
    let asking = {
        let body =
            json!({"model": "m", "messages": [user("Go.")], "toolrack": {"question_wait_seconds": 300}});
        let request = one.client.post(one.url("/v1/chat/completions")).bearer_auth(&ada).json(&body);
        tokio::spawn(async move { within(request.send()).await.unwrap().text().await })
    };
    let question = first(&one, &ada, "questions").await;
    one.registry.leave_questions();
    asking.abort();

    // The same words of somebody else are a conversation of their own: the model is asked anew.
    let two = shared.server(Vec::new()).await;
    for (number, key) in others.iter().enumerate() {
        two.upstream.push(Reply::text("What?"));
        chat(&two, key, json!([user("Go.")]), 0).await.expect("What?");
        assert_eq!(two.upstream.asked()[number].messages().len(), 1);
    }
    let path = format!("/api/questions/{question}");
    let answer = Some(json!({"answer": "Joint"}));
    assert_eq!(send(&two, &ada, Method::POST, &path, answer).await.0, StatusCode::OK);
    for key in &others {
        two.upstream.push(Reply::text("Still: what?"));
        chat(&two, key, json!([user("Go.")]), 0).await.expect("Still: what?");
    }
    assert!(two.upstream.asked().iter().all(|asked| !asked.raw("messages").contains("40 EUR")));
    two.upstream.push(Reply::text("You have 40 EUR."));
    chat(&two, &ada, json!([user("Go.")]), 60).await.expect("You have 40 EUR.");
    assert!(two.upstream.asked().last().unwrap().raw("messages").contains("Joint: 40 EUR"));
}

#[tokio::test]
async fn b21_what_a_removed_user_was_asked_is_nobodys_of_the_same_name() {
    let shared = Shared::default();
    let rack = shared.server(Vec::new()).await;
    // The configured user of this server has the same name, and is an owner.
    let root = shared.key("default", "root", Permission::Owner).await;
    let bob = shared.key("default", "bob", Permission::User).await;
    let ada = shared.key("default", "ada", Permission::User).await;
    let calls = [execute(&rack, &ada, "balance"), execute(&rack, &ada, "erase")];
    let ids = [first(&rack, &ada, "questions").await, first(&rack, &ada, "approvals").await];
    let of_bob = execute(&rack, &bob, "balance");
    let bobs = first(&rack, &bob, "questions").await;
    assert_eq!(send(&rack, &root, Method::DELETE, "/api/users/ada", None).await.0, StatusCode::NO_CONTENT);
    let another = shared.key("default", "ada", Permission::User).await;
    for (what, id) in ["questions", "approvals"].into_iter().zip(&ids) {
        assert!(listed(&rack, &another, what).await.is_empty());
        for key in [&another, &root] {
            let body =
                if what == "questions" { json!({"answer": "Joint"}) } else { json!({"approve": true}) };
            let (status, told) =
                send(&rack, key, Method::POST, &format!("/api/{what}/{id}"), Some(body)).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{told}");
        }
    }
    for call in calls {
        let told = call.await.unwrap();
        assert!(!told["error"].is_null() && !told.to_string().contains("EUR"), "{told}");
    }
    assert!(rack.ran().iter().all(|(tool, _)| tool != "erase"));
    // Others are asked as before.
    let path = format!("/api/questions/{bobs}");
    assert_eq!(
        send(&rack, &bob, Method::POST, &path, Some(json!({"answer": "Joint"}))).await.0,
        StatusCode::OK
    );
    assert_eq!(of_bob.await.unwrap()["result"], "Joint: 40 EUR");
}
