//! The command line of a program with tools: `serve`, `chat`, `tools`, `call` and the rest.

mod account;
mod address;
mod answer;
mod approve;
mod audit;
mod backup;
mod call;
mod caller;
mod chat;
mod chat_commands;
mod check;
mod command;
mod completion;
mod config;
mod connections;
#[cfg_attr(not(unix), path = "dev/unsupported.rs")]
mod dev;
mod doctor;
#[cfg_attr(not(feature = "documents"), path = "documents/none.rs")]
mod documents;
mod erase;
mod features;
mod health;
mod help;
mod init;
mod interrupts;
mod launch;
mod man;
mod mcp;
mod mcp_servers;
mod names;
mod out;
mod parse;
mod parts;
mod personas;
#[cfg_attr(not(feature = "postgres"), path = "postgres/none.rs")]
mod postgres;
mod program;
mod progress;
#[cfg_attr(not(feature = "redis"), path = "redis/none.rs")]
mod redis;
mod reports;
mod running;
mod secret_file;
mod serve;
pub mod settings;
mod store;
mod tenant;
mod terminal;
mod tool_changes;
mod tools;
mod trace;
mod trials;
mod users;
mod webhooks;

use std::{io::IsTerminal, process::ExitCode, sync::Arc, time::Duration};

use registry_core::{Caller, Origin, Permission, Resources, resource_tables, store::MemoryManifests};
use tokio_util::sync::CancellationToken;
use toolrack_remote::mcp::McpServers;
use tracing_subscriber::EnvFilter;

use command::{Arguments, Command, ToolsCommand};
use program::{Opened, Program};
use reports::{McpServerReport, ModuleReport, ModulesCommand, RemoteCommand};
pub use settings::{Flags, Settings};
use store::Stores;
use tenant::InTenant;

use crate::{
    metrics::{CallMetrics, Metrics},
    recorded::{Change, recorded},
    removal::remove_user,
};

/// What a program brings to [`main`] besides its tools and what functions with `#[resource]` provide: by default nothing.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// The tables of the configuration file that [`resources`](Self::resources) reads.
    pub tables: &'static [&'static str],
    /// Creates resources for the tools that only the program itself can, such as what it shares with them.
    pub resources: fn(&Settings) -> Result<Resources, String>,
}

impl Default for Host {
    fn default() -> Self {
        Self { tables: &[], resources: |_| Ok(Resources::new()) }
    }
}

impl Host {
    /// The tables of the configuration file that are not the bridge's.
    ///
    /// # Errors
    /// When a function with `#[resource]` reads one that is.
    fn all_tables(&self) -> Result<Vec<&'static str>, String> {
        let read = resource_tables();
        settings::check_resource_tables(&read)?;
        Ok(self.tables.iter().copied().chain(read.iter().map(|table| table.name)).collect())
    }
}

/// How long a thread for what blocks is kept idle.
const IDLE_THREAD: Duration = Duration::from_secs(1);

/// Runs the program. The tools are those that are compiled in.
pub fn main(host: Host) -> ExitCode {
    // It may be started to read a PDF, which is to have nothing of what a server makes.
    #[cfg(feature = "documents")]
    if let Some(code) = toolrack_documents::read::launched() {
        return code;
    }
    completion::complete(host);
    let arguments = help::parse();
    if let Err(message) = start_log(arguments.command.as_ref(), arguments.verbose) {
        return fail(&message);
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // What is done every second wakes the thread that was idle longest, so that each stays that was needed once.
    runtime.thread_keep_alive(IDLE_THREAD);
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("cannot start: {error}")),
    };
    let code = runtime.block_on(run(arguments, host)).unwrap_or_else(|message| fail(&message));
    // A thread that waits for a line of standard input would keep the program alive.
    runtime.shutdown_background();
    code
}

async fn run(arguments: Arguments, host: Host) -> Result<ExitCode, String> {
    // These need no configuration.
    match arguments.command {
        Some(Command::Init(init)) => return init::run(&init, arguments.flags).await,
        Some(Command::Parse(arguments)) => return parse::run(arguments),
        Some(Command::Man(arguments)) => return man::run(&arguments),
        _ => {}
    }
    let tables = host.all_tables()?;
    if let Some(Command::Dev(dev)) = arguments.command {
        let flags = arguments.flags;
        let serve =
            async |joined| serve(&Settings::load(&flags, &tables)?.trust()?, host, Some(joined)).await;
        return dev::run(dev, flags.clone(), host, serve).await;
    }
    let settings = Settings::load(&arguments.flags, &tables)?.trust()?;
    let program = Program { settings: &settings, host };
    let settings = &settings;
    // Tools that ask the model are on only if there is one.
    if let Some(Command::Call(_) | Command::Mcp(_) | Command::Tools { .. }) = arguments.command {
        settings.upstream().await?;
    }
    match arguments.command.unwrap_or(Command::Serve) {
        Command::Serve | Command::Dev(_) => serve(settings, host, None).await,
        Command::Chat(arguments) => {
            let named = arguments.caller.clone();
            let chat = async |opened: &Opened| {
                let caller = opened.caller(&named, settings).await?;
                chat::run(arguments, caller, settings, opened.registry().clone()).await
            };
            program.with_tools(named.tenant(), chat).await
        }
        Command::Call(arguments) => {
            let named = arguments.caller.clone();
            let call = async |opened: &Opened| {
                let caller = opened.caller(&named, settings).await?;
                call::run(arguments, caller, opened.registry().clone(), &help::command()).await
            };
            program.with_tools(named.tenant(), call).await
        }
        Command::Try(arguments) => {
            let named = arguments.caller.clone();
            let tried = async |opened: &Opened| {
                let caller = opened.caller(&named, settings).await?;
                trials::run(arguments, caller, settings, opened.registry()).await
            };
            program.with_tools(named.tenant(), tried).await
        }
        Command::Tools { command: Some(ToolsCommand::Check(arguments)), .. } => {
            check::check(&arguments, settings, &program.registry(None).await?)
        }
        Command::Tools { command: Some(ToolsCommand::List(arguments)), .. }
        | Command::Tools { list: arguments, command: None } => {
            // Listing tools creates no data folder.
            if Stores::are_there(settings) {
                let list = async |opened: &Opened| {
                    let caller = opened.caller(&arguments.caller, settings).await?;
                    tools::list(&arguments, caller, opened.registry(), &settings.mcp)
                };
                return program.with_tools(arguments.caller.tenant(), list).await;
            }
            let registry = program.registry(None).await?;
            program.modules(&registry, None)?.ready().await;
            let caller = arguments.caller.caller(settings, None).await?;
            let list = async { tools::list(&arguments, caller, &registry, &settings.mcp) };
            let manifests = Arc::new(MemoryManifests::default());
            mcp_servers::ahead(settings, &registry, manifests, connections::without_stores(settings)?, list)
                .await
        }
        Command::Tools { command: Some(ToolsCommand::Change(command)), .. } => {
            let (change, tenant) = command.change()?;
            program.change_tool(&tenant, change).await
        }
        Command::Mcp(arguments) => {
            // Before anything of the tools runs.
            let streams = mcp::streams().map_err(|error| format!("standard input and output: {error}"))?;
            let opened = program.opened(arguments.caller.tenant()).await?;
            let (registry, caller) = (opened.registry(), opened.caller(&arguments.caller, settings).await?);
            let modules = opened.modules().clone();
            let asked = tokio::spawn(async move { modules.ready().await });
            let serve = |servers: McpServers| {
                let answered = async move {
                    // A task that fails has nothing more to wait for.
                    let _ = tokio::join!(asked, servers.settled(Duration::MAX));
                };
                mcp::run(streams, caller, registry.clone(), settings.mcp.clone(), answered)
            };
            mcp_servers::beside(settings, registry, opened.manifests(), opened.connections(), serve).await
        }
        Command::Documents(arguments) => documents::run(arguments, settings).await,
        Command::Config(arguments) => config::run(&arguments, settings),
        Command::Doctor(arguments) => doctor::run(arguments, settings, &tables).await,
        Command::Launch(arguments) => launch::run(arguments, settings).await,
        Command::Health(arguments) => health::run(&arguments, settings).await,
        Command::Modules { list, command } => {
            match command.unwrap_or(ModulesCommand::Remote(RemoteCommand::List(list))) {
                ModulesCommand::Refresh(asked) => reports::refresh(&asked, settings).await,
                ModulesCommand::Remote(command) => reports::run::<ModuleReport>(command, settings).await,
            }
        }
        Command::McpServers { list, command } => {
            reports::run::<McpServerReport>(command.unwrap_or(RemoteCommand::List(list)), settings).await
        }
        Command::User(InTenant { command, tenant }) => {
            let change = command.change(&tenant);
            let run = async |stores: &Stores, place: &str| {
                let owner = users::Owner { id: &settings.user.id, level: settings.caller().level, place };
                let remove = async |user: &str| {
                    let (connections, whose) = (connections::of(settings, stores)?, (tenant.as_str(), user));
                    let asked = stores.approvals.forget_user(&tenant, user);
                    let documents =
                        async { documents::erase_of_chats(settings, &tenant, user).await.map(drop) };
                    remove_user(stores.store.as_ref(), Some(&connections), whose, asked, documents).await
                };
                let erase = async |user: &str| {
                    let (settings, sql) = (settings.clone(), stores.sql.clone());
                    let connections = connections::of(&settings, stores)?;
                    erase::Eraser { settings, sql, connections }.told(&tenant, user).await
                };
                users::users(command, &tenant, stores.store.as_ref(), &owner, remove, erase).await
            };
            with_stores(settings, change, "users", run).await
        }
        Command::Connections(InTenant { command, tenant }) => {
            let change = command.change(&tenant);
            let run = async |stores: &Stores, place: &str| {
                connections::run(command, &tenant, settings, stores, place).await
            };
            with_stores(settings, change, "connections", run).await
        }
        Command::Persona(InTenant { command, tenant }) => {
            let change = command.change(&tenant);
            let run = async |stores: &Stores, place: &str| {
                // Commands about personas work without the registry; only warnings about names need it.
                let registry = program.registry(None).await.ok();
                let known = registry.map(|registry| names::Known::new(settings, &registry));
                personas::run(command, &tenant, stores.store.as_ref(), known, place).await
            };
            with_stores(settings, change, "personas", run).await
        }
        Command::Key(InTenant { command, tenant }) => {
            let change = command.change(&tenant);
            let run = async |stores: &Stores, place: &str| {
                users::keys(command, &tenant, stores.store.as_ref(), place).await
            };
            with_stores(settings, change, "keys", run).await
        }
        Command::Audit(arguments) => {
            if let Some(done) = arguments.key(settings) {
                return done;
            }
            if let Some(successor) = arguments.successor(settings) {
                let successor = successor?;
                let change = Some(successor.change());
                return with_stores(settings, change, "records", async |_, _| successor.succeed()).await;
            }
            if !Stores::are_there(settings) && arguments.expects_records(settings)? {
                let place = Stores::place(settings)?;
                return Err(format!("there are signed heads of the audit, and {place} is gone"));
            }
            let run = async |stores: &Stores, place: &str| {
                names::warn_of_tenant(stores.store.as_ref(), arguments.tenant()).await;
                audit::run(arguments, stores.log.as_ref(), settings, place).await
            };
            with_stores(settings, None, "records", run).await
        }
        Command::Backup(arguments) => backup::write(&arguments, settings).await,
        Command::Restore(arguments) => backup::restore(&arguments, settings).await,
        Command::Trace(arguments) => trace::run(arguments, settings).await,
        Command::Init(init) => init::run(&init, arguments.flags).await,
        Command::Parse(arguments) => parse::run(arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

/// Serves; where a supervisor has started this program, with what it shares.
async fn serve(settings: &Settings, host: Host, joined: serve::Joined) -> Result<ExitCode, String> {
    let program = Program { settings, host };
    // Not while the program before still uses the data.
    if !dev::takes_over() {
        backup::put_uploaded(settings).await;
    }
    let mut stores = Stores::open(settings).await?;
    let tables = host.all_tables()?;
    let calls = CallMetrics::before(stores.audit)?;
    stores.audit = calls.clone();
    let registry = program.registry(Some(&stores)).await?;
    #[cfg(unix)]
    if let Some((takeover, _)) = &joined {
        takeover.check_faults(registry.faults().iter().map(ToString::to_string))?;
    }
    calls.watch(&registry);
    let modules = program.modules(&registry, Some(&stores))?;
    let (shared, manifests) = (registry.clone(), Arc::clone(&stores.manifests));
    let connections = connections::of(settings, &stores)?;
    mcp_servers::beside(settings, &shared, manifests, connections.clone(), |servers| {
        let metrics = Metrics::default().with_calls(calls).with_mcp_servers(servers.clone());
        serve::run((settings, tables), registry, stores, modules, metrics, (servers, connections), joined)
    })
    .await
}

/// Logs to standard error; standard output is for results.
fn start_log(command: Option<&Command>, verbose: bool) -> Result<(), String> {
    // The library's transports name addresses whole, secrets in them too; their failures are logged here without them.
    let level = match (verbose, command) {
        (true, _) => "debug,hyper=info,hyper_util=info,reqwest=info,rustls=info,html5ever=info",
        // What the start says was said by the program before.
        (false, Some(Command::Dev(_))) if dev::takes_over() => {
            "info,registry_core=warn,llm_bridge::cli=error,rmcp=error,rmcp::transport=off"
        }
        (false, Some(Command::Dev(_))) => "info,rmcp=error,rmcp::transport=off",
        (false, None | Some(Command::Serve)) => "info,rmcp=error,rmcp::transport=off",
        // The chat prints the failure of a turn itself.
        (false, Some(Command::Chat(_))) => "warn,llm_bridge::turn=off,rmcp=error,rmcp::transport=off",
        (false, _) => "warn,rmcp=error,rmcp::transport=off",
    };
    let asked = std::env::var("TOOLRACK_LOG").ok().filter(|filter| !filter.is_empty() && !verbose);
    let filter = EnvFilter::try_new(asked.as_deref().unwrap_or(level)).map_err(|error| {
        format!("TOOLRACK_LOG: {error}; write a level such as `debug`, or levels by part as in `info,llm_bridge=debug`")
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A closed standard error is not an error.
        .log_internal_errors(false);
    // A second program in one process, as in a test, keeps the first one's log.
    let _ = match std::env::var("TOOLRACK_LOG_FORMAT").as_deref() {
        Err(_) | Ok("" | "text") => log
            .with_writer(|| terminal::LogWriter)
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .try_init(),
        Ok("json") => {
            log.with_writer(std::io::stderr).json().flatten_event(true).with_current_span(false).try_init()
        }
        Ok(other) => {
            return Err(format!("TOOLRACK_LOG_FORMAT: there is no format {other:?}; write `text` or `json`"));
        }
    };
    Ok(())
}

/// Runs a command that makes a change or only reads, with the stores and their place. For one that only reads none are created, and where
/// there are none it is said that nothing is stored.
async fn with_stores(
    settings: &Settings,
    change: Option<Change>,
    what: &str,
    command: impl AsyncFnOnce(&Stores, &str) -> Result<ExitCode, String>,
) -> Result<ExitCode, String> {
    let place = Stores::place(settings)?;
    if change.is_none() && !Stores::are_there(settings) {
        out::tell(format_args!("There are no {what}: nothing is stored yet in {place}."));
        return Ok(ExitCode::SUCCESS);
    }
    let stores = Stores::open(settings).await?;
    made_by_operator(&stores, change, command(&stores, &place)).await
}

fn fail(message: &str) -> ExitCode {
    out::tell(format_args!("error: {message}"));
    ExitCode::FAILURE
}

/// An error in the command line.
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

/// Makes a change and audits it as one of the operating system's account. Commands that only read are not audited.
async fn made_by_operator<T>(
    stores: &Stores,
    change: Option<Change>,
    make: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let Some(change) = change else { return make.await };
    // Access to the store is full access.
    let operator = Caller::new(account::account(), Permission::Owner);
    recorded(stores.audit.as_ref(), &operator, Origin::CommandLine, change, make).await?
}
