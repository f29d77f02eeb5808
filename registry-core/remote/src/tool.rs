//! A tool of a source, as the registry calls it: whether there is a place for the call and the circuit is open, and calls that
//! a person on the other side has to approve as well.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use registry_core::{
    Effect, ErrorKind, Handler, Remote, ToolContext, ToolError, ToolFuture, ToolPolicy, ToolResult,
    guard::approval::APPROVAL_TIMEOUT,
};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::{
    breaker::{Breaker, Outage, Whose},
    slots::Slots,
    text::shown,
};

/// How long a call is made again that waits for a person there.
const PATIENCE: Duration = APPROVAL_TIMEOUT;
/// How long is waited at least before it is.
const PAUSE: Duration = Duration::from_secs(1);

/// How calls are made in a source.
#[async_trait]
pub(crate) trait Protocol: Send + Sync {
    /// Makes a call once.
    async fn execute(&self, call: RemoteCall<'_>) -> Answer;
}

/// One call of a tool on the other side.
pub(crate) struct RemoteCall<'a> {
    pub(crate) context: &'a ToolContext,
    /// What the source calls the tool.
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Map<String, Value>,
    /// How long a Toolrack on the other side may wait for its person, so that it still answers in time; zero for not at all.
    pub(crate) wait: Duration,
    pub(crate) timeout: Duration,
    /// Whether a second call does no harm.
    pub(crate) is_repeatable: bool,
}

/// What became of a call.
pub(crate) enum Answer {
    /// It was not sent, which says nothing of the source.
    NotSent(ToolError),
    /// The source has answered.
    Answered(Result<ToolResult, ToolError>),
    /// The source is in trouble, and not only this one call.
    Outage(Outage),
}

/// A source as calls see it.
pub(crate) struct Peer {
    pub(crate) remote: Remote,
    pub(crate) protocol: Arc<dyn Protocol>,
    pub(crate) breaker: Breaker,
    pub(crate) slots: Slots,
    /// How long one answer may take.
    pub(crate) timeout: Duration,
}

impl Peer {
    async fn call(&self, call: RemoteCall<'_>) -> Result<ToolResult, ToolError> {
        let user = self.slots.user(call.context);
        let _slot = self.slots.enter(user).await.ok_or_else(|| self.busy())?;
        // The wait for a slot says nothing about the source.
        let mut trial = self.breaker.admit(&self.remote, call.context, user, self.timeout)?;
        match self.protocol.execute(call).await {
            Answer::NotSent(error) => Err(error),
            Answer::Answered(result) => {
                trial.succeeded();
                result
            }
            Answer::Outage(outage) => {
                let is_late = outage.error.kind() == ErrorKind::Timeout;
                trial.failed(&outage, if is_late { trial.late() } else { Whose::Everybodys });
                Err(outage.error)
            }
        }
    }

    fn busy(&self) -> ToolError {
        let Remote { kind, name, .. } = &self.remote;
        ToolError::new(
            ErrorKind::Busy,
            format!("as many of your calls of the {kind} {name} run and wait as may"),
        )
        .retryable()
        .with_feedback("The tool has too much to do now. Try again later, or do without it.")
    }
}

/// What a call is given until it is over, of which the other side has `timeout` for each answer.
pub(crate) fn whole_timeout(policy: &ToolPolicy, timeout: Duration) -> Duration {
    timeout.saturating_add(if may_wait(policy) { PATIENCE } else { Duration::ZERO })
}

/// Whether calls of such a tool may wait for a person. What a person said here is good for one call: were that over before another
/// has answered there, it could never be made.
pub(crate) fn may_wait(policy: &ToolPolicy) -> bool {
    policy.effect == Effect::Destructive || policy.requires_gate
}

/// A tool of a source.
pub(crate) struct RemoteTool {
    pub(crate) peer: Arc<Peer>,
    pub(crate) wire_name: String,
    pub(crate) is_repeatable: bool,
    /// Whether it is called again while a person on the other side has not answered.
    pub(crate) may_wait: bool,
    /// Why it may not be called until somebody has looked at it.
    pub(crate) quarantine: Option<String>,
}

impl RemoteTool {
    async fn run(
        &self,
        context: &ToolContext,
        arguments: &Map<String, Value>,
    ) -> Result<ToolResult, ToolError> {
        let timeout = self.peer.timeout;
        let wait = if self.may_wait { timeout / 2 } else { Duration::ZERO };
        let (tool, is_repeatable) = (&*self.wire_name, self.is_repeatable);
        let mut waits_since = None;
        loop {
            let asked = Instant::now();
            let call = RemoteCall { context, tool, arguments, wait, timeout, is_repeatable };
            let answer = tokio::time::timeout(timeout, self.peer.call(call)).await;
            let waits = match answer.unwrap_or_else(|_| Err(ToolError::timed_out(timeout))) {
                Err(error) if self.may_wait && error.kind() == ErrorKind::ApprovalPending => error,
                answer => return answer,
            };
            let since = *waits_since.get_or_insert_with(|| {
                let (tool, place) = (shown(tool), &self.peer.remote.name);
                context.status(format!("Waiting for a person to approve {tool} on {place}"));
                asked
            });
            if since.elapsed() >= PATIENCE {
                return Err(waits);
            }
            tokio::time::sleep_until(asked + PAUSE).await;
        }
    }
}

impl Handler for RemoteTool {
    fn unavailable(&self, _: &ToolContext) -> Option<String> {
        self.quarantine.clone()
    }

    fn call<'a>(&'a self, context: &'a ToolContext, arguments: Map<String, Value>) -> ToolFuture<'a> {
        Box::pin(async move { self.run(context, &arguments).await })
    }
}
