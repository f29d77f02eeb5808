//! Runs the `toolrack` program as it is now, built first where a file has changed.

use std::{
    env,
    path::Path,
    process::{Command, ExitCode},
};

use crate::Result;

pub(crate) fn run(command: &[&str], arguments: &[String]) -> Result<ExitCode> {
    status(program().args(command).args(arguments))
}

/// Runs an example of a package.
pub(crate) fn example(package: &str, name: &str, arguments: &[String]) -> Result<ExitCode> {
    // It runs in the current folder: its arguments may be relative paths.
    status(cargo().args(["run", "--quiet", "--package", package, "--example", name, "--"]).args(arguments))
}

/// Builds the program.
pub(crate) fn build(arguments: &[&str]) -> Result<ExitCode> {
    status(
        cargo().args(["build", "--package", "toolrack"]).args(arguments).current_dir(crate::project_root()),
    )
}

/// Runs the built program in place of this one, where the system can: then signals reach it alone.
pub(crate) fn replace_by(program: &Path, command: &[&str], arguments: &[String]) -> Result<ExitCode> {
    let mut program = Command::new(program);
    program.args(command).args(arguments).current_dir(crate::project_root());
    #[cfg(unix)]
    return Err(format!(
        "cannot run the program: {}",
        std::os::unix::process::CommandExt::exec(&mut program)
    ));
    #[cfg(not(unix))]
    status(&mut program)
}

fn status(command: &mut Command) -> Result<ExitCode> {
    let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// The program, to be given arguments.
pub(crate) fn program() -> Command {
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--package", "toolrack", "--"]).current_dir(crate::project_root());
    cargo
}

/// Cargo, to be given arguments.
pub(crate) fn cargo() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    // What Cargo sets for this program would make build scripts that watch it run again, here and at the next build.
    for (name, _) in env::vars_os() {
        let about_us = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        });
        if about_us {
            cargo.env_remove(name);
        }
    }
    cargo
}
