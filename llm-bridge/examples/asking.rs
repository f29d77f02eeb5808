//! The program with tools that ask their user, for the scripts in `tests/dev/asking`: in a terminal, and at a server that is killed while
//! somebody is asked.
//!
//! ```sh
//! cargo run -p llm-bridge --example asking -- call pay --amount 40
//! ```

use std::{io::Write, process::ExitCode};

use llm_bridge::cli::{self, Host};
use registry_core::prelude::*;

/// Get the balance of one of the user's accounts.
#[tool]
async fn balance(ctx: &ToolContext) -> Result<String, ToolError> {
    let account = ctx.ask("Which account?", ["Savings", "Joint"]).await?;
    Ok(format!("{account}: 40 EUR"))
}

/// Who gets the money.
#[args]
struct Payee {
    /// Whole name.
    name: String,
    /// Day of the month.
    #[arg(range = 1..=28)]
    day: u8,
    /// Whether the bank confirms it.
    #[arg(default = true)]
    confirmed: bool,
}

/// Pay an amount to somebody.
#[tool(permission = Permission::User, effect = Effect::Write, reads = nothing, resumable, timeout = secs(5))]
async fn pay(
    ctx: &ToolContext,
    /// In EUR.
    amount: u32,
) -> Result<String, ToolError> {
    let account = ctx.ask("From which account?", ["Savings", "Joint"]).await?;
    let Payee { name, day, confirmed } = ctx.ask_for::<Payee>("To whom, and when?").await?;
    let paid = format!("{amount} EUR from {account} to {name} on day {day}, confirmed: {confirmed}");
    // How often it was paid can be seen.
    let paper = std::fs::File::options().create(true).append(true).open("payments");
    paper
        .and_then(|mut paper| writeln!(paper, "{paid}"))
        .map_err(|error| ToolError::failed(error.to_string()))?;
    Ok(paid)
}

/// What opens the safe.
#[args]
struct Code {
    /// Four digits.
    #[arg(secret)]
    code: String,
}

/// Open the safe.
#[tool(permission = Permission::User)]
async fn open_safe(ctx: &ToolContext) -> Result<String, ToolError> {
    let Code { code } = ctx.ask_for::<Code>("Which code?").await?;
    Ok(if code == "0451" { "It is open." } else { "It stays shut." }.to_owned())
}

fn main() -> ExitCode {
    cli::main(Host::default())
}
