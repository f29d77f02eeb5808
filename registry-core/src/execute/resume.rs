//! Between arguments and limits: a call like one that was [kept](crate::ask::kept) goes on with it.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::fit::Fitted;
use crate::{
    ask::{
        AskError,
        keeping::{Keeping, Means},
        kept::{CallOf, Done, Kept, KeptState, Spot, changed, interrupted},
        scope_of,
    },
    flow::Reads,
    outcome::ToolOutcome,
    result::{ToolError, ToolResult},
    schema::without_secrets,
    store::StateError,
};

/// How often is looked whether a call that goes on elsewhere is done.
const LOOK: Duration = Duration::from_millis(300);

/// What was kept of the call.
enum Found {
    /// It begins anew.
    Nothing,
    /// This call goes on with it.
    Taken(Box<Kept>, String),
    /// It is over.
    Done(Box<Done>),
    Interrupted,
    /// Its question was not answered in time.
    Expired,
    Cancelled,
}

impl Fitted<'_> {
    /// Finds out whether a call like this one was kept while it waited for an answer. One that was done meanwhile gives its result.
    pub(super) async fn resumed(self: Box<Self>) -> Result<Box<Self>, ToolOutcome> {
        // Other tools pay nothing for this.
        if !self.tool.policy().resumable && !self.context.is_resuming() && !self.interrupted {
            return Ok(self);
        }
        Box::pin(self.looked_up()).await
    }

    async fn looked_up(mut self: Box<Self>) -> Result<Box<Self>, ToolOutcome> {
        if let Some(keeping) = self.context.take_resumed() {
            if keeping.version() != self.tool.spec().version || !self.tool.policy().resumable {
                let error = changed(&self.name);
                return Err(self.end(Err(error)).await);
            }
            if let Some(call) = self.context.running() {
                call.asking.set_keeping(keeping);
            }
            return Ok(self);
        }
        let Some(spot) = self.spot().filter(|_| self.tool.policy().resumable) else {
            if !self.interrupted {
                return Ok(self);
            }
            let error = interrupted(&self.tool);
            return Err(self.end(Err(error)).await);
        };
        let found = match self.find(&spot).await {
            Ok(found) => found,
            Err(cause) => {
                tracing::warn!(tool = &*self.name, %cause, "waiting_call_not_read");
                Found::Nothing
            }
        };
        let ended = match found {
            Found::Expired if self.interrupted => {
                let seconds = self.registry.shared.common.guards.approval_timeout.as_secs();
                (Err(AskError::Expired { seconds }.to_tool_error()), Reads::NOTHING)
            }
            Found::Nothing if self.interrupted => (Err(interrupted(&self.tool)), Reads::NOTHING),
            Found::Nothing | Found::Expired => {
                let kept = Kept::new(&self.registry.shared.common.guards.process, self.as_call());
                self.keep(Keeping::new(spot, self.means(), kept, None, false));
                return Ok(self);
            }
            Found::Taken(kept, text) if kept.version == self.tool.spec().version => {
                let approved = kept.arguments.clone();
                let keeping = Keeping::new(spot, self.means(), *kept, Some(text), false);
                self.context.add_read(&keeping.add_read(self.context.flow().map(|flow| &flow.read)));
                self.keep(keeping);
                // What a person has approved is made, and nothing else.
                if approved != self.arguments {
                    self.change(approved);
                }
                return Ok(self);
            }
            Found::Taken(_, text) => {
                let _ = spot.put(None, Some(&text)).await;
                (Err(changed(&self.name)), Reads::NOTHING)
            }
            Found::Done(done) => {
                let reads = self.tool.reads().and(done.reads);
                (done.into_result(), reads)
            }
            Found::Interrupted => (Err(interrupted(&self.tool)), Reads::NOTHING),
            Found::Cancelled => (Err(ToolError::cancelled()), Reads::NOTHING),
        };
        let (result, reads): (Result<ToolResult, ToolError>, Reads) = ended;
        let outcome = self.end(result).await;
        Err(ToolOutcome { reads, ..outcome })
    }

    /// Where a call like this one is kept; `None` where none is: within another one, where nobody can answer later, and with secrets.
    fn spot(&self) -> Option<Spot> {
        let call = self.context.running().filter(|call| call.nesting == 0)?;
        let schema = &self.tool.spec().input_schema;
        let is_asked_later = matches!(self.context.question_wait(), Some(Some(_)));
        let has_secret = without_secrets(schema, &self.arguments) != Value::Object(self.arguments.clone());
        if !call.repeatable || !is_asked_later || has_secret {
            return None;
        }
        let owner = (self.context.tenant(), self.context.caller().user.as_str());
        let scope = scope_of(&self.context);
        Some(Spot::of(self.registry.state_store(), owner, (self.tool.name(), &self.arguments, &scope)))
    }

    fn as_call(&self) -> CallOf<'_> {
        CallOf {
            tool: self.tool.name(),
            version: self.tool.spec().version.as_deref(),
            arguments: &self.arguments,
            caller: self.context.caller(),
            scope: scope_of(&self.context),
            chat_id: self.context.conversation().chat_id.as_deref(),
            flow: self.context.flow().map(|flow| flow.read.clone()).unwrap_or_default(),
        }
    }

    fn means(&self) -> Means {
        self.registry.means(self.tool.policy().timeout)
    }

    fn keep(&self, keeping: Keeping) {
        if let Some(call) = self.context.running() {
            call.asking.set_keeping(Arc::new(keeping));
        }
    }

    async fn find(&self, spot: &Spot) -> Result<Found, StateError> {
        let common = &self.registry.shared.common;
        let (clock, process) = (&common.clock, &common.guards.process);
        loop {
            let Some((kept, text)) = spot.look().await? else { return Ok(Found::Nothing) };
            let now = clock.now();
            let is_over = kept.is_over(now);
            match kept.state.clone() {
                // One that is made at the same time in this process asks for itself.
                KeptState::Waiting(_) if kept.is_of(process) && !is_over => return Ok(Found::Nothing),
                KeptState::Waiting(_) if !is_over => {
                    let taken = kept.taken(process, now, self.tool.policy().timeout);
                    if let Some(text) = spot.put(Some(&taken), Some(&text)).await? {
                        return Ok(Found::Taken(Box::new(taken), text));
                    }
                }
                KeptState::Running if !is_over => tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    () = self.context.cancelled() => return Ok(Found::Cancelled),
                },
                state => {
                    if spot.put(None, Some(&text)).await?.is_none() {
                        continue;
                    }
                    return Ok(match state {
                        KeptState::Done(done) if !is_over => Found::Done(done),
                        KeptState::Running => Found::Interrupted,
                        KeptState::Waiting(_) => Found::Expired,
                        KeptState::Done(_) => Found::Nothing,
                    });
                }
            }
        }
    }
}
