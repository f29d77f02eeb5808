//! `toolrack mcp-servers list` and `accept`: they ask a server that runs, which alone knows how its MCP servers do.

use std::process::ExitCode;

use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Settings,
    reports::{self, Notes},
    running::{Asked, Server},
};

#[derive(Debug, clap::Subcommand)]
pub(super) enum McpServersCommand {
    /// List the MCP servers with their tools and health; the default command
    List(Asked),
    /// Accept the tools of a server as listed, with their changes
    Accept {
        /// The server's name
        name: String,
        /// Digest from the list: only the tools listed there are accepted
        digest: String,
        #[command(flatten)]
        asked: Asked,
    },
}

pub(super) async fn run(
    list: Asked,
    command: Option<McpServersCommand>,
    settings: &Settings,
) -> Result<ExitCode, String> {
    match command.unwrap_or(McpServersCommand::List(list)) {
        McpServersCommand::List(asked) => {
            let mut answer = Server::new(&asked, settings)?.ask(Method::GET, &["api", "mcp-servers"]).await?;
            let servers = answer.get_mut("mcp_servers").map(Value::take).unwrap_or_default();
            reports::print::<Report>(&servers, asked.json)
        }
        McpServersCommand::Accept { name, digest, asked } => {
            let server = Server::new(&asked, settings)?;
            let report = server.accept(&["api", "mcp-servers", &name, "accept"], &digest).await?;
            reports::print::<Report>(&Value::Array(vec![report]), asked.json)
        }
    }
}

/// What is said of an MCP server; somebody below admin is told less.
#[derive(Debug, Deserialize)]
struct Report {
    #[serde(flatten)]
    notes: Notes,
    tools: usize,
    state: String,
    breaker: String,
    restarts: Option<u64>,
    protocol: Option<String>,
    address: Option<String>,
}

impl reports::Report for Report {
    const COMMAND: &'static str = "mcp-servers";
    const NONE: &'static str = "There are no MCP servers. Add them to the configuration under `mcp_servers`.";
    const HEADER: &'static [&'static str] =
        &["server", "tools", "state", "breaker", "restarts", "protocol", "address"];

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.tools.to_string(),
            self.state.clone(),
            self.breaker.replace('_', " "),
            self.restarts.map(|count| count.to_string()).unwrap_or_default(),
            self.protocol.clone().unwrap_or_default(),
            self.address.clone().unwrap_or_default(),
        ]
    }
}
