//! What a tool's function may give.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::of_output;
use crate::result::{ToolError, ToolResult};

/// What a tool's function may return: [`ToolResult`], or any value that can be written as JSON and described by a schema.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not something that can be given to a model",
    note = "return a `String`, a `serde_json::Value`, a `ToolResult`, or a type with `#[output]` (or `derive(Serialize, JsonSchema)`)"
)]
pub trait Output {
    /// The JSON Schema of the value, where one is known.
    fn schema() -> Option<Value>;

    /// The value as a result.
    ///
    /// # Errors
    /// When the value cannot be written as JSON, such as a map whose keys are not strings.
    fn into_result(self) -> Result<ToolResult, ToolError>;
}

impl Output for ToolResult {
    fn schema() -> Option<Value> {
        None
    }

    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> Output for T {
    fn schema() -> Option<Value> {
        Some(of_output::<T>())
    }

    fn into_result(self) -> Result<ToolResult, ToolError> {
        serde_json::to_value(self)
            .map(ToolResult::new)
            .map_err(|error| ToolError::failed(format!("the result is not JSON: {error}")))
    }
}
