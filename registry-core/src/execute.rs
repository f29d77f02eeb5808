//! The one path of a call: find, flag, level and module, predicate, arguments, limits, gate and approval, run, audit.
//! Every door enters here.

use std::{
    any::Any,
    borrow::Cow,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    arguments::ArgumentChecker,
    context::{EventSink, Origin, ToolCall, ToolContext},
    guard::{
        Admission, Wanted,
        audit::{AuditRecord, Phase, hash_arguments, hash_members},
        cancelled, without_secrets,
    },
    nearest::nearest,
    outcome::{ToolOutcome, millis},
    policy::Effect,
    registry::Registry,
    result::{ErrorKind, ToolError, ToolResult},
    select::refusal,
    tool::{Handler, Tool},
};

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
        let mut context = Cow::Borrowed(context);
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
        let audited = self.shared.common.audit.is_enabled();
        let given = audited.then(|| arguments.clone());
        let arguments = match checker.fit(&name, &tool.spec().input_schema, arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                let arguments = given.unwrap_or_default();
                let call = ToolCall { id, name, arguments, origin, raw_argument, retries };
                return self.refuse(Some(&tool), context, call, error).await;
            }
        };
        let mut context = context.for_call(&id, &name, raw_argument);
        let guards = &self.shared.common.guards;
        let mut record = audited.then(|| self.record(&context, Some(&tool), &name, &id, origin, &arguments));

        let arguments_sha256 =
            if guards.may_ask_person(&tool) { hash_members(&arguments) } else { String::new() };
        let wanted = Wanted {
            tenant: &self.shared.tenant,
            tool: &tool,
            context: &context,
            arguments: &arguments,
            arguments_sha256: &arguments_sha256,
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

    /// Keeps the record that comes before a try.
    async fn intend(&self, tool: &str, record: &mut AuditRecord) -> Result<(), ToolError> {
        record.phase = Phase::Intent;
        record.ts = self.shared.common.clock.now();
        let kept = self.shared.common.audit.record(record.clone()).await;
        kept.map_err(|cause| not_audited(tool, &cause))
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
        let result = guarded(handler, context, arguments, tool.policy().timeout).await;
        let duration = started.elapsed();
        if let Some(record) = record {
            let outcome = AuditRecord { ts: self.shared.common.clock.now(), ..record };
            if let Err(cause) = self.shared.common.audit.record(outcome.with_result(&result, duration)).await
            {
                return (Err(outcome_lost(tool.name(), &cause)), duration);
            }
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

    /// A call that a door or the selection turns down: one record, and the reason.
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
        self.end(call.id, call.name, Err(error), record).await
    }

    /// A call that is not made: its one record.
    async fn end(
        &self,
        call_id: String,
        tool_name: String,
        mut result: Result<ToolResult, ToolError>,
        record: Option<AuditRecord>,
    ) -> ToolOutcome {
        if let Some(record) = record {
            let record = AuditRecord { ts: self.shared.common.clock.now(), ..record };
            let record = record.with_result(&result, Duration::ZERO);
            if let Err(cause) = self.shared.common.audit.record(record).await {
                result = Err(not_audited(&tool_name, &cause));
            }
        }
        self.outcome(call_id, tool_name, result, Duration::ZERO)
    }

    fn record(
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
        AuditRecord {
            phase: Phase::Intent,
            tool: name.to_owned(),
            version: tool.and_then(|tool| tool.spec().version.clone()),
            call_id: call_id.to_owned(),
            attempt: 1,
            tenant: self.shared.tenant.to_string(),
            user: context.caller().user.clone(),
            via: context.caller().via.clone(),
            level: context.caller().level,
            origin,
            arguments_sha256: kept.as_ref().map_or_else(|| hash_members(arguments), hash_arguments),
            arguments: kept.filter(|_| common.audit_arguments),
            decision: None,
            success: None,
            error: None,
            error_message: None,
            side_effects: Vec::new(),
            audit: Map::new(),
            duration_ms: None,
            // Each phase is stamped when it is kept.
            ts: Timestamp::default(),
        }
    }

    /// Whether there is a module of that name, though a remote one may have no tool now.
    fn knows_module(&self, name: &str) -> bool {
        let has_tool = self.shared.tools.load().sorted().iter().any(|tool| tool.module() == name);
        has_tool || self.shared.common.offers.load().has_source(name)
    }

    /// The error for a name that no tool has, with the nearest of those the caller may use.
    fn not_found(&self, context: &ToolContext, name: &str) -> ToolError {
        let tools = self.shared.tools.load();
        let usable: Vec<&Arc<Tool>> =
            tools.sorted().iter().filter(|tool| refusal(tool, context).is_none()).collect();
        let nearest: Vec<String> =
            nearest(name, usable.iter().map(|tool| tool.name())).into_iter().map(str::to_owned).collect();
        let message = match name.split_once('.') {
            None => format!("Invalid tool name format: {name}. Expected 'module.tool_name'."),
            Some((module, _)) if !self.knows_module(module) => format!("Unknown module: {module}"),
            Some((module, tool)) => format!("The module {module} has no tool named {tool}."),
        };
        let hint = match nearest.as_slice() {
            [] => "Use only the tools you were given, or answer without one.".to_owned(),
            names => format!("Did you mean {}? Call it by its exact name.", quoted(names)),
        };
        ToolError::new(ErrorKind::ToolNotFound, message)
            .with_feedback(format!("There is no tool named `{name}`. {hint}"))
            .with_nearest(nearest)
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

impl AuditRecord {
    /// The outcome that belongs to this intent.
    fn with_result(mut self, result: &Result<ToolResult, ToolError>, duration: Duration) -> Self {
        self.phase = Phase::Outcome;
        self.duration_ms = Some(millis(duration));
        match result {
            Ok(result) => {
                self.success = Some(result.success);
                self.side_effects.clone_from(&result.side_effects);
                self.audit.clone_from(&result.audit);
            }
            Err(error) => {
                self.success = Some(false);
                self.error = Some(error.kind());
                self.error_message = Some(error.message().to_owned());
            }
        }
        self
    }
}

/// Why the caller may not use the tool, where it was allowed a while ago.
async fn refusal_by_now(tool: &Tool, context: &mut ToolContext) -> Option<ToolError> {
    match context.ask_standing().await {
        Ok(()) => refusal(tool, context),
        Err(error) => Some(error),
    }
}

// The cause is for the log alone: it may name the database's host and tables, and callers are shown what the error says.
fn not_audited(tool: &str, cause: &str) -> ToolError {
    tracing::error!(tool, cause, "audit_failed");
    ToolError::new(ErrorKind::NotAudited, "the audit could not be written; the server's log says why")
        .with_feedback(format!("The tool `{tool}` cannot be used now. Do without it."))
}

/// The tool has acted, so to make the call again could do harm.
fn outcome_lost(tool: &str, cause: &str) -> ToolError {
    tracing::error!(tool, cause, "audit_failed");
    let message =
        "the tool ran, and its outcome could not be written to the audit; the server's log says why";
    ToolError::new(ErrorKind::NotAudited, message)
        .with_feedback(format!("The tool `{tool}` ran, but its result is lost. Do not call it again."))
}

/// Runs a tool's code so that nothing it does reaches further than this call: no panic, no overrun.
async fn guarded(
    handler: &dyn Handler,
    context: &ToolContext,
    arguments: Map<String, Value>,
    timeout: Duration,
) -> Result<ToolResult, ToolError> {
    // The handler's first step is inside as well.
    let running = caught(async move { handler.call(context, arguments).await });
    let caught = async { running.await.unwrap_or_else(|panic| Err(panicked(&panic))) };
    tokio::select! {
        biased;
        result = caught => result,
        () = context.cancelled() => {
            Err(cancelled())
        }
        () = tokio::time::sleep(timeout) => Err(timed_out(timeout)),
    }
}

pub(crate) fn timed_out(timeout: Duration) -> ToolError {
    let limit = if timeout.subsec_nanos() == 0 {
        format!("{}s", timeout.as_secs())
    } else {
        format!("{}s", timeout.as_secs_f64())
    };
    ToolError::new(ErrorKind::Timeout, format!("Tool execution timed out ({limit}).")).retryable()
}

/// What the future comes to, or the text of its panic.
pub(crate) async fn caught<T>(future: impl Future<Output = T> + Send) -> Result<T, String> {
    let mut running = Box::pin(future);
    poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(text_of(panic.as_ref()))),
    })
    .await
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

fn panicked(text: &str) -> ToolError {
    ToolError::new(ErrorKind::Panicked, format!("the tool panicked: {text}"))
        .with_feedback("The tool failed with a fault of its own. Do not call it again with these arguments.")
}
