//! `toolrack dev` on systems where a socket does not go from one process to another.

use std::{ffi::OsString, net::TcpListener, process::ExitCode};

use super::{Flags, Host};
use crate::takeover::Takeover;

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Arguments {
    /// Arguments for `cargo build`
    #[arg(last = true, value_name = "CARGO_ARGUMENTS")]
    cargo: Vec<OsString>,
}

pub(super) fn takes_over() -> bool {
    false
}

pub(super) async fn run(
    _arguments: Arguments,
    _flags: Flags,
    _host: Host,
    _serve: impl AsyncFnOnce((Takeover, TcpListener)) -> Result<ExitCode, String>,
) -> Result<ExitCode, String> {
    Err("`dev` needs Unix: here no program can take over another's connections. Start `cargo run` again after each change".to_owned())
}
