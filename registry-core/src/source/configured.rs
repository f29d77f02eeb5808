//! Tools that are defined in a file.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    context::ToolContext,
    execute::BoxFuture,
    policy::ToolPolicy,
    result::{ErrorKind, ToolError, ToolResult},
    spec::ToolSpec,
    tool::{Handler, Source, Tool},
};

/// The tools of files, and the faults that were found in them.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredTools {
    /// The tools that can be used.
    pub tools: Vec<ConfiguredTool>,
    /// What is wrong with the others.
    pub faults: Vec<ConfigFault>,
}

/// A tool that a file defines.
#[derive(Clone)]
pub struct ConfiguredTool {
    /// What the tool is.
    pub spec: ToolSpec,
    /// Who may call it, and how.
    pub policy: ToolPolicy,
    /// What runs.
    pub handler: Arc<dyn Handler>,
    /// The file.
    pub file: Arc<str>,
    /// The line at which the tool begins, from 1.
    pub line: u32,
}

impl fmt::Debug for ConfiguredTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spec, policy, file, line, handler: _ } = self;
        let mut tool = f.debug_struct("ConfiguredTool");
        tool.field("spec", spec).field("policy", policy).field("file", file).field("line", line).finish()
    }
}

impl ConfiguredTool {
    /// A tool of its own for one registry.
    pub(crate) fn tool(&self, created_at: Timestamp) -> Tool {
        let source = Source::Configured { file: Arc::clone(&self.file), line: self.line };
        let tool = Tool::of_host(self.spec.clone(), self.policy, Some(Arc::clone(&self.handler)), created_at);
        tool.with_source(source)
    }
}

/// What is wrong with a file of tools, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The tool's name, where it has one.
    pub tool: Option<String>,
    /// What is wrong and what to write.
    pub message: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if let Some(tool) = &self.tool {
            write!(f, "tool {tool}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// The handler of a compiled tool, for a tool that is the same under another name with rules of its own. The arguments have to fit the
/// compiled tool's schema as well.
pub fn alias_of(tool: Arc<Tool>) -> Arc<dyn Handler> {
    Arc::new(Alias(tool))
}

struct Alias(Arc<Tool>);

impl Handler for Alias {
    fn unavailable(&self, context: &ToolContext) -> Option<String> {
        self.0.unavailable(context)
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        let tool = &self.0;
        let Some(handler) = tool.handler() else {
            let message = format!("{} cannot be called", tool.name());
            return Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::Unavailable, message))));
        };
        // The file's schema need not be the tool's own.
        match tool.coerce_arguments(Value::Object(arguments)) {
            Ok(arguments) => handler.call(context, arguments),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
