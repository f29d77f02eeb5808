//! Completion in the shell: `source <(COMPLETE=bash toolrack)`.

use clap::Command;
use clap_complete::CompleteEnv;

use super::{Host, Settings, call::flags, help, program::Program};

/// Answers the shell, and ends the process, where it asks for completions.
pub(super) fn complete(host: Host) {
    CompleteEnv::with_factory(|| {
        let command = help::command();
        // Without its tools the program can still be completed.
        with_tools(command.clone(), host).unwrap_or(command)
    })
    .complete();
}

/// The program's command, in which each tool is a command of `call`, with its arguments.
fn with_tools(command: Command, host: Host) -> Result<Command, String> {
    let settings = Settings::load(&Default::default(), &host.all_tables()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let registry = runtime.block_on(Program { settings: &settings, host }.registry(None))?;
    let tools: Vec<Command> =
        registry.list_all(false).iter().map(|tool| flags::command(tool, &command)).collect();
    Ok(command.mut_subcommand("call", |call| call.mut_arg("name", |name| name.hide(true)).subcommands(tools)))
}
