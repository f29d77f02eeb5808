use registry_core::prelude::*;

use crate::interpreter::Shell;

/// Runs shell commands and gives what they print. They start in an empty folder that is removed afterwards, without network and without the files of this server, for some seconds.
#[tool(
    title = "Run shell commands",
    version = "1.0.0",
    tags = ["code"],
    permission = Permission::Admin,
    effect = Effect::Write,
    max_concurrent = 4,
    timeout = minutes(2)
)]
async fn run_shell(
    ctx: &ToolContext,
    shell: Resource<Shell>,
    /// The commands, one a line, as in a script.
    #[arg(length = 1.., example = "seq 3 | sort -r")]
    commands: &str,
) -> Result<ToolResult, ToolError> {
    shell.run(ctx, commands).await
}
