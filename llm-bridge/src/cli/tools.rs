//! `toolrack tools list` and `check`.

use std::{collections::BTreeSet, io::IsTerminal, process::ExitCode};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use comfy_table::{Table, presets};
use registry_core::{Caller, Permission, Query, Registry, Tool};
use serde_json::Value;
use toolrack_apis::{Definer, Definitions, Provider};

use super::{
    Settings,
    caller::CallerArguments,
    names::Known,
    out::{count, print_line, tell},
    terminal::one_line,
};
use crate::{
    definition::subject,
    listing::{self, Row},
    mcp::{self, McpSettings},
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
    mcp: McpSettings,
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
        let definer = Definer::new(provider);
        let definer = if arguments.strict { definer.strict() } else { definer };
        let definer = match provider {
            Provider::Mcp => definer.with_names(mcp::names(registry, mcp)),
            _ => definer,
        };
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

/// One line for each tool, and below the table the reasons of those that are off. The column FROM is left out if it does not fit.
fn table(rows: &[Row], width: usize) -> String {
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
            source,
        ]
        .map(|cell| one_line(&cell))
    };
    let lines = |columns: usize| {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["NAME", "LEVEL", "EFFECT", "TOKENS", "READY", "FROM"].into_iter().take(columns));
        table.add_rows(rows.iter().map(|row| cells(row).into_iter().take(columns)));
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<String>>()
    };
    let whole = lines(6);
    let fits = whole.iter().all(|line| line.chars().count() <= width);
    let table = if fits { whole } else { lines(5) };
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

#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    /// The limit of tokens for all definitions together
    #[arg(long, default_value_t = 8000, value_name = "TOKENS")]
    budget: usize,
}

/// Some providers refuse a longer description, in bytes.
const MAX_DESCRIPTION: usize = 1024;

pub(super) fn check(
    arguments: &CheckArguments,
    settings: &Settings,
    registry: &Registry,
) -> Result<ExitCode, String> {
    let context = registry.context(Caller::new("check", Permission::Owner));
    let mut rows = listing::rows(registry, &context, true);
    rows.retain(|row| registry.get(&row.name).is_some());
    let mut faults: Vec<String> = registry.duplicates().iter().map(ToString::to_string).collect();
    faults.extend(registry.faults().iter().map(ToString::to_string));
    for tool in registry.list_all(true) {
        faults.extend(tool.full_fault().map(|fault| format!("{} ({}): {fault}", tool.name(), tool.source())));
    }
    faults.extend(rows.iter().flat_map(faults_of));
    let tokens: usize = rows.iter().filter(|row| !row.deferred).map(|row| row.tokens).sum();
    if tokens > arguments.budget {
        faults.push(format!(
            "all definitions take about {tokens} tokens, which is over the budget of {}; shorten descriptions, defer tools or switch them off",
            arguments.budget
        ));
    }
    for fault in &faults {
        print_line(fault)?;
    }
    for reported in Known::new(settings, registry).unknown_in(settings) {
        tell(format_args!("warning: {reported}"));
    }
    let reported = rows.iter().filter(|row| row.enabled && !row.deferred).count();
    if let Some(most) = Provider::OpenAi.max_tools().filter(|most| reported > *most) {
        // Local servers have no such limit, so this is not an error.
        tell(format_args!(
            "warning: {reported} tools go with every request, of which the API of OpenAI takes {most}; defer tools or switch them off"
        ));
    }
    let (tools, found) = (count(rows.len(), "tool"), count(faults.len(), "fault"));
    print_line(format_args!("{tools}, {found}, about {tokens} tokens of {}", arguments.budget))?;
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Many builds of llama.cpp refuse a `maxLength` from here on, because they unroll it in the grammar of the arguments.
const LENGTH_REFUSED: u64 = 2000;

/// Every `maxLength` in a schema, with its path.
fn longest_texts(schema: &Value, place: &str) -> Vec<(String, u64)> {
    let own = schema.get("maxLength").and_then(Value::as_u64).map(|length| (place.to_owned(), length));
    let fields = schema.as_object().into_iter().flatten();
    // The value of a keyword such as `default` is not a schema; one that looks like it is not worth distinguishing.
    let inside = fields.flat_map(|(name, part)| {
        let keyword = matches!(name.as_str(), "properties" | "items" | "anyOf" | "oneOf" | "allOf");
        let place = match (keyword, place.is_empty()) {
            (true, _) => place.to_owned(),
            (false, true) => name.clone(),
            (false, false) => format!("{place}.{name}"),
        };
        longest_texts(part, &place)
    });
    let items = schema.as_array().into_iter().flatten().flat_map(|part| longest_texts(part, place));
    own.into_iter().chain(inside).chain(items).collect()
}

/// Faults that the compiler does not find.
fn faults_of(row: &Row) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |what: String| faults.push(format!("{} ({}): {what}", row.name, row.source));
    let own_name = row.name.rsplit('.').next().unwrap_or(&row.name);
    let file = row.source.rsplit_once(':').map_or(row.source.as_str(), |(file, _)| file);
    let stem = std::path::Path::new(file).file_stem().and_then(|stem| stem.to_str());
    if file.ends_with(".rs") && stem != Some(own_name) {
        fault(format!("the file should be named after its tool: {own_name}.rs"));
    }
    if row.name.len() > 64 {
        fault(format!("the name has {} characters; providers take 64", row.name.len()));
    }
    if row.description.len() > MAX_DESCRIPTION {
        let length = row.description.len();
        fault(format!("the description has {length} bytes; providers take {MAX_DESCRIPTION}"));
    }
    let long = longest_texts(&row.parameters, "");
    for (place, length) in long.into_iter().filter(|(_, length)| *length >= LENGTH_REFUSED) {
        fault(format!(
            "`{place}` has a `maxLength` of {length}; for {LENGTH_REFUSED} or more some llama.cpp servers refuse a request with \
             all its tools: leave it out and check the length in the function"
        ));
    }
    let properties = row.parameters.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let described = property.get("description").and_then(Value::as_str);
        if described.is_none_or(str::is_empty) {
            fault(format!("the parameter `{name}` has no description"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use registry_core::{Caller, ToolPolicy, ToolSpec};

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
