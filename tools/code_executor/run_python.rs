use registry_core::prelude::*;

use crate::python::Python;

/// Run a Python 3 program. Use it for computations on data. It has the standard library, an empty folder that is removed afterwards, no network, and some seconds. Returns what it prints.
#[tool(
    title = "Run Python",
    version = "1.0.0",
    tags = ["code"],
    permission = Permission::User,
    effect = Effect::Write,
    reads = nothing,
    sends = nothing,
    max_concurrent = 4,
    timeout = minutes(2)
)]
async fn run_python(
    ctx: &ToolContext,
    python: Resource<Python>,
    /// The program. Only what it prints is returned.
    #[arg(length = 1.., example = "print(sum(range(10)))")]
    code: &str,
) -> Result<ToolResult, ToolError> {
    python.run(ctx, code).await
}
