//! Calls of the tools that were pinned for a turn.

use crate::{
    context::{ToolCall, ToolContext},
    outcome::ToolOutcome,
    registry::{Selection, select::refusal},
    result::{ErrorKind, ToolError},
};

impl Selection {
    /// Makes a call with the tools as they were pinned.
    pub async fn execute(&self, context: &ToolContext, call: ToolCall) -> ToolOutcome {
        let pinned = self.get(&call.name).cloned();
        match self.registry.get(&call.name).filter(|_| pinned.is_none()) {
            // It is there and not for this turn: the caller gets the reason, as at any other entry point.
            Some(tool) => {
                let reason =
                    refusal(&tool, &self.registry.own(context)).unwrap_or_else(|| not_pinned(tool.name()));
                self.registry.refuse(Some(&tool), context, call, reason).await
            }
            None => self.registry.run(pinned, context, call).await,
        }
    }

    /// Turns a call down for a reason of the entry point's own; it leaves its record like any other.
    pub async fn refuse(&self, context: &ToolContext, call: ToolCall, error: ToolError) -> ToolOutcome {
        // Also one that is not for this caller says which of its arguments are secret.
        let tool = self.get(&call.name).cloned().or_else(|| self.registry.get(&call.name));
        self.registry.refuse(tool.as_ref(), context, call, error).await
    }
}

fn not_pinned(name: &str) -> ToolError {
    ToolError::new(
        ErrorKind::Unavailable,
        format!("{name} cannot be used: it came after this turn had begun"),
    )
    .with_feedback(format!("The tool `{name}` is not available now. Do without it."))
}
