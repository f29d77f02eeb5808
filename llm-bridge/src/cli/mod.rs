//! A whole program around a registry: `serve`, `chat`, `parse`, `tools` and `call`.

mod address;
mod approve;
mod call;
mod chat;
mod out;
mod parse;
mod serve;
pub mod settings;
mod tools;

use std::{
    fs::OpenOptions,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::{Parser, Subcommand};
use registry_core::{Permission, Registry, Resources, guard::audit::FileAudit, store::MemoryStore};
use tokio_util::sync::CancellationToken;
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
    #[command(args_conflicts_with_subcommands = true)]
    Tools {
        #[command(flatten)]
        list: tools::ListArguments,
        #[command(subcommand)]
        command: Option<ToolsCommand>,
    },
    /// Call a tool and print its reply
    Call(call::Arguments),
}

#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// List the tools and whether they can be used (what happens without a command)
    List(tools::ListArguments),
    /// Check names, descriptions, schemas and the size of the prompt
    Check(tools::CheckArguments),
}

/// Runs the program. The tools are those that are compiled in.
pub fn main(host: Host) -> ExitCode {
    let arguments = Arguments::parse();
    let serving = matches!(arguments.command, None | Some(Command::Serve));
    if let Err(message) = start_log(serving, arguments.verbose) {
        return fail(&message);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("cannot start: {error}")),
    };
    let code = runtime.block_on(run(arguments, host)).unwrap_or_else(|message| fail(&message));
    // A thread that waits for a line of standard input would keep the program alive.
    runtime.shutdown_background();
    code
}

async fn run(arguments: Arguments, host: Host) -> Result<ExitCode, String> {
    // Reading text needs no configuration.
    if let Some(Command::Parse(arguments)) = arguments.command {
        return parse::run(arguments);
    }
    let settings = Settings::load(&arguments.flags, host.tables)?;
    let command = arguments.command.unwrap_or(Command::Serve);
    if matches!(command, Command::Serve | Command::Chat(_) | Command::Call(_)) {
        check_audit(&audit_file(&settings))?;
    }
    let registry = || registry(&settings, host);
    match command {
        Command::Serve => serve::run(&settings, registry()?, Arc::new(MemoryStore::default())).await,
        Command::Chat(arguments) => chat::run(arguments, &settings, registry()?).await,
        Command::Tools { command: Some(ToolsCommand::Check(arguments)), .. } => {
            tools::check(&arguments, &registry()?)
        }
        Command::Tools { command: Some(ToolsCommand::List(arguments)), .. }
        | Command::Tools { list: arguments, command: None } => {
            tools::list(&arguments, &settings, &registry()?)
        }
        Command::Call(arguments) => call::run(arguments, &settings, registry()?).await,
        Command::Parse(arguments) => parse::run(arguments),
    }
}

fn registry(settings: &Settings, host: Host) -> Result<Registry, String> {
    let audit = FileAudit::new(audit_file(settings));
    Registry::builder()
        .resources((host.resources)(settings)?)
        .audit(Arc::new(audit))
        .build()
        .map_err(|error| error.to_string())
}

fn audit_file(settings: &Settings) -> PathBuf {
    settings.data_dir.join("audit.jsonl")
}

/// Without its record no call is made. That is better known at the start than at the first call.
fn check_audit(file: &Path) -> Result<(), String> {
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder)
        .and_then(|()| OpenOptions::new().create(true).append(true).open(file))
        .map(drop)
        .map_err(|error| {
            let place = file.display();
            format!("cannot write {place}, the record of all calls: {error}. Name a folder that can be written with --data-dir")
        })
}

/// The log goes to standard error; standard output is for what was asked for.
fn start_log(serving: bool, verbose: bool) -> Result<(), String> {
    let level = match (verbose, serving) {
        (true, _) => "debug,hyper=info,hyper_util=info,reqwest=info,rustls=info,html5ever=info",
        (false, true) => "info",
        (false, false) => "warn",
    };
    let asked = std::env::var("TOOLRACK_LOG").ok().filter(|filter| !filter.is_empty() && !verbose);
    let filter = EnvFilter::try_new(asked.as_deref().unwrap_or(level)).map_err(|error| {
        format!("TOOLRACK_LOG: {error}; write a level such as `debug`, or levels by part as in `info,llm_bridge=debug`")
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        // When nobody reads standard error there is nobody to tell.
        .log_internal_errors(false);
    // A second program in one process, as in a test, keeps the first one's log.
    let _ = log.try_init();
    Ok(())
}

fn fail(message: &str) -> ExitCode {
    out::tell(format_args!("error: {message}"));
    ExitCode::FAILURE
}

/// A fault in how the program was called.
fn usage_fault(message: &str) -> ExitCode {
    out::tell(format_args!("error: {message}\n\nFor more information, try '--help'."));
    ExitCode::from(2)
}

/// Cancelled by Ctrl-C. A second one ends the program at once.
fn stopped_by_ctrl_c() -> CancellationToken {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopped.cancel();
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(130);
            }
        }
    });
    stop
}

/// The settings' caller at another level, where one is given.
fn caller_at(settings: &Settings, level: Option<Permission>) -> registry_core::Caller {
    let mut caller = settings.caller();
    caller.level = level.unwrap_or(caller.level);
    caller
}
