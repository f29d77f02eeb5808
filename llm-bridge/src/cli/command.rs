//! The commands, as they are written.

use clap::{Parser, Subcommand};

use super::{
    audit, backup, call, chat, check, config, connections, dev, doctor, documents, health, init, launch, man,
    mcp, parse, personas, reports, running, settings::Flags, tenant::InTenant, tool_changes, tools, trace,
    trials, users,
};

#[derive(Debug, Parser)]
#[command(
    name = "toolrack",
    version,
    about = "Tools for local language models, and a server that runs them in a chat"
)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) flags: Flags,
    /// Log each step
    #[arg(long, short, global = true)]
    pub(super) verbose: bool,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a commented configuration file from a few questions
    Init(init::Arguments),
    /// Serve the chat page and the APIs; the default command
    Serve,
    /// Build, serve, and build again when a source is saved; in the package of a program with tools
    Dev(dev::Arguments),
    /// Chat in the terminal, or answer one question
    Chat(chat::Arguments),
    /// Start a coding agent (Claude Code, Codex, Gemini CLI, opencode, Qwen Code) that uses the running server
    Launch(launch::Arguments),
    /// Ask a model what it can do, and write the settings that serve it best
    Doctor(doctor::Arguments),
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
    /// Ask the model the questions of tools' examples, and see which tools it calls; none runs
    Try(trials::Arguments),
    /// Add, list, search and remove the documents that tools search
    #[cfg_attr(not(feature = "documents"), command(hide = true))]
    Documents(InTenant<documents::DocumentsCommand>),
    /// List the settings, each with the line, variable or option that it comes from
    Config(config::Arguments),
    /// See whether a server runs, for health checks: the exit code is 0 or 1
    Health(health::Arguments),
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
    /// List and revoke the accounts on MCP servers that users have let this server into
    Connections(InTenant<connections::ConnectionsCommand>),
    /// Add, change, list and remove users
    User(InTenant<users::UserCommand>),
    /// Add, change, list and remove personas, named sets of modules for users
    Persona(InTenant<personas::PersonaCommand>),
    /// Create, list and revoke the API keys of users
    Key(InTenant<users::KeyCommand>),
    /// Serve the tools to an MCP client over standard input and output
    Mcp(mcp::Arguments),
    /// List, verify and export the audit log of all calls
    Audit(audit::Arguments),
    /// Write all stored data into one file, also while servers run
    Backup(backup::BackupArguments),
    /// Put the data of a backup in place, while no server runs
    Restore(backup::RestoreArguments),
    /// Show a turn of a running server as a tree: requests to the model, calls, times
    Trace(trace::Arguments),
    /// Write the manual pages of all commands
    Man(man::Arguments),
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// List the tools with their size in a prompt, and the reasons of those that are off; the default command
    List(tools::ListArguments),
    /// Check names, descriptions, schemas and the size of all tools in a prompt
    Check(check::CheckArguments),
    #[command(flatten)]
    Change(tool_changes::ChangeCommand),
}
