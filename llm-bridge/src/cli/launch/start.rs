//! Starts a program in place of this one.

use std::{
    io,
    process::{Command, ExitCode},
};

/// Returns with an error only: terminal, signals and exit status become the program's own.
#[cfg(unix)]
pub(super) fn start(command: &mut Command) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

/// Waits for the program where it cannot take this one's place.
#[cfg(not(unix))]
pub(super) fn start(command: &mut Command) -> io::Result<ExitCode> {
    let code = command.status()?.code().unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
