//! The one path of a call: find, flag, level and module, predicate, arguments, limits, gate and approval, run, audit.
//! Every door enters here.

mod check;
mod entries;
mod missing;
mod running;

use std::{pin::Pin, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::{
    arguments::Misfit,
    context::{EventSink, ToolCall, ToolContext},
    guard::{Admission, Wanted, audit::AuditRecord},
    outcome::ToolOutcome,
    policy::Effect,
    registry::Registry,
    result::{ErrorKind, ToolError, ToolResult},
    select::refusal,
    tool::{Handler, Tool},
};
pub(crate) use running::{caught, within};

/// A boxed future that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Registry {
    /// Makes a call.
    ///
    /// A caller that goes away cancels the context's token rather than dropping this future: a dropped call leaves its
    /// intent in the audit and no outcome.
    pub async fn execute(&self, context: &ToolContext, call: ToolCall) -> ToolOutcome {
        let tool = self.get(&call.name);
        self.run(tool, context, call).await
    }

    /// Makes a call by name, with a listener for the tool's status.
    pub async fn execute_tool(
        &self,
        name: &str,
        arguments: Value,
        context: &ToolContext,
        on_status: Option<EventSink>,
    ) -> ToolOutcome {
        let call = ToolCall::new(name, arguments);
        match on_status {
            Some(events) => self.execute(&context.clone().with_events(events), call).await,
            None => self.execute(context, call).await,
        }
    }

    /// The path. `tool` is what the door found under the call's name.
    pub(crate) async fn run(
        &self,
        tool: Option<Arc<Tool>>,
        context: &ToolContext,
        mut call: ToolCall,
    ) -> ToolOutcome {
        call.ensure_id();
        let mut context = self.own(context);
        if context.standing().is_some()
            && let Err(error) = context.to_mut().ask_standing().await
        {
            return self.refuse(tool.as_deref(), &context, call, error).await;
        }
        let context = context.as_ref();
        let Some(tool) = tool else {
            call.cut_name();
            let error = self.not_found(context, &call.name);
            return self.refuse(None, context, call, error).await;
        };
        if let Some(error) = refusal(&tool, context) {
            return self.refuse(Some(&tool), context, call, error).await;
        }
        let (Ok(checker), Some(handler)) = (tool.checker(), tool.handler()) else {
            // `refusal` has answered both; a tool is never changed, only replaced.
            let error = ToolError::new(ErrorKind::Unavailable, format!("{} cannot be called", tool.name()));
            return self.refuse(Some(&tool), context, call, error).await;
        };
        let ToolCall { id, name, arguments, origin, raw_argument, retries } = call;
        let arguments = match checker.fit(&name, &tool.spec().input_schema, arguments) {
            Ok(arguments) => arguments,
            Err(Misfit { error, given }) => {
                let call = ToolCall { id, name, arguments: given, origin, raw_argument, retries };
                return self.refuse(Some(&tool), context, call, error).await;
            }
        };
        let mut context = context.for_call(self, &id, &name, raw_argument);
        let guards = &self.shared.common.guards;
        let audited = self.shared.common.audit.is_enabled();
        let mut record = audited.then(|| self.record(&context, Some(&tool), &name, &id, origin, &arguments));
        let wanted = Wanted {
            tenant: &self.shared.tenant,
            tool: &tool,
            context: &context,
            arguments: &arguments,
            clock: self.shared.common.clock.as_ref(),
        };
        let mut decision = None;
        let admission = guards.admit(wanted, &mut decision).await;
        if let Some(record) = &mut record {
            record.decision = decision;
        }
        // Held until the tool has run.
        let admitted = match admission {
            Admission::Run(admitted) => admitted,
            Admission::Blocked(reason) => {
                let result = Ok(ToolResult::unsuccessful(reason));
                return self.end(id, name, result, record).await;
            }
            Admission::Refused(error) => return self.end(id, name, Err(error), record).await,
        };
        // What was revoked while the call waited for a person or for its turn is refused all the same.
        let mut refused = refusal_by_now(&tool, &mut context).await;
        if let Some(record) = record.as_mut() {
            record.level = context.caller().level;
            if refused.is_none() {
                refused = self.intend(tool.name(), record).await.err();
            }
        }
        if let Some(error) = refused {
            guards.give_back(admitted, tool.name()).await;
            return self.end(id, name, Err(error), record).await;
        }

        let mut tries_left = if tool.policy().effect == Effect::Destructive { 0 } else { retries };
        loop {
            let again = (tries_left > 0).then(|| arguments.clone());
            let (result, duration) = match again {
                Some(kept) => self.attempt(&tool, handler, &context, kept, record.clone()).await,
                None => {
                    let (result, duration) = self.attempt(&tool, handler, &context, arguments, record).await;
                    return self.outcome(id, name, result, duration);
                }
            };
            match &result {
                Err(error) if error.is_retryable() && !context.is_cancelled() => {
                    tracing::warn!(
                        tool = &*name,
                        call_id = &*id,
                        error = error.message(),
                        "tool_call_failed_retrying"
                    );
                }
                _ => return self.outcome(id, name, result, duration),
            }
            if refusal_by_now(&tool, &mut context).await.is_some() {
                return self.outcome(id, name, result, duration);
            }
            tries_left -= 1;
            if let Some(record) = &mut record {
                record.attempt += 1;
                if let Err(error) = self.intend(tool.name(), record).await {
                    return self.outcome(id, name, Err(error), duration);
                }
            }
        }
    }

    /// Runs the tool once, and keeps the record that comes after.
    async fn attempt(
        &self,
        tool: &Tool,
        handler: &dyn Handler,
        context: &ToolContext,
        arguments: Map<String, Value>,
        record: Option<AuditRecord>,
    ) -> (Result<ToolResult, ToolError>, Duration) {
        let started = Instant::now();
        let result = running::guarded(handler, context, arguments, started, tool.policy().timeout).await;
        let duration = started.elapsed();
        if let Some(record) = record
            && let Err(cause) = self.conclude(record, &result, duration).await
        {
            return (Err(entries::outcome_lost(tool.name(), &cause)), duration);
        }
        (result, duration)
    }

    fn outcome(
        &self,
        call_id: String,
        tool_name: String,
        result: Result<ToolResult, ToolError>,
        duration: Duration,
    ) -> ToolOutcome {
        ToolOutcome { call_id, tool_name, result, duration, ts: self.shared.common.clock.now() }
    }
}

/// Why the caller may not use the tool, where it was allowed a while ago.
async fn refusal_by_now(tool: &Tool, context: &mut ToolContext) -> Option<ToolError> {
    match context.ask_standing().await {
        Ok(()) => refusal(tool, context),
        Err(error) => Some(error),
    }
}
