//! The audit of one call, which has an outcome whatever becomes of the call.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::record::AuditedArguments;
use crate::{
    content,
    context::RunningCall,
    guard::{
        audit::{AuditRecord, Phase},
        gate::Decision,
    },
    outcome::millis,
    policy::Permission,
    registry::{Common, Registry},
    result::{ToolError, ToolResult},
    store::StoreError,
    tool::Tool,
};

/// The records of a call that has been accepted. Dropped while an outcome is owed, it writes that the call was stopped.
pub(super) struct Ledger(Option<Box<Entry>>);

struct Entry {
    common: Arc<Common>,
    record: AuditRecord,
    /// Whether the try under way has no outcome yet.
    owed: bool,
    started: Option<Instant>,
    call: Option<Arc<RunningCall>>,
}

impl Ledger {
    /// The ledger of a call, with its record where an audit is kept.
    pub(super) fn open(
        registry: &Registry,
        call: Option<&Arc<RunningCall>>,
        record: Option<AuditRecord>,
    ) -> Self {
        Self(record.map(|record| {
            let (common, call) = (Arc::clone(&registry.shared.common), call.map(Arc::clone));
            Box::new(Entry { common, record, owed: true, started: None, call })
        }))
    }

    /// What a gate or a person said.
    pub(super) fn decided(&mut self, decision: Option<Decision>) {
        if let Some(entry) = &mut self.0 {
            entry.record.decision = decision;
        }
    }

    /// What the call is made with, as a person has changed it. The record keeps both.
    pub(super) fn changed(&mut self, registry: &Registry, tool: &Tool, arguments: &Map<String, Value>) {
        if let Some(entry) = &mut self.0 {
            let Some(AuditedArguments { sha256, kept }) =
                AuditedArguments::of(arguments, Some(tool), registry.audit_of_calls())
            else {
                return;
            };
            let record = &mut entry.record;
            record.asked_for_sha256 = Some(std::mem::replace(&mut record.arguments_sha256, sha256));
            record.asked_for = std::mem::replace(&mut record.arguments, kept);
        }
    }

    /// The caller's level, which may have been lowered meanwhile.
    pub(super) fn at_level(&mut self, level: Permission) {
        if let Some(entry) = &mut self.0 {
            entry.record.level = level;
        }
    }

    pub(super) fn started(&mut self, at: Instant) {
        if let Some(entry) = &mut self.0 {
            entry.started = Some(at);
        }
    }

    /// Writes that a try is about to be made. Where that fails, it is not made.
    pub(super) async fn intend(&mut self) -> Result<(), StoreError> {
        let Some(entry) = &mut self.0 else { return Ok(()) };
        entry.owed = true;
        let record =
            AuditRecord { phase: Phase::Intent, ts: entry.common.clock.now(), ..entry.record.clone() };
        entry.common.keep(record).await
    }

    /// The same for a further try.
    pub(super) async fn intend_again(&mut self) -> Result<(), StoreError> {
        if let Some(entry) = &mut self.0 {
            entry.record.attempt = entry.record.attempt.saturating_add(1);
        }
        self.intend().await
    }

    /// Writes how the try ended. Where that fails, the result is withheld.
    pub(super) async fn conclude(
        &mut self,
        result: &Result<ToolResult, ToolError>,
        duration: Duration,
    ) -> Result<(), StoreError> {
        let Some(entry) = &mut self.0 else { return Ok(()) };
        entry.owed = false;
        let mut record = outcome_of(entry.record.clone(), result, duration, entry.common.clock.now());
        if let Some(call) = &entry.call {
            add_from_call(&mut record, call);
        }
        entry.common.keep(record).await
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let Some(Entry { common, record, owed: true, started, call }) = self.0.take().map(|entry| *entry)
        else {
            return;
        };
        let duration = started.map(|started| started.elapsed()).unwrap_or_default();
        let mut record = outcome_of(record, &Err(ToolError::cancelled()), duration, common.clock.now());
        if let Some(call) = call {
            add_from_call(&mut record, &call);
        }
        let background = common.guards.background.clone();
        background.run("audit", async move {
            let tool = record.tool.clone();
            if let Err(cause) = common.audit.record(record).await {
                tracing::error!(tool, %cause, "audit_failed");
            }
        });
    }
}

impl Common {
    /// Keeps a record, also where the call that wants it is dropped meanwhile.
    pub(super) fn keep(
        self: &Arc<Self>,
        record: AuditRecord,
    ) -> impl Future<Output = Result<(), StoreError>> + use<'_> {
        let common = Arc::clone(self);
        self.guards.background.finish(Box::pin(async move { common.audit.record(record).await }))
    }
}

/// What the call itself knows of the try.
fn add_from_call(record: &mut AuditRecord, call: &RunningCall) {
    record.questions = call.asking.take_noted();
    record.model_usage = call.take_model_usage().used();
}

/// The record of how a try ended.
pub(super) fn outcome_of(
    mut record: AuditRecord,
    result: &Result<ToolResult, ToolError>,
    duration: Duration,
    ts: Timestamp,
) -> AuditRecord {
    record.phase = Phase::Outcome;
    record.ts = ts;
    record.duration_ms = Some(millis(duration));
    match result {
        Ok(result) => {
            record.success = Some(result.success);
            record.side_effects.clone_from(&result.side_effects);
            record.audit.clone_from(&result.audit);
            if let Some(parts) = content::described(&result.content) {
                record.audit.insert("content".to_owned(), parts);
            }
        }
        Err(error) => {
            record.success = Some(false);
            record.error = Some(error.kind());
            record.error_message = Some(error.detail().to_owned());
        }
    }
    record
}
