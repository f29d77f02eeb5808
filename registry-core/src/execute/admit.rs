//! Step 4: limits, gate, approval and queue.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::{Map, Value};

use super::{fit::Fitted, record::not_audited};
use crate::{
    guard::{Admission, Admitted as Admit, Wanted},
    outcome::ToolOutcome,
    registry::select::refusal_by_now,
    result::{ToolError, ToolResult},
};

/// A call that may run. Dropped, it gives back its place, and what it was charged.
pub(super) struct Admitted<'a> {
    pub(super) fitted: Box<Fitted<'a>>,
    pub(super) admit: Admit,
}

impl<'a> Fitted<'a> {
    pub(super) async fn admit(mut self: Box<Self>) -> Result<Admitted<'a>, ToolOutcome> {
        let guards = &self.registry.shared.common.guards;
        let wanted = Wanted {
            tenant: &self.registry.shared.tenant,
            tool: &self.tool,
            context: &self.context,
            arguments: &self.arguments,
            origin: &self.origin,
            state: &self.registry.shared.common.state,
            clock: self.registry.shared.common.clock.as_ref(),
        };
        let mut decision = None;
        let admission = guards.admit(wanted, &mut decision).await;
        self.ledger.decided(decision);
        let mut admit = match admission {
            Admission::Run(admit) => admit,
            Admission::Blocked(reason) => {
                return Err(Box::pin(self.end(Ok(ToolResult::unsuccessful(reason)))).await);
            }
            Admission::Refused(error) => return Err(Box::pin(self.end(Err(error))).await),
        };
        if let Some(changed) = admit.changed_arguments() {
            self.change(changed);
        }
        // What was revoked while the call waited for a person or for its turn is refused all the same.
        let mut refused = self.refused_by_now().await;
        self.ledger.at_level(self.context.caller().level);
        if refused.is_none() {
            refused = self.ledger.intend().await.err().map(|cause| not_audited(self.tool.name(), &cause));
        }
        match refused {
            None => Ok(Admitted { fitted: self, admit }),
            Some(error) => {
                Box::pin(admit.give_back()).await;
                Err(Box::pin(self.end(Err(error))).await)
            }
        }
    }

    /// Why the caller may not use the tool any more, where it was allowed a while ago.
    pub(super) async fn refused_by_now(&mut self) -> Option<ToolError> {
        match self.context.revalidate().await {
            Ok(()) => refusal_by_now(&self.tool, &self.context),
            Err(error) => Some(error),
        }
    }

    /// Makes the call with other arguments, as a person has changed them; also where it is made anew by another process.
    pub(super) fn change(&mut self, changed: Map<String, Value>) {
        self.ledger.changed(self.registry, &self.tool, &changed);
        if let Some(call) = self.context.running() {
            call.is_changed.store(true, Ordering::Relaxed);
            if let Some(keeping) = call.asking.keeping() {
                keeping.change(&changed);
            }
        }
        self.changed = Some(changed.clone());
        self.arguments = changed;
    }

    /// Ends a call that is not made.
    pub(super) async fn end(mut self: Box<Self>, mut result: Result<ToolResult, ToolError>) -> ToolOutcome {
        if let Err(cause) = self.ledger.conclude(&result, Duration::ZERO).await {
            result = Err(not_audited(&self.name, &cause));
        }
        self.registry.outcome(self.id, self.name, result, Duration::ZERO)
    }
}
