//! How fast the scanner and its peers read, all in one run. See the README.
#![allow(missing_docs)]

mod measure;
mod opponents;
mod texts;

use std::{fmt::Write, path::Path};

use measure::Measured;
use opponents::Fault;
use peers::{peer::PIECE, pieces, report};
use texts::{Form, Text};

fn main() -> Result<(), Fault> {
    // Cargo itself passes `--bench`.
    let write = std::env::args().any(|argument| argument == "--write");
    let mut tables = String::new();
    for in_pieces in [true, false] {
        tables.push_str(head(in_pieces));
        for text in texts::texts() {
            let measured = measure::measure(opponents::opponents(&text, in_pieces)?)?;
            let rows = rows(&text, &measured, in_pieces);
            eprint!("{rows}");
            tables.push_str(&rows);
        }
        tables.push('\n');
    }
    println!("{tables}");
    if write {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/peers.md");
        report::write_between(&file, "speed", tables.trim_end_matches('\n').to_owned().as_str())?;
    }
    Ok(())
}

fn head(in_pieces: bool) -> &'static str {
    if in_pieces {
        "| In pieces of 4 characters | Parser | Least, ns a piece | Median | Times Toolrack | Times Toolrack with deltas | Target |\n\
         |---|---|--:|--:|--:|--:|---|\n"
    } else {
        "| Whole | Parser | Most, GB/s | Median | Times Toolrack | Times Toolrack with deltas | Target |\n\
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
        let digits = if in_pieces { 1 } else { 3 };
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
            "| {} | {}{found} | {:.digits$} | {:.digits$} | {:.2} | {:.2} | {target} |",
            text.title,
            one.title,
            figure(one.least),
            figure(one.median),
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
