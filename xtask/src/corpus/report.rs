//! The tables, and what is wrong.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    case::{Call, Case, Expected},
    compare::{Verdict, compare},
    exceptions::{Exceptions, Kind},
    read::Reading,
};

/// So many characters of a text are shown.
const SHOWN: usize = 100;

/// The report of the cases that are scored, and whether all is as it is to be.
pub(super) fn scored(
    cases: &[Case],
    readings: &[Reading],
    listed: &Exceptions,
    verbose: bool,
) -> (String, bool) {
    let mut text = String::new();
    let mut tables = Tables::default();
    let (mut wrong, mut right_after_all) = (0, Vec::new());
    let (mut ours, mut theirs) = (0, 0);
    for (case, reading) in cases.iter().zip(readings) {
        let (verdict, expected) = best(case, reading);
        tables.count(case, verdict);
        match (verdict.right(), listed.get(&case.id)) {
            (true, None) => {}
            (true, Some(_)) => right_after_all.push(&case.id),
            (false, Some(Kind::Ours)) => ours += 1,
            (false, Some(Kind::Wrong)) => theirs += 1,
            (false, None) => {
                wrong += 1;
                describe(&mut text, case, reading, verdict, expected, verbose);
            }
        }
    }
    for id in &right_after_all {
        let _ = writeln!(text, "{id}\n  listed as an exception, but right");
    }
    let not_here = listed.keys().filter(|id| !cases.iter().any(|case| case.id == **id)).count();
    let most = cases.len() / 100;
    let _ = writeln!(
        text,
        "\n{} of {} right, {wrong} wrong; exceptions: {ours} ours, {theirs} wrong (at most {most}){}",
        cases.len() - wrong - ours - theirs,
        cases.len(),
        if not_here == 0 { String::new() } else { format!(", {not_here} of cases that are not here") },
    );
    if theirs > most {
        let _ = writeln!(text, "more than 1 % of the cases are listed as wrong");
    }
    let good = wrong == 0 && right_after_all.is_empty() && theirs <= most;
    (format!("{}\n{text}", tables.print("scored")), good)
}

/// The report of the cases that are not scored.
pub(super) fn others(cases: &[Case], readings: &[Reading], verbose: bool) -> String {
    let mut text = String::new();
    let mut tables = Tables::default();
    let mut right = 0;
    for (case, reading) in cases.iter().zip(readings) {
        let (verdict, expected) = best(case, reading);
        tables.count(case, verdict);
        if verdict.right() {
            right += 1;
        } else {
            describe(&mut text, case, reading, verdict, expected, verbose);
        }
    }
    let _ = writeln!(text, "\n{right} of {} right that are not scored", cases.len());
    format!("{}\n{text}", tables.print("not scored"))
}

/// The verdict against the expectation that fits, or else against the case's own.
fn best<'c>(case: &'c Case, reading: &Reading) -> (Verdict, &'c Expected) {
    let judged = |expected| (compare(reading, expected), expected);
    let any = case.also.iter().map(judged).find(|(verdict, _)| verdict.right());
    let own = judged(&case.expect);
    if own.0.right() { own } else { any.unwrap_or(own) }
}

fn describe(
    text: &mut String,
    case: &Case,
    reading: &Reading,
    verdict: Verdict,
    expected: &Expected,
    verbose: bool,
) {
    let _ = writeln!(text, "{}", case.id);
    if !verdict.calls {
        let (ours, theirs) = (calls(&reading.calls), calls(&expected.calls));
        let _ = writeln!(text, "  calls: {}\n    not: {}", short(&ours), short(&theirs));
    }
    for (name, right, ours, theirs) in [
        ("content", verdict.content, &reading.content, &expected.content),
        ("reasoning", verdict.reasoning, &reading.reasoning, &expected.reasoning),
    ] {
        if right == Some(false) {
            let theirs = format!("{:?}", theirs.as_deref().unwrap_or_default());
            let _ = writeln!(text, "  {name}: {}\n    not: {}", short(&format!("{ours:?}")), short(&theirs));
        }
    }
    for (name, line) in &reading.differing {
        let _ = writeln!(text, "  {name} it is read otherwise");
        if verbose {
            let _ = writeln!(text, "    {line}");
        }
    }
    if verbose {
        let _ = writeln!(
            text,
            "  input: {:?}\n  read: {}\n  expected: {}",
            case.input, reading.source, expected.source
        );
    }
}

fn calls(calls: &[Call]) -> String {
    let one = |call: &Call| format!("{}({})", call.name, call.arguments.get());
    if calls.is_empty() { "none".into() } else { calls.iter().map(one).collect::<Vec<_>>().join(", ") }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// How many of how many are right.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    right: usize,
    all: usize,
}

impl Share {
    fn count(&mut self, right: Option<bool>) {
        if let Some(right) = right {
            self.right += usize::from(right);
            self.all += 1;
        }
    }
}

const COLUMNS: [&str; 5] = ["cases", "calls", "content", "reasoning", "pieces"];

/// The rows of a table by suite and dialect.
#[derive(Debug, Default)]
struct Tables {
    rows: BTreeMap<(String, String), [Share; COLUMNS.len()]>,
}

impl Tables {
    fn count(&mut self, case: &Case, verdict: Verdict) {
        let columns = [
            Some(verdict.right()),
            Some(verdict.calls),
            verdict.content,
            verdict.reasoning,
            Some(verdict.pieces),
        ];
        let all = [(case.suite.as_str(), case.dialect.as_str()), (case.suite.as_str(), ALL), (ALL, ALL)];
        for (suite, dialect) in all {
            let row = self.rows.entry((suite.to_owned(), dialect.to_owned())).or_default();
            row.iter_mut().zip(columns).for_each(|(share, right)| share.count(right));
        }
    }

    fn print(&self, title: &str) -> String {
        let mut text = format!("{title:<14}{:<22}", "");
        COLUMNS.iter().for_each(|column| text.push_str(&format!("{column:>12}")));
        for ((suite, dialect), shares) in &self.rows {
            let _ = write!(text, "\n{suite:<14}{dialect:<22}");
            for share in shares {
                let _ = write!(text, "{:>12}", format!("{}/{}", share.right, share.all));
            }
        }
        text.push('\n');
        text
    }
}

/// Stands behind all names in the order of the rows.
const ALL: &str = "~ all";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_depends_on_the_pieces_is_wrong() {
        let expect = Expected {
            source: "{}".into(),
            calls: Vec::new(),
            content: Some("text".into()),
            reasoning: Some(String::new()),
        };
        let case = Case {
            suite: "suite".into(),
            id: "id".into(),
            dialect: "dialect".into(),
            input: "text".into(),
            tools: "null".into(),
            thinking: false,
            scored: true,
            expect,
            also: Vec::new(),
        };
        let reading = |differing: &[(&'static str, String)]| Reading {
            source: "{}".into(),
            content: "text".into(),
            reasoning: String::new(),
            calls: Vec::new(),
            offsets: Vec::new(),
            differing: differing.to_vec(),
        };
        let differing = [("in pieces of 3", "{}".to_owned())];
        let report =
            |differing| scored(std::slice::from_ref(&case), &[reading(differing)], &Exceptions::new(), false);
        assert!(report(&[]).1);
        let (text, good) = report(&differing);
        assert!(!good && text.contains("id\n  in pieces of 3 it is read otherwise\n"), "{text}");
    }
}
