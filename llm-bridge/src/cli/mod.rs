//! The command line of a program with tools: `serve`, `chat`, `tools`, `call` and the rest.

mod address;
mod approve;
mod audit;
mod call;
mod chat;
mod chat_commands;
mod documents;
mod extract;
mod help;
mod interrupts;
mod mcp;
mod mcp_servers;
mod names;
mod out;
mod parse;
mod recorded;
mod reports;
mod running;
mod serve;
pub mod settings;
mod store;
mod tenant;
mod terminal;
mod tools;
mod users;
mod webhooks;

use std::{io::IsTerminal, process::ExitCode, sync::Arc, time::Duration};

use clap::{Parser, Subcommand};
use registry_core::{
    DEFAULT_TENANT, Permission, Registry, Resources, StoredRegistry,
    store::{ManifestStore, MemoryManifests},
};
use tokio_util::sync::CancellationToken;
use toolrack_configured::ToolFiles;
use toolrack_stores::schedule::{MemoryJobs, Schedule};
use tracing_subscriber::EnvFilter;

use reports::{McpServerReport, ModuleReport, ModulesCommand, RemoteCommand};
pub use settings::{Flags, Settings};
use store::Stores;
use toolrack_remote::module::Modules;

use crate::metrics::{CallMetrics, Metrics};

/// What a program brings to [`main`].
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// The program's own tables of the configuration file.
    pub tables: &'static [&'static str],
    /// Creates the resources for the tools.
    pub resources: fn(&Settings) -> Result<Resources, String>,
}

#[derive(Debug, Parser)]
#[command(
    name = "toolrack",
    version,
    about = "Tools for local language models, and a server that runs them in a chat"
)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// Log each step
    #[arg(long, short, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the chat page and the OpenAI API; the default command
    Serve,
    /// Chat in the terminal, or answer one question
    Chat(chat::Arguments),
    /// Parse tool calls from a model's output on standard input
    Parse(parse::Arguments),
    /// List the tools, check them, enable and disable them
    #[command(args_conflicts_with_subcommands = true)]
    Tools {
        #[command(flatten)]
        list: tools::ListArguments,
        #[command(subcommand)]
        command: Option<ToolsCommand>,
    },
    /// Call a tool and print its result
    Call(call::Arguments),
    /// Add, list, search and remove the documents that tools search
    Documents(documents::Arguments),
    /// List the modules of a running server, refresh their tools, accept changes
    #[command(args_conflicts_with_subcommands = true)]
    Modules {
        #[command(flatten)]
        list: running::Asked,
        #[command(subcommand)]
        command: Option<reports::ModulesCommand>,
    },
    /// List the MCP servers of a running server, accept changes to their tools
    #[command(args_conflicts_with_subcommands = true)]
    McpServers {
        #[command(flatten)]
        list: running::Asked,
        #[command(subcommand)]
        command: Option<reports::RemoteCommand>,
    },
    /// Add, change, list and remove users
    User {
        #[command(subcommand)]
        command: users::UserCommand,
    },
    /// Create, list and revoke the API keys of users
    Key {
        #[command(subcommand)]
        command: users::KeyCommand,
    },
    /// Serve the tools to an MCP client over standard input and output
    Mcp(mcp::Arguments),
    /// List, verify and export the audit log of all calls
    Audit(audit::Arguments),
}

#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// List the tools with their size in a prompt, and the reasons of those that are off; the default command
    List(tools::ListArguments),
    /// Check names, descriptions, schemas and the size of all tools in a prompt
    Check(tools::CheckArguments),
    /// Enable a tool, also in running servers
    Enable(tools::SwitchArguments),
    /// Disable a tool, also in running servers
    Disable(tools::SwitchArguments),
}

/// Runs the program. The tools are those that are compiled in.
pub fn main(host: Host) -> ExitCode {
    let arguments = help::parse();
    if let Err(message) = start_log(arguments.command.as_ref(), arguments.verbose) {
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
    let program = Program { settings: &settings, host };
    let settings = &settings;
    // Tools that ask the model are on only if there is one.
    if let Some(Command::Call(_) | Command::Mcp(_) | Command::Tools { .. }) = arguments.command {
        settings.upstream().await?;
    }
    match arguments.command.unwrap_or(Command::Serve) {
        Command::Serve => {
            let mut stores = Stores::open(settings).await?;
            let calls = CallMetrics::before(stores.audit)?;
            stores.audit = calls.clone();
            let registry = program.registry(Some(&stores)).await?;
            calls.watch(&registry);
            let modules = program.modules(&registry, Some(&stores))?;
            let (shared, manifests) = (registry.clone(), Arc::clone(&stores.manifests));
            mcp_servers::beside(settings, &shared, manifests, |servers| {
                let metrics = Metrics::default().with_calls(calls).with_mcp_servers(servers.clone());
                serve::run(settings, registry, stores, modules, metrics, servers)
            })
            .await
        }
        Command::Chat(arguments) => {
            program
                .with_tools(DEFAULT_TENANT, async |registry| chat::run(arguments, settings, registry).await)
                .await
        }
        Command::Call(arguments) => {
            let tenant = arguments.tenant.tenant.clone();
            program.with_tools(&tenant, async |registry| call::run(arguments, settings, registry).await).await
        }
        Command::Tools { command: Some(ToolsCommand::Check(arguments)), .. } => {
            tools::check(&arguments, settings, &program.registry(None).await?)
        }
        Command::Tools { command: Some(ToolsCommand::List(arguments)), .. }
        | Command::Tools { list: arguments, command: None } => {
            // Listing tools creates no data folder.
            if Stores::are_there(settings) {
                let list = async |registry: Registry| tools::list(&arguments, settings, &registry);
                return program.with_tools(&arguments.tenant.tenant, list).await;
            }
            let registry = program.registry(None).await?;
            program.modules(&registry, None)?.ready().await;
            let list = async { tools::list(&arguments, settings, &registry) };
            mcp_servers::ahead(settings, &registry, Arc::new(MemoryManifests::default()), list).await
        }
        Command::Tools { command: Some(ToolsCommand::Enable(arguments)), .. } => {
            program.switch(&arguments, true).await
        }
        Command::Tools { command: Some(ToolsCommand::Disable(arguments)), .. } => {
            program.switch(&arguments, false).await
        }
        Command::Mcp(arguments) => {
            let opened = program.opened(&arguments.tenant.tenant).await?;
            let registry = opened.registry();
            let serve = |_| mcp::run(arguments, settings, registry.clone());
            mcp_servers::beside(settings, registry, opened.manifests(), serve).await
        }
        Command::Documents(arguments) => documents::run(arguments, settings).await,
        Command::Modules { list, command } => {
            match command.unwrap_or(ModulesCommand::Remote(RemoteCommand::List(list))) {
                ModulesCommand::Refresh(asked) => reports::refresh(&asked, settings).await,
                ModulesCommand::Remote(command) => reports::run::<ModuleReport>(command, settings).await,
            }
        }
        Command::McpServers { list, command } => {
            reports::run::<McpServerReport>(command.unwrap_or(RemoteCommand::List(list)), settings).await
        }
        Command::User { command } => {
            let place = Stores::place(settings)?;
            if command.change().is_none() && !Stores::are_there(settings) {
                return nothing_stored("users", &place);
            }
            // Commands about users work without the registry; only warnings about names need it.
            let known =
                program.registry(None).await.ok().map(|registry| names::Known::new(settings, &registry));
            let stores = Stores::open(settings).await?;
            let change = command.change();
            let owner = users::Owner { id: &settings.user.id, level: settings.caller().level, place: &place };
            let made = users::users(command, stores.store.as_ref(), known, &owner);
            recorded::recorded(stores.audit.as_ref(), change, made).await
        }
        Command::Key { command } => {
            if command.change().is_none() && !Stores::are_there(settings) {
                return nothing_stored("keys", &Stores::place(settings)?);
            }
            let stores = Stores::open(settings).await?;
            let change = command.change();
            let made = users::keys(command, stores.store.as_ref());
            recorded::recorded(stores.audit.as_ref(), change, made).await
        }
        Command::Audit(arguments) => {
            if !Stores::are_there(settings) {
                return nothing_stored("records", &Stores::place(settings)?);
            }
            let stores = Stores::open(settings).await?;
            names::warn_of_tenant(stores.store.as_ref(), arguments.tenant()).await;
            audit::run(arguments, stores.log.as_ref()).await
        }
        Command::Parse(arguments) => parse::run(arguments),
    }
}

/// The settings and the host, from which registries are built.
struct Program<'s> {
    settings: &'s Settings,
    host: Host,
}

impl Program<'_> {
    /// The registry; with stores, its calls are limited and audited there.
    async fn registry(&self, stores: Option<&Stores>) -> Result<Registry, String> {
        let guard = &self.settings.guard;
        let mut resources = (self.host.resources)(self.settings)?;
        self.settings.refresh_documents().await;
        let in_memory = || Schedule::new(Arc::new(MemoryJobs::default()));
        resources.insert(Arc::new(stores.map_or_else(in_memory, |stores| stores.schedule.clone())));
        let mut builder = Registry::builder()
            .resources(resources)
            .approve_destructive(guard.approve_destructive)
            .approval_timeout(Duration::from_secs(guard.approval_seconds))
            .concurrency(guard.concurrency())
            .audit_arguments(guard.audit_arguments)
            .modules(self.settings.modules.module_services.keys())
            .defer(self.settings.deferred_tools.clone());
        let files = self.settings.tool_files().into_iter().fold(ToolFiles::new(), ToolFiles::file);
        builder = builder.configured(files.read());
        if let Some(stores) = stores {
            builder = builder
                .usage(Arc::clone(&stores.usage))
                .approvals(Arc::clone(&stores.approvals))
                .audit(Arc::clone(&stores.audit));
            if let Some(gate) = &self.settings.gate {
                builder = builder.gate(Arc::new(gate.gate()?));
            }
        }
        builder.build().map_err(|error| error.to_string())
    }

    /// The tenant's registry with its stored changes.
    async fn opened(&self, tenant: &str) -> Result<Opened, String> {
        self.in_stores(&Stores::open(self.settings).await?, tenant).await
    }

    /// Runs a command with a tenant's tools, those of MCP servers included.
    async fn with_tools(
        &self,
        tenant: &str,
        command: impl AsyncFnOnce(Registry) -> Result<ExitCode, String>,
    ) -> Result<ExitCode, String> {
        let opened = self.opened(tenant).await?;
        let registry = opened.registry();
        mcp_servers::ahead(self.settings, registry, opened.manifests(), command(registry.clone())).await
    }

    async fn in_stores(&self, stores: &Stores, tenant: &str) -> Result<Opened, String> {
        names::warn_of_tenant(stores.store.as_ref(), tenant).await;
        let registry = self.registry(Some(stores)).await?;
        let registry = if tenant == DEFAULT_TENANT { registry } else { registry.for_tenant(tenant) };
        let modules = self.modules(&registry, Some(stores))?;
        let stored = registry.attach(Arc::clone(&stores.store)).await?;
        modules.ready().await;
        Ok(Opened { stored, manifests: Arc::clone(&stores.manifests), _modules: modules })
    }

    /// The modules, not yet discovered.
    fn modules(&self, registry: &Registry, stores: Option<&Stores>) -> Result<Modules, String> {
        let settings = self.settings.modules.clone();
        let modules = match stores {
            Some(Stores { manifest_cache, manifests, .. }) => {
                Modules::new(registry, settings, Arc::clone(manifest_cache), Arc::clone(manifests))
            }
            None => {
                let memory = Arc::new(MemoryManifests::default());
                Modules::new(registry, settings, memory.clone(), memory)
            }
        };
        modules.map_err(|error| error.to_string())
    }

    /// Enables or disables a tool, and notifies webhooks.
    async fn switch(&self, arguments: &tools::SwitchArguments, enabled: bool) -> Result<ExitCode, String> {
        let endpoints = webhooks::endpoints(self.settings)?;
        let stores = Stores::open(self.settings).await?;
        let Opened { stored, manifests, .. } = &self.in_stores(&stores, &arguments.tenant.tenant).await?;
        let switch = async {
            let made = tools::switch(arguments, enabled, stored);
            let change = Some(arguments.change(enabled));
            for event in recorded::recorded(stores.audit.as_ref(), change, made).await? {
                let (endpoints, letters) = (endpoints.clone(), Arc::clone(&stores.letters));
                webhooks::tell_of(&event, stored.registry(), endpoints, letters).await?;
            }
            Ok(ExitCode::SUCCESS)
        };
        mcp_servers::ahead(self.settings, stored.registry(), Arc::clone(manifests), switch).await
    }
}

/// A tenant's registry with its stored changes.
struct Opened {
    stored: StoredRegistry,
    /// The accepted tools of remote sources.
    manifests: Arc<dyn ManifestStore>,
    /// Refreshed until this is dropped.
    _modules: Modules,
}

impl Opened {
    fn registry(&self) -> &Registry {
        self.stored.registry()
    }

    fn manifests(&self) -> Arc<dyn ManifestStore> {
        Arc::clone(&self.manifests)
    }
}

/// Logs to standard error; standard output is for results.
fn start_log(command: Option<&Command>, verbose: bool) -> Result<(), String> {
    // The library's transports name addresses whole, secrets in them too; their failures are logged here without them.
    let level = match (verbose, command) {
        (true, _) => "debug,hyper=info,hyper_util=info,reqwest=info,rustls=info,html5ever=info",
        (false, None | Some(Command::Serve)) => "info,rmcp=error,rmcp::transport=off",
        // The chat prints the failure of a turn itself.
        (false, Some(Command::Chat(_))) => "warn,llm_bridge::chat::turn=off,rmcp=error,rmcp::transport=off",
        (false, _) => "warn,rmcp=error,rmcp::transport=off",
    };
    let asked = std::env::var("TOOLRACK_LOG").ok().filter(|filter| !filter.is_empty() && !verbose);
    let filter = EnvFilter::try_new(asked.as_deref().unwrap_or(level)).map_err(|error| {
        format!("TOOLRACK_LOG: {error}; write a level such as `debug`, or levels by part as in `info,llm_bridge=debug`")
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| terminal::LogWriter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        // A closed standard error is not an error.
        .log_internal_errors(false);
    // A second program in one process, as in a test, keeps the first one's log.
    let _ = log.try_init();
    Ok(())
}

/// For commands that only read: without a store there is nothing to list, and none is created.
fn nothing_stored(what: &str, place: &str) -> Result<ExitCode, String> {
    out::tell(format_args!("There are no {what}: nothing is stored yet in {place}."));
    Ok(ExitCode::SUCCESS)
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

/// The configured caller, at another level if one is given.
fn caller_at(settings: &Settings, level: Option<Permission>) -> registry_core::Caller {
    level.map_or_else(|| settings.caller(), |level| settings.caller_at(level))
}
