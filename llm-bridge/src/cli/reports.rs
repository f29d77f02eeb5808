//! `toolrack modules` and `toolrack mcp-servers`: they ask a running server, which alone knows their state.

use std::{io::IsTerminal, process::ExitCode};

use comfy_table::ContentArrangement;
use reqwest::Method;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    Settings,
    out::{print_line, table},
    running::{Asked, Server},
    terminal::one_line,
};

#[derive(Debug, clap::Subcommand)]
pub(super) enum RemoteCommand {
    /// List them with their tools and health; the default command
    List(Asked),
    /// Accept the tools of one as listed, with their changes
    Accept {
        /// Its name
        name: String,
        /// Digest from the list: only the tools listed there are accepted
        digest: String,
        #[command(flatten)]
        asked: Asked,
    },
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum ModulesCommand {
    #[command(flatten)]
    Remote(RemoteCommand),
    /// Ask all modules for their tools now
    Refresh(Asked),
}

/// Refreshes the modules and lists them.
pub(super) async fn refresh(asked: &Asked, settings: &Settings) -> Result<ExitCode, String> {
    let answer = Server::new(&asked.server, settings)?.ask(Method::POST, &["refresh-tools"]).await?;
    print_list::<ModuleReport>(answer, asked.json)
}

/// Lists modules or MCP servers, or accepts the tools of one.
pub(super) async fn run<R: Report>(command: RemoteCommand, settings: &Settings) -> Result<ExitCode, String> {
    match command {
        RemoteCommand::List(asked) => {
            let answer = Server::new(&asked.server, settings)?.ask(Method::GET, &["api", R::COMMAND]).await?;
            print_list::<R>(answer, asked.json)
        }
        RemoteCommand::Accept { name, digest, asked } => {
            let server = Server::new(&asked.server, settings)?;
            let report = server.accept(&["api", R::COMMAND, &name, "accept"], &digest).await?;
            print::<R>(&Value::Array(vec![report]), asked.json)
        }
    }
}

fn print_list<R: Report>(mut answer: Value, json: bool) -> Result<ExitCode, String> {
    print::<R>(&answer.get_mut(R::LIST).map(Value::take).unwrap_or_default(), json)
}

/// What the server reports of one of them; below the level admin some fields are missing.
pub(super) trait Report: DeserializeOwned {
    /// The command, and the last part of the route.
    const COMMAND: &'static str;
    /// The field of the server's answer.
    const LIST: &'static str;
    /// What is printed where there are none.
    const NONE: &'static str;
    /// The header of the table: the name first.
    const HEADER: &'static [&'static str];

    fn notes(&self) -> &Notes;

    /// The cells after the name.
    fn cells(&self) -> Vec<String>;
}

#[derive(Debug, Deserialize)]
pub(super) struct ModuleReport {
    #[serde(flatten)]
    notes: Notes,
    tools: usize,
    breaker: String,
    version: Option<String>,
    url: Option<String>,
    age: Option<u64>,
}

impl Report for ModuleReport {
    const COMMAND: &'static str = "modules";
    const LIST: &'static str = "modules";
    const NONE: &'static str = "There are no modules. Add them to the configuration under `module_services`.";
    const HEADER: &'static [&'static str] = &["module", "tools", "breaker", "manifest", "version", "address"];

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn cells(&self) -> Vec<String> {
        let manifest = match (self.age, &self.url) {
            (Some(age), _) => format!("{age} s ago"),
            (None, Some(_)) => "none yet".to_owned(),
            (None, None) => String::new(),
        };
        let (version, url) = (self.version.clone(), self.url.clone());
        let breaker = self.breaker.replace('_', " ");
        vec![self.tools.to_string(), breaker, manifest, version.unwrap_or_default(), url.unwrap_or_default()]
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct McpServerReport {
    #[serde(flatten)]
    notes: Notes,
    tools: usize,
    state: String,
    breaker: String,
    restarts: Option<u64>,
    protocol: Option<String>,
    address: Option<String>,
}

impl Report for McpServerReport {
    const COMMAND: &'static str = "mcp-servers";
    const LIST: &'static str = "mcp_servers";
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

/// Prints reports as JSON, or as a table with a line for each fault and change.
fn print<R: Report>(reports: &Value, json: bool) -> Result<ExitCode, String> {
    if json {
        print_line(serde_json::to_string_pretty(reports).map_err(|error| error.to_string())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let reports = Vec::<R>::deserialize(reports)
        .map_err(|error| format!("the server's answer is not valid: {error}; is it of another version?"))?;
    if reports.is_empty() {
        print_line(R::NONE)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = table(R::HEADER);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_width(140);
        table.force_no_tty();
    }
    for report in &reports {
        let Notes { name, pinned, .. } = report.notes();
        let name = if *pinned { format!("{name} (pinned)") } else { name.clone() };
        table.add_row(std::iter::once(name).chain(report.cells()).map(|cell| one_line(&cell)));
    }
    print_line(table)?;
    for note in reports.iter().flat_map(|report| report.notes().lines(R::COMMAND)) {
        print_line(note)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a module and an MCP server have in common, with the faults and changes of their tools.
#[derive(Debug, Deserialize)]
pub(super) struct Notes {
    name: String,
    error: Option<String>,
    #[serde(default)]
    pinned: bool,
    #[serde(default)]
    digest: String,
    #[serde(default)]
    changes: Vec<ToolChange>,
    #[serde(default)]
    faults: Vec<ToolFault>,
    #[serde(default)]
    duplicates: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ToolChange {
    tool: String,
    parts: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ToolFault {
    tool: String,
    message: String,
    taken: bool,
}

impl Notes {
    /// One line for each; `command` is the one that accepts changes.
    fn lines(&self, command: &str) -> Vec<String> {
        let name = &self.name;
        let error = self.error.iter().map(|error| format!("{name}: could not be asked: {error}"));
        let off = if self.pinned { "; off until it is accepted" } else { "" };
        let changes = self.changes.iter().map(|change| match change.parts.as_slice() {
            [new] if new == "new" => format!("{name}: {} is new{off}", change.tool),
            parts => {
                format!("{name}: {} has another {} than was accepted{off}", change.tool, parts.join(" and "))
            }
        });
        let accept = (!self.changes.is_empty())
            .then(|| format!("{name}: to accept these: toolrack {command} accept {name} {}", self.digest));
        let faults = self.faults.iter().map(|fault| {
            let left_out = if fault.taken { "" } else { " is left out" };
            format!("{name}: {}{left_out}: {}", fault.tool, fault.message)
        });
        let duplicates = self.duplicates.iter().map(|duplicate| format!("{name}: {duplicate}"));
        let all = error.chain(changes).chain(accept).chain(faults).chain(duplicates);
        all.map(|line| one_line(&line)).collect()
    }
}
