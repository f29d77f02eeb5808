//! The shell of `code_executor.run_shell`.

use std::path::Path;

use registry_core::prelude::*;
use toolrack_sandbox::Sandbox;

use crate::{
    interpreter::{Interpreter, found},
    sandbox::CodeExecutorSettings,
};

/// A shell that models may use. Without one `run_shell` is off.
#[derive(Debug, Clone)]
pub struct Shell(Interpreter);

#[resource(table = "code_executor", timeout = secs(30))]
fn shell(settings: Settings<CodeExecutorSettings>, sandbox: Resource<Sandbox>) -> Result<Shell, ToolError> {
    Shell::start(Sandbox::clone(&sandbox), settings.shell.as_deref()).map_err(ToolError::unavailable)
}

impl Shell {
    /// That shell, or the system's where none is named.
    ///
    /// # Errors
    /// When there is none, or it does not run in the sandbox.
    pub fn start(sandbox: Sandbox, path: Option<&Path>) -> Result<Self, String> {
        let path = found(path, &["/bin/bash", "/usr/bin/bash", "/bin/sh"])?;
        let interpreter = Interpreter { sandbox, path, arguments: Vec::new(), script_name: "main.sh" };
        interpreter.tried("echo ready").map(Self)
    }

    pub(crate) async fn run(&self, ctx: &ToolContext, commands: &str) -> Result<ToolResult, ToolError> {
        self.0.run(ctx, commands).await
    }
}
