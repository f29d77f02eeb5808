//! Users, keys, limits and approvals through the HTTP server: requirements B8, M9, T3, L3.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use llm_bridge::{
    server::{Access, ServerSettings, router},
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};
use registry_core::{
    Caller, Effect, Permission, Registry, ToolPolicy, ToolResult, ToolSpec,
    guard::audit::{MemoryAudit, Phase},
    handler_fn,
    store::{ApiKey, MemoryStore, Persona, Store, User},
};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A server with users who have keys.
pub(crate) struct Rack {
    pub(crate) base: String,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) client: Client,
    pub(crate) audit: Arc<MemoryAudit>,
    _stop: tokio_util::sync::DropGuard,
}

fn add(registry: &Registry, name: &str, policy: ToolPolicy) {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let handler = handler_fn(|context, arguments| async move {
        Ok(ToolResult::new(json!({"user": context.caller().user, "text": arguments.get("text")})))
    });
    registry.register(ToolSpec::new(name, schema), policy, Some(handler)).unwrap();
}

impl Rack {
    pub(crate) async fn start(access: Access) -> Self {
        Self::start_for(access, Caller::new("local", Permission::User)).await
    }

    /// For a user of the configuration.
    async fn start_for(access: Access, caller: Caller) -> Self {
        Self::start_set(caller, |settings| settings.access = access).await
    }

    /// With other settings.
    pub(crate) async fn start_set(caller: Caller, change: impl FnOnce(&mut ServerSettings)) -> Self {
        let audit = Arc::new(MemoryAudit::new(1024));
        let registry = Registry::builder().without_compiled().audit(audit.clone()).build().unwrap();
        add(&registry, "echo", ToolPolicy::new());
        add(&registry, "files.erase", ToolPolicy { effect: Effect::Destructive, ..ToolPolicy::new() });
        add(&registry, "once", ToolPolicy { daily_limit: 1, ..ToolPolicy::new() });
        add(&registry, "admins.only", ToolPolicy { permission: Permission::Admin, ..ToolPolicy::new() });
        Self::serve(caller, registry, audit, change).await
    }

    /// With other tools.
    pub(crate) async fn start_with(
        access: Access,
        caller: Caller,
        registry: Registry,
        audit: Arc<MemoryAudit>,
    ) -> Self {
        Self::serve(caller, registry, audit, |settings| settings.access = access).await
    }

    /// With another registry, which has an audit of its own.
    pub(crate) async fn start_over(
        caller: Caller,
        registry: Registry,
        change: impl FnOnce(&mut ServerSettings),
    ) -> Self {
        Self::serve(caller, registry, Arc::new(MemoryAudit::new(1)), change).await
    }

    async fn serve(
        caller: Caller,
        registry: Registry,
        audit: Arc<MemoryAudit>,
        change: impl FnOnce(&mut ServerSettings),
    ) -> Self {
        let store = Arc::new(MemoryStore::default());
        let mut settings =
            ServerSettings { grace: Duration::from_secs(1), ..ServerSettings::new(caller, store.clone()) };
        change(&mut settings);
        let backend = Backend::new(registry, Upstream::demo(), ChatSettings::default());
        let stop = CancellationToken::new();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let app = router(backend, settings, stop.clone()).unwrap();
        let stopped = stop.clone();
        tokio::spawn(async move {
            axum::serve(listener, app).with_graceful_shutdown(async move { stopped.cancelled().await }).await
        });
        let client = toolrack_http::build_client(|| Client::builder().no_proxy()).unwrap();
        Self { base, store, client, audit, _stop: stop.drop_guard() }
    }

    pub(crate) async fn user(&self, tenant: &str, id: &str, level: Permission) -> String {
        self.key(tenant, id, level, None, false).await
    }

    async fn key(
        &self,
        tenant: &str,
        id: &str,
        level: Permission,
        modules: Option<&str>,
        delegate: bool,
    ) -> String {
        let now = Timestamp::now();
        // A persona of the module's name with this one module.
        let personas: Vec<String> = modules.into_iter().map(str::to_owned).collect();
        for name in personas.clone() {
            let persona = Persona { allowed_modules: [name.clone()].into(), name, created_at: now };
            self.store.put_persona(tenant, persona).await.unwrap();
        }
        let user = User { id: id.into(), level, personas, created_at: now };
        self.store.put_user(tenant, user).await.unwrap();
        let (key, secret) = ApiKey::generate(tenant, id, delegate, now).unwrap();
        self.store.put_key(key).await.unwrap();
        secret
    }

    pub(crate) fn post(&self, path: &str, key: &str, body: &Value) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.base)).bearer_auth(key).json(body)
    }

    async fn call(&self, key: &str, tool: &str) -> Response {
        self.post("/execute", key, &json!({"tool_name": tool, "arguments": {"text": "hi"}}))
            .send()
            .await
            .unwrap()
    }

    pub(crate) async fn tools(&self, key: &str) -> Vec<String> {
        let request = self.client.get(format!("{}/api/tools", self.base)).bearer_auth(key);
        let listed: Value = request.send().await.unwrap().json().await.unwrap();
        let tools = listed["tools"].as_array().unwrap();
        let usable = tools.iter().filter(|tool| tool["enabled"] == true);
        usable.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn s10_a_server_without_keys_serves_another_whose_local_user_is_called_otherwise() {
    let rack = Rack::start(Access::default()).await;
    let call = json!({"tool_name": "echo", "arguments": {}, "user_id": "somebody"});
    let answer = rack.client.post(format!("{}/execute", rack.base)).json(&call).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.json::<Value>().await.unwrap()["result"]["user"], "local");

    let keyed = Access { api_key: Some("sesame".to_owned()), ..Access::default() };
    let rack = Rack::start(keyed).await;
    let answer = rack.post("/execute", "sesame", &call).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn m9_a_key_says_who_calls_and_nobody_calls_for_another() {
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let reply: Value = rack.call(&ada, "echo").await.json().await.unwrap();
    assert_eq!((&reply["success"], &reply["result"]["user"]), (&json!(true), &json!("ada")));

    let forged = json!({"tool_name": "echo", "arguments": {}, "user_id": "bob"});
    assert_eq!(rack.post("/execute", &ada, &forged).send().await.unwrap().status(), StatusCode::FORBIDDEN);
    let hop = rack.key("default", "hop", Permission::User, None, true).await;
    let reply: Value = rack.post("/execute", &hop, &forged).send().await.unwrap().json().await.unwrap();
    assert_eq!(reply["result"]["user"], "bob");
    for nobody in ["", "\n", &"x".repeat(300)] {
        let forged = json!({"tool_name": "echo", "user_id": nobody});
        assert_eq!(
            rack.post("/execute", &hop, &forged).send().await.unwrap().status(),
            StatusCode::BAD_REQUEST
        );
    }
    // A server that calls for others lends them nothing.
    let chief = rack.key("default", "chief", Permission::Admin, None, true).await;
    rack.key("default", "carl", Permission::User, Some("files"), false).await;
    for (tool, user, status) in [
        ("admins.only", "carl", StatusCode::FORBIDDEN),
        ("echo", "carl", StatusCode::FORBIDDEN),
        ("admins.only", "nobody", StatusCode::FORBIDDEN),
        ("echo", "nobody", StatusCode::OK),
    ] {
        let call = json!({"tool_name": tool, "user_id": user});
        assert_eq!(
            rack.post("/execute", &chief, &call).send().await.unwrap().status(),
            status,
            "{tool} {user}"
        );
    }
    let list = json!({"tool_name": "echo", "arguments": []});
    assert_eq!(
        rack.post("/execute", &ada, &list).send().await.unwrap().status(),
        StatusCode::UNPROCESSABLE_ENTITY
    );
}

#[tokio::test]
async fn s10_the_audit_says_which_key_was_used() {
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let hop = rack.key("default", "hop", Permission::User, None, true).await;
    rack.call(&ada, "echo").await;
    let call = json!({"tool_name": "echo", "arguments": {}, "user_id": "bob"});
    rack.post("/execute", &hop, &call).send().await.unwrap();
    rack.client
        .post(format!("{}/execute", rack.base))
        .json(&json!({"tool_name": "echo"}))
        .send()
        .await
        .unwrap();
    let keys = rack.store.keys("default").await.unwrap();
    let key_of = |user: &str| keys.iter().find(|key| key.user == user).map(|key| format!("key {}", key.id));
    let records = rack.audit.records().into_iter().filter(|record| record.phase == Phase::Outcome);
    let used: Vec<_> = records.map(|record| (record.user, record.credential)).collect();
    let expected = [("ada", key_of("ada")), ("bob", key_of("hop")), ("local", None)];
    assert_eq!(used, expected.map(|(user, key)| (user.to_owned(), key)));
}

#[tokio::test]
async fn m6_lists_and_calls_agree_for_each_user() {
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let filer = rack.key("default", "filer", Permission::User, Some("files"), false).await;
    assert_eq!(rack.tools(&ada).await, ["echo", "files.erase", "once"]);
    assert_eq!(rack.tools(&root).await, ["admins.only", "echo", "files.erase", "once"]);
    assert_eq!(rack.tools(&filer).await, ["files.erase"]);
    assert_eq!(rack.call(&ada, "admins.only").await.status(), StatusCode::FORBIDDEN);
    assert_eq!(rack.call(&filer, "echo").await.status(), StatusCode::FORBIDDEN);
    assert_eq!(rack.call(&root, "admins.only").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_key_that_is_unknown_revoked_or_missing_opens_nothing() {
    let rack = Rack::start(Access { key_required: true, ..Access::default() }).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    assert_eq!(rack.call(&ada, "echo").await.status(), StatusCode::OK);
    for wrong in ["none", "trk_00", &ada[..ada.len() - 1]] {
        assert_eq!(rack.call(wrong, "echo").await.status(), StatusCode::UNAUTHORIZED, "{wrong}");
    }
    let id = rack.store.keys("default").await.unwrap()[0].id.clone();
    assert!(rack.store.revoke_key("default", &id, Timestamp::now()).await.unwrap());
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(rack.call(&ada, "echo").await.status(), StatusCode::UNAUTHORIZED);

    // Its last use was noted, though what was refused was none.
    let used = rack.store.keys("default").await.unwrap()[0].last_used_at.expect("it was never used");
    assert!(Timestamp::now().duration_since(used).as_secs() < 60, "{used}");

    // One that expires opens nothing from then on, also where it was believed just before.
    let put = async |expires_at| {
        let (key, secret) = ApiKey::generate("default", "ada", false, Timestamp::now()).unwrap();
        assert!(rack.store.put_key(ApiKey { expires_at, ..key }).await.unwrap());
        secret
    };
    let in_seconds = |seconds| Some(Timestamp::now() + jiff::SignedDuration::from_secs(seconds));
    let (expired, later, soon) =
        (put(in_seconds(-1)).await, put(in_seconds(3600)).await, put(in_seconds(2)).await);
    assert_eq!(rack.call(&expired, "echo").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(rack.call(&later, "echo").await.status(), StatusCode::OK);
    crate::support::within(async {
        while rack.call(&soon, "echo").await.status() != StatusCode::UNAUTHORIZED {}
    })
    .await;

    // Where no key is asked for, one that is ours and opens nothing is still wrong; another is nobody's.
    let open = Rack::start(Access::default()).await;
    assert_eq!(open.call("trk_00", "echo").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(open.call("sk-none", "echo").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn t3_over_the_limit_is_a_429_that_says_when() {
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    assert_eq!(rack.call(&ada, "once").await.status(), StatusCode::OK);
    let over = rack.call(&ada, "once").await;
    assert_eq!(over.status(), StatusCode::TOO_MANY_REQUESTS);
    let seconds: u64 = over.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&seconds), "{seconds}");
    let reply: Value = over.json().await.unwrap();
    assert!(reply["retry_at"].as_str().unwrap().ends_with("T00:00:00Z"), "{reply}");
    let bob = rack.user("default", "bob", Permission::User).await;
    assert_eq!(rack.call(&bob, "once").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn b8_a_call_that_waits_is_answered_by_its_user_or_an_admin() {
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let bob = rack.user("default", "bob", Permission::User).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let waits = rack.call(&ada, "files.erase").await;
    assert_eq!(waits.status(), StatusCode::ACCEPTED);
    let reply: Value = waits.json().await.unwrap();
    let id = reply["approval"].as_str().unwrap().to_owned();

    let path = format!("/api/approvals/{id}");
    let yes = json!({"approve": true});
    assert_eq!(rack.post(&path, &bob, &yes).send().await.unwrap().status(), StatusCode::NOT_FOUND);
    let wrong = rack.post(&path, &root, &json!({"aprove": true})).send().await.unwrap();
    assert_eq!(wrong.status(), StatusCode::BAD_REQUEST);
    let answered: Value = rack.post(&path, &root, &yes).send().await.unwrap().json().await.unwrap();
    assert_eq!((&answered["state"], &answered["by"]), (&json!("approved"), &json!("root")));
    assert_eq!(rack.post(&path, &root, &yes).send().await.unwrap().status(), StatusCode::CONFLICT);
    assert_eq!(rack.call(&ada, "files.erase").await.status(), StatusCode::OK);
    assert_eq!(rack.call(&ada, "files.erase").await.status(), StatusCode::ACCEPTED);

    let listed =
        rack.client.get(format!("{}/api/approvals", rack.base)).bearer_auth(&ada).send().await.unwrap();
    let listed: Value = listed.json().await.unwrap();
    assert_eq!(listed["approvals"].as_array().unwrap().len(), 1);
    assert_eq!(listed["approvals"][0]["arguments"], json!({"text": "hi"}));

    // The answer itself is in the audit, also where the call is never made again.
    let no = listed["approvals"][0]["id"].as_str().unwrap();
    rack.post(&format!("/api/approvals/{no}"), &ada, &json!({"approve": false})).send().await.unwrap();
    let records = rack.audit.records();
    let answers = records.iter().filter(|record| record.tool == "approval answer");
    let answers: Vec<_> = answers
        .filter(|record| record.phase == Phase::Outcome)
        .map(|record| {
            let about = record.arguments.as_ref().unwrap();
            (
                record.user.as_str(),
                about["approval"].as_str().unwrap(),
                about["approve"].as_bool(),
                record.success,
            )
        })
        .collect();
    let (yes, no) = (Some(true), (no, Some(false)));
    let expected = [("root", &*id, yes, yes), ("root", &*id, yes, no.1), ("ada", no.0, no.1, yes)];
    assert_eq!(answers, expected);
}

#[tokio::test]
async fn u5_what_an_operator_accepts_and_sends_again_is_in_the_audit() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    for path in ["/api/modules/far/accept", "/api/mcp-servers/far/accept", "/api/dead-letters/7"] {
        let answered = rack.post(path, &root, &json!({"digest": "x"})).send().await.unwrap();
        assert_eq!(answered.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let records = rack.audit.records();
    let ended = records.iter().filter(|record| record.phase == Phase::Outcome);
    let ended: Vec<_> = ended
        .map(|record| (record.tool.as_str(), record.arguments.clone().unwrap(), record.success))
        .collect();
    let failed = Some(false);
    let expected = [
        ("toolrack modules accept", json!({"module": "far", "digest": "x"}), failed),
        ("toolrack mcp-servers accept", json!({"server": "far", "digest": "x"}), failed),
        ("dead letter redeliver", json!({"dead_letter": "7"}), failed),
    ];
    assert_eq!(ended, expected);
}

#[tokio::test]
async fn l3_an_admin_switches_tools_and_nobody_else_does() {
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let off = json!({"enabled": false});
    assert_eq!(
        rack.post("/api/tools/echo", &ada, &off).send().await.unwrap().status(),
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        rack.post("/api/tools/none", &root, &off).send().await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(rack.post("/api/tools/echo", &root, &off).send().await.unwrap().status(), StatusCode::OK);
    let reply: Value = rack.call(&ada, "echo").await.json().await.unwrap();
    assert!(reply["error"].as_str().unwrap().contains("switched off"), "{reply}");
    assert!(!rack.tools(&ada).await.contains(&"echo".to_owned()));
}

#[tokio::test]
async fn l5_a_tenant_sees_nothing_of_another() {
    let rack = Rack::start(Access::default()).await;
    let theirs = rack.user("acme", "ada", Permission::Owner).await;
    // What the host registers is the default tenant's.
    assert!(rack.tools(&theirs).await.is_empty());
    assert_eq!(rack.call(&theirs, "echo").await.status(), StatusCode::NOT_FOUND);
    let ours = rack.user("default", "ada", Permission::User).await;
    assert_eq!(rack.call(&ours, "files.erase").await.status(), StatusCode::ACCEPTED);
    let listed =
        rack.client.get(format!("{}/api/approvals", rack.base)).bearer_auth(&theirs).send().await.unwrap();
    assert_eq!(listed.json::<Value>().await.unwrap(), json!({"approvals": [], "next": null}));
}

async fn metrics(rack: &Rack, key: Option<&str>) -> (StatusCode, String) {
    let request = rack.client.get(format!("{}/metrics", rack.base));
    let request = key.into_iter().fold(request, RequestBuilder::bearer_auth);
    let answer = request.send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

#[tokio::test]
async fn m9_metrics_are_for_who_operates_the_server() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let stranger = rack.user("other", "root", Permission::Owner).await;
    assert_eq!(metrics(&rack, None).await.0, StatusCode::OK, "on loopback the user of the configuration");
    assert_eq!(metrics(&rack, Some(&root)).await.0, StatusCode::OK);
    for (key, reported) in [
        (&ada, "needs the level admin, ada has user; run `toolrack user promote ada admin`"),
        (&stranger, "needs the level admin of the tenant default; root has owner in other"),
    ] {
        let (status, body) = metrics(&rack, Some(key)).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(body.contains(reported), "{body}");
    }
    assert_eq!(metrics(&rack, Some("trk_none")).await.0, StatusCode::UNAUTHORIZED);

    let rack = Rack::start(Access { api_key: Some("secret".into()), ..Access::default() }).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    assert_eq!(metrics(&rack, None).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(metrics(&rack, Some("wrong")).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(metrics(&rack, Some("secret")).await.0, StatusCode::OK);
    assert_eq!(metrics(&rack, Some(&root)).await.0, StatusCode::OK);

    let rack = Rack::start_for(Access::default(), Caller::new("kiosk", Permission::Guest)).await;
    let (status, body) = metrics(&rack, None).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(body.contains("needs the level user, kiosk has guest"), "{body}");
}

#[tokio::test]
async fn b8_a_call_that_waits_for_a_person_is_in_the_metrics() {
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    for waiting in [0, 1] {
        let (_, text) = metrics(&rack, None).await;
        assert!(text.contains(&format!("\ntoolrack_approvals_waiting {waiting}\n")), "{text}");
        // The same call again waits for the same word.
        assert_eq!(rack.call(&ada, "files.erase").await.status(), StatusCode::ACCEPTED);
    }
}
