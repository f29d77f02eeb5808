//! Scores the scanner against a folder of cases: `cargo xtask corpus DIR [--all] [--pin]`.
//!
//! `--all` adds the cases that are disputed or not asserted. `--pin` writes what is found in the listed exceptions back
//! into their lists.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing
)]

#[path = "../tests/dialects/cases.rs"]
mod cases;
#[path = "../tests/dialects/common.rs"]
mod common;
#[path = "../tests/dialects/corpus.rs"]
mod corpus;

use std::{env, fs, path::Path, process::ExitCode};

const USAGE: &str = "usage: cargo xtask corpus DIR [--all] [--pin]";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, String> {
    let (flags, folders): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|word| word.starts_with('-'));
    let [folder] = folders.as_slice() else { return Err(USAGE.into()) };
    if let Some(flag) = flags.iter().find(|flag| !["--all", "--pin"].contains(&flag.as_str())) {
        return Err(format!("there is no option `{flag}`\n{USAGE}"));
    }
    let asked = |flag: &str| flags.iter().any(|given| given == flag);
    let cases = corpus::read_cases(Path::new(folder))?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let read = |name: &str| corpus::read_exceptions(&data.join(name)).map(|read| (data.join(name), read));
    let mut lists = corpus::LISTS.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    for (list, exceptions) in lists.iter_mut().filter(|_| asked("--pin")) {
        let mut text = String::new();
        for exception in exceptions.iter_mut() {
            if let Some(case) = cases.iter().find(|case| case.id == exception.id) {
                exception.found = Some(corpus::find(case));
            }
            text.push_str(&serde_json::to_string(exception).map_err(|error| error.to_string())?);
            text.push('\n');
        }
        fs::write(&*list, text).map_err(|error| format!("cannot write {}: {error}", list.display()))?;
    }
    let mut is_right = true;
    for ((_, exceptions), observed) in lists.iter().zip([false, true]) {
        if !observed || asked("--all") {
            let score = corpus::score(&cases, exceptions, observed);
            println!("{}", score.print());
            is_right &= score.faults.is_empty();
        }
    }
    Ok(is_right)
}
