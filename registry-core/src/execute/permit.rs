//! Step 2: whether the caller may use the tool now. Availability is asked here, once in a call.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::AtomicBool},
};

use parking_lot::Mutex;

use super::{Found, run::may_repeat, turned_down::TurnedDown};
use crate::{
    concurrency::PermitSlot,
    context::{ModelUses, Pauses, Provided, Questions, RunningCall, ToolCall, ToolContext},
    registry::{Registry, select::refusal},
    result::{ErrorKind, ToolError},
    tool::Tool,
};

/// A call that its caller may make, of a tool that is available.
pub(super) struct Permitted<'a> {
    pub(super) registry: &'a Registry,
    /// The context of this call, and not of the whole request.
    pub(super) context: ToolContext,
    pub(super) tool: Arc<Tool>,
    pub(super) call: ToolCall,
}

/// How many calls may be nested: a tool that calls a tool, and so on. Each is polled through all that are around it,
/// on one stack.
const MAX_NESTED: usize = 8;

impl<'a> Found<'a> {
    pub(super) fn permit(self) -> Result<Permitted<'a>, Box<TurnedDown<'a>>> {
        let Self { registry, context, tool, mut call } = self;
        let raw_argument = call.raw_argument.take();
        let running = RunningCall {
            registry: Arc::clone(&registry.shared) as _,
            id: call.id.clone(),
            tool: tool.shared_name(),
            max_concurrent: tool.policy().max_concurrent,
            share: registry.shared.common.guards.limiter.share(&registry.shared.tenant, context.caller()),
            raw_argument,
            parent: None,
            nesting: 0,
            permit: PermitSlot::default(),
            repeatable: may_repeat(tool.policy()) || tool.policy().resumable,
            asking: Questions::default(),
            pauses: Pauses::default(),
            provided: Provided::default(),
            read: Mutex::default(),
            is_flow_approved: AtomicBool::default(),
            is_changed: AtomicBool::default(),
            model: ModelUses::default(),
        };
        let context = context.for_call(&registry.shared.tenant, running);
        let refused = too_deep(&context, &tool).or_else(|| refusal(&tool, &context));
        match refused {
            None => Ok(Permitted { registry, context, tool, call }),
            Some(error) => {
                let (context, tool) = (Cow::Owned(context), Some(tool));
                Err(Box::new(TurnedDown { registry, context, tool, call, error }))
            }
        }
    }
}

fn too_deep(context: &ToolContext, tool: &Tool) -> Option<ToolError> {
    (context.nesting() > MAX_NESTED).then(|| {
        let message = format!("{} was not called: more than {MAX_NESTED} calls are nested", tool.name());
        ToolError::new(ErrorKind::Refused, message)
    })
}
