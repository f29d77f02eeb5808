//! How many cases the scanner and each peer parse as their tests expect.

use std::{collections::BTreeMap, error::Error, fmt::Write, fs, path::Path};

use crate::{
    call::same_calls,
    case::Case,
    ours,
    peer::{Mode, Peer},
};

/// The cases of one dialect that one peer has a parser for.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    cases: usize,
    /// Whole and in pieces, those in which the peer finds our calls.
    same: [usize; 2],
    /// Those whose test states all of the calls and which no other test disputes.
    asserted: usize,
    ours: usize,
    theirs: usize,
}

/// The comparison of all cases with all peers.
#[derive(Debug, Default)]
pub struct Score<'a> {
    tallies: BTreeMap<(&'a str, Peer), Tally>,
    /// Where a peer finds other calls than ours: peer, mode, case.
    pub differences: Vec<(Peer, Mode, &'a Case)>,
    /// Cases of this folder that ours does not parse as they expect, and cases that depend on the pieces.
    pub faults: Vec<String>,
}

/// Compares all cases with all peers.
pub fn score(cases: &[Case]) -> Score<'_> {
    let mut score = Score::default();
    for case in cases {
        let ours = Mode::ALL.map(|mode| ours::read(case, mode));
        let right = ours.iter().all(|ours| same_calls(ours, &case.expected));
        let [whole, pieces] = &ours;
        if case.own && !right || !same_calls(whole, pieces) {
            score.faults.push(case.id.clone());
        }
        for peer in Peer::ALL {
            let Some(parser) = peer.parser(&case.dialect) else { continue };
            let theirs = Mode::ALL.map(|mode| peer.read(parser, case, mode));
            let tally = score.tallies.entry((&case.dialect, peer)).or_default();
            tally.cases += 1;
            if case.asserted && !case.disputed && !case.own {
                let [whole, _] = &theirs;
                tally.asserted += 1;
                tally.ours += usize::from(right);
                tally.theirs +=
                    usize::from(whole.as_ref().is_ok_and(|calls| same_calls(calls, &case.expected)));
            }
            for (((mode, ours), theirs), same) in
                Mode::ALL.iter().zip(&ours).zip(&theirs).zip(&mut tally.same)
            {
                if theirs.as_ref().is_ok_and(|theirs| same_calls(ours, theirs)) {
                    *same += 1;
                } else {
                    score.differences.push((peer, *mode, case));
                }
            }
        }
    }
    score
}

impl Score<'_> {
    /// The table in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| Dialect | Peer | Parser | Cases | Same: whole | in pieces | Asserted | Ours right | Peer right |\n\
             |---|---|---|--:|--:|--:|--:|--:|--:|\n",
        );
        let mut totals: BTreeMap<Peer, Tally> = BTreeMap::new();
        for ((dialect, peer), tally) in &self.tallies {
            let parser = peer.parser(dialect).unwrap_or_default();
            row(&mut text, &format!("`{dialect}`"), *peer, &format!("`{parser}`"), tally);
            let total = totals.entry(*peer).or_default();
            total.cases += tally.cases;
            total.asserted += tally.asserted;
            total.ours += tally.ours;
            total.theirs += tally.theirs;
            total.same.iter_mut().zip(tally.same).for_each(|(total, same)| *total += same);
        }
        for (peer, total) in &totals {
            row(&mut text, "all", *peer, "", total);
        }
        text
    }
}

fn row(text: &mut String, dialect: &str, peer: Peer, parser: &str, tally: &Tally) {
    let Tally { cases, same: [whole, pieces], asserted, ours, theirs } = tally;
    let peer = peer.title();
    let _ = writeln!(
        text,
        "| {dialect} | {peer} | {parser} | {cases} | {whole} | {pieces} | {asserted} | {ours} | {theirs} |"
    );
}

/// Puts a text between two comments of a page, `<!-- name -->` and `<!-- /name -->`.
///
/// # Errors
/// A page that cannot be read or written, or has no such comments.
pub fn write_between(file: &Path, name: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let page = fs::read_to_string(file)?;
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let parts = page.split_once(&open).and_then(|(before, rest)| Some((before, rest.split_once(&close)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{} has no {open}", file.display()))?;
    Ok(fs::write(file, format!("{before}{open}{text}{close}{after}"))?)
}
