//! Changes that admins make, in the middle of which the audit fails or their client goes away. Review row U29.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use llm_bridge::server::{Examination, ExamineModel};
use registry_core::{
    Caller, Permission, Registry,
    guard::audit::{AuditRecord, AuditSink, MemoryAudit, Phase},
    store::{StoreError, StoreFuture},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{support::within, t_access::Rack};

/// An audit that takes no outcome where it is told so.
struct Audit {
    kept: MemoryAudit,
    takes_outcomes: AtomicBool,
}

impl AuditSink for Audit {
    fn record(&self, record: AuditRecord) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            if record.phase == Phase::Outcome && !self.takes_outcomes.load(Ordering::Relaxed) {
                return Err(StoreError::unavailable("the disk is full"));
            }
            self.kept.record(record).await
        })
    }
}

fn audit() -> Arc<Audit> {
    Arc::new(Audit { kept: MemoryAudit::new(100), takes_outcomes: AtomicBool::new(true) })
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
    fn begin(&self, model: Option<String>) -> Examination {
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
