//! `toolrack try`: how often the model chooses a tool for its examples, and fills in the arguments as expected.

mod advice;
mod ask;
mod compare;
mod last;
mod report;
mod served;
mod stand_in;

use std::{process::ExitCode, sync::Arc, time::Duration};

use registry_core::{Caller, Registry, Tool, nearest};

use super::{
    Settings,
    caller::CallerArguments,
    names::as_registered,
    out::{count, print_line, tell},
    progress::progress,
    stopped_by_ctrl_c,
};
use crate::upstream::Upstream;
use ask::Model;
use report::{NotTried, Report, Row};
pub(super) use served::ServedTrials;

/// How long an answer may take where nothing else is said.
const PATIENCE_SECONDS: u64 = 120;
/// What to do about a tool without examples.
const HOW_TO_GIVE: &str =
    "give it one: #[tool(example = \"What is the weather in Oslo?\" => {\"city\": \"Oslo\"})]";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Try these tools only [default: all that have examples]
    #[arg(value_name = "TOOL")]
    names: Vec<String>,
    /// How often each question is asked
    #[arg(long, short = 'n', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    tries: u32,
    /// Exit with status 1 if fewer of an example's calls are right, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    at_least: u32,
    /// How long an answer may take
    #[arg(long, value_name = "N", default_value_t = PATIENCE_SECONDS, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) caller: CallerArguments,
}

/// Asks each example's question with all tools that the caller may use, and prints what the model has called. No tool runs.
pub(super) async fn run(
    arguments: Arguments,
    caller: Caller,
    settings: &Settings,
    registry: &Registry,
) -> Result<ExitCode, String> {
    let selection = registry.select(&registry.context(caller.clone()));
    let (tools, not_tried) = chosen(&arguments.names, &caller, registry)?;
    let examples: usize = tools.iter().map(|tool| tool.examples().len()).sum();
    let upstream = settings.upstream().await?;
    if upstream.is_demo() {
        tell(
            "This is the built-in demo, which calls tools by the words of a question; connect a model server to see what a model does.",
        );
    }
    let mut report = Report::new(server_of(&upstream), selection.tools().len(), arguments.tries);
    report.not_tried = not_tried;
    if arguments.names.is_empty() {
        let without = selection.tools().iter().filter(|tool| tool.examples().is_empty());
        report.without_examples = without.map(|tool| tool.name().to_owned()).collect();
    }
    let patience = Duration::from_secs(arguments.seconds);
    let mut model = Model::new(&selection, upstream, settings.chat_settings(), caller, patience)?;
    let bar = progress(
        Some(examples * usize::try_from(arguments.tries).unwrap_or(1)),
        "{bar:20} {pos}/{len} {msg}",
    );
    let stop = stopped_by_ctrl_c();
    let asking = ask_all(&mut model, &tools, &mut report, |tool| {
        bar.set_message(tool.name().to_owned());
        bar.inc(1);
    });
    let asked = stop.run_until_cancelled(asking).await;
    bar.finish_and_clear();
    report.model = model.name;
    if let Some(Err(failure)) = asked {
        return Err(failure);
    }
    // The last run of this model is what the next one is compared with.
    match last::compare_and_keep(&settings.data_dir, &mut report) {
        Ok(()) => {}
        Err(fault) => tell(format_args!("warning: {fault}")),
    }
    if arguments.json {
        print_line(serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?)?;
    } else {
        report::print(&report)?;
    }
    let failed = report.rows.iter().filter(|row| row.right * 100 < row.tries * arguments.at_least).count();
    if failed > 0 {
        tell(format_args!(
            "{} of {} right in less than {} % of the tries",
            failed,
            count(report.rows.len(), "example"),
            arguments.at_least
        ));
    }
    let is_whole = asked.is_some() && failed == 0;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn server_of(upstream: &Upstream) -> String {
    if upstream.is_demo() { "no server".to_owned() } else { upstream.address() }
}

/// Asks each question of the tools' examples, as often as the report says, and adds a row to it for each.
///
/// # Errors
/// When the model server does not answer at all.
async fn ask_all(
    model: &mut Model,
    tools: &[Arc<Tool>],
    report: &mut Report,
    on_answer: impl Fn(&Tool),
) -> Result<(), String> {
    for tool in tools {
        for example in tool.examples() {
            let mut row = Row::new(tool.name(), example);
            for _ in 0..report.tries {
                row.add(model.ask(tool.name(), example).await?);
                on_answer(tool);
            }
            row.advice = advice::advice(&row, tool);
            report.rows.push(row);
        }
    }
    Ok(())
}

/// The tools to try: the named ones, or all with examples that the caller may use; and those that the caller may not.
fn chosen(
    names: &[String],
    caller: &Caller,
    registry: &Registry,
) -> Result<(Vec<Arc<Tool>>, Vec<NotTried>), String> {
    let context = registry.context(caller.clone());
    let refusal = |tool: &Tool| registry.why_not(tool, &context).map(|error| error.message().to_owned());
    if names.is_empty() {
        let mut tools = registry.list_all(false);
        tools.retain(|tool| !tool.examples().is_empty());
        if tools.is_empty() {
            return Err(format!("no tool has an example; {HOW_TO_GIVE}"));
        }
        let mut not_tried = Vec::new();
        tools.retain(|tool| match refusal(tool) {
            Some(reason) => {
                tell(format_args!("not tried: {reason}"));
                not_tried.push(NotTried { tool: tool.name().to_owned(), reason });
                false
            }
            None => true,
        });
        return if tools.is_empty() {
            Err("no tool with an example can be used".to_owned())
        } else {
            Ok((tools, not_tried))
        };
    }
    let found = names.iter().map(|name| {
        let name = as_registered(registry, name.clone());
        let Some(tool) = registry.get(&name) else {
            let tools = registry.list_all(true);
            return Err(match nearest(&name, tools.iter().map(|tool| tool.name())).first() {
                Some(nearest) => format!("there is no tool `{name}`; did you mean `{nearest}`?"),
                None => format!("there is no tool `{name}`; see `toolrack tools list`"),
            });
        };
        match refusal(&tool) {
            Some(why) => Err(why),
            None if tool.examples().is_empty() => Err(format!("{name} has no example; {HOW_TO_GIVE}")),
            None => Ok(tool),
        }
    });
    Ok((found.collect::<Result<_, _>>()?, Vec::new()))
}
