//! Checks a call without making it.

use serde_json::{Map, Value};

use crate::{context::ToolContext, registry::Registry, result::ToolError};

impl Registry {
    /// What a call would be given now: the tool is found, the caller may use it, the arguments are coerced and validated. Nothing runs,
    /// nothing is counted or audited. It serves calls that are made later.
    ///
    /// # Errors
    /// What a call would be refused with up to there.
    pub fn check_call(
        &self,
        context: &ToolContext,
        name: &str,
        arguments: Value,
    ) -> Result<Map<String, Value>, ToolError> {
        let tool = self.get(name).ok_or_else(|| self.not_found(context, name))?;
        if let Some(error) = self.why_not(&tool, context) {
            return Err(error);
        }
        tool.coerce_arguments(arguments)
    }
}
