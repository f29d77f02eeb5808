//! Audits administrative changes like calls.

use std::{fmt::Display, time::Instant};

use registry_core::{
    Caller, ErrorKind, Origin, Registry,
    clock::{Clock, SystemClock},
    guard::{
        approval::{AnswerError, Approval, ApprovalAnswer},
        audit::{AuditRecord, AuditSink, Phase, hash_arguments},
    },
    random_id,
    store::StoreError,
};
use serde_json::{Value, json};

/// An administrative change.
#[derive(Debug)]
pub(crate) struct Change {
    /// The command that makes it, as in `toolrack user promote`; also where it is made over HTTP.
    pub(crate) command: &'static str,
    pub(crate) tenant: String,
    pub(crate) arguments: Value,
}

/// Makes a change between its two audit records. If the first cannot be written, nothing is changed.
///
/// # Errors
/// When the audit cannot be written; the inner error is that of the change.
pub(crate) async fn recorded<T, E: Display>(
    audit: &dyn AuditSink,
    by: &Caller,
    origin: Origin,
    change: Change,
    make: impl Future<Output = Result<T, E>>,
) -> Result<Result<T, E>, String> {
    if !audit.is_enabled() {
        return Ok(make.await);
    }
    let intent = AuditRecord {
        tool: change.command.to_owned(),
        call_id: random_id().map_err(|fault| fault.to_string())?,
        attempt: 1,
        tenant: change.tenant,
        user: by.user.clone(),
        via: by.via.clone(),
        credential: by.credential.clone(),
        level: by.level,
        origin,
        arguments_sha256: hash_arguments(&change.arguments),
        arguments: Some(change.arguments),
        ts: SystemClock.now(),
        ..AuditRecord::default()
    };
    let not_audited = |cause: StoreError| format!("the audit could not be written: {cause}");
    audit.record(intent.clone()).await.map_err(not_audited)?;
    let started = Instant::now();
    let made = make.await;
    let outcome = AuditRecord {
        phase: Phase::Outcome,
        success: Some(made.is_ok()),
        error: made.is_err().then_some(ErrorKind::Failed),
        error_message: made.as_ref().err().map(ToString::to_string),
        duration_ms: Some(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)),
        ts: SystemClock.now(),
        ..intent
    };
    audit.record(outcome).await.map_err(not_audited)?;
    Ok(made)
}

/// Answers an approval, which is a change of its own: who said yes or no is known also where the call is never made again.
///
/// # Errors
/// When the audit cannot be written; the inner error is that of the answer.
pub(crate) async fn answer_approval(
    registry: &Registry,
    by: &Caller,
    origin: Origin,
    approval: &Approval,
    answer: ApprovalAnswer,
) -> Result<Result<Approval, AnswerError>, String> {
    let Approval { id, tool, user, .. } = approval;
    let (approve, changed) = (answer.approve, answer.arguments.is_some());
    let arguments =
        json!({"approval": id, "tool": tool, "user": user, "approve": approve, "changed": changed});
    let change = Change { command: "approval answer", tenant: registry.tenant().to_owned(), arguments };
    recorded(registry.audit().as_ref(), by, origin, change, registry.answer_approval(id, answer)).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use registry_core::{Permission, guard::audit::MemoryAudit};

    use super::*;

    fn change() -> Change {
        let arguments = json!({"user": "ada", "level": "admin"});
        Change { command: "toolrack user promote", tenant: "default".to_owned(), arguments }
    }

    async fn make(
        audit: &dyn AuditSink,
        change_with: impl Future<Output = Result<(), &'static str>>,
    ) -> Result<Result<(), &'static str>, String> {
        let root = Caller::new("root", Permission::Owner);
        recorded(audit, &root, Origin::CommandLine, change(), change_with).await
    }

    #[tokio::test]
    async fn u5_a_change_leaves_its_intent_and_its_outcome() {
        let audit = Arc::new(MemoryAudit::new(8));
        make(audit.as_ref(), async { Ok(()) }).await.unwrap().unwrap();
        let failed = async { Err("there is no user `ada`") };
        make(audit.as_ref(), failed).await.unwrap().unwrap_err();
        let records = audit.records();
        let shape: Vec<_> = records.iter().map(|record| (record.phase, record.success)).collect();
        let (intent, outcome) = ((Phase::Intent, None), Phase::Outcome);
        assert_eq!(shape, [intent, (outcome, Some(true)), intent, (outcome, Some(false))]);
        assert!(records.iter().all(|record| record.tool == "toolrack user promote" && record.user == "root"));
        assert_eq!(records[0].arguments, Some(change().arguments));
        assert_eq!(records[3].error_message.as_deref(), Some("there is no user `ada`"));
    }

    #[tokio::test]
    async fn u5_without_a_record_nothing_is_changed() {
        use registry_core::guard::audit::LogAudit;

        // Nobody listens to the log here.
        let changed = async { panic!("it was not audited") };
        let refused = make(&LogAudit, changed).await.unwrap_err();
        assert!(refused.contains("audit could not be written"), "{refused}");
    }
}
