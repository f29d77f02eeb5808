//! Step 1: the tool behind a name.

use std::{borrow::Cow, sync::Arc};

use crate::{
    context::{ToolCall, ToolContext},
    outcome::ToolOutcome,
    registry::Registry,
    tool::Tool,
};

/// A call of a tool that there is, by a caller who still may call anything.
pub(super) struct Found<'a> {
    pub(super) registry: &'a Registry,
    pub(super) context: Cow<'a, ToolContext>,
    pub(super) tool: Arc<Tool>,
    pub(super) call: ToolCall,
}

impl<'a> Found<'a> {
    pub(super) async fn find(
        registry: &'a Registry,
        tool: Option<Arc<Tool>>,
        context: &'a ToolContext,
        mut call: ToolCall,
    ) -> Result<Self, ToolOutcome> {
        call.ensure_id();
        let mut context = registry.own(context);
        if context.authority().is_some()
            && let Err(error) = context.to_mut().revalidate().await
        {
            return Err(registry.refuse(tool.as_deref(), &context, call, error).await);
        }
        match tool {
            Some(tool) => Ok(Self { registry, context, tool, call }),
            None => {
                call.cut_name();
                let error = registry.not_found(&context, &call.name);
                Err(registry.refuse(None, &context, call, error).await)
            }
        }
    }
}
