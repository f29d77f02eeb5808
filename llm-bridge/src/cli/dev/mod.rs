//! `toolrack dev`: builds the program, serves, and builds it again when one of its sources is saved. The new program takes over the
//! listening socket, the open connections and the MCP sessions; the one before finishes what runs.
//!
//! This process holds the listening socket and accepts nothing. It starts itself, as it is after each build, with the same arguments and
//! a socket as standard input, over which the program learns that it is to serve: [`Takeover::join`].

mod cargo;
mod program;
mod shared;
mod supervisor;
mod watch;

use std::{env, ffi::OsString, net::TcpListener, process::ExitCode, time::Duration};

use super::{Flags, Host};
use crate::takeover::{SUPERVISED, Takeover, ToSupervisor};
use supervisor::Supervisor;

/// How long a program that cannot start waits for its supervisor to know.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Arguments {
    /// Arguments for `cargo build`, such as `--bin NAME` or `--features NAMES`
    #[arg(last = true, value_name = "CARGO_ARGUMENTS")]
    cargo: Vec<OsString>,
}

/// Whether this program takes over from another, whose log has said what the start says.
pub(super) fn takes_over() -> bool {
    env::var(SUPERVISED).is_ok_and(|which| which == program::NEXT)
}

/// Builds, serves and watches; or, in a program that the supervisor has started, serves with what it shares.
pub(super) async fn run(
    arguments: Arguments,
    flags: Flags,
    host: Host,
    serve: impl AsyncFnOnce((Takeover, TcpListener)) -> Result<ExitCode, String>,
) -> Result<ExitCode, String> {
    let joined = Takeover::join().await.map_err(|error| format!("cannot join the supervisor: {error}"))?;
    let Some((takeover, listener)) = joined else {
        return Ok(Supervisor::new(flags, host, arguments).await?.run().await);
    };
    let served = serve((takeover.clone(), listener)).await;
    if let Err(message) = &served {
        takeover.say(ToSupervisor::Failed(message.clone())).await;
        let _ = tokio::time::timeout(LAST_WORDS, takeover.stop().cancelled()).await;
    }
    served
}
