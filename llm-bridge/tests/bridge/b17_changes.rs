//! Changes that admins make, in the middle of which the audit fails or their client goes away. Review row U29.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use llm_bridge::server::{Examination, ExamineModel, ModelToExamine};
use registry_core::{
    Caller, Permission, Registry,
    guard::audit::{AuditRecord, AuditSink, MemoryAudit, Phase},
    store::{Store, StoreError, StoreResult},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    support::{until, within},
    t_access::Rack,
};

/// An audit that takes no outcome where it is told so, and its time for intents.
struct Audit {
    kept: MemoryAudit,
    takes_outcomes: AtomicBool,
    is_slow: AtomicBool,
    has_intent: Notify,
    goes_on: Notify,
}

#[async_trait]
impl AuditSink for Audit {
    async fn record(&self, record: AuditRecord) -> StoreResult<()> {
        if record.phase == Phase::Outcome && !self.takes_outcomes.load(Ordering::Relaxed) {
            return Err(StoreError::unavailable("the disk is full"));
        }
        let waits = record.phase == Phase::Intent && self.is_slow.load(Ordering::Relaxed);
        self.kept.record(record).await?;
        if waits {
            self.has_intent.notify_one();
            self.goes_on.notified().await;
        }
        Ok(())
    }
}

fn audit() -> Arc<Audit> {
    Arc::new(Audit {
        kept: MemoryAudit::new(100),
        takes_outcomes: AtomicBool::new(true),
        is_slow: AtomicBool::new(false),
        has_intent: Notify::new(),
        goes_on: Notify::new(),
    })
}

fn registry(audit: &Arc<Audit>) -> Registry {
    Registry::builder().without_compiled().audit(audit.clone()).build().unwrap()
}

fn root() -> Caller {
    Caller::new("root", Permission::Admin)
}

async fn send(rack: &Rack, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
    let request = rack.client.request(method, format!("{}{path}", rack.base));
    let request = if body.is_null() { request } else { request.json(&body) };
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap_or_default())
}

/// Knows at once what a model can do, and fails at one.
struct Knowing;

impl ExamineModel for Knowing {
    fn begin(&self, ModelToExamine { model, .. }: ModelToExamine) -> Examination {
        let report = async move {
            assert_ne!(model.as_deref(), Some("broken"), "it cannot be asked");
            Ok(json!({"model": model}))
        };
        Examination { looks_at: Box::new(String::new), report: Box::pin(report) }
    }

    fn write(&self) -> Result<String, String> {
        Err("there is no file".to_owned())
    }
}

#[tokio::test]
async fn u29_a_model_counts_as_being_asked_no_longer_than_it_is() {
    let audit = audit();
    let doctor = Arc::new(Knowing);
    let rack = Rack::start_over(root(), registry(&audit), |settings| settings.doctor = Some(doctor)).await;
    let ended = async || loop {
        let (_, state) = send(&rack, Method::GET, "/api/doctor", Value::Null).await;
        if state["running"] == false {
            return state;
        }
    };
    audit.takes_outcomes.store(false, Ordering::Relaxed);
    let (status, answer) = send(&rack, Method::POST, "/api/doctor", json!({"model": "m"})).await;
    assert_eq!(
        (status, &answer["error"]["type"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("audit_unavailable"))
    );
    assert_eq!(within(ended()).await["report"], json!({"model": "m"}));
    audit.takes_outcomes.store(true, Ordering::Relaxed);
    let (status, answer) = send(&rack, Method::POST, "/api/doctor", json!({"model": "broken"})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    assert_eq!(within(ended()).await["error"], "it failed; the server's log says why");
}

#[tokio::test]
async fn u29_a_change_whose_client_has_gone_is_made_and_audited_to_its_end() {
    let audit = audit();
    let rack = Rack::start_over(root(), registry(&audit), |_| {}).await;
    audit.is_slow.store(true, Ordering::Relaxed);
    for (method, path, body) in [
        (Method::POST, "/api/users", json!({"id": "eve", "level": "user"})),
        (Method::POST, "/api/users/eve", json!({"level": "guest"})),
        (Method::POST, "/api/personas", json!({"name": "reading", "allowed_modules": ["research"]})),
        (Method::POST, "/api/users/eve/personas", json!({"personas": ["reading"]})),
        (Method::DELETE, "/api/personas/reading?force=true", Value::Null),
        (Method::DELETE, "/api/users/eve", Value::Null),
    ] {
        let before = audit.kept.records().len();
        let what = format!("{method} {path}");
        tokio::select! {
            answer = send(&rack, method, path, body) => panic!("{what}: {answer:?}"),
            () = within(audit.has_intent.notified()) => {}
        }
        // So long takes the server at most to see that its client has gone.
        tokio::time::sleep(Duration::from_millis(100)).await;
        audit.goes_on.notify_one();
        until(|| audit.kept.records().len() == before + 2).await;
        assert_eq!(audit.kept.records().last().unwrap().success, Some(true), "{what}");
    }
    assert!(rack.store.users("default").await.unwrap().is_empty());
    assert!(rack.store.personas("default").await.unwrap().is_empty());
}
