//! Tools that are plain functions.

use tokio::task::JoinHandle;

use crate::{
    context::ToolContext,
    result::{ToolError, ToolResult},
};

/// Does not start what nobody waits for any more.
struct Started(JoinHandle<Result<ToolResult, ToolError>>);

impl Drop for Started {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a function that blocks its thread on the runtime's threads for that. When the call is over before the function is, be it by
/// its timeout, the function's context is cancelled; a thread cannot be stopped from outside.
pub async fn blocking(
    context: &ToolContext,
    run: impl FnOnce(&ToolContext) -> Result<ToolResult, ToolError> + Send + 'static,
) -> Result<ToolResult, ToolError> {
    let token = context.cancellation();
    let _cancel = token.clone().drop_guard();
    let context = context.clone().with_cancellation(token);
    let mut started = Started(tokio::task::spawn_blocking(move || run(&context)));
    match (&mut started.0).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down.
            Err(_) => Err(ToolError::cancelled()),
        },
    }
}
