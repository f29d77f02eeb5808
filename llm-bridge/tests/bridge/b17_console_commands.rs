//! What the console does with options of the command line: the doctor's template and time, the budget of all definitions, the key of the
//! audit. Review row U29.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use llm_bridge::server::{
    Access, AuditReading, AuditVerdict, Examination, ExamineModel, KeySuccession, ModelToExamine, SignAudit,
    VerifyAudit,
};
use registry_core::{Caller, Permission, guard::audit::Phase};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use toolrack_stores::SqliteSettings;

use crate::{b17_console::send, t_access::Rack};

/// Notes what is asked of which model, and how.
#[derive(Default)]
struct Noting(Mutex<Vec<ModelToExamine>>);

impl ExamineModel for Noting {
    fn begin(&self, asked: ModelToExamine) -> Examination {
        self.0.lock().unwrap().push(asked);
        Examination { looks_at: Box::new(String::new), report: Box::pin(async { Ok(json!({})) }) }
    }

    fn write(&self) -> Result<String, String> {
        Err("there is no file".to_owned())
    }
}

#[tokio::test]
async fn u29_a_model_is_asked_with_a_template_of_a_size_and_for_a_time_and_no_more() {
    let noting = Arc::new(Noting::default());
    let asked = noting.clone();
    let rack = Rack::start_set(Caller::new("local", Permission::User), |settings| {
        settings.doctor = Some(asked);
    })
    .await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ask = async |body: Value| loop {
        let answered = send(&rack, Method::POST, "/api/doctor", &root, body.clone()).await;
        if answered.0 != StatusCode::CONFLICT {
            return answered;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    for (body, wrong) in [
        (json!({"template": "x".repeat((1 << 20) + 1)}), "template"),
        (json!({"seconds": 9}), "seconds"),
        (json!({"seconds": 3601}), "seconds"),
        (json!({"model": "m".repeat(257)}), "model"),
    ] {
        let (status, answer) = ask(body).await;
        assert_eq!((status, &answer["error"]["param"]), (StatusCode::BAD_REQUEST, &json!(wrong)), "{answer}");
    }
    assert_eq!(ask(json!({"seconds": 10.5})).await.0, StatusCode::BAD_REQUEST);
    assert!(noting.0.lock().unwrap().is_empty(), "nothing was asked");

    assert_eq!(ask(json!({"model": "", "template": ""})).await.0, StatusCode::ACCEPTED);
    let given = json!({"model": "m", "template": "{{ messages }}", "seconds": 3600});
    assert_eq!(ask(given).await.0, StatusCode::ACCEPTED);
    let asked = noting.0.lock().unwrap();
    let seen: Vec<_> =
        asked.iter().map(|one| (one.model.as_deref(), one.template.as_deref(), one.seconds)).collect();
    assert_eq!(seen, [(None, None, None), (Some("m"), Some("{{ messages }}"), Some(3600))]);
    // The audit has what was given, but for the text of the template.
    let records = rack.audit.records();
    let last = records.iter().rfind(|record| record.tool == "toolrack doctor").unwrap();
    let told = last.arguments.as_ref().unwrap();
    assert_eq!((&told["model"], &told["seconds"]), (&json!("m"), &json!(3600)));
    assert_eq!(told["template_sha256"].as_str().unwrap().len(), 64, "{told}");
}

#[tokio::test]
async fn u29_the_definitions_of_all_tools_are_held_to_a_budget() {
    let rack = Rack::start(Access::default()).await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let check = async |query: &str| {
        send(&rack, Method::GET, &format!("/api/tool-check{query}"), &root, Value::Null).await
    };
    let over = |found: &Value| found["faults"].to_string().contains("over the budget");
    let (status, found) = check("").await;
    assert_eq!((status, &found["budget"], over(&found)), (StatusCode::OK, &json!(8000), false), "{found}");
    let (status, found) = check("?budget=1").await;
    assert_eq!((status, &found["budget"], over(&found)), (StatusCode::OK, &json!(1), true), "{found}");
    for wrong in ["?budget=-1", "?budget=many", "?budget=", "?tokens=1"] {
        assert_eq!(check(wrong).await.0, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

/// Signs with one key after the other, or cannot.
struct Keys(Arc<Mutex<Option<u32>>>);

impl SignAudit for Keys {
    fn public_key(&self) -> Result<Option<String>, String> {
        match *self.0.lock().unwrap() {
            Some(u32::MAX) => Err("/secret/audit-key.pem: this is no key".to_owned()),
            key => Ok(key.map(|number| format!("key {number}"))),
        }
    }

    fn successor(&self) -> Result<KeySuccession, String> {
        let number = self.0.lock().unwrap().ok_or("there is none")?;
        let (keys, after) = (self.0.clone(), number + 1);
        let put = move || {
            *keys.lock().unwrap() = Some(after);
            Ok(())
        };
        Ok(KeySuccession {
            before: format!("key {number}"),
            after: format!("key {after}"),
            put: Box::new(put),
        })
    }
}

/// Is not asked.
struct NotAsked;

#[async_trait::async_trait]
impl VerifyAudit for NotAsked {
    async fn verify(
        &self,
        _: &str,
        _: Option<llm_bridge::server::GivenHeads>,
    ) -> Result<AuditVerdict, llm_bridge::server::AuditFault> {
        unreachable!("nothing is verified")
    }
}

#[tokio::test]
async fn u29_admins_see_the_key_of_the_audit_and_the_operator_puts_another_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(SqliteSettings::new(folder.path().join("a.db")).open().await.unwrap());
    let key = Arc::new(Mutex::new(None));
    let reading = AuditReading::new(log, NotAsked).signed(Keys(key.clone()));
    let rack = Rack::start_set(Caller::new("local", Permission::User), |settings| {
        settings.audit = Some(reading);
    })
    .await;
    let root = rack.user("default", "root", Permission::Admin).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let eve = rack.user("acme", "eve", Permission::Owner).await;
    let shown = async |of: &str| send(&rack, Method::GET, "/api/audit/key", of, Value::Null).await;
    let rotate = async |of: &str| send(&rack, Method::POST, "/api/audit/rotate-key", of, Value::Null).await;
    assert_eq!(shown(&root).await, (StatusCode::OK, json!({"public_key": null})));
    let (status, answer) = rotate(&root).await;
    assert_eq!((status, &answer["error"]["type"]), (StatusCode::CONFLICT, &json!("audit_key_missing")));

    *key.lock().unwrap() = Some(1);
    assert_eq!(shown(&ada).await.0, StatusCode::FORBIDDEN);
    for other in [&ada, &eve] {
        assert_eq!(rotate(other).await.0, StatusCode::FORBIDDEN, "the key is all tenants'");
    }
    assert_eq!(shown(&eve).await, (StatusCode::OK, json!({"public_key": "key 1"})));
    assert_eq!(rotate(&root).await, (StatusCode::OK, json!({"public_key": "key 2"})));
    assert_eq!(shown(&root).await, (StatusCode::OK, json!({"public_key": "key 2"})));
    let records = rack.audit.records();
    let rotated: Vec<_> = records
        .iter()
        .filter(|record| record.tool == "toolrack audit rotate-key")
        .map(|record| (record.phase, record.user.as_str(), record.arguments.clone().unwrap()))
        .collect();
    let told = json!({"before": "key 1", "after": "key 2"});
    assert_eq!(rotated, [(Phase::Intent, "root", told.clone()), (Phase::Outcome, "root", told)]);

    *key.lock().unwrap() = Some(u32::MAX);
    for (status, answer) in [shown(&root).await, rotate(&root).await] {
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!answer.to_string().contains("secret"), "the cause is for the log: {answer}");
    }

    let without = Rack::start(Access::default()).await;
    let root = without.user("default", "root", Permission::Admin).await;
    let (status, answer) = send(&without, Method::GET, "/api/audit/key", &root, Value::Null).await;
    assert_eq!((status, &answer["error"]["type"]), (StatusCode::NOT_FOUND, &json!("audit_not_kept")));
}
