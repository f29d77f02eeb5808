//! The program with tools that ask their user and show results of each kind, for the script `tests/dev/asking.py`: in a terminal, on the page,
//! and at a server that is killed while somebody is asked.
//!
//! ```sh
//! cargo run -p llm-bridge --example asking -- call pay --amount 40
//! ```

use std::{io::Write, process::ExitCode};

use futures_util::stream;
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

/// Write the report of an account, piece by piece.
#[tool(permission = Permission::User)]
fn report(ctx: ToolContext) -> impl Stream<Item = Result<Content, ToolError>> + Send {
    const PICTURE: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><rect width="64" height="64" fill="blue"/></svg>"#;

    stream::unfold((0, ctx), |(step, ctx)| async move {
        let part: Result<Content, ToolError> = match step {
            0 => Ok(Content::text("Reading the accounts.\n")),
            1 => match ctx.ask("Which account?", ["Savings", "Joint"]).await {
                Ok(account) => Ok(Table::new(["account", "EUR"]).row((account, 40)).into()),
                Err(error) => Err(error.into()),
            },
            2 => Image::of_type("image/svg+xml", PICTURE).map(Into::into),
            3 => Audio::new(silence()).map(Into::into),
            4 => Ok(File::new("report.csv", "account,EUR\nJoint,40\n").into()),
            5 => Ok(Markdown::new("That is **all**.").into()),
            _ => return None,
        };
        Some((part, (step + 1, ctx)))
    })
}

/// A second of it, as a WAV file.
fn silence() -> Vec<u8> {
    const RATE: u32 = 8000;
    let numbers =
        |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
    let head = [
        &b"RIFF"[..],
        &numbers(&[36 + RATE]),
        b"WAVEfmt ",
        &numbers(&[16]),
        &[1, 0, 1, 0],
        &numbers(&[RATE, RATE]),
        &[1, 0, 8, 0],
        b"data",
        &numbers(&[RATE]),
    ];
    [head.concat(), vec![128; RATE as usize]].concat()
}

fn main() -> ExitCode {
    cli::main(Host::default())
}
