//! A breaker with what stands behind it: what calls are told while it is open, and the log.

use std::{sync::Arc, time::Duration};

use registry_core::{ErrorKind, RemoteKind, ToolContext, ToolError, clock::Clock};
use tokio::time::Instant;

use super::{
    BreakerState,
    breaker::{Breaker, Outage, Resting},
    settings::BreakerSettings,
};

/// A call may still end on time, though the registry's own timer was the first to say that it did not.
const TIMER_GRAIN: Duration = Duration::from_millis(50);

/// A module or an MCP server, which is left alone after failures in a row.
pub(crate) struct Guarded {
    kind: RemoteKind,
    name: Arc<str>,
    breaker: Breaker,
    clock: Arc<dyn Clock>,
}

impl Guarded {
    pub(crate) fn new(
        kind: RemoteKind,
        name: Arc<str>,
        settings: BreakerSettings,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { kind, name, breaker: Breaker::new(settings), clock }
    }

    pub(crate) fn state(&self) -> BreakerState {
        self.breaker.state()
    }

    /// Lets a call through that has to end within the time, or says why not.
    pub(crate) fn admit<'a>(
        &'a self,
        context: &'a ToolContext,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<Trial<'a>, ToolError> {
        self.breaker.admit(self.clock.now()).map_err(|resting| self.resting(resting))?;
        Ok(Trial { guarded: self, context, timeout, deadline, is_over: false })
    }

    /// It has answered.
    pub(crate) fn succeeded(&self) {
        if self.breaker.succeeded() {
            match self.kind {
                RemoteKind::Module => tracing::info!(module = &*self.name, "module_called_again"),
                RemoteKind::Mcp => tracing::info!(server = &*self.name, "mcp_server_called_again"),
            }
        }
    }

    fn failed(&self, outage: &Outage) {
        if self.breaker.failed(self.clock.now(), outage) {
            let cause = outage.text.as_str();
            match self.kind {
                RemoteKind::Module => tracing::warn!(module = &*self.name, cause, "module_left_alone"),
                RemoteKind::Mcp => tracing::warn!(server = &*self.name, cause, "mcp_server_left_alone"),
            }
        }
    }

    fn resting(&self, resting: Resting) -> ToolError {
        let (kind, name, cause) = (self.kind, &self.name, resting.cause.text);
        let when = match resting.until {
            Some(until) => format!("until {until}"),
            None => "while another call tries it".to_owned(),
        };
        let message = format!("the {kind} {name} is left alone {when}, as its last calls failed: {cause}");
        // Not retryable: nothing can have changed by the time of a second try.
        let error = ToolError::new(ErrorKind::Unavailable, message)
            .with_feedback("The service behind the tool is down. Do without it for now.");
        match resting.until {
            Some(until) => error.with_retry_at(until),
            None => error,
        }
    }
}

/// A call on its way, so that the breaker learns of its end also where the registry drops it.
pub(crate) struct Trial<'a> {
    guarded: &'a Guarded,
    context: &'a ToolContext,
    timeout: Duration,
    deadline: Instant,
    is_over: bool,
}

impl Trial<'_> {
    /// The call has ended; `outage` says what is wrong with all of the other side, and not only with this one call.
    pub(crate) fn end(mut self, outage: Option<Outage>) {
        self.is_over = true;
        match outage {
            Some(outage) => self.guarded.failed(&outage),
            None => self.guarded.succeeded(),
        }
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let timed_out = Instant::now() + TIMER_GRAIN >= self.deadline;
        if timed_out && !self.context.is_cancelled() {
            self.guarded.failed(&took_longer(self.timeout).into());
        } else {
            self.guarded.breaker.abandoned(self.guarded.clock.now());
        }
    }
}

/// Why there is no answer.
pub(crate) fn took_longer(limit: Duration) -> String {
    format!("it took longer than {} s", limit.as_secs_f64())
}
