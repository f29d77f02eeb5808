//! The comparison of all cases, and how it is told.

use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

use toolrack_dialects;
use serde_json::Value;

use crate::{
    call::{Called, same_calls},
    case::Case,
    explained::Explained,
    ours,
    peer::{Mode, Peer},
    why::{self, CLASSES, Class, Theirs},
};

/// Why there is a difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// As this class has it.
    Class(Class),
    /// As somebody has said.
    Said(String),
    /// Nobody knows.
    Unknown,
}

/// One difference.
#[derive(Debug)]
pub struct Difference<'a> {
    /// The case.
    pub case: &'a Case,
    /// The peer that reads it in another way.
    pub peer: Peer,
    /// Whole or in pieces.
    pub mode: Mode,
    /// Our calls.
    pub ours: Vec<Called>,
    /// Its calls, or its error.
    pub theirs: Result<Vec<Called>, String>,
    /// Why.
    pub why: Why,
}

/// Counts for a dialect and a peer.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Cases that were compared.
    pub cases: usize,
    /// The same, whole and in pieces.
    pub same: [usize; 2],
    /// Cases that their own test asserts and no other disputes.
    pub asserted: usize,
    /// How many of those ours reads as they say.
    pub ours: usize,
    /// How many of those the peer reads as they say, as a whole.
    pub theirs: usize,
}

/// Everything that was compared.
#[derive(Debug, Default)]
pub struct Comparison<'a> {
    /// By dialect and peer.
    pub tallies: BTreeMap<(&'a str, Peer), Tally>,
    /// The differences, in the order of the cases.
    pub differences: Vec<Difference<'a>>,
    /// Cases in dialects the scanner does not read.
    pub unread: BTreeMap<&'a str, usize>,
    /// Cases in dialects no peer has a parser for.
    pub alone: BTreeMap<&'a str, usize>,
    /// Cases of this folder that ours does not read as they say.
    pub wrong: Vec<String>,
    /// Cases that ours does not read the same whole and in pieces.
    pub unsteady: Vec<String>,
}

/// Compares all cases with all peers.
pub fn compare<'a>(
    cases: &'a [Case],
    explained: &Explained,
    exceptions: &BTreeMap<String, String>,
) -> Comparison<'a> {
    let mut all = Comparison::default();
    for case in cases {
        let peers: Vec<_> =
            Peer::ALL.iter().filter_map(|peer| Some((*peer, peer.parser(&case.dialect)?))).collect();
        if peers.is_empty() {
            *all.alone.entry(&case.dialect).or_default() += 1;
            continue;
        }
        if dialect::dialect(&case.dialect).is_none() {
            *all.unread.entry(&case.dialect).or_default() += 1;
            continue;
        }
        let ours = Mode::ALL.map(|mode| ours::read(case, mode));
        let right = ours.iter().all(|ours| same_calls(&ours.calls, &case.expected));
        if case.own && !right {
            all.wrong.push(told(case, &ours));
        }
        let [one, two] = &ours;
        if !same_calls(&one.calls, &two.calls) {
            all.unsteady.push(told(case, &ours));
        }
        for (peer, parser) in peers {
            let theirs = Mode::ALL.map(|mode| peer.read(parser, case, mode));
            let [whole, _] = &theirs;
            let tally = all.tallies.entry((&case.dialect, peer)).or_default();
            tally.cases += 1;
            if case.asserted && !case.disputed && !case.own {
                tally.asserted += 1;
                tally.ours += usize::from(right);
                tally.theirs +=
                    usize::from(whole.as_ref().is_ok_and(|calls| same_calls(calls, &case.expected)));
            }
            for (((mode, ours), theirs), same) in
                Mode::ALL.iter().zip(&ours).zip(&theirs).zip(&mut tally.same)
            {
                if theirs.as_ref().is_ok_and(|theirs| same_calls(&ours.calls, theirs)) {
                    *same += 1;
                    continue;
                }
                let said = explained.reason(peer, case).map(str::to_owned);
                let said = said.or_else(|| exceptions.get(&case.id).filter(|_| !right).cloned());
                let again = |input: String| peer.read(parser, &Case { input, ..case.clone() }, *mode);
                let found =
                    Theirs { found: theirs, whole: (*mode == Mode::Pieces).then_some(whole), again: &again };
                let class = || why::class(case, ours, found).map_or(Why::Unknown, Why::Class);
                all.differences.push(Difference {
                    case,
                    peer,
                    mode: *mode,
                    ours: ours.calls.clone(),
                    theirs: theirs.clone(),
                    why: said.map_or_else(class, Why::Said),
                });
            }
        }
    }
    all
}

fn told(case: &Case, ours: &[ours::Reading; 2]) -> String {
    format!("{}\n  {}", case.id, ours.each_ref().map(|ours| list(&ours.calls)).join("\n  "))
}

/// Calls in one line.
pub fn list(calls: &[Called]) -> String {
    if calls.is_empty() {
        return "no call".into();
    }
    let call = |call: &Called| match &call.arguments {
        Value::String(text) => format!("{} with the text {text:?}", call.name),
        arguments => format!("{} {arguments}", call.name),
    };
    calls.iter().map(call).collect::<Vec<_>>().join(", ")
}

impl Difference<'_> {
    /// The peer's reading in one line.
    pub fn theirs(&self) -> String {
        self.theirs.as_ref().map_or_else(|error| format!("error: {error}"), |calls| list(calls))
    }
}

impl Comparison<'_> {
    /// All of it in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        self.table(&mut text);
        self.classes(&mut text);
        self.rest(&mut text);
        text
    }

    fn table(&self, text: &mut String) {
        text.push_str(
            "| Dialect | Peer | Parser | Cases | Same: whole | in pieces | Different: whole | in pieces | Asserted | Ours right | Peer right |\n\
             |---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        let mut totals: BTreeMap<Peer, Tally> = BTreeMap::new();
        for ((dialect, peer), tally) in &self.tallies {
            row(
                text,
                &format!("`{dialect}`"),
                *peer,
                &format!("`{}`", peer.parser(dialect).unwrap_or_default()),
                tally,
            );
            let total = totals.entry(*peer).or_default();
            total.cases += tally.cases;
            total.asserted += tally.asserted;
            total.ours += tally.ours;
            total.theirs += tally.theirs;
            for (total, same) in total.same.iter_mut().zip(tally.same) {
                *total += same;
            }
        }
        for (peer, total) in &totals {
            row(text, "all", *peer, "", total);
        }
    }

    fn classes(&self, text: &mut String) {
        for (class, title, reason) in CLASSES {
            let found = self.of(&Why::Class(*class));
            if let Some(example) = found.first() {
                let _ = write!(text, "\n#### {}\n\n{reason}\n\n{}", capital(title), counts(&found));
                example.show(text);
            }
        }
        let mut said: Vec<&Why> = self.differences.iter().map(|found| &found.why).collect();
        said.retain(|why| matches!(why, Why::Said(_)));
        said.sort();
        said.dedup();
        if !said.is_empty() {
            text.push_str("\n#### Explained one by one\n\n");
        }
        for why in said {
            let found = self.of(why);
            if let (Why::Said(reason), Some(example)) = (why, found.first()) {
                let _ = writeln!(
                    text,
                    "- {}: {} differences, such as `{}` ({}).",
                    capital(reason),
                    found.len(),
                    example.case.id,
                    example.peer.title()
                );
            }
        }
        let unknown = self.of(&Why::Unknown);
        if let Some(example) = unknown.first() {
            let _ = write!(text, "\n#### Not explained\n\n{}", counts(&unknown));
            example.show(text);
        }
    }

    /// The differences of this sort; first those that can be shown in full, and of those the shortest.
    fn of(&self, why: &Why) -> Vec<&Difference<'_>> {
        let mut found: Vec<_> = self.differences.iter().filter(|difference| difference.why == *why).collect();
        found.sort_by_key(|one| (!one.case.own, one.case.input.len()));
        found
    }

    fn rest(&self, text: &mut String) {
        for (title, dialects) in [
            ("Not compared, as no peer has a parser that can be used:", &self.alone),
            ("Not compared, as the scanner has no row for them:", &self.unread),
        ] {
            if !dialects.is_empty() {
                let names: Vec<_> =
                    dialects.iter().map(|(name, count)| format!("`{name}` ({count})")).collect();
                let _ = write!(text, "\n{title} {}.\n", names.join(", "));
            }
        }
    }
}

impl Difference<'_> {
    fn show(&self, text: &mut String) {
        let _ = write!(
            text,
            "\nFor example `{}`, {} {}:\n\n````text\n",
            self.case.id,
            self.peer.title(),
            self.mode.title()
        );
        if self.case.own {
            let _ = writeln!(text, "{}\n", self.case.input.trim_end());
        }
        let _ = writeln!(text, "ours: {}\npeer: {}\n````", short(&list(&self.ours)), short(&self.theirs()));
    }
}

/// How many of these there are of each peer.
fn counts(found: &[&Difference<'_>]) -> String {
    let mut text = String::new();
    for peer in Peer::ALL {
        let counts =
            Mode::ALL.map(|mode| found.iter().filter(|one| one.peer == peer && one.mode == mode).count());
        if counts.iter().any(|count| *count > 0) {
            let [whole, pieces] = counts;
            let _ = writeln!(text, "- {}: {whole} whole, {pieces} in pieces", peer.title());
        }
    }
    text
}

fn row(text: &mut String, dialect: &str, peer: Peer, parser: &str, tally: &Tally) {
    let Tally { cases, same: [whole, pieces], asserted, ours, theirs } = *tally;
    let _ = writeln!(
        text,
        "| {dialect} | {} | {parser} | {cases} | {whole} | {pieces} | {} | {} | {asserted} | {ours} | {theirs} |",
        peer.title(),
        cases - whole,
        cases - pieces,
    );
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn short(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} …", text.split_at(at).0),
        None => text.into(),
    }
}

/// Puts text between two marks of a file.
///
/// # Errors
/// The file cannot be read or written, or has no such marks.
pub fn write_between(file: &Path, name: &str, text: &str) -> Result<(), Box<dyn std::error::Error>> {
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let all = fs::read_to_string(file)?;
    let missing = || format!("{} has no {open}", file.display());
    let (before, rest) = all.split_once(&open).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&close).ok_or_else(missing)?;
    fs::write(file, format!("{before}{open}{text}{close}{after}"))?;
    Ok(())
}
