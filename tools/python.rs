//! The Python of `code_executor.run_python`.

use std::path::Path;

use registry_core::prelude::*;
use toolrack_sandbox::Sandbox;

use crate::{
    interpreter::{Interpreter, found},
    sandbox::CodeExecutorSettings,
};

/// A Python that models may use. Without one `run_python` is off.
#[derive(Debug, Clone)]
pub struct Python(Interpreter);

#[resource(table = "code_executor", timeout = secs(30))]
fn python(settings: Settings<CodeExecutorSettings>, sandbox: Resource<Sandbox>) -> Result<Python, ToolError> {
    Python::start(Sandbox::clone(&sandbox), settings.python.as_deref()).map_err(ToolError::unavailable)
}

impl Python {
    /// That Python, or the system's where none is named.
    ///
    /// # Errors
    /// When there is none, or it does not run in the sandbox.
    pub fn start(sandbox: Sandbox, path: Option<&Path>) -> Result<Self, String> {
        let path = found(path, &["/usr/bin/python3", "/usr/local/bin/python3"])?;
        // Neither variables nor a user's own packages; and no bytecode, which is for a second time.
        let arguments = ["-I", "-B"].map(str::to_owned).to_vec();
        let interpreter = Interpreter { sandbox, path, arguments, script_name: "main.py" };
        interpreter.tried("print('ready')").map(Self)
    }

    pub(crate) async fn run(&self, ctx: &ToolContext, code: &str) -> Result<ToolResult, ToolError> {
        self.0.run(ctx, code).await
    }
}
