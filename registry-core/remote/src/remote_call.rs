//! Calls that a person on the other side has to approve as well.

use std::time::Duration;

use registry_core::{
    Effect, ErrorKind, ToolContext, ToolError, ToolPolicy, ToolResult, guard::approval::APPROVAL_TIMEOUT,
};
use tokio::time::Instant;

/// How long a call is made again that waits for a person there.
const PATIENCE: Duration = APPROVAL_TIMEOUT;
/// How long is waited at least before it is.
const PAUSE: Duration = Duration::from_secs(1);

/// What a call is given until it is over, of which the other side has `timeout` for each answer.
pub(super) fn whole_timeout(policy: &ToolPolicy, timeout: Duration) -> Duration {
    timeout.saturating_add(if may_wait(policy) { PATIENCE } else { Duration::ZERO })
}

/// Whether calls of such a tool may wait for a person. What a person said here is good for one call: were that over before another
/// has answered there, it could never be made.
pub(super) fn may_wait(policy: &ToolPolicy) -> bool {
    policy.effect == Effect::Destructive || policy.requires_gate
}

/// A call of a tool on the other side, which is made until it is answered.
pub(super) struct RemoteCall<'a> {
    pub(super) context: &'a ToolContext,
    /// What the user reads while a person is waited for.
    pub(super) tool: &'a str,
    pub(super) place: &'a str,
    pub(super) may_wait: bool,
    /// How long one answer may take.
    pub(super) timeout: Duration,
    /// When it was made first; `None` before a person is waited for.
    pub(super) waits_since: Option<Instant>,
}

impl RemoteCall<'_> {
    /// How long a Toolrack on the other side may wait for its person, so that it still answers in time.
    pub(super) fn wait_there(&self) -> Duration {
        self.timeout / 2
    }

    /// Makes the call once. `None` where a person there has not answered yet and it has to be made again, which is then due.
    pub(super) async fn answered(
        &mut self,
        once: impl Future<Output = Result<ToolResult, ToolError>>,
    ) -> Option<Result<ToolResult, ToolError>> {
        let asked = Instant::now();
        let answer = tokio::time::timeout(self.timeout, once).await;
        let waits = match answer.unwrap_or_else(|_| Err(ToolError::timed_out(self.timeout))) {
            Err(error) if error.kind() == ErrorKind::ApprovalPending => error,
            answer => return Some(answer),
        };
        if !self.may_wait {
            return Some(Err(waits));
        }
        let Self { context, tool, place, waits_since, .. } = self;
        let since = *waits_since.get_or_insert_with(|| {
            context.status(format!("Waiting for a person to approve {tool} on {place}"));
            asked
        });
        if since.elapsed() >= PATIENCE {
            return Some(Err(waits));
        }
        tokio::time::sleep_until(asked + PAUSE).await;
        None
    }
}
