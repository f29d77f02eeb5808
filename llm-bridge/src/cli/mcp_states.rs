//! `toolrack mcp-servers list` and `accept`: they ask a server that runs, which alone knows how its MCP servers do.

use std::{io::IsTerminal, process::ExitCode};

use comfy_table::{ContentArrangement, Table, presets};
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Settings,
    out::{one_line, print_line},
    running::{Asked, Notes, Server},
};

#[derive(Debug, clap::Subcommand)]
pub(super) enum McpServersCommand {
    /// List the MCP servers, what they have and how they do (what happens without a command)
    List(Asked),
    /// Accept a server's tools as they are listed, their changes included
    Accept {
        /// The server's name
        name: String,
        /// What the list names these tools by, so that no others are accepted
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
            print(&servers, asked.json)
        }
        McpServersCommand::Accept { name, digest, asked } => {
            let server = Server::new(&asked, settings)?;
            let report = server.accept(&["api", "mcp-servers", &name, "accept"], &digest).await?;
            print(&Value::Array(vec![report]), asked.json)
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

fn print(servers: &Value, json: bool) -> Result<ExitCode, String> {
    if json {
        print_line(serde_json::to_string_pretty(servers).map_err(|error| error.to_string())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let reports = Vec::<Report>::deserialize(servers).map_err(|error| {
        format!("the server's answer is not understood: {error}; is it of another version?")
    })?;
    if reports.is_empty() {
        print_line("There are no MCP servers. They are named in the configuration, under mcp_servers.")?;
        return Ok(ExitCode::SUCCESS);
    }
    print_line(table(&reports))?;
    for note in reports.iter().flat_map(|report| report.notes.lines("mcp-servers")) {
        print_line(note)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(reports: &[Report]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_width(140);
        table.force_no_tty();
    }
    table.set_header(["server", "tools", "state", "breaker", "restarts", "protocol", "address"]);
    for report in reports {
        let Notes { name, pinned, .. } = &report.notes;
        let name = if *pinned { format!("{name} (pinned)") } else { name.clone() };
        let [name, protocol, address] = [Some(&name), report.protocol.as_ref(), report.address.as_ref()]
            .map(|text| one_line(text.map_or("", |text| text)));
        table.add_row([
            name,
            report.tools.to_string(),
            report.state.clone(),
            report.breaker.replace('_', " "),
            report.restarts.map(|count| count.to_string()).unwrap_or_default(),
            protocol,
            address,
        ]);
    }
    table
}
