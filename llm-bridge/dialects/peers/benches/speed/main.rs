//! How fast the scanner and its peers read, all in one run. See the README.
#![allow(missing_docs)]

mod measure;
mod opponents;
mod texts;

use std::{fmt::Write, path::Path};

use measure::{Contest, Measured, ROUNDS};
use opponents::Fault;
use peers::{peer::PIECE, pieces, score};
use texts::{Form, Text};

fn main() -> Result<(), Fault> {
    // Cargo itself passes `--bench`.
    let write = std::env::args().any(|argument| argument == "--write");
    let mut contests = Vec::new();
    for in_pieces in [true, false] {
        for text in texts::texts() {
            let contest = Contest::new(opponents::opponents(&text, in_pieces)?)?;
            contests.push((in_pieces, text, contest));
        }
    }
    // The samples of a text are far apart, so that not all of them fall into a busy time of the machine.
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        for (.., contest) in &mut contests {
            contest.round()?;
        }
    }
    let (mut streams, mut whole) = (head(true).to_owned(), head(false).to_owned());
    for (in_pieces, text, contest) in contests {
        let table = if in_pieces { &mut streams } else { &mut whole };
        table.push_str(&rows(&text, &contest.measured(), in_pieces));
    }
    let tables = format!("{streams}\n{whole}");
    if write {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/peers.md");
        score::write_between(&file, "speed", &tables)?;
    }
    println!("{tables}");
    Ok(())
}

fn head(in_pieces: bool) -> &'static str {
    if in_pieces {
        "| In pieces of 4 characters | Parser | Best, ns a piece | Median | Times Toolrack | Times Toolrack with deltas | Target |\n\
         |---|---|--:|--:|--:|--:|---|\n"
    } else {
        "| Whole | Parser | Best, GB/s | Median | Times Toolrack | Times Toolrack with deltas | Target |\n\
         |---|---|--:|--:|--:|--:|---|\n"
    }
}

fn rows(text: &Text, measured: &[Measured], in_pieces: bool) -> String {
    let mut rows = String::new();
    let [plain, deltas, ..] = measured else { return rows };
    let count = if in_pieces { pieces(&text.text, PIECE).len() } else { text.text.len() };
    for one in measured {
        let figure = |nanoseconds: f64| {
            if in_pieces { nanoseconds / count as f64 } else { count as f64 / nanoseconds }
        };
        let digits = |figure: f64| match (in_pieces, figure < 0.1) {
            (true, _) => 1,
            (false, true) => 5,
            (false, false) => 2,
        };
        let shown = |figure: f64| format!("{figure:.*}", digits(figure));
        let target = target(text, in_pieces).filter(|_| one.ours);
        let target = target.map_or_else(String::new, |target| {
            let (sign, met) = if in_pieces {
                ("≤", figure(one.least) <= target)
            } else {
                ("≥", figure(one.least) >= target)
            };
            format!("{sign} {target}: {}", if met { "met" } else { "missed" })
        });
        let found = if one.seen.calls == text.calls {
            String::new()
        } else {
            format!(", finds {} of {} calls", one.seen.calls, text.calls)
        };
        let _ = writeln!(
            rows,
            "| {} | {}{found} | {} | {} | {:.2} | {:.2} | {target} |",
            text.title,
            one.title,
            shown(figure(one.least)),
            shown(figure(one.median)),
            one.least / plain.least,
            one.least / deltas.least,
        );
    }
    rows
}

/// Nanoseconds a piece at most, or GB/s at least.
fn target(text: &Text, in_pieces: bool) -> Option<f64> {
    match (text.form, in_pieces) {
        (Form::Prose, true) => Some(25.0),
        (Form::Prose, false) => Some(5.0),
        _ if !text.argument => None,
        (_, true) => Some(40.0),
        (Form::Json, false) => Some(4.0),
        (Form::Xml, false) => Some(1.0),
    }
}
