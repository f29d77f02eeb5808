//! What a call leaves in the audit.

use std::time::Duration;

use serde_json::{Map, Value};

use super::ledger::outcome_of;
use crate::{
    context::{Origin, ToolCall, ToolContext},
    guard::audit::{AuditRecord, hash_arguments, hash_members},
    outcome::ToolOutcome,
    registry::Registry,
    result::{ErrorKind, ToolError},
    schema::{ArgumentChecker, without_secrets},
    store::StoreError,
    tool::Tool,
};

impl Registry {
    /// A call that an entry point or the selection turns down: one record, and the reason.
    pub(crate) async fn refuse(
        &self,
        tool: Option<&Tool>,
        context: &ToolContext,
        mut call: ToolCall,
        error: ToolError,
    ) -> ToolOutcome {
        call.ensure_id();
        call.cut_name();
        let audited = self.shared.common.audit.is_enabled();
        let record = audited.then(|| match &call.arguments {
            Value::Object(arguments) => {
                self.record(context, tool, &call.name, &call.id, call.origin, arguments)
            }
            other => AuditRecord {
                arguments_sha256: hash_arguments(other),
                ..self.record(context, tool, &call.name, &call.id, call.origin, &Map::new())
            },
        });
        let mut result = Err(error);
        if let Some(record) = record {
            let common = &self.shared.common;
            let record = outcome_of(record, &result, Duration::ZERO, common.clock.now());
            if let Err(cause) = common.keep(record).await {
                result = Err(not_audited(&call.name, &cause));
            }
        }
        self.outcome(call.id, call.name, result, Duration::ZERO)
    }

    /// The hash of arguments without secrets, and themselves where the host keeps them.
    pub(super) fn audited(&self, arguments: &Map<String, Value>) -> (String, Option<Value>) {
        let kept = self.shared.common.audit_arguments.then(|| bounded(arguments.clone().into()));
        (hash_members(arguments), kept)
    }

    pub(super) fn record(
        &self,
        context: &ToolContext,
        tool: Option<&Tool>,
        name: &str,
        call_id: &str,
        origin: Origin,
        arguments: &Map<String, Value>,
    ) -> AuditRecord {
        let common = &self.shared.common;
        let schema = tool.map_or(&Value::Null, |tool| &tool.spec().input_schema);
        let checker = tool.and_then(|tool| tool.checker().ok());
        let has_secret = checker.is_some_and(ArgumentChecker::has_secret);
        // A short secret could be found by trying, were it in the hash.
        let kept = (common.audit_arguments || has_secret).then(|| without_secrets(schema, arguments));
        // Each phase is stamped when it is kept.
        AuditRecord {
            tool: name.to_owned(),
            version: tool.and_then(|tool| tool.spec().version.clone()),
            call_id: call_id.to_owned(),
            parent_call_id: context.parent_of(call_id).map(|parent| parent.id.clone()),
            attempt: 1,
            tenant: self.shared.tenant.to_string(),
            user: context.caller().user.clone(),
            via: context.caller().via.clone(),
            level: context.caller().level,
            origin,
            arguments_sha256: kept.as_ref().map_or_else(|| hash_members(arguments), hash_arguments),
            arguments: kept.filter(|_| common.audit_arguments).map(bounded),
            has_read: context.flow().map(|flow| flow.read.clone()).unwrap_or_default(),
            ..AuditRecord::default()
        }
    }
}

/// How long the arguments of a call may be in the audit, in bytes of JSON; the hash of longer ones is there all the same.
const MAX_AUDITED: usize = 64 << 10;

fn bounded(arguments: Value) -> Value {
    match arguments.to_string().len() {
        ..=MAX_AUDITED => arguments,
        length => format!("{length} bytes of arguments, of which only the hash is kept").into(),
    }
}

// The cause is for the log alone: it may name the database's host and tables, and callers are shown what the error says.
pub(super) fn not_audited(tool: &str, cause: &StoreError) -> ToolError {
    tracing::error!(tool, %cause, "audit_failed");
    let error =
        ToolError::new(ErrorKind::NotAudited, "the audit could not be written; the server's log says why")
            .with_feedback(format!("The tool `{tool}` cannot be used now. Do without it."));
    if cause.is_transient() { error.retryable() } else { error }
}

/// The tool has acted, so to make the call again could do harm.
pub(super) fn outcome_lost(tool: &str, cause: &StoreError) -> ToolError {
    tracing::error!(tool, %cause, "audit_failed");
    let message =
        "the tool ran, and its outcome could not be written to the audit; the server's log says why";
    ToolError::new(ErrorKind::NotAudited, message)
        .with_feedback(format!("The tool `{tool}` ran, but its result is lost. Do not call it again."))
}
