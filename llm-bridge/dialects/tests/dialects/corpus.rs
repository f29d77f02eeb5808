//! Scores the scanner against cases of other projects' test suites: B1. Also run by `examples/corpus.rs`.
//!
//! Each case is scanned whole and in pieces, without naming its dialect. It passes if every cutting gives the same
//! events, no byte is lost, and calls, content and reasoning are the expected ones. A listed exception passes if it
//! fails in exactly the way that is pinned in the list.

use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use toolrack_dialects::{Offered, ScanOptions};

use crate::common::{Dice, Seen, every, offered, rebuilt, same, scan};

/// The cases that are known to fail, in the data of these tests: of those that are asserted, and of the others.
pub const LISTS: [&str; 2] = ["corpus_exceptions.jsonl", "corpus_others.jsonl"];
/// The most exceptions there may be where this project decides otherwise.
const MAX_OURS: usize = 117;
/// The share of cases that may be listed as wrong, in percent.
const MAX_WRONG: usize = 1;
/// Columns of the score.
const COLUMNS: [&str; 5] = ["cases", "calls", "content", "reasoning", "pieces"];

/// A line of a file of cases; `docs/testing.md` describes the fields.
#[derive(Debug, Deserialize)]
pub struct Case {
    #[serde(skip)]
    suite: String,
    pub id: String,
    pub dialect: String,
    pub input: String,
    pub tools: Option<Vec<BTreeMap<String, Value>>>,
    #[serde(default)]
    pub thinking: bool,
    strength: Strength,
    #[serde(default)]
    disputed: bool,
    pub expect: Expected,
    #[serde(default)]
    also: Vec<Expected>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Strength {
    Asserted,
    Observed,
}

/// What a case expects; null is not compared.
#[derive(Debug, Clone, Deserialize)]
pub struct Expected {
    pub calls: Vec<Call>,
    pub content: Option<String>,
    pub reasoning: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    // One project expects a call without a name.
    pub name: Option<String>,
    pub arguments: Box<RawValue>,
}

/// A case that is known to fail, and what the scanner finds in it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    pub id: String,
    kind: Kind,
    reason: String,
    #[serde(default)]
    pub found: Option<Found>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// The case contradicts a decision of this project.
    Ours,
    /// The case itself is wrong.
    Wrong,
}

/// What the scanner finds in a case.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    pub calls: Vec<Call>,
    /// The text before, between and after the calls.
    pub pieces: Vec<String>,
    pub reasoning: String,
    /// What depends on the cutting, or has been lost.
    #[serde(skip)]
    pub faults: Vec<String>,
}

impl Found {
    fn content(&self) -> String {
        self.pieces.concat()
    }

    /// As it is pinned in the list of exceptions.
    pub fn pinned(&self) -> String {
        serde_json::to_string(self).unwrap()
    }
}

/// The cases of every `.jsonl` file of a folder; faulty lines are errors with their place.
pub fn read_cases(folder: &Path) -> Result<Vec<Case>, String> {
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let suite = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for case in read_lines::<Case>(&file)? {
            cases.push(Case { suite: suite.clone(), ..case });
        }
    }
    if cases.is_empty() { Err(format!("{} holds no cases", folder.display())) } else { Ok(cases) }
}

/// The list of exceptions; an id that is listed twice is an error.
pub fn read_exceptions(file: &Path) -> Result<Vec<Exception>, String> {
    let exceptions: Vec<Exception> = read_lines(file)?;
    let mut ids: Vec<&str> = exceptions.iter().map(|exception| exception.id.as_str()).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("{}: `{}` is listed twice", file.display(), pair[0])),
        None => Ok(exceptions),
    }
}

fn read_lines<T: for<'t> Deserialize<'t>>(file: &Path) -> Result<Vec<T>, String> {
    let text =
        fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let read = |(number, line)| {
        serde_json::from_str(line).map_err(|error| format!("{}:{number}: {error}", file.display()))
    };
    lines.map(read).collect()
}

/// Scans a case in all cuttings.
pub fn find(case: &Case) -> Found {
    let tools = case.tools.as_ref().map_or_else(
        || Offered::any().into(),
        |tools| offered(&Value::from_iter(tools.iter().map(|tool| Value::from_iter(tool.clone())))),
    );
    let options = ScanOptions::default().thinking(case.thinking);
    let whole = scan(&case.input, &[], &tools, &options);
    let mut found = Found { pieces: vec![String::new()], ..Found::default() };
    for (name, cuts) in cuttings(&case.id, &case.input) {
        let seen = scan(&case.input, &cuts, &tools, &options);
        if seen != whole {
            found.faults.push(format!("{name} it gives other events: {seen:?}"));
        }
    }
    if rebuilt(&whole) != case.input {
        found.faults.push(format!("bytes are lost: {:?}", rebuilt(&whole)));
    }
    for event in whole {
        match event {
            Seen::Text(text) => found.pieces.last_mut().unwrap().push_str(&text),
            Seen::Reasoning(text) => found.reasoning.push_str(&text),
            Seen::Call(call) => {
                // A line end in JSON stands between its tokens only.
                let arguments = call.arguments.replace(['\n', '\r'], " ");
                let arguments = RawValue::from_string(arguments).unwrap();
                found.calls.push(Call { name: Some(call.name), arguments });
                found.pieces.push(String::new());
            }
            _ => {}
        }
    }
    found
}

/// The ways in which a case is cut, besides leaving it whole. Random ones are the same in every run.
fn cuttings(id: &str, input: &str) -> [(&'static str, Vec<usize>); 5] {
    // FNV-1a: ids that differ a little begin far apart.
    let seed = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut dice = Dice(seed.max(1));
    let mut random = |largest| {
        let mut next = 0;
        let mut cuts = Vec::new();
        for (number, (at, _)) in input.char_indices().enumerate() {
            if number == next {
                cuts.push(at);
                next += 1 + dice.roll(largest);
            }
        }
        cuts
    };
    [
        ("in pieces of 1", every(input, 1)),
        ("in pieces of 3", every(input, 3)),
        ("in pieces of 7", every(input, 7)),
        ("in small pieces", random(5)),
        ("in large pieces", random(60)),
    ]
}

/// For each column of the score whether it is right, or nothing where the case leaves it open.
type Verdict = [Option<bool>; 5];

fn judge(found: &Found, expected: &Expected) -> Verdict {
    let calls = same_calls(&found.calls, &expected.calls);
    let content = expected.content.as_deref().map(|content| content_fits(found, content));
    let reasoning = expected.reasoning.as_deref().map(|text| text.trim() == found.reasoning.trim());
    let pieces = found.faults.is_empty();
    let all = calls && content != Some(false) && reasoning != Some(false) && pieces;
    [Some(all), Some(calls), content, reasoning, Some(pieces)]
}

fn same_calls(one: &[Call], two: &[Call]) -> bool {
    let name = |call: &Call| call.name.clone().unwrap_or_default();
    one.len() == two.len()
        && one
            .iter()
            .zip(two)
            .all(|(one, two)| name(one) == name(two) && same_json(one.arguments.get(), two.arguments.get()))
}

/// Equal as values; whole numbers are compared by their digits, which may be more than a machine's.
fn same_json(one: &str, two: &str) -> bool {
    let digits = |text: &str| {
        let parts = text.split(|char: char| !char.is_ascii_digit());
        let mut numbers: Vec<_> = parts.filter(|part| part.len() > 15).map(str::to_owned).collect();
        numbers.sort();
        numbers
    };
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    same(&read(one), &read(two)) && digits(one) == digits(two)
}

/// The same text, runs of white space aside. Some parsers drop the text beside calls: where there are calls, whole
/// pieces of ours may be missing, but none that looks like a part of a call that has leaked.
fn content_fits(found: &Found, expected: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = words(expected);
    if words(&found.content()) == expected {
        return true;
    }
    if found.calls.is_empty() {
        return false;
    }
    // How far the expected text can be made up of the pieces so far.
    let mut reached = vec![0];
    for piece in &found.pieces {
        let piece = words(piece);
        let mut next = if leaked(&piece, &found.calls) { Vec::new() } else { reached.clone() };
        for place in reached {
            let rest = expected[place..].trim_start();
            if rest.starts_with(&piece) {
                next.push(expected.len() - rest.len() + piece.len());
            }
        }
        next.sort_unstable();
        next.dedup();
        reached = next;
    }
    reached.contains(&expected.len())
}

/// Whether a piece of text holds what delimiters and bodies of calls are made of, or the name of a call.
fn leaked(piece: &str, calls: &[Call]) -> bool {
    piece.contains(['<', '>', '[', ']', '{', '}', '|', '｜'])
        || piece.contains("```")
        || calls.iter().any(|call| call.name.as_ref().is_some_and(|name| piece.contains(name)))
}

/// The score of a set of cases.
#[derive(Debug)]
pub struct Score {
    /// The right and the compared cases of each column, by suite and dialect.
    rows: BTreeMap<(String, String), [(usize, usize); 5]>,
    /// What is wrong, with the case's id first.
    pub faults: Vec<String>,
    pub summary: String,
}

impl Score {
    /// The table, what is wrong, and a summary.
    pub fn print(&self) -> String {
        let mut text = format!("{:<14}{:<20}", "suite", "dialect");
        COLUMNS.iter().for_each(|column| _ = write!(text, "{column:>12}"));
        for ((suite, dialect), row) in &self.rows {
            let _ = write!(text, "\n{suite:<14}{dialect:<20}");
            row.iter().for_each(|(right, of)| _ = write!(text, "{:>12}", format!("{right}/{of}")));
        }
        let faults: String = self.faults.iter().map(|fault| format!("\n{fault}")).collect();
        format!("{text}\n{faults}\n{}\n", self.summary)
    }

    /// Right and compared cases of all suites, for each column.
    pub fn total(&self) -> [(usize, usize); 5] {
        self.rows.get(&("~ all".to_owned(), "~ all".to_owned())).copied().unwrap_or_default()
    }
}

/// Scores the cases that other projects assert without dispute, or else (`observed`) the others, where any of the
/// readings of a disputed case is right.
pub fn score(cases: &[Case], exceptions: &[Exception], observed: bool) -> Score {
    let mut score = Score { rows: BTreeMap::new(), faults: Vec::new(), summary: String::new() };
    let scored = |case: &&Case| (case.strength == Strength::Asserted && !case.disputed) != observed;
    let (mut count, mut right, mut ours, mut wrong) = (0, 0, 0, 0);
    for case in cases.iter().filter(scored) {
        let found = find(case);
        let readings = [&case.expect].into_iter().chain(case.also.iter().filter(|_| observed));
        let verdicts: Vec<Verdict> = readings.map(|expected| judge(&found, expected)).collect();
        let verdict = verdicts.iter().find(|verdict| verdict[0] == Some(true)).unwrap_or(&verdicts[0]);
        for key in [[case.suite.as_str(), &case.dialect], [&case.suite, "~ all"], ["~ all", "~ all"]] {
            let row = score.rows.entry((key[0].to_owned(), key[1].to_owned())).or_default();
            for (cell, verdict) in row.iter_mut().zip(verdict) {
                *cell =
                    (cell.0 + usize::from(*verdict == Some(true)), cell.1 + usize::from(verdict.is_some()));
            }
        }
        count += 1;
        let exception = exceptions.iter().find(|exception| exception.id == case.id);
        match (verdict[0] == Some(true), exception) {
            (true, None) => right += 1,
            (true, Some(_)) => score.faults.push(format!("{}\n  listed as an exception, but right", case.id)),
            (false, Some(exception)) => {
                match exception.kind {
                    Kind::Ours => ours += 1,
                    Kind::Wrong => wrong += 1,
                }
                let pinned = exception.found.as_ref().map(Found::pinned).unwrap_or_default();
                if pinned != found.pinned() || !found.faults.is_empty() {
                    let (now, faults) = (found.pinned(), found.faults.join("\n  "));
                    score.faults.push(format!(
                        "{}\n  pinned: {pinned}\n  found: {now}\n  {faults}\n  input: {:?}",
                        case.id, case.input
                    ));
                }
            }
            (false, None) => score.faults.push(format!(
                "{}\n  found: {}\n  expected: {:?}\n  {}\n  input: {:?}",
                case.id,
                found.pinned(),
                case.expect,
                found.faults.join("\n  "),
                case.input
            )),
        }
    }
    score.summary = format!("{right} of {count} right; exceptions: {ours} ours, {wrong} wrong");
    if !observed && (ours > MAX_OURS || wrong * 100 > count * MAX_WRONG) {
        score
            .faults
            .push(format!("more exceptions than {MAX_OURS} ours and {MAX_WRONG} % wrong: {}", score.summary));
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::shared;

    fn data(path: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
    }

    /// Output that other projects' test suites hold, in a folder beside the project.
    #[test]
    fn b1_corpus() {
        let Some(folder) = shared("corpus/dialects") else { return };
        let cases = read_cases(&folder).unwrap();
        for (list, observed) in LISTS.into_iter().zip([false, true]) {
            let exceptions = read_exceptions(&data(list)).unwrap();
            let score = score(&cases, &exceptions, observed);
            assert!(score.faults.is_empty(), "{list}: {}", score.print());
            let listed = |exception: &Exception| cases.iter().any(|case| case.id == exception.id);
            assert!(exceptions.iter().all(listed), "{list} has cases that are not there");
        }
    }

    #[test]
    fn a_folder_that_passes() {
        let score = score(&read_cases(&data("corpus/right")).unwrap(), &[], false);
        assert_eq!(score.faults, [""; 0]);
        assert_eq!(score.total(), [(8, 8), (8, 8), (7, 7), (1, 1), (8, 8)]);
        assert_eq!(score.summary, "8 of 8 right; exceptions: 0 ours, 0 wrong");
    }

    #[test]
    fn what_fails_is_reported() {
        let cases = read_cases(&data("corpus/mixed")).unwrap();
        let scored = score(&cases, &[], false);
        assert_eq!(scored.total(), [(1, 8), (4, 8), (5, 8), (0, 1), (8, 8)]);
        let names: Vec<&str> = scored.faults.iter().filter_map(|fault| fault.lines().next()).collect();
        assert_eq!(names, MIXED_WRONG.map(|name| format!("mixed/{name}")));
        // Of a disputed case any reading is right.
        assert_eq!(score(&cases, &[], true).total()[0], (2, 4));
    }

    const MIXED_WRONG: [&str; 7] = [
        "other argument",
        "other name",
        "no call",
        "one call too many",
        "other text",
        "mark that others drop",
        "other thinking",
    ];

    #[test]
    fn g16_an_exception_is_pinned_to_what_is_found() {
        let cases = read_cases(&data("corpus/mixed")).unwrap();
        let exception = |name: &str, kind| {
            let case = cases.iter().find(|case| case.id == format!("mixed/{name}")).unwrap();
            Exception { id: case.id.clone(), kind, reason: "so decided".into(), found: Some(find(case)) }
        };
        let all = || MIXED_WRONG.map(|name| exception(name, Kind::Ours)).into_iter().collect::<Vec<_>>();
        assert_eq!(score(&cases, &all(), false).faults, [""; 0]);
        // A call or a byte that differs from what is pinned fails, and so does an exception that is not pinned.
        for change in [
            |found: &mut Option<Found>| found.as_mut().unwrap().pieces[0].push('x'),
            |found: &mut Option<Found>| found.as_mut().unwrap().calls.clear(),
            |found: &mut Option<Found>| *found = None,
        ] {
            let mut changed = all();
            change(&mut changed[0].found);
            let faults = score(&cases, &changed, false).faults;
            assert!(faults.len() == 1 && faults[0].starts_with("mixed/other argument\n"), "{faults:?}");
        }
        // What is right is no exception, and few may be wrong.
        let mut more = all();
        more.push(exception("right", Kind::Ours));
        assert_eq!(score(&cases, &more, false).faults, ["mixed/right\n  listed as an exception, but right"]);
        let mut wrong = all();
        wrong[0].kind = Kind::Wrong;
        assert!(score(&cases, &wrong, false).faults[0].starts_with("more exceptions than"));
    }

    #[test]
    fn faulty_files_are_reported_with_their_lines() {
        let folder = std::env::temp_dir().join(format!("toolrack-corpus-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let good = fs::read_to_string(data("corpus/right/tags.jsonl")).unwrap();
        let first = good.lines().next().unwrap();
        for (line, word) in [
            ("no JSON".to_owned(), "expected"),
            (first.replace("\"asserted\"", "\"guessed\""), "guessed"),
            (first.replace("\"expect\"", "\"expected\""), "expect"),
            (first.replace("\"calls\": [", "\"calls\": [5, "), "invalid type"),
            (first.replace("\"tools\": [", "\"tools\": [\"say\", "), "invalid type"),
            (first.replace("\"content\": null", "\"content\": 1"), "invalid type"),
        ] {
            fs::write(folder.join("bad.jsonl"), format!("{first}\n\n{line}\n")).unwrap();
            let error = read_cases(&folder).unwrap_err();
            assert!(error.contains("bad.jsonl:3: ") && error.contains(word), "{word}: {error}");
        }
        let twice = "{\"id\":\"a\",\"kind\":\"ours\",\"reason\":\"b\"}\n";
        fs::write(folder.join("list"), format!("{twice}{twice}")).unwrap();
        assert!(read_exceptions(&folder.join("list")).unwrap_err().contains("listed twice"));
        fs::write(folder.join("list"), twice.replace("ours", "theirs")).unwrap();
        assert!(read_exceptions(&folder.join("list")).unwrap_err().contains("list:1: "));
        fs::remove_dir_all(&folder).unwrap();
        assert!(read_cases(&folder).is_err());
    }

    #[test]
    fn arguments_are_compared_as_values() {
        for (one, two) in [
            (r#"{"a": 1, "b": [true, null]}"#, r#"{"b":[true,null],"a":1.0}"#),
            ("2", "2.0"),
            ("2e1", "20"),
            ("0.1", "0.10"),
            ("-0", "0"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            (r#""\u00e5/""#, r#""å\/""#),
            (r#"{"a": 1, "a": 2}"#, r#"{"a": 2}"#),
        ] {
            assert!(same_json(one, two), "{one} {two}");
        }
        for (one, two) in [
            ("2", "3"),
            ("2", "\"2\""),
            ("0.1", "0.2"),
            ("123456789012345678901234567890", "123456789012345678901234567891"),
            ("9007199254740993", "9007199254740992"),
            ("[1, 2]", "[2, 1]"),
            ("[1]", "[1, 1]"),
            (r#"{"a": 1}"#, r#"{"a": 1, "b": 1}"#),
            (r#"{"a": 1}"#, r#"{"b": 1}"#),
            ("{}", "[]"),
            ("null", "false"),
            ("\"a\"", "\"a \""),
        ] {
            assert!(!same_json(one, two), "{one} {two}");
        }
    }

    /// Text in `pieces` with a call to `find` between each two.
    fn fits(pieces: &[&str], expected: &str) -> bool {
        let call = Call { name: Some("find".into()), arguments: RawValue::from_string("{}".into()).unwrap() };
        let calls = vec![call; pieces.len() - 1];
        let pieces = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        content_fits(&Found { calls, pieces, ..Found::default() }, expected)
    }

    #[test]
    fn whole_pieces_of_text_beside_calls_may_be_dropped() {
        let pieces = ["Öne \n", " two", "", "\nthree"];
        for expected in [
            "",
            "Öne",
            "two",
            "three",
            "Öne two",
            "Öne\ttwo three",
            "Önetwo three",
            "Öne three",
            " two three ",
        ] {
            assert!(fits(&pieces, expected), "{expected}");
        }
        for expected in ["Ö", "wo", "two Öne", "Öne two three four", "threethree", "Öne tw", "four"] {
            assert!(!fits(&pieces, expected), "{expected}");
        }
        for (text, expected) in [("One", ""), ("One two", "One"), ("", "One")] {
            assert!(!fits(&[text], expected), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_part_of_a_call_is_not_dropped() {
        for leak in ["</tool_call>", "]", "<｜end｜>", "```", "One two</function>", "{\"a\": 1}", "find: 1"]
        {
            assert!(!fits(&["One", leak], "One"), "{leak}");
            assert!(!fits(&[leak, ""], ""), "{leak}");
            assert!(fits(&["One", leak], leak), "{leak}");
            assert!(fits(&["One", leak], &format!("One {leak}")), "{leak}");
        }
    }
}
