//! Calls of names that no tool has.

use std::sync::Arc;

use crate::{
    context::ToolContext,
    nearest::nearest,
    registry::{Registry, select::refusal},
    result::{ErrorKind, ToolError},
    tool::Tool,
};

impl Registry {
    /// Whether there is a module of that name, though a remote one may have no tool now.
    fn knows_module(&self, name: &str) -> bool {
        let has_tool = self.shared.tools.load().sorted().iter().any(|tool| tool.module() == name);
        has_tool || self.shared.common.offers.load().has_source(name)
    }

    /// The error for a name that no tool has, with the nearest of those the caller may use.
    pub(crate) fn not_found(&self, context: &ToolContext, name: &str) -> ToolError {
        let allowed = context.caller().allowed_modules.as_ref();
        if let Some((source, _)) = name.split_once('.')
            && allowed.is_none_or(|allowed| allowed.contains(source))
            && let Some(cause) = self.shared.common.offers.load().unreachable(source)
        {
            // Nobody knows what tools it has.
            return ToolError::failed(format!("Tool execution error: {cause}"))
                .retryable()
                .with_feedback("The service behind the tool is down. Try again later, or do without it.");
        }
        let tools = self.shared.tools.load();
        let usable: Vec<&Arc<Tool>> =
            tools.sorted().iter().filter(|tool| refusal(tool, context).is_none()).collect();
        let nearest: Vec<String> =
            nearest(name, usable.iter().map(|tool| tool.name())).into_iter().map(str::to_owned).collect();
        let message = match name.split_once('.') {
            None => format!("Invalid tool name format: {name}. Expected 'module.tool_name'."),
            Some((module, _)) if !self.knows_module(module) => format!("Unknown module: {module}"),
            Some((module, tool)) => format!("The module {module} has no tool named {tool}."),
        };
        let hint = match nearest.as_slice() {
            [] => "Use only the tools you were given, or answer without one.".to_owned(),
            names => format!("Did you mean {}? Call it by its exact name.", quoted(names)),
        };
        ToolError::new(ErrorKind::ToolNotFound, message)
            .with_feedback(format!("There is no tool named `{name}`. {hint}"))
            .with_nearest(nearest)
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}
