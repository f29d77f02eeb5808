//! Step 5: the tool's own code.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    admit::Admitted,
    fit::Fitted,
    large::do_large,
    record::{SMALL, not_audited, outcome_lost},
    running,
};
use crate::{
    content,
    guard::{Admitted as Admit, audit::hash_members},
    json::is_within,
    outcome::ToolOutcome,
    policy::{Effect, ToolPolicy},
    result::{ErrorKind, ToolError, ToolResult},
};

/// How long a failed call waits before it is tried again, the first time. It doubles with each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A call that is over.
pub(super) struct Ran<'a> {
    fitted: Box<Fitted<'a>>,
    result: Result<ToolResult, ToolError>,
    /// How long the last try took.
    duration: Duration,
}

/// Whether a call that may have run can be made again without harm.
pub(super) fn may_repeat(policy: &ToolPolicy) -> bool {
    policy.effect == Effect::Read || policy.idempotent
}

impl<'a> Admitted<'a> {
    pub(super) async fn run(self) -> Ran<'a> {
        let Self { mut fitted, mut admit } = self;
        // The tool acts from now on: what was charged is used.
        admit.spend();
        let arguments = std::mem::take(&mut fitted.arguments);
        let call = fitted.context.running().map(Arc::clone);
        if let (Some(call), Some(Some(_))) = (&call, fitted.context.question_wait()) {
            call.asking.set_arguments(|| hash_members(&arguments));
        }
        let retries = if may_repeat(fitted.tool.policy()) { fitted.retries } else { 0 };
        let (result, duration) = match retries {
            0 => fitted.attempt(arguments).await,
            retries => Box::pin(fitted.tries(arguments, retries)).await,
        };
        let comes_back = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::AnswerPending);
        if let Some(keeping) = call.as_ref().and_then(|call| call.asking.keeping())
            && !keeping.is_unattended
        {
            Box::pin(keeping.forget()).await;
        }
        if let Some(call) = call.filter(|call| call.asking.has_answers()) {
            Box::pin(call.asking.end(comes_back)).await;
        }
        if comes_back {
            Box::pin(admit.comes_back()).await;
        }
        Admit::leave(admit).await;
        Ran { fitted, result, duration }
    }
}

impl Ran<'_> {
    pub(super) fn into_outcome(self) -> ToolOutcome {
        let Self { fitted, result, duration } = self;
        let running = fitted.context.running();
        let within = running.map(|call| call.read.lock().reads()).unwrap_or_default();
        let model_usage = running.map(|call| call.model_usage()).unwrap_or_default();
        let reads = fitted.tool.reads().and(within);
        let outcome = fitted.registry.outcome(fitted.id, fitted.name, result, duration);
        ToolOutcome { reads, model_usage, changed_arguments: fitted.changed.map(Value::Object), ..outcome }
    }
}

impl Fitted<'_> {
    async fn tries(
        &mut self,
        arguments: Map<String, Value>,
        mut left: u8,
    ) -> (Result<ToolResult, ToolError>, Duration) {
        let mut pause = FIRST_PAUSE;
        loop {
            if left == 0 {
                return self.attempt(arguments).await;
            }
            let (result, duration) = self.attempt(arguments.clone()).await;
            match &result {
                Err(error) if error.is_retryable() && !self.context.is_cancelled() => {
                    let (tool, call_id, error) = (&*self.name, &*self.id, error.detail());
                    tracing::warn!(tool, call_id, error, "tool_call_failed_retrying");
                }
                _ => return (result, duration),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.context.cancelled() => return (result, duration),
            }
            if self.refused_by_now().await.is_some() {
                return (result, duration);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            left -= 1;
            if let Err(cause) = self.ledger.intend_again().await {
                return (Err(not_audited(self.tool.name(), &cause)), duration);
            }
        }
    }

    /// Fails where a result is more than may be. To count a large one takes a while.
    async fn checked(&self, result: ToolResult) -> Result<ToolResult, ToolError> {
        let check = |result: ToolResult| content::check(&result).map(|()| result);
        if result.value.is_string() || is_within(&result.value, SMALL) {
            return check(result);
        }
        let user = (self.context.tenant(), &*self.context.caller().user);
        let checked = Box::pin(do_large(user, move || check(result))).await;
        checked.unwrap_or_else(|_| {
            Err(ToolError::failed("the result could not be checked; see the server's log"))
        })
    }

    /// Runs the tool once, and keeps the record that comes after.
    async fn attempt(&mut self, arguments: Map<String, Value>) -> (Result<ToolResult, ToolError>, Duration) {
        let started = Instant::now();
        self.ledger.started(started);
        if let Some(call) = self.context.running() {
            call.asking.begin();
        }
        let Some(handler) = self.tool.handler() else {
            // A tool without code is not available, and does not come here.
            let error = ToolError::new(ErrorKind::Unavailable, format!("{} has no code", self.tool.name()));
            return (Err(error), Duration::ZERO);
        };
        let result = running::guarded(handler, &self.context, arguments, started, &self.tool).await;
        // By now the tool's own code is dropped.
        let stopped_at = self.context.running().and_then(|call| call.asking.stopped_at());
        let result = match stopped_at {
            Some(question) => Err(ToolError::cancelled_asking(question, self.tool.policy())),
            None => result,
        };
        let result = match result {
            Ok(result) => self.checked(result).await,
            failed => failed,
        };
        let result = result.map(|mut result| {
            result.ends_turn = result.success && (result.ends_turn || self.tool.policy().ends_turn);
            result
        });
        let duration = started.elapsed();
        if let Err(cause) = self.ledger.conclude(&result, duration).await {
            return (Err(outcome_lost(self.tool.name(), &cause)), duration);
        }
        (result, duration)
    }
}
