//! Step 1: the tool behind a name.

use std::{borrow::Cow, sync::Arc};

use super::turned_down::TurnedDown;
use crate::{
    context::{ToolCall, ToolContext},
    registry::Registry,
    result::ToolError,
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
    /// `welcome` is whether the caller still may call anything.
    pub(super) fn find(
        registry: &'a Registry,
        tool: Option<Arc<Tool>>,
        context: Cow<'a, ToolContext>,
        mut call: ToolCall,
        welcome: Result<(), ToolError>,
    ) -> Result<Self, Box<TurnedDown<'a>>> {
        if let Err(error) = welcome {
            return Err(Box::new(TurnedDown { registry, context, tool, call, error }));
        }
        match tool {
            Some(tool) => Ok(Self { registry, context, tool, call }),
            None => {
                call.cut_name();
                let error = registry.not_found(&context, &call.name);
                Err(Box::new(TurnedDown { registry, context, tool, call, error }))
            }
        }
    }
}
