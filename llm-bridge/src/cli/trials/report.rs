//! What was seen, as a table and as JSON.

use std::{collections::BTreeMap, io::IsTerminal};

use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Width, presets};
use registry_core::Example;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{ask::Answer, compare::Difference, last::Seen};
use crate::cli::{
    out::{count, print_line, table},
    terminal::one_line,
};

/// The width where standard output is not a terminal.
const WIDTH: u16 = 100;

/// All that was seen.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The model's name.
    pub(super) model: String,
    /// Its server.
    server: String,
    /// How many tools it could choose from.
    tools: usize,
    /// How often each question was asked.
    pub(super) tries: u32,
    #[serde(rename = "examples")]
    pub(super) rows: Vec<Row>,
    /// The tools that cannot be tried.
    pub(super) without_examples: Vec<String>,
    /// Those with examples that the caller cannot use.
    pub(super) not_tried: Vec<NotTried>,
}

/// A tool with examples that the caller cannot use.
#[derive(Debug, Serialize)]
pub(super) struct NotTried {
    pub(super) tool: String,
    pub(super) reason: String,
}

/// What came of one example.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) tool: String,
    pub(super) question: String,
    /// The arguments that are expected.
    pub(super) expected: Value,
    pub(super) tries: u32,
    /// How often the tool was called.
    pub(super) chosen: u32,
    /// How often it was called as expected.
    pub(super) right: u32,
    /// Other tools that were called, and how often.
    pub(super) instead: BTreeMap<String, u32>,
    /// How often no tool was called.
    pub(super) no_call: u32,
    /// Arguments that were not as expected, and how often.
    #[serde(serialize_with = "as_list")]
    pub(super) differences: BTreeMap<Difference, u32>,
    /// Errors of calls whose arguments the tool does not take, and how often.
    pub(super) invalid: BTreeMap<String, u32>,
    /// Failures of the model, and how often.
    pub(super) failures: BTreeMap<String, u32>,
    /// What to change.
    pub(super) advice: Vec<String>,
    /// The last run of the same model.
    pub(super) before: Option<Seen>,
}

fn as_list<S: Serializer>(differences: &BTreeMap<Difference, u32>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Counted<'d> {
        #[serde(flatten)]
        difference: &'d Difference,
        times: u32,
    }
    serializer
        .collect_seq(differences.iter().map(|(difference, times)| Counted { difference, times: *times }))
}

impl Report {
    pub(super) fn new(server: String, tools: usize, tries: u32) -> Self {
        let (model, rows, without_examples, not_tried) = Default::default();
        Self { model, server, tools, tries, rows, without_examples, not_tried }
    }
}

impl Row {
    pub(super) fn new(tool: &str, example: &Example) -> Self {
        Self {
            tool: tool.to_owned(),
            question: example.question.clone(),
            expected: example.arguments.clone(),
            tries: 0,
            chosen: 0,
            right: 0,
            instead: BTreeMap::new(),
            no_call: 0,
            differences: BTreeMap::new(),
            invalid: BTreeMap::new(),
            failures: BTreeMap::new(),
            advice: Vec::new(),
            before: None,
        }
    }

    pub(super) fn add(&mut self, answer: Answer) {
        self.tries += 1;
        let note = |seen: &mut BTreeMap<String, u32>, what: String| *seen.entry(what).or_default() += 1;
        match answer {
            Answer::Called(differences) => {
                self.chosen += 1;
                self.right += u32::from(differences.is_empty());
                differences.into_iter().for_each(|one| *self.differences.entry(one).or_default() += 1);
            }
            Answer::Invalid(error) => {
                self.chosen += 1;
                note(&mut self.invalid, error);
            }
            Answer::Other(tool) => note(&mut self.instead, tool),
            Answer::NoCall => self.no_call += 1,
            Answer::Failed(why) => note(&mut self.failures, why),
        }
    }

    /// What was done in place of calling the tool.
    fn otherwise(&self) -> String {
        let none = (self.no_call > 0).then(|| ("no call".to_owned(), self.no_call));
        let failed: u32 = self.failures.values().sum();
        let failed = (failed > 0).then(|| ("no answer".to_owned(), failed));
        let others = self.instead.iter().map(|(tool, times)| (tool.clone(), *times));
        let all = others.chain(none).chain(failed).map(|(what, times)| format!("{what} {times}"));
        all.collect::<Vec<_>>().join(", ")
    }
}

/// Prints the table, and what to change.
pub(super) fn print(report: &Report) -> Result<(), String> {
    let (model, server) = (one_line(&report.model), one_line(&report.server));
    let offered = count(report.tools, "tool");
    let tries = count(usize::try_from(report.tries).unwrap_or(usize::MAX), "try");
    let tries = tries.replace("trys", "tries");
    print_line(format_args!("{model} at {server}, {offered} offered, {tries} of each question"))?;
    print_line(rows(report))?;
    for row in report.rows.iter().filter(|row| !row.advice.is_empty()) {
        print_line(format_args!("{}: {}", one_line(&row.tool), one_line(&row.question)))?;
        for advice in &row.advice {
            print_line(format_args!("  - {}", one_line(advice)))?;
        }
    }
    if !report.without_examples.is_empty() {
        print_line(format_args!("Without an example: {}", one_line(&report.without_examples.join(", "))))?;
    }
    Ok(())
}

fn rows(report: &Report) -> comfy_table::Table {
    let mut table = table(["tool", "question", "chosen", "right", "otherwise"]);
    table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_width(WIDTH);
        table.force_no_tty();
    }
    for row in &report.rows {
        let seen = |now: u32, before: Option<u32>| {
            let change = match before.filter(|before| *before != now) {
                Some(before) => format!(" (was {before})"),
                None => String::new(),
            };
            format!("{now} of {}{change}", row.tries)
        };
        // Runs of other lengths are no comparison.
        let before = row.before.filter(|before| before.tries == row.tries);
        table.add_row([
            one_line(&row.tool),
            one_line(&row.question),
            seen(row.chosen, before.map(|before| before.chosen)),
            seen(row.right, before.map(|before| before.right)),
            one_line(&row.otherwise()),
        ]);
    }
    for at in [2, 3] {
        if let Some(column) = table.column_mut(at) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(8)));
        }
    }
    table
}
