//! How a program is confined on Linux.
//!
//! The host starts a supervisor, the supervisor starts a process that confines itself and becomes the program. The supervisor is
//! not confined and runs nothing of the program's; it watches, ends everything and cleans up.

pub(super) mod compute;
mod confine;
mod folder;
mod supervise;
mod syscalls;
pub(super) mod trial;
mod watch;

use std::{ffi::OsStr, process::ExitCode};

/// Does what a launcher of that stage does.
pub(super) fn stage(name: &OsStr) -> ExitCode {
    let done = match name.to_str() {
        Some("supervise") => supervise::run(),
        Some("confine") => confine::run(),
        Some("trial") => trial::run(),
        _ => Err("this is not for people: toolrack starts itself so".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
