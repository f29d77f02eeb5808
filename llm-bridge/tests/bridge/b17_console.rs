//! What the console of admins asks for: users, keys, the audit, scheduled calls. Review rows U5 and U29.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::SignedDuration;
use llm_bridge::server::{
    Access, AuditChain, AuditFault, AuditReading, AuditVerdict, ChainFindings, GivenHeads, VerifyAudit,
};
use registry_core::{Caller, Permission, Registry, guard::audit::Phase};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use toolrack_stores::{
    SqliteSettings,
    schedule::{Job, Jobs, MemoryJobs, Schedule},
};

use crate::t_access::Rack;

pub(crate) async fn send(
    rack: &Rack,
    method: Method,
    path: &str,
    key: &str,
    body: Value,
) -> (StatusCode, Value) {
    let request = rack.client.request(method, format!("{}{path}", rack.base)).bearer_auth(key);
    let request = if body.is_null() { request } else { request.json(&body) };
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap_or_default())
}

#[tokio::test]
async fn u29_an_admin_sees_the_tools_as_others_do() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let of_eve = rack.user("acme", "eve", Permission::Admin).await;
    let reading = json!({"name": "reading", "allowed_modules": ["files"]});
    assert_eq!(send(&rack, Method::POST, "/api/personas", &root, reading).await.0, StatusCode::CREATED);
    let seen = async |key: &str, query: &str| {
        let (status, listed) =
            send(&rack, Method::GET, &format!("/api/tools?{query}"), key, Value::Null).await;
        let Some(tools) = listed["tools"].as_array() else { return Err((status, listed)) };
        let usable = tools.iter().filter(|tool| tool["enabled"] == true);
        Ok(usable.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>())
    };
    let all = ["admins.only", "echo", "files.erase", "once"];
    assert_eq!(seen(&root, "level=&persona=").await.unwrap(), all);
    assert_eq!(seen(&root, "level=user").await.unwrap(), ["echo", "files.erase", "once"]);
    assert_eq!(seen(&root, "level=guest").await.unwrap(), ["echo", "files.erase", "once"]);
    assert_eq!(seen(&root, "persona=reading").await.unwrap(), ["files.erase"]);
    assert_eq!(seen(&root, "level=user&persona=reading&search=erase").await.unwrap(), ["files.erase"]);
    // It changes nothing of the own calls.
    assert_eq!(rack.tools(&root).await, all);
    for (key, query, status, kind) in [
        (&root, "level=owner", StatusCode::FORBIDDEN, "permission_denied"),
        (&root, "level=king", StatusCode::BAD_REQUEST, "invalid_request_error"),
        (&root, "persona=writing", StatusCode::FORBIDDEN, "persona_not_allowed"),
        (&of_eve, "persona=reading", StatusCode::FORBIDDEN, "persona_not_allowed"),
        (&ada, "level=guest", StatusCode::FORBIDDEN, "permission_denied"),
        (&ada, "persona=reading", StatusCode::FORBIDDEN, "permission_denied"),
    ] {
        let (got, answer) = seen(key, query).await.unwrap_err();
        assert_eq!((got, &answer["error"]["type"]), (status, &json!(kind)), "{query}: {answer}");
    }
}

#[tokio::test]
async fn u29_the_operator_is_told_what_the_configuration_names_and_is_not_there() {
    let unknown = |registry: &Registry| vec![format!("deferred_tools: none of {} is `ecko`", registry.len())];
    let rack = Rack::start_set(Caller::new("local", Permission::User), |settings| {
        settings.unknown_names = Some(Arc::new(unknown));
    })
    .await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let eve = rack.user("acme", "eve", Permission::Admin).await;
    for (key, is_told) in [(&root, true), (&eve, false)] {
        let (status, found) = send(&rack, Method::GET, "/api/tool-check", key, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{found}");
        let told = json!("deferred_tools: none of 4 is `ecko`");
        assert_eq!(found["warnings"].as_array().unwrap().contains(&told), is_told, "{found}");
    }
}

#[tokio::test]
async fn u29_only_admins_come_to_what_the_console_shows() {
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let new_user = json!({"id": "eve", "level": "guest"});
    for (method, path, body) in [
        (Method::GET, "/api/users", Value::Null),
        (Method::POST, "/api/users", new_user),
        (Method::POST, "/api/users/ada", json!({"level": "owner"})),
        (Method::DELETE, "/api/users/ada", Value::Null),
        (Method::GET, "/api/keys", Value::Null),
        (Method::POST, "/api/keys", json!({"user": "ada"})),
        (Method::DELETE, "/api/keys/1", Value::Null),
        (Method::GET, "/api/audit", Value::Null),
        (Method::GET, "/api/audit/export", Value::Null),
        (Method::GET, "/api/audit/figures", Value::Null),
        (Method::GET, "/api/audit/verify", Value::Null),
        (Method::POST, "/api/audit/verify", json!({})),
        (Method::GET, "/api/approval-rules?all=true", Value::Null),
        (Method::DELETE, "/api/approval-rules/1?user=root", Value::Null),
        (Method::GET, "/api/webhooks", Value::Null),
        (Method::GET, "/api/upstreams", Value::Null),
        (Method::GET, "/api/tool-check", Value::Null),
        (Method::GET, "/api/turns", Value::Null),
        (Method::DELETE, "/api/turns/1", Value::Null),
        (Method::GET, "/api/doctor", Value::Null),
        (Method::POST, "/api/doctor", json!({})),
        (Method::DELETE, "/api/doctor", Value::Null),
        (Method::POST, "/api/doctor/settings", Value::Null),
        (Method::GET, "/api/settings", Value::Null),
        (Method::GET, "/api/jobs", Value::Null),
        (Method::DELETE, "/api/jobs/1", Value::Null),
        (Method::POST, "/api/users/ada/erase", Value::Null),
        (Method::GET, "/api/connected-accounts", Value::Null),
        (Method::DELETE, "/api/connected-accounts/notes?user=ada", Value::Null),
        (Method::POST, "/api/backup", Value::Null),
        (Method::GET, "/api/restore", Value::Null),
        (Method::POST, "/api/restore", Value::Null),
        (Method::DELETE, "/api/restore", Value::Null),
        (Method::GET, "/api/traces", Value::Null),
        (Method::GET, "/api/documents/processing", Value::Null),
        (Method::POST, "/api/documents/embed-again", Value::Null),
        (Method::POST, "/api/documents/extract", Value::Null),
        (Method::DELETE, "/api/documents/extract", Value::Null),
    ] {
        let (status, answer) = send(&rack, method.clone(), path, &ada, body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path}: {answer}");
        assert_eq!(answer["error"]["type"], "permission_denied", "{method} {path}");
    }
    let root = rack.user("default", "root", Permission::Admin).await;
    let long = json!({"model": "m".repeat(257)});
    let (status, answer) = send(&rack, Method::POST, "/api/doctor", &root, long).await;
    assert_eq!((status, &answer["error"]["param"]), (StatusCode::BAD_REQUEST, &json!("model")));
    let (status, account) = send(&rack, Method::GET, "/api/account", &ada, Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    let expected =
        json!({"user": "ada", "level": "user", "tenant": "default", "configured": false, "operator": false});
    assert_eq!(account, expected);
}

#[tokio::test]
async fn u29_an_admin_adds_users_and_keys_and_none_above() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let boss = rack.user("default", "boss", Permission::Owner).await;
    let post = async |path: &str, body: Value| send(&rack, Method::POST, path, &root, body).await;
    let delete = async |path: &str| send(&rack, Method::DELETE, path, &root, Value::Null).await.0;

    let (status, eve) = post("/api/users", json!({"id": "eve", "level": "guest"})).await;
    assert_eq!((status, &eve["level"], &eve["keys"]), (StatusCode::CREATED, &json!("guest"), &json!(0)));
    let again = post("/api/users", json!({"id": "eve", "level": "user"})).await;
    assert_eq!((again.0, &again.1["error"]["type"]), (StatusCode::CONFLICT, &json!("user_exists")));
    let (status, made) = post("/api/keys", json!({"user": "eve", "name": "laptop"})).await;
    assert_eq!(
        (status, &made["name"], &made["last_used_at"]),
        (StatusCode::CREATED, &json!("laptop"), &Value::Null)
    );
    let nameless = post("/api/keys", json!({"user": "eve", "name": "lap\ntop"})).await;
    assert_eq!((nameless.0, &nameless.1["error"]["param"]), (StatusCode::BAD_REQUEST, &json!("name")));
    let key = made["key"].as_str().unwrap().to_owned();
    let account = async || send(&rack, Method::GET, "/api/account", &key, Value::Null).await;
    assert_eq!(account().await.1["user"], "eve");
    assert_eq!(post("/api/users/eve", json!({"level": "user"})).await.1, json!({"level": "user"}));
    let (_, listed) = send(&rack, Method::GET, "/api/users", &root, Value::Null).await;
    let row = listed["users"].as_array().unwrap().iter().find(|user| user["id"] == "eve").unwrap();
    assert_eq!((&row["level"], &row["keys"]), (&json!("user"), &json!(1)));
    let expiring = |at: &str| json!({"user": "root", "expires_at": at});
    let past = post("/api/keys", expiring("2020-01-01T00:00:00Z")).await;
    assert_eq!((past.0, &past.1["error"]["param"]), (StatusCode::BAD_REQUEST, &json!("expires_at")));
    let (status, made) = post("/api/keys", expiring("2999-01-01T00:00:00Z")).await;
    assert_eq!((status, &made["expires_at"]), (StatusCode::CREATED, &json!("2999-01-01T00:00:00Z")));
    let (_, keys) = send(&rack, Method::GET, "/api/keys", &root, Value::Null).await;
    let until: Vec<_> = keys["keys"].as_array().unwrap().iter().map(|key| &key["expires_at"]).collect();
    assert_eq!(until, [&Value::Null, &Value::Null, &Value::Null, &json!("2999-01-01T00:00:00Z")]);
    let of_eve = keys["keys"].as_array().unwrap().iter().find(|key| key["user"] == "eve").unwrap();
    assert!(of_eve["name"] == "laptop" && of_eve["last_used_at"].is_string(), "{of_eve}");
    assert!(!keys.to_string().contains("sha256") && !keys.to_string().contains(&key), "{keys}");

    // An admin makes nobody an owner, and has no say over one.
    for (path, body) in [
        ("/api/users", json!({"id": "max", "level": "owner"})),
        ("/api/users/eve", json!({"level": "owner"})),
        ("/api/users/boss", json!({"level": "guest"})),
        ("/api/keys", json!({"user": "boss"})),
    ] {
        assert_eq!(post(path, body).await.0, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(delete("/api/users/boss").await, StatusCode::FORBIDDEN);
    let keys = keys["keys"].as_array().unwrap();
    let of = |user: &str| keys.iter().find(|key| key["user"] == user).unwrap()["id"].as_str().unwrap();
    assert_eq!(delete(&format!("/api/keys/{}", of("boss"))).await, StatusCode::FORBIDDEN);
    let kept = send(&rack, Method::GET, "/api/account", &boss, Value::Null).await;
    assert_eq!(kept.1["level"], "owner");

    let revoke = format!("/api/keys/{}", of("eve"));
    assert_eq!(delete(&revoke).await, StatusCode::NO_CONTENT);
    assert_eq!(delete(&revoke).await, StatusCode::NOT_FOUND);
    crate::support::within(async { while account().await.0 != StatusCode::UNAUTHORIZED {} }).await;
    assert_eq!(delete("/api/users/eve").await, StatusCode::NO_CONTENT);
    assert_eq!(delete("/api/users/eve").await, StatusCode::NOT_FOUND);

    let records = rack.audit.records();
    let made = records.iter().filter(|record| record.phase == Phase::Outcome && record.user == "root");
    let made: Vec<&str> = made.map(|record| record.tool.as_str()).collect();
    let expected = ["user add", "key create", "user promote", "key create", "key revoke", "user remove"];
    assert_eq!(made, expected.map(|command| format!("toolrack {command}")), "u5");
    assert!(!serde_json::to_string(&records).unwrap().contains(&key), "the key is not in the audit");
}

/// Finds what it is told.
struct Told(bool);

#[async_trait]
impl VerifyAudit for Told {
    async fn verify(&self, tenant: &str, given: Option<GivenHeads>) -> Result<AuditVerdict, AuditFault> {
        let GivenHeads { heads, public_keys } = given.unwrap_or_default();
        let found =
            format!("3 records of {tenant}, {} heads, {} keys", heads.lines().count(), public_keys.len());
        let findings = ChainFindings::default();
        let chain = AuditChain { server: "s".into(), whole: self.0, found, findings };
        let verdict = AuditVerdict { whole: self.0, faults: Vec::new(), chains: vec![chain] };
        Ok(verdict)
    }
}

#[tokio::test]
async fn u29_an_admin_searches_exports_and_verifies_the_audit() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteSettings::new(folder.path().join("a.db")).open().await.unwrap());
    let registry =
        registry_core::Registry::builder().without_compiled().audit(store.clone()).build().unwrap();
    let root = Caller::new("root", Permission::Admin);
    let reading = AuditReading::new(store, Told(true));
    let rack = Rack::start_over(root, registry, |settings| settings.audit = Some(reading)).await;
    for id in ["ada", "eve", "max"] {
        let (status, answer) = post_keyless(&rack, "/api/users", json!({"id": id, "level": "user"})).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    }
    let get = async |path: &str| {
        let answer = rack.client.get(format!("{}{path}", rack.base)).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let list = async |query: &str| -> Value {
        let (status, text) = get(&format!("/api/audit{query}")).await;
        assert_eq!(status, StatusCode::OK, "{query}: {text}");
        serde_json::from_str(&text).unwrap()
    };
    let first = list("?limit=4&tool=toolrack%20user%20add").await;
    let names = |page: &Value| -> Vec<String> {
        let records = page["records"].as_array().unwrap().iter();
        records.map(|entry| entry["record"]["arguments"]["user"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&first), ["max", "max", "eve", "eve"], "the newest first");
    let rest = list(&format!("?limit=4&tool=toolrack%20user%20add&before={}", first["next"])).await;
    assert_eq!((names(&rest), &rest["next"]), (vec!["ada".to_owned(), "ada".to_owned()], &Value::Null));
    assert_eq!(list("?only=success").await["records"].as_array().unwrap().len(), 3);
    assert!(list("?user=nobody").await["records"].as_array().unwrap().is_empty());
    for query in ["?limit=0", "?limit=1001", "?only=never", "?since=yesterday", "?level=admin"] {
        assert_eq!(get(&format!("/api/audit{query}")).await.0, StatusCode::BAD_REQUEST, "{query}");
    }

    let (status, figures) = get("/api/audit/figures?since=2020-01-01T00:00:00Z").await;
    let add = json!({"tool": "toolrack user add", "calls": 3, "failed": 0, "median_ms": null});
    let mut figures: Value = serde_json::from_str(&figures).unwrap();
    figures["tools"][0]["median_ms"] = Value::Null;
    assert_eq!((status, figures), (StatusCode::OK, json!({"tools": [add], "counted_since": null})));
    assert_eq!(
        get("/api/audit/figures?until=2020-01-01T00:00:00Z").await.1,
        r#"{"tools":[],"counted_since":null}"#
    );
    assert_eq!(get("/api/audit/figures?user=ada").await.0, StatusCode::BAD_REQUEST);

    let (status, lines) = get("/api/audit/export?only=success").await;
    assert_eq!((status, lines.lines().count()), (StatusCode::OK, 3));
    let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(line["record"]["arguments"]["user"], "ada", "the oldest first");
    assert_eq!(get("/api/audit/export?limit=3").await.0, StatusCode::BAD_REQUEST);

    let verdict: Value = serde_json::from_str(&get("/api/audit/verify").await.1).unwrap();
    assert_eq!(
        (&verdict["whole"], &verdict["chains"][0]["found"]),
        (&json!(true), &json!("3 records of default, 0 heads, 0 keys"))
    );
}

#[tokio::test]
async fn u29_the_audit_is_searched_by_origin_and_decision_and_verified_with_heads_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteSettings::new(folder.path().join("a.db")).open().await.unwrap());
    let registry =
        registry_core::Registry::builder().without_compiled().audit(store.clone()).build().unwrap();
    let root = Caller::new("root", Permission::Admin);
    let reading = AuditReading::new(store, Told(true));
    let rack = Rack::start_over(root, registry, |settings| settings.audit = Some(reading)).await;
    post_keyless(&rack, "/api/users", json!({"id": "ada", "level": "user"})).await;
    let found = async |query: &str| {
        let (status, page) = send_keyless(&rack, Method::GET, &format!("/api/audit?{query}")).await;
        (status, page["records"].as_array().map_or(0, Vec::len))
    };
    for (query, count) in
        [("origin=http", 2), ("origin=mcp", 0), ("origin=text", 0), ("decision=approved", 0)]
    {
        assert_eq!(found(query).await, (StatusCode::OK, count), "{query}");
    }
    for query in ["origin=moon", "decision=maybe"] {
        assert_eq!(found(query).await, (StatusCode::BAD_REQUEST, 0), "{query}");
    }

    let given =
        |heads: usize, keys: usize| json!({"heads": "{}\n".repeat(heads), "public_keys": vec!["key"; keys]});
    let (status, verdict) = post_keyless(&rack, "/api/audit/verify", given(10_000, 16)).await;
    let found = &verdict["chains"][0]["found"];
    assert_eq!((status, found), (StatusCode::OK, &json!("3 records of default, 10000 heads, 16 keys")));
    for (heads, keys, fault) in [(10_001, 0, "at most 10000 signed heads"), (0, 17, "at most 16 public keys")]
    {
        let (status, answer) = post_keyless(&rack, "/api/audit/verify", given(heads, keys)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(answer["error"]["message"].as_str().unwrap().contains(fault), "{answer}");
    }
}

async fn post_keyless(rack: &Rack, path: &str, body: Value) -> (StatusCode, Value) {
    let answer = rack.client.post(format!("{}{path}", rack.base)).json(&body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap_or_default())
}

#[tokio::test]
async fn b21_the_key_of_a_removed_user_opens_nothing_from_then_on() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    // It is believed for a while.
    assert_eq!(send(&rack, Method::GET, "/api/account", &ada, Value::Null).await.0, StatusCode::OK);
    let (removed, _) = send(&rack, Method::DELETE, "/api/users/ada", &root, Value::Null).await;
    assert_eq!(removed, StatusCode::NO_CONTENT);
    assert_eq!(send(&rack, Method::GET, "/api/account", &ada, Value::Null).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn u29_an_admin_sees_and_removes_scheduled_calls() {
    let jobs = Arc::new(MemoryJobs::default());
    let job = |id: &str, tenant: &str| Job {
        id: id.into(),
        tenant: tenant.into(),
        owner: Caller::new("ada", Permission::User),
        tool: "echo".into(),
        arguments: serde_json::Map::new(),
        cron: "0 8 * * *".into(),
        time_zone: "UTC".into(),
        created_at: jiff::Timestamp::now(),
        next_run: jiff::Timestamp::now() + SignedDuration::from_hours(2),
        last_run: None,
    };
    for (id, tenant) in [("one", "default"), ("other", "acme")] {
        assert!(jobs.add(job(id, tenant), 10).await.unwrap());
    }
    let schedule = Schedule::new(jobs.clone());
    let root = Caller::new("root", Permission::Admin);
    let rack = Rack::start_set(root, |settings| settings.schedule = Some(schedule)).await;
    let (status, listed) = send_keyless(&rack, Method::GET, "/api/jobs").await;
    assert_eq!(status, StatusCode::OK);
    let [one] = listed["jobs"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&one["id"], &one["user"], &one["cron"]), (&json!("one"), &json!("ada"), &json!("0 8 * * *")));
    assert_eq!(
        send_keyless(&rack, Method::DELETE, "/api/jobs/other").await.0,
        StatusCode::NOT_FOUND,
        "of another tenant"
    );
    assert_eq!(send_keyless(&rack, Method::DELETE, "/api/jobs/one").await.0, StatusCode::NO_CONTENT);
    assert_eq!(send_keyless(&rack, Method::DELETE, "/api/jobs/one").await.0, StatusCode::NOT_FOUND);
    assert!(jobs.of_tenant("default").await.unwrap().is_empty());
    assert_eq!(jobs.of_tenant("acme").await.unwrap().len(), 1);
    let records = rack.audit.records();
    assert!(
        records.iter().any(|record| record.tool == "scheduler.remove_job" && record.success == Some(true)),
        "{records:?}"
    );
}

async fn send_keyless(rack: &Rack, method: Method, path: &str) -> (StatusCode, Value) {
    let answer = rack.client.request(method, format!("{}{path}", rack.base)).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap_or_default())
}

#[tokio::test]
async fn u29_admins_list_and_revoke_what_all_users_have_allowed_beforehand() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let other = rack.user("acme", "eve", Permission::Admin).await;
    let names: Vec<String> = (0..22).map(|number| format!("u{number:02}")).collect();
    let mut keys = Vec::new();
    for name in &names {
        let key = rack.user("default", name, Permission::User).await;
        let call = json!({"tool_name": "files.erase", "arguments": {"text": name}});
        let (status, reply) = send(&rack, Method::POST, "/execute", &key, call).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{reply}");
        let path = format!("/api/approvals/{}", reply["approval"].as_str().unwrap());
        let yes = json!({"approve": true, "remember": "arguments"});
        let (status, answer) = send(&rack, Method::POST, &path, &key, yes).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        keys.push(key);
    }
    let list = async |key: &str, after: &str| {
        let path = format!("/api/approval-rules?all=true&after={after}");
        let (status, page) = send(&rack, Method::GET, &path, key, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page
    };
    let users = |page: &Value| -> Vec<String> {
        let rules = page["rules"].as_array().unwrap().iter();
        rules.map(|rule| rule["user"].as_str().unwrap().to_owned()).collect()
    };
    let first = list(&root, "").await;
    assert_eq!((users(&first).as_slice(), &first["next"]), (&names[..20], &json!("u19")));
    let rest = list(&root, "u19").await;
    assert_eq!((users(&rest).as_slice(), &rest["next"]), (&names[20..], &Value::Null));
    assert!(users(&list(&other, "").await).is_empty(), "those of another tenant");

    let rule = first["rules"][0]["id"].as_str().unwrap();
    let own = format!("/api/approval-rules/{rule}");
    let of_user = format!("{own}?user=u00");
    for (key, path) in [(&root, &own), (&other, &of_user)] {
        assert_eq!(send(&rack, Method::DELETE, path, key, Value::Null).await.0, StatusCode::NOT_FOUND);
    }
    assert_eq!(send(&rack, Method::DELETE, &of_user, &keys[1], Value::Null).await.0, StatusCode::FORBIDDEN);
    assert_eq!(send(&rack, Method::DELETE, &of_user, &root, Value::Null).await.0, StatusCode::NO_CONTENT);
    assert_eq!(send(&rack, Method::DELETE, &of_user, &root, Value::Null).await.0, StatusCode::NOT_FOUND);
    assert!(!users(&list(&root, "").await).contains(&names[0]));
    let records = rack.audit.records();
    let ended = records
        .iter()
        .filter(|record| record.tool == "approval rule remove" && record.phase == Phase::Outcome)
        .map(|record| serde_json::to_value(record).unwrap());
    let ended: Vec<_> = ended.map(|record| json!([record["user"], record["arguments"]])).collect();
    assert_eq!(ended, [json!(["root", {"rule": rule, "user": "u00"}])]);
}

#[tokio::test]
async fn u29_tools_are_defined_for_an_api_and_checked() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let defined = async |key: &str, query: &str| {
        send(&rack, Method::GET, &format!("/api/tool-definitions{query}"), key, Value::Null).await
    };
    let (status, made) = defined(&root, "").await;
    assert_eq!((status, &made["definitions"][0]["type"]), (StatusCode::OK, &json!("function")), "{made}");
    assert!(made.to_string().contains("admins_only"), "{made}");
    let (status, made) = defined(&ada, "?format=anthropic&strict=true").await;
    let names = made["definitions"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
    assert_eq!((status, names.collect::<Vec<_>>()), (StatusCode::OK, vec!["echo", "files_erase", "once"]));
    for query in ["?format=moon", "?level=admin"] {
        assert_eq!(defined(&ada, query).await.0, StatusCode::BAD_REQUEST, "{query}");
    }
    let (status, found) = send(&rack, Method::GET, "/api/tool-check", &root, Value::Null).await;
    assert_eq!((status, &found["tools"]), (StatusCode::OK, &json!(4)), "{found}");
    let faults = found["faults"].to_string();
    assert!(faults.contains("the parameter `text` has no description"), "{found}");
}
