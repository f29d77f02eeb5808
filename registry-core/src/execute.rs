//! The one path of a call: find, flag, level and module, predicate, arguments, run, audit. Every door enters here.

use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    context::{EventSink, Origin, ToolCall, ToolContext},
    guard::audit::{AuditRecord, Phase, hash_arguments},
    nearest::nearest,
    policy::Effect,
    registry::Registry,
    result::{ErrorKind, ToolError, ToolResult},
    select::refusal,
    tool::{Handler, Tool},
};

/// A boxed future that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// The call's id.
    pub call_id: String,
    /// The tool's name, as called.
    pub tool_name: String,
    /// What the tool gave, or why it did not.
    pub result: Result<ToolResult, ToolError>,
    /// How long the last attempt ran; zero for a call that was refused.
    pub duration: Duration,
    /// When it was done (UTC).
    pub ts: Timestamp,
}

/// A [`ToolOutcome`] as it goes over a wire; the same shape at every door.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolReply {
    /// The tool's name.
    pub tool_name: String,
    /// Whether the tool did what it was asked.
    pub success: bool,
    /// What it found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A word to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What was changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub side_effects: Vec<String>,
    /// The tool's notes, with `tool`, `ts` and `duration_ms`.
    pub audit: Map<String, Value>,
    /// Whether the same call may succeed when it is made again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Names of tools that may have been meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
}

impl ToolOutcome {
    /// Whether the tool did what it was asked.
    pub fn is_success(&self) -> bool {
        self.result.as_ref().is_ok_and(|result| result.success)
    }

    /// What the model is told.
    pub fn for_model(&self) -> String {
        match &self.result {
            Ok(result) => result.for_model().into_owned(),
            Err(error) => format!("Error: {}", error.feedback()),
        }
    }

    /// The audit of the call: the tool's own notes, with `tool`, `ts` and `duration_ms` from the registry.
    pub fn audit(&self) -> Map<String, Value> {
        let mut audit = self.result.as_ref().map(|result| result.audit.clone()).unwrap_or_default();
        audit.insert("tool".into(), self.tool_name.as_str().into());
        audit.insert("ts".into(), self.ts.to_string().into());
        audit.insert("duration_ms".into(), json!(millis(self.duration)));
        audit
    }

    /// The outcome as it goes over a wire.
    pub fn to_reply(&self) -> ToolReply {
        let mut reply = ToolReply {
            tool_name: self.tool_name.clone(),
            success: self.is_success(),
            result: None,
            error: None,
            message: None,
            side_effects: Vec::new(),
            audit: self.audit(),
            retryable: None,
            nearest: Vec::new(),
        };
        match &self.result {
            Ok(result) => {
                reply.result = Some(result.value.clone());
                reply.message.clone_from(&result.message);
                reply.side_effects.clone_from(&result.side_effects);
            }
            Err(error) => {
                reply.error = Some(error.message().to_owned());
                reply.retryable = Some(error.is_retryable());
                reply.nearest = error.nearest().to_vec();
            }
        }
        reply
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

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
        let Some(tool) = tool else {
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
        let audited = self.shared.audit.is_enabled();
        let given = audited.then(|| arguments.clone());
        let arguments = match checker.fit(&name, &tool.spec().input_schema, arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                let arguments = given.unwrap_or_default();
                let call = ToolCall { id, name, arguments, origin, raw_argument, retries };
                return self.refuse(Some(&tool), context, call, error).await;
            }
        };
        let context = context.for_call(&id, &name, raw_argument);
        let mut record = audited.then(|| AuditRecord {
            arguments_sha256: hash_arguments(&Value::Object(arguments.clone())),
            version: tool.spec().version.clone(),
            ..self.blank_record(&context, &name, &id, origin)
        });

        let mut tries_left = if tool.policy().effect == Effect::Destructive { 0 } else { retries };
        loop {
            let again = (tries_left > 0).then(|| arguments.clone());
            let (result, duration) = match again {
                Some(kept) => self.attempt(&tool, handler, &context, kept, record.as_mut()).await,
                None => {
                    let (result, duration) =
                        self.attempt(&tool, handler, &context, arguments, record.as_mut()).await;
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
            tries_left -= 1;
            if let Some(record) = &mut record {
                record.attempt += 1;
            }
        }
    }

    /// Runs the tool once, between its two records.
    async fn attempt(
        &self,
        tool: &Tool,
        handler: &dyn Handler,
        context: &ToolContext,
        arguments: Map<String, Value>,
        mut record: Option<&mut AuditRecord>,
    ) -> (Result<ToolResult, ToolError>, Duration) {
        if let Some(record) = &mut record {
            record.phase = Phase::Intent;
            record.ts = self.shared.clock.now();
            if let Err(cause) = self.shared.audit.record(record.clone()).await {
                return (Err(not_audited(tool.name(), &cause)), Duration::ZERO);
            }
        }
        let started = Instant::now();
        let result = guarded(handler, context, arguments, tool.policy().timeout).await;
        let duration = started.elapsed();
        if let Some(record) = record {
            let outcome = AuditRecord { ts: self.shared.clock.now(), ..record.clone() };
            if let Err(cause) = self.shared.audit.record(outcome.with_result(&result, duration)).await {
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
        ToolOutcome { call_id, tool_name, result, duration, ts: self.shared.clock.now() }
    }

    /// A call that is not made: one record, and the reason.
    pub(crate) async fn refuse(
        &self,
        tool: Option<&Tool>,
        context: &ToolContext,
        mut call: ToolCall,
        error: ToolError,
    ) -> ToolOutcome {
        call.ensure_id();
        let mut result = Err(error);
        if self.shared.audit.is_enabled() {
            let record = AuditRecord {
                version: tool.and_then(|tool| tool.spec().version.clone()),
                arguments_sha256: hash_arguments(&call.arguments),
                ..self.blank_record(context, &call.name, &call.id, call.origin)
            };
            if let Err(error) = self.shared.audit.record(record.with_result(&result, Duration::ZERO)).await {
                result = Err(not_audited(&call.name, &error));
            }
        }
        self.outcome(call.id, call.name, result, Duration::ZERO)
    }

    fn blank_record(&self, context: &ToolContext, tool: &str, call_id: &str, origin: Origin) -> AuditRecord {
        AuditRecord {
            phase: Phase::Intent,
            tool: tool.to_owned(),
            version: None,
            call_id: call_id.to_owned(),
            attempt: 1,
            user: context.caller().user.clone(),
            level: context.caller().level,
            origin,
            arguments_sha256: String::new(),
            success: None,
            error: None,
            error_message: None,
            side_effects: Vec::new(),
            audit: Map::new(),
            duration_ms: None,
            ts: self.shared.clock.now(),
        }
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
            Some((module, _)) if !tools.sorted().iter().any(|tool| tool.module() == module) => {
                format!("Unknown module: {module}")
            }
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

fn not_audited(tool: &str, cause: &str) -> ToolError {
    tracing::error!(tool, cause, "audit_failed");
    ToolError::new(ErrorKind::NotAudited, format!("the audit could not be written: {cause}"))
        .with_feedback(format!("The tool `{tool}` cannot be used now. Do without it."))
}

/// The tool has acted, so to make the call again could do harm.
fn outcome_lost(tool: &str, cause: &str) -> ToolError {
    tracing::error!(tool, cause, "audit_failed");
    let message = format!("the tool ran, and its outcome could not be written to the audit: {cause}");
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
    let mut running: BoxFuture<'_, _> = Box::pin(async move { handler.call(context, arguments).await });
    let caught = poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(panic) => Poll::Ready(Err(panicked(panic.as_ref()))),
    });
    tokio::select! {
        biased;
        result = caught => result,
        () = context.cancelled() => {
            Err(ToolError::new(ErrorKind::Cancelled, "the call was cancelled"))
        }
        () = tokio::time::sleep(timeout) => Err(timed_out(timeout)),
    }
}

fn timed_out(timeout: Duration) -> ToolError {
    let limit = if timeout.subsec_nanos() == 0 {
        format!("{}s", timeout.as_secs())
    } else {
        format!("{}s", timeout.as_secs_f64())
    };
    ToolError::new(ErrorKind::Timeout, format!("Tool execution timed out ({limit}).")).retryable()
}

fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    ToolError::new(ErrorKind::Panicked, format!("the tool panicked: {text}"))
        .with_feedback("The tool failed with a fault of its own. Do not call it again with these arguments.")
}
