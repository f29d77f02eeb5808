//! A call that goes no further than a step.

use std::{borrow::Cow, sync::Arc};

use crate::{
    context::{ToolCall, ToolContext},
    outcome::ToolOutcome,
    registry::Registry,
    result::ToolError,
    tool::Tool,
};

/// A call that a step turns down, before it owes the audit anything but that.
pub(super) struct TurnedDown<'a> {
    pub(super) registry: &'a Registry,
    pub(super) context: Cow<'a, ToolContext>,
    pub(super) tool: Option<Arc<Tool>>,
    pub(super) call: ToolCall,
    pub(super) error: ToolError,
}

impl TurnedDown<'_> {
    /// Leaves its record.
    pub(super) async fn recorded(self: Box<Self>) -> ToolOutcome {
        let Self { registry, context, tool, call, error } = *self;
        registry.refuse(tool.as_ref(), &context, call, error).await
    }
}
