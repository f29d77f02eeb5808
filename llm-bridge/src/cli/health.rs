//! `toolrack health`: whether a server runs. A container without any other program has its health checked by this.

use std::process::ExitCode;

use reqwest::Method;

use super::{
    Settings,
    out::print_line,
    running::{Server, ServerArguments},
    terminal::one_line,
};

/// What is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// See whether it can answer requests: its store takes what is written, and it is not being stopped
    #[arg(long)]
    ready: bool,
}

/// Asks `/healthz` or `/readyz`, which need no key, and prints what it says.
pub(super) async fn run(arguments: &Arguments, settings: &Settings) -> Result<ExitCode, String> {
    let path = if arguments.ready { "readyz" } else { "healthz" };
    let health = Server::new(&arguments.server, settings)?.ask(Method::GET, &[path]).await?;
    print_line(one_line(&health.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
