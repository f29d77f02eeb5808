//! What a call leaves in the audit.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::{large::do_large, ledger::outcome_of};
use crate::{
    context::{Origin, ToolCall, ToolContext},
    guard::audit::{AuditRecord, hash_arguments, hash_members},
    json::is_within,
    outcome::ToolOutcome,
    registry::Registry,
    result::{ErrorKind, ToolError},
    schema::{ArgumentChecker, all_hidden, without_secrets},
    store::StoreError,
    tool::Tool,
};

/// How long the arguments of a call may be in the audit, in bytes of JSON; the hash of longer ones is there all the same.
const MAX_AUDITED: usize = 64 << 10;
/// Longer ones are hashed, and longer results counted, on a thread for such, in bytes of JSON.
pub(super) const SMALL: usize = 256 << 10;

/// What is kept of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audit {
    Nothing,
    WithoutArguments,
    WithArguments,
}

/// What the audit has of a call's arguments: their hash, and themselves where the host keeps them.
#[derive(Debug, Default)]
pub(super) struct AuditedArguments {
    pub(super) sha256: String,
    pub(super) kept: Option<Value>,
}

impl AuditedArguments {
    /// Without the secrets of the tool: a short one could be found by trying, were it in the hash. Of a tool that is not there, such as one of a
    /// module that is down, nobody can say what is secret.
    pub(super) fn of(arguments: &Map<String, Value>, tool: Option<&Tool>, audit: Audit) -> Option<Self> {
        let keeps = match audit {
            Audit::Nothing => return None,
            Audit::WithoutArguments => false,
            Audit::WithArguments => true,
        };
        let without = match tool {
            None => Some(all_hidden(arguments)),
            Some(tool) => {
                may_have_secret(tool).then(|| without_secrets(&tool.spec().input_schema, arguments))
            }
        };
        let sha256 = without.as_ref().map_or_else(|| hash_members(arguments), hash_arguments);
        let kept = keeps.then(|| match without {
            Some(without) if is_within(&without, MAX_AUDITED) => without,
            None if is_within(arguments, MAX_AUDITED) => arguments.clone().into(),
            _ => format!("more than {MAX_AUDITED} bytes of arguments, of which only the hash is kept").into(),
        });
        Some(Self { sha256, kept })
    }

    /// The same of arguments that need not be an object.
    fn of_any(arguments: &Value, tool: Option<&Tool>, audit: Audit) -> Option<Self> {
        match arguments {
            Value::Object(members) => Self::of(members, tool, audit),
            other => Self::of(&Map::new(), tool, audit)
                .map(|nothing| Self { sha256: hash_arguments(other), ..nothing }),
        }
    }
}

/// Whether arguments of a tool may be secret; of one that was never called, its schema says so.
fn may_have_secret(tool: &Tool) -> bool {
    !tool.has_checker() || tool.checker().map_or(true, ArgumentChecker::has_secret)
}

impl Registry {
    /// What is kept of calls here.
    pub(super) fn audit_of_calls(&self) -> Audit {
        let common = &self.shared.common;
        match (common.audit.is_enabled(), common.audit_arguments) {
            (false, _) => Audit::Nothing,
            (true, false) => Audit::WithoutArguments,
            (true, true) => Audit::WithArguments,
        }
    }

    /// A call that an entry point or the selection turns down: one record, as far as the user's share of the audit goes, and the reason.
    pub(crate) async fn refuse(
        &self,
        tool: Option<&Arc<Tool>>,
        context: &ToolContext,
        mut call: ToolCall,
        error: ToolError,
    ) -> ToolOutcome {
        call.ensure_id();
        call.cut_name();
        let arguments = std::mem::take(&mut call.arguments);
        let mut result = Err(error);
        let common = &self.shared.common;
        if common.audit_shares.takes_refusal(self.tenant(), &context.caller().user)
            && let Some(audited) = self.audited(context, tool, arguments).await
        {
            let record =
                self.record(context, tool.map(|tool| &**tool), &call.name, &call.id, call.origin, audited);
            let record = outcome_of(record, &result, Duration::ZERO, common.clock.now());
            if let Err(cause) = common.keep(record).await {
                result = Err(not_audited(&call.name, &cause));
            }
        }
        self.outcome(call.id, call.name, result, Duration::ZERO)
    }

    async fn audited(
        &self,
        context: &ToolContext,
        tool: Option<&Arc<Tool>>,
        arguments: Value,
    ) -> Option<AuditedArguments> {
        let audit = self.audit_of_calls();
        if audit == Audit::Nothing || is_within(&arguments, SMALL) {
            return AuditedArguments::of_any(&arguments, tool.map(|tool| &**tool), audit);
        }
        let (user, tool) = ((context.tenant(), &*context.caller().user), tool.map(Arc::clone));
        let audited =
            do_large(user, move || AuditedArguments::of_any(&arguments, tool.as_deref(), audit)).await;
        // A call that is turned down leaves its record also where the runtime is going down.
        audited.unwrap_or_else(|_| Some(AuditedArguments::default()))
    }

    pub(super) fn record(
        &self,
        context: &ToolContext,
        tool: Option<&Tool>,
        name: &str,
        call_id: &str,
        origin: Origin,
        arguments: AuditedArguments,
    ) -> AuditRecord {
        // Each phase is stamped when it is kept.
        AuditRecord {
            // Names with spaces are those of commands, as in `toolrack user promote`.
            tool: name.replace(' ', "_"),
            version: tool.and_then(|tool| tool.spec().version.clone()),
            call_id: call_id.to_owned(),
            parent_call_id: context.parent_of(call_id).map(|parent| parent.id.clone()),
            attempt: 1,
            tenant: self.shared.tenant.to_string(),
            user: context.caller().user.clone(),
            via: context.caller().via.clone(),
            credential: context.caller().credential.clone(),
            level: context.caller().level,
            origin,
            arguments_sha256: arguments.sha256,
            arguments: arguments.kept,
            has_read: context.flow().map(|flow| flow.read.clone()).unwrap_or_default(),
            ..AuditRecord::default()
        }
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
