//! The code behind a tool.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    context::ToolContext,
    future::BoxFuture,
    plugin::Plugin,
    result::{ToolError, ToolResult},
    schema::from_call::missing,
};

/// What a tool gives in the end.
pub type ToolFuture<'a> = BoxFuture<'a, Result<ToolResult, ToolError>>;

/// The arguments of one call, as the code behind a tool gets them.
pub type Given = Map<String, Value>;

/// The code behind a tool. `#[tool]` writes it; a host that registers tools by hand implements it or takes [`handler_fn`].
pub trait Handler: Send + Sync {
    /// Why the tool is off for this request; `None` when it is not.
    fn unavailable(&self, context: &ToolContext) -> Option<String> {
        let _ = context;
        None
    }

    /// Runs it, with arguments that fit its schema.
    fn call<'a>(&'a self, context: &'a ToolContext, arguments: Map<String, Value>) -> ToolFuture<'a>;
}

/// A handler from a closure that takes the context and the arguments.
pub fn handler_fn<F, Fut>(run: F) -> Arc<dyn Handler>
where
    F: Fn(ToolContext, Map<String, Value>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    struct Closure<F>(F);
    impl<F, Fut> Handler for Closure<F>
    where
        F: Fn(ToolContext, Map<String, Value>) -> Fut + Send + Sync,
        Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
    {
        fn call<'a>(&'a self, context: &'a ToolContext, arguments: Map<String, Value>) -> ToolFuture<'a> {
            Box::pin((self.0)(context.clone(), arguments))
        }
    }
    Arc::new(Closure(run))
}

impl Handler for Plugin {
    fn unavailable(&self, context: &ToolContext) -> Option<String> {
        missing(self.parameters, context).or_else(|| {
            let off = self.enabled.is_some_and(|enabled| !enabled(context));
            off.then(|| match self.needs {
                Some(needs) => format!("needs {needs}"),
                None => "its `enabled` condition does not hold for this request".to_owned(),
            })
        })
    }

    fn call<'a>(&'a self, context: &'a ToolContext, arguments: Map<String, Value>) -> ToolFuture<'a> {
        (self.run)(context, arguments)
    }
}
