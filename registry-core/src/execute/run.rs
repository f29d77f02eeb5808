//! Step 5: the tool's own code.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    admit::Admitted,
    fit::Fitted,
    record::{not_audited, outcome_lost},
    running,
};
use crate::{
    guard::Admitted as Admit,
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
fn may_repeat(policy: &ToolPolicy) -> bool {
    policy.effect == Effect::Read || policy.idempotent
}

impl<'a> Admitted<'a> {
    pub(super) async fn run(self) -> Ran<'a> {
        let Self { mut fitted, mut admit } = self;
        // The tool acts from now on: what was charged is used.
        admit.spend();
        let arguments = std::mem::take(&mut fitted.arguments);
        let retries = if may_repeat(fitted.tool.policy()) { fitted.retries } else { 0 };
        let (result, duration) = match retries {
            0 => fitted.attempt(arguments).await,
            retries => Box::pin(fitted.tries(arguments, retries)).await,
        };
        Admit::leave(admit).await;
        Ran { fitted, result, duration }
    }
}

impl Ran<'_> {
    pub(super) fn into_outcome(self) -> ToolOutcome {
        let Self { fitted, result, duration } = self;
        fitted.registry.outcome(fitted.id, fitted.name, result, duration)
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

    /// Runs the tool once, and keeps the record that comes after.
    async fn attempt(&mut self, arguments: Map<String, Value>) -> (Result<ToolResult, ToolError>, Duration) {
        let started = Instant::now();
        self.ledger.started(started);
        let Some(handler) = self.tool.handler() else {
            // A tool without code is not available, and does not come here.
            let error = ToolError::new(ErrorKind::Unavailable, format!("{} has no code", self.tool.name()));
            return (Err(error), Duration::ZERO);
        };
        let result = running::guarded(handler, &self.context, arguments, started, &self.tool).await;
        let duration = started.elapsed();
        if let Err(cause) = self.ledger.conclude(&result, duration).await {
            return (Err(outcome_lost(self.tool.name(), &cause)), duration);
        }
        (result, duration)
    }
}
