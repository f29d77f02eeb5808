use registry_core::prelude::*;

use crate::interpreter::Python;

/// Runs a Python 3 program and gives what it prints. It starts in an empty folder that is removed afterwards, without network, with the standard library, for some seconds.
#[tool(
    title = "Run Python",
    version = "1.0.0",
    tags = ["code"],
    permission = Permission::User,
    effect = Effect::Write,
    max_concurrent = 4,
    timeout = minutes(2)
)]
async fn run_python(
    ctx: &ToolContext,
    python: Resource<Python>,
    /// The program. What it is to tell it has to print.
    #[arg(length = 1.., example = "print(sum(range(10)))")]
    code: &str,
) -> Result<ToolResult, ToolError> {
    python.run(ctx, code).await
}
