//! A whole program around a registry: `serve`, `chat`, `parse`, `tools` and `call`.

mod call;
mod chat;
mod parse;
mod serve;
pub mod settings;
mod tools;

use std::{io::IsTerminal, process::ExitCode, sync::Arc};

use clap::{Parser, Subcommand};
use registry_core::{Permission, Registry, Resources, guard::audit::FileAudit};
use tracing_subscriber::EnvFilter;

pub use settings::{Flags, Settings};

/// What a program brings to [`main`].
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// The tables of the configuration file that are the program's own.
    pub tables: &'static [&'static str],
    /// Makes what the program provides to its tools.
    pub resources: fn(&Settings) -> Result<Resources, String>,
}

#[derive(Debug, Parser)]
#[command(
    name = "toolrack",
    version,
    about = "Tools for local language models: a chat backend that runs them"
)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// Say more: what the server does at each step
    #[arg(long, short, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the chat page and the OpenAI API (what happens without a command)
    Serve,
    /// Chat in the terminal, or answer one question
    Chat(chat::Arguments),
    /// Read a model's output on standard input and print the calls in it
    Parse(parse::Arguments),
    /// Look at the tools
    Tools {
        #[command(subcommand)]
        command: ToolsCommand,
    },
    /// Call a tool and print its reply
    Call(call::Arguments),
}

#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// List the tools and whether they can be used
    List(tools::ListArguments),
    /// Check names, descriptions, schemas and the size of the prompt
    Check(tools::CheckArguments),
}

/// Runs the program. The tools are those that are compiled in.
pub fn main(host: Host) -> ExitCode {
    let arguments = Arguments::parse();
    let serving = matches!(arguments.command, None | Some(Command::Serve));
    start_log(serving, arguments.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("cannot start: {error}")),
    };
    match runtime.block_on(run(arguments, host)) {
        Ok(code) => code,
        Err(message) => fail(&message),
    }
}

async fn run(arguments: Arguments, host: Host) -> Result<ExitCode, String> {
    // Reading text needs no configuration.
    if let Some(Command::Parse(arguments)) = arguments.command {
        return parse::run(arguments);
    }
    let settings = Settings::load(&arguments.flags, host.tables)?;
    let registry = || registry(&settings, host);
    match arguments.command.unwrap_or(Command::Serve) {
        Command::Serve => serve::run(&settings, registry()?).await,
        Command::Chat(arguments) => chat::run(arguments, &settings, registry()?).await,
        Command::Tools { command: ToolsCommand::List(arguments) } => {
            tools::list(&arguments, &settings, &registry()?)
        }
        Command::Tools { command: ToolsCommand::Check(arguments) } => tools::check(&arguments, &registry()?),
        Command::Call(arguments) => call::run(arguments, &settings, registry()?).await,
        Command::Parse(arguments) => parse::run(arguments),
    }
}

fn registry(settings: &Settings, host: Host) -> Result<Registry, String> {
    let audit = FileAudit::new(settings.data_dir.join("audit.jsonl"));
    Registry::builder()
        .resources((host.resources)(settings)?)
        .audit(Arc::new(audit))
        .build()
        .map_err(|error| error.to_string())
}

/// The log goes to standard error; standard output is for what was asked for.
fn start_log(serving: bool, verbose: bool) {
    let level = match (verbose, serving) {
        (true, _) => "debug,hyper=info,hyper_util=info,reqwest=info,rustls=info,html5ever=info",
        (false, true) => "info",
        (false, false) => "warn",
    };
    let filter = EnvFilter::try_from_env("TOOLRACK_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // A second program in one process, as in a test, keeps the first one's log.
    let _ = log.try_init();
}

fn fail(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::FAILURE
}

/// The settings' caller at another level, where one is given.
fn caller_at(settings: &Settings, level: Option<Permission>) -> registry_core::Caller {
    let mut caller = settings.caller();
    caller.level = level.unwrap_or(caller.level);
    caller
}
