//! What a server that runs tells of its modules, or of its MCP servers: a table, and a line for each thing that is not as it should be.

use std::{io::IsTerminal, process::ExitCode};

use comfy_table::{ContentArrangement, Table, presets};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{out::print_line, terminal::one_line};

/// What is told of one of them; somebody below admin is told less.
pub(super) trait Report: DeserializeOwned {
    /// The command that is about them.
    const COMMAND: &'static str;
    /// What is said where there are none.
    const NONE: &'static str;
    /// Over the table: the name first.
    const HEADER: &'static [&'static str];

    fn notes(&self) -> &Notes;

    /// What stands behind the name.
    fn cells(&self) -> Vec<String>;
}

/// Prints reports, as they are or as a table.
pub(super) fn print<R: Report>(reports: &Value, json: bool) -> Result<ExitCode, String> {
    if json {
        print_line(serde_json::to_string_pretty(reports).map_err(|error| error.to_string())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let reports = Vec::<R>::deserialize(reports).map_err(|error| {
        format!("the server's answer is not understood: {error}; is it of another version?")
    })?;
    if reports.is_empty() {
        print_line(R::NONE)?;
        return Ok(ExitCode::SUCCESS);
    }
    print_line(table(&reports))?;
    for note in reports.iter().flat_map(|report| report.notes().lines(R::COMMAND)) {
        print_line(note)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table<R: Report>(reports: &[R]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_width(140);
        table.force_no_tty();
    }
    table.set_header(R::HEADER);
    for report in reports {
        let Notes { name, pinned, .. } = report.notes();
        let name = if *pinned { format!("{name} (pinned)") } else { name.clone() };
        let cells = std::iter::once(name).chain(report.cells());
        table.add_row(cells.map(|cell| one_line(&cell)));
    }
    table
}

/// What the server says of the tools of a module or an MCP server that are not as they should be.
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
