//! The one path of a call. Every entry point goes this way and no other.
//!
//! Each step is a type that only the step before can make, so that none can be left out:
//!
//! | step | what is known |
//! |---|---|
//! | [`Found`] | the tool behind the name, and a caller who still may call anything |
//! | [`Permitted`] | it is switched on, the caller may use it, and it is available |
//! | [`Fitted`] | its arguments were coerced and validated |
//! | [`Admitted`] | limits, gate, approval and queue let the call run |
//! | [`Ran`] | its result |
//!
//! A call that a step turns down is recorded there, and its outcome is the error of the step. The future of a call can be dropped at
//! any time: what it has charged and not used is given back, and its outcome is written, by tasks in the background.

mod admit;
mod blocking;
mod check;
mod find;
mod fit;
mod large;
mod ledger;
mod missing;
mod nested;
mod permit;
mod record;
mod resume;
mod run;
mod running;
mod selection;
mod traced;
mod turned_down;

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    context::{EventSink, ToolCall, ToolContext},
    flow::Reads,
    model::ModelUsage,
    outcome::ToolOutcome,
    registry::Registry,
    result::{ToolError, ToolResult},
    tool::Tool,
};
pub use blocking::blocking;
use find::Found;
pub(crate) use fit::fit_arguments;

impl Registry {
    /// Executes a call.
    ///
    /// To stop it, cancel the context's token or drop the future. Either way the call leaves its outcome in the audit; see
    /// [`finished`](Self::finished) for what a host waits for at its end.
    pub async fn execute(&self, context: &ToolContext, call: ToolCall) -> ToolOutcome {
        let tool = self.get(&call.name);
        self.run(tool, context, call).await
    }

    /// Executes a call by name, with a listener for the tool's status.
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

    /// The path. `tool` is what the entry point found under the call's name.
    pub(crate) async fn run(
        &self,
        tool: Option<Arc<Tool>>,
        context: &ToolContext,
        mut call: ToolCall,
    ) -> ToolOutcome {
        call.ensure_id();
        let mut context = self.own(context);
        let welcome = match context.authority() {
            Some(_) => context.to_mut().revalidate().await,
            None => Ok(()),
        };
        let welcome = welcome.and_then(|()| self.audit_room(&context.caller().user));
        let around = context.running().map(Arc::clone);
        let span = traced::begin(&mut context, tool.as_deref(), &call);
        let found = Found::find(self, tool, context, call, welcome);
        let fitted = match found.and_then(Found::permit) {
            Ok(permitted) => permitted.fit().await,
            Err(turned_down) => Err(turned_down),
        };
        let outcome = match fitted {
            Err(turned_down) => Box::pin(turned_down.recorded()).await,
            Ok(fitted) => match fitted.resumed().await {
                Err(outcome) => outcome,
                Ok(fitted) => match fitted.admit().await {
                    Err(outcome) => outcome,
                    Ok(admitted) => admitted.run().await.into_outcome(),
                },
            },
        };
        if let Some(span) = span {
            span.end(&outcome);
        }
        // A call within another leaves with that what it has read.
        if let Some(around) = around {
            around.read.lock().note(outcome.reads, &outcome.tool_name);
        }
        outcome
    }

    fn outcome(
        &self,
        call_id: String,
        tool_name: String,
        result: Result<ToolResult, ToolError>,
        duration: Duration,
    ) -> ToolOutcome {
        let (ts, reads, model_usage) =
            (self.shared.common.clock.now(), Reads::NOTHING, ModelUsage::default());
        ToolOutcome { call_id, tool_name, result, duration, ts, reads, model_usage, changed_arguments: None }
    }
}
