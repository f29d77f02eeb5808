//! Audits administrative commands like calls.

use std::time::Instant;

use jiff::Timestamp;
use registry_core::{
    ErrorKind, Origin, Permission,
    guard::audit::{AuditRecord, AuditSink, Phase, hash_arguments},
    random_id,
    store::StoreError,
};
use serde_json::{Map, Value};

/// An administrative command.
pub(super) struct Change {
    /// The command, as in `toolrack user promote`.
    pub(super) command: &'static str,
    pub(super) tenant: String,
    pub(super) arguments: Value,
}

/// Makes a change between its two audit records. If the first cannot be written, nothing is changed.
///
/// # Errors
/// When the change fails or the audit cannot be written.
pub(super) async fn recorded<T>(
    audit: &dyn AuditSink,
    change: Option<Change>,
    make: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let Some(change) = change else { return make.await };
    let intent = record(change)?;
    let not_audited = |cause: StoreError| format!("the audit could not be written: {cause}");
    audit.record(intent.clone()).await.map_err(not_audited)?;
    let started = Instant::now();
    let made = make.await;
    let outcome = AuditRecord {
        phase: Phase::Outcome,
        success: Some(made.is_ok()),
        error: made.is_err().then_some(ErrorKind::Failed),
        error_message: made.as_ref().err().cloned(),
        duration_ms: Some(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)),
        ts: Timestamp::now(),
        ..intent
    };
    audit.record(outcome).await.map_err(not_audited)?;
    made
}

fn record(change: Change) -> Result<AuditRecord, String> {
    Ok(AuditRecord {
        phase: Phase::Intent,
        tool: change.command.to_owned(),
        version: None,
        call_id: random_id().map_err(|fault| fault.to_string())?,
        attempt: 1,
        tenant: change.tenant,
        user: operator(),
        via: None,
        // Access to the store is full access.
        level: Permission::Owner,
        origin: Origin::CommandLine,
        arguments_sha256: hash_arguments(&change.arguments),
        arguments: Some(change.arguments),
        decision: None,
        success: None,
        error: None,
        error_message: None,
        side_effects: Vec::new(),
        audit: Map::new(),
        duration_ms: None,
        ts: Timestamp::now(),
    })
}

/// The operating system's account.
fn operator() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "operator".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use registry_core::guard::audit::MemoryAudit;
    use serde_json::json;

    use super::*;

    fn change() -> Option<Change> {
        let arguments = json!({"user": "ada", "level": "admin"});
        Some(Change { command: "toolrack user promote", tenant: "default".to_owned(), arguments })
    }

    #[tokio::test]
    async fn u5_a_change_leaves_its_intent_and_its_outcome() {
        let audit = Arc::new(MemoryAudit::new(8));
        recorded(audit.as_ref(), change(), async { Ok(()) }).await.unwrap();
        let failed = async { Err::<(), _>("there is no user `ada`".to_owned()) };
        recorded(audit.as_ref(), change(), failed).await.unwrap_err();
        recorded(audit.as_ref(), None, async { Ok(()) }).await.unwrap();
        let records = audit.records();
        let shape: Vec<_> = records.iter().map(|record| (record.phase, record.success)).collect();
        let (intent, outcome) = ((Phase::Intent, None), Phase::Outcome);
        assert_eq!(shape, [intent, (outcome, Some(true)), intent, (outcome, Some(false))]);
        assert!(records.iter().all(|record| record.tool == "toolrack user promote"));
        assert_eq!(records[0].arguments, change().map(|change| change.arguments));
        assert_eq!(records[3].error_message.as_deref(), Some("there is no user `ada`"));
    }

    #[tokio::test]
    async fn u5_without_a_record_nothing_is_changed() {
        use registry_core::guard::audit::LogAudit;

        // Nobody listens to the log here.
        let changed = async { panic!("it was not audited") };
        let refused = recorded::<()>(&LogAudit, change(), changed).await.unwrap_err();
        assert!(refused.contains("audit could not be written"), "{refused}");
    }
}
