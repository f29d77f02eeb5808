//! A tool that calls another tool.

use serde::Serialize;

use crate::{
    context::{Origin, ToolCall, ToolContext},
    result::{ToolError, ToolResult},
};

impl ToolContext {
    /// Calls another tool, with the rights of this call's caller: it is checked, limited, approved and audited as every call, and
    /// its record names this call. What it reports goes where this call's reports go.
    ///
    /// This call gives its permit back meanwhile, so that tools with a `max_concurrent` can call each other. At most 8 calls are nested.
    ///
    /// # Errors
    /// When the tool is not called or fails, and outside of a registry. `arguments` has to become a JSON object.
    ///
    /// ```
    /// use registry_core::{prelude::*, testing::TestHost};
    ///
    /// /// Tell the height of a tree in metres.
    /// #[tool]
    /// fn height(
    ///     /// The kind of tree, e.g. "oak".
    ///     tree: String,
    /// ) -> u32 {
    ///     if tree == "oak" { 30 } else { 10 }
    /// }
    ///
    /// /// Compare the heights of two trees.
    /// #[tool]
    /// async fn taller(
    ///     ctx: &ToolContext,
    ///     /// A kind of tree.
    ///     one: String,
    ///     /// Another kind of tree.
    ///     other: String,
    /// ) -> Result<String, ToolError> {
    ///     let first = ctx.call("height", json!({"tree": one})).await?;
    ///     let second = ctx.call("height", json!({"tree": other})).await?;
    ///     Ok(if first.value.as_u64() > second.value.as_u64() { one } else { other })
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let host = TestHost::new().build();
    /// assert_eq!(host.call("taller", json!({"one": "birch", "other": "oak"})).await.for_model(), "oak");
    /// # }
    /// ```
    pub async fn call(&self, tool: &str, arguments: impl Serialize + Send) -> Result<ToolResult, ToolError> {
        let registry = self.registry().ok_or_else(|| {
            let message = format!("{tool} cannot be called: the context was made without a registry");
            ToolError::unavailable(message)
        })?;
        let arguments = serde_json::to_value(arguments)?;
        let call = ToolCall::new(tool, arguments).with_origin(Origin::Tool);
        Box::pin(registry.execute(self, call)).await.result
    }
}
