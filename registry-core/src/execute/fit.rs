//! Step 3: arguments that the tool's schema accepts.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value};

use super::{ledger::Ledger, permit::Permitted, turned_down::TurnedDown};
use crate::{
    context::{Origin, ToolCall, ToolContext},
    registry::Registry,
    result::{ErrorKind, ToolError},
    schema::ValidationError,
    tool::Tool,
};

/// A call whose arguments were coerced and validated. From here on it owes the audit an outcome.
pub(super) struct Fitted<'a> {
    pub(super) registry: &'a Registry,
    pub(super) context: ToolContext,
    pub(super) tool: Arc<Tool>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) origin: Origin,
    pub(super) retries: u8,
    pub(super) ledger: Ledger,
}

impl<'a> Permitted<'a> {
    pub(super) fn fit(self) -> Result<Box<Fitted<'a>>, Box<TurnedDown<'a>>> {
        let Self { registry, context, tool, call } = self;
        // The validator is made here, when the tool is first called.
        let checker = match tool.checker() {
            Ok(checker) => checker,
            Err(fault) => {
                tracing::error!("Cannot use tool {} ({}): {fault}", tool.name(), tool.source());
                let error = ToolError::new(
                    ErrorKind::Unavailable,
                    format!("{} cannot be used: {fault}", tool.name()),
                )
                .with_feedback(format!("The tool `{}` is not available now. Do without it.", tool.name()));
                let (context, tool) = (Cow::Owned(context), Some(tool));
                return Err(Box::new(TurnedDown { registry, context, tool, call, error }));
            }
        };
        let ToolCall { id, name, arguments, origin, raw_argument, retries } = call;
        let arguments = match checker.fit(&name, &tool.spec().input_schema, arguments) {
            Ok(arguments) => arguments,
            Err(ValidationError { error, given }) => {
                let call = ToolCall { id, name, arguments: given, origin, raw_argument, retries };
                let (context, tool) = (Cow::Owned(context), Some(tool));
                return Err(Box::new(TurnedDown { registry, context, tool, call, error }));
            }
        };
        let ledger = Ledger::open(registry, || {
            registry.record(&context, Some(&tool), &name, &id, origin.clone(), &arguments)
        });
        Ok(Box::new(Fitted { registry, context, tool, id, name, arguments, origin, retries, ledger }))
    }
}
