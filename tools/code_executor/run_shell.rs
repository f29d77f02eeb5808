use registry_core::prelude::*;

use crate::shell::Shell;

/// Run shell commands. They have an empty folder that is removed afterwards, no network, none of this server's files, and some seconds. Returns what they print.
#[tool(
    title = "Run shell commands",
    version = "1.0.0",
    tags = ["code"],
    permission = Permission::Admin,
    effect = Effect::Write,
    reads = nothing,
    sends = nothing,
    max_concurrent = 4,
    timeout = minutes(2)
)]
async fn run_shell(
    ctx: &ToolContext,
    shell: Resource<Shell>,
    /// The commands, one per line, as in a script.
    #[arg(length = 1.., example = "seq 3 | sort -r")]
    commands: &str,
) -> Result<ToolResult, ToolError> {
    shell.run(ctx, commands).await
}
