//! `toolrack health`: whether a server runs. A container without any other program has its health checked by this.

use std::process::ExitCode;

use reqwest::Method;

use super::{
    Settings,
    out::print_line,
    running::{Server, ServerArguments},
    terminal::one_line,
};

/// Asks `/healthz`, which needs no key, and prints what it says.
pub(super) async fn run(arguments: &ServerArguments, settings: &Settings) -> Result<ExitCode, String> {
    let health = Server::new(arguments, settings)?.ask(Method::GET, &["healthz"]).await?;
    print_line(one_line(&health.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
