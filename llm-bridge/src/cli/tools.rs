//! `toolrack tools list`.

use std::{collections::BTreeSet, io::IsTerminal, process::ExitCode};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use comfy_table::{Table, presets};
use registry_core::{Caller, Query, Registry, Tool, flow::Sends};
use toolrack_apis::{Definitions, Provider};

use super::{
    caller::CallerArguments,
    out::{count, print_line, tell},
    terminal::one_line,
};
use crate::{
    definition::{definer, subject},
    listing::{self, Row},
    mcp::McpSettings,
};

#[derive(Debug, clap::Args)]
pub(super) struct ListArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Only this module; tools without one are in `local`
    #[arg(long, value_name = "M")]
    module: Option<String>,
    /// Only these tools, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    allowed: Option<Vec<String>>,
    /// Only tools with all of these words in their name, tags, title or description, best match first, as far as the level may use
    /// them
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only tools with this tag; repeat it for tools with all of several tags
    #[arg(long, value_name = "T")]
    tag: Vec<String>,
    /// Print the definitions of the ready tools in a provider's format. What the format cannot express is reported on standard error
    #[arg(long, value_name = "PROVIDER", conflicts_with = "json", value_parser = provider())]
    format: Option<Provider>,
    /// Use strict schemas if the provider has them
    #[arg(long, requires = "format")]
    strict: bool,
    #[command(flatten)]
    pub(super) caller: CallerArguments,
}

/// Reads the name of a provider; the help lists them.
fn provider() -> impl TypedValueParser<Value = Provider> {
    PossibleValuesParser::new(Provider::ALL.iter().map(|provider| provider.name()))
        .try_map(|name| name.parse::<Provider>())
}

impl ListArguments {
    /// The search, if there is one.
    fn query(&self) -> Option<Query> {
        let text = self.search.clone().unwrap_or_default();
        let tags: Vec<String> = self.tag.iter().filter(|tag| !tag.is_empty()).cloned().collect();
        let is_asked_for = !text.trim().is_empty() || !tags.is_empty();
        is_asked_for.then_some(Query { tags, include_disabled: true, ..Query::text(text) })
    }
}

pub(super) fn list(
    arguments: &ListArguments,
    caller: Caller,
    registry: &Registry,
    mcp: &McpSettings,
) -> Result<ExitCode, String> {
    let context = registry.context(caller);
    if let Some(module) = &arguments.module
        && !registry.has_source(module)
        && !registry.list_all(true).iter().any(|tool| tool.module() == module)
    {
        return Err(format!("there is no module `{module}`"));
    }
    for name in arguments.allowed.iter().flatten().filter(|name| registry.get(name).is_none()) {
        tell(format_args!("warning: there is no tool `{name}`"));
    }
    let query = arguments.query();
    let found: Option<BTreeSet<String>> = query
        .as_ref()
        .map(|query| registry.search(query, &context).iter().map(|tool| tool.name().to_owned()).collect());
    let is_asked_for = |name: &str, module: &str| {
        found.as_ref().is_none_or(|found| found.contains(name))
            && arguments.module.as_ref().is_none_or(|asked| asked == module)
            && arguments.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|allowed| allowed == name))
    };
    if let Some(provider) = arguments.format {
        let selection = registry.select(&context);
        let tools = selection.tools().iter().map(AsRef::as_ref);
        let tools = tools.filter(|tool: &&Tool| is_asked_for(tool.name(), tool.module()));
        let definer = definer(provider, arguments.strict, registry, mcp);
        return print_definitions(&definer.definitions(tools.map(subject)));
    }
    let mut rows = match &query {
        Some(query) => listing::found(registry, &context, query),
        None => listing::rows(registry, &context, arguments.caller.is_configured_user()),
    };
    rows.retain(|row| is_asked_for(&row.name, &row.module));
    if arguments.json {
        print_line(serde_json::to_string_pretty(&rows).map_err(|error| error.to_string())?)?;
    } else {
        print_line(table(&rows, width()))?;
        print_line(format_args!("\n{}", total(&rows)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the definitions, and on standard error what they lose.
fn print_definitions(definitions: &Definitions) -> Result<ExitCode, String> {
    for loss in &definitions.losses {
        tell(loss);
    }
    for left_out in &definitions.left_out {
        tell(left_out);
    }
    print_line(serde_json::to_string_pretty(&definitions.list).map_err(|error| error.to_string())?)?;
    Ok(ExitCode::SUCCESS)
}

/// How many there are, and their tokens in a prompt.
fn total(rows: &[Row]) -> String {
    let tools = count(rows.len(), "tool");
    let enabled = || rows.iter().filter(|row| row.enabled);
    let tokens =
        |deferred| -> usize { enabled().filter(|row| row.deferred == deferred).map(|row| row.tokens).sum() };
    let total = format!("{tools}, {} ready, about {} tokens in a prompt", enabled().count(), tokens(false));
    match tokens(true) {
        0 => total,
        deferred => format!("{total}, {deferred} deferred"),
    }
}

/// One line for each tool, and below the table the reasons of those that are off. The columns FROM, and READS and SENDS, are left out if they do not fit.
fn table(rows: &[Row], width: usize) -> String {
    let word = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let cells = |row: &Row| {
        let version = row.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        let ready = match (row.enabled, row.deferred) {
            (true, true) => "yes, deferred",
            (true, false) => "yes",
            (false, _) => "no",
        };
        let source = match &row.replaces {
            Some(replaced) => format!("{}, in place of {replaced}", row.source),
            None => row.source.clone(),
        };
        [
            format!("{}{version}", row.name),
            row.level.clone(),
            row.effect.to_owned(),
            row.tokens.to_string(),
            ready.to_owned(),
            word(&row.reads.to_string()),
            word(if row.sends == Sends::Outside { Sends::Outside.as_str() } else { "" }),
            source,
        ]
        .map(|cell| one_line(&cell))
    };
    let lines = |columns: usize| {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let header = ["NAME", "LEVEL", "EFFECT", "TOKENS", "READY", "READS", "SENDS", "FROM"];
        table.set_header(header.into_iter().take(columns));
        table.add_rows(rows.iter().map(|row| cells(row).into_iter().take(columns)));
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<String>>()
    };
    let fits = |table: &Vec<String>| table.iter().all(|line| line.chars().count() <= width);
    let table = [8, 7].into_iter().map(lines).find(fits).unwrap_or_else(|| lines(5));
    let deprecated =
        rows.iter().filter_map(|row| Some((row, format!("deprecated: {}", row.deprecated.as_ref()?))));
    let off = rows.iter().filter_map(|row| Some((row, row.reason.clone()?)));
    // Several tools are often off for one reason.
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for (row, reason) in off.chain(deprecated) {
        let name = one_line(&row.name);
        let reason = reason
            .strip_prefix(&format!("{} was refused: ", row.name))
            .map(one_line)
            .unwrap_or(one_line(&reason));
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    let reasons = reasons.iter().map(|(reason, names)| format!("{}: {reason}", names.join(", ")));
    let blank = (!rows.iter().all(|row| row.reason.is_none() && row.deprecated.is_none())).then(String::new);
    table.into_iter().chain(blank).chain(reasons).collect::<Vec<_>>().join("\n")
}

/// The width of the terminal; unlimited for a file or a pipe.
fn width() -> usize {
    let columns = std::io::stdout().is_terminal().then(|| Table::new().width()).flatten();
    columns.map_or(usize::MAX, usize::from)
}

#[cfg(test)]
mod tests {
    use registry_core::{Caller, Permission, ToolPolicy, ToolSpec};

    use super::*;

    #[test]
    fn u11_a_tool_has_one_line_of_80_columns_and_reasons_stand_below() {
        let registry = Registry::builder().without_compiled().build().unwrap();
        for name in ["file_manager.create_document", "scheduler.add_job", "scheduler.list_jobs"] {
            let spec =
                ToolSpec { version: Some("1.0.0".to_owned()), ..ToolSpec::new(name, serde_json::json!({})) };
            let policy = ToolPolicy { permission: Permission::Admin, ..ToolPolicy::new() };
            registry.register(spec, policy, None).unwrap();
        }
        let context = registry.context(Caller::new("ada", Permission::User));
        let rows = listing::rows(&registry, &context, true);
        let table = table(&rows, 80);
        let (lines, reasons) = table.split_once("\n\n").unwrap();
        assert_eq!(lines.lines().count(), 4, "{table}");
        assert!(lines.lines().all(|line| line.chars().count() <= 80), "{table}");
        for row in &rows {
            assert_eq!(lines.lines().filter(|line| line.starts_with(&row.name)).count(), 1, "{table}");
        }
        // One reason of several tools is said once.
        assert_eq!(reasons.lines().count(), 1, "{table}");
        assert!(reasons.contains("scheduler.add_job, scheduler.list_jobs: "), "{table}");
    }
}
