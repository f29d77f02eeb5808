//! `toolrack modules list`, `refresh` and `accept`: they ask a server that runs, which alone knows how its modules do.

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
pub(super) enum ModulesCommand {
    /// List the modules, what they have and how they do (what happens without a command)
    List(Asked),
    /// Have the server ask all modules for their tools now
    Refresh(Asked),
    /// Accept a module's tools as they are listed, their changes included
    Accept {
        /// The module's name
        name: String,
        /// What the list names these tools by, so that no others are accepted
        digest: String,
        #[command(flatten)]
        asked: Asked,
    },
}

pub(super) async fn run(
    list: Asked,
    command: Option<ModulesCommand>,
    settings: &Settings,
) -> Result<ExitCode, String> {
    let (asked, method, path) = match command.unwrap_or(ModulesCommand::List(list)) {
        ModulesCommand::List(asked) => (asked, Method::GET, vec!["api", "modules"]),
        ModulesCommand::Refresh(asked) => (asked, Method::POST, vec!["refresh-tools"]),
        ModulesCommand::Accept { name, digest, asked } => {
            let server = Server::new(&asked, settings)?;
            let report = server.accept(&["api", "modules", &name, "accept"], &digest).await?;
            return print(&Value::Array(vec![report]), asked.json);
        }
    };
    let mut answer = Server::new(&asked, settings)?.ask(method, &path).await?;
    let modules = answer.get_mut("modules").map(Value::take).unwrap_or_default();
    print(&modules, asked.json)
}

/// What the server says of a module; somebody below admin is told less.
#[derive(Debug, Deserialize)]
struct Report {
    #[serde(flatten)]
    notes: Notes,
    tools: usize,
    breaker: String,
    version: Option<String>,
    url: Option<String>,
    age: Option<u64>,
}

fn print(modules: &Value, json: bool) -> Result<ExitCode, String> {
    if json {
        print_line(serde_json::to_string_pretty(modules).map_err(|error| error.to_string())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let reports = Vec::<Report>::deserialize(modules).map_err(|error| {
        format!("the server's answer is not understood: {error}; is it of another version?")
    })?;
    if reports.is_empty() {
        print_line("There are no modules. They are named in the configuration, under module_services.")?;
        return Ok(ExitCode::SUCCESS);
    }
    print_line(table(&reports))?;
    for note in reports.iter().flat_map(|report| report.notes.lines("modules")) {
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
    table.set_header(["module", "tools", "breaker", "manifest", "version", "address"]);
    for report in reports {
        let manifest = match (report.age, &report.url) {
            (Some(age), _) => format!("{age} s ago"),
            (None, Some(_)) => "none yet".to_owned(),
            (None, None) => String::new(),
        };
        let Notes { name, pinned, .. } = &report.notes;
        let name = if *pinned { format!("{name} (pinned)") } else { name.clone() };
        let [name, version, url] = [Some(&name), report.version.as_ref(), report.url.as_ref()]
            .map(|text| one_line(text.map_or("", |text| text)));
        table.add_row([
            name,
            report.tools.to_string(),
            report.breaker.replace('_', " "),
            manifest,
            version,
            url,
        ]);
    }
    table
}
