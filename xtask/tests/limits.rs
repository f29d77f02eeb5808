//! Each row of the tables in `docs/limits.md` says what the code does: its default is the value of the constant, or that of the setting in
//! `docs/configuration.md`, and its tests and attacks are there.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

mod book;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const LIMITS: &str = include_str!("../../docs/limits.md");
const CONFIGURATION: &str = include_str!("../../docs/configuration.md");
const ATTACKS: &str = include_str!("../../llm-bridge/tests/attacks/run.py");

/// What stands in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A number as the tables have it, such as `32 MiB`, `60 s`, `16th` or `500,000`.
fn number(text: &str) -> u64 {
    let text = text.replace(',', "");
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().unwrap_or_else(|_| panic!("`{text}` is no number"));
    number
        * match unit.trim() {
            "" | "s" | "bytes" | "th" | "nd" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            unit => panic!("unknown unit {unit}"),
        }
}

/// The value of a constant, such as `64 << 10`, `32 * 1024` or `Duration::from_secs(60)`.
fn constant(file: &str, name: &str) -> u64 {
    let source = fs::read_to_string(Path::new(ROOT).join(file)).unwrap_or_else(|_| panic!("no file {file}"));
    let line = source.lines().find(|line| line.contains(&format!("const {name}: ")));
    let line = line.unwrap_or_else(|| panic!("no constant {name} in {file}"));
    let value = line.split_once(" = ").unwrap().1.trim_end_matches(';');
    let value = value.trim_start_matches("Duration::from_secs(").trim_end_matches(')').replace('_', "");
    let part = |part: &str| part.trim().parse::<u64>().unwrap_or_else(|_| panic!("{name} = {value}"));
    match value.split_once("<<") {
        Some((number, by)) => part(number) << part(by),
        None => value.split('*').map(part).product(),
    }
}

/// The default of a setting.
fn setting(name: &str) -> u64 {
    let line = CONFIGURATION.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
    let line = line.unwrap_or_else(|| panic!("docs/configuration.md has no {name}"));
    number(line.split('#').next().unwrap().trim())
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if name != "target" && !name.starts_with('.') => sources(&path, into),
            false if name.ends_with(".rs") => into.push(path),
            _ => {}
        }
    }
}

/// The names of all functions that begin a line's code.
fn functions() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(Path::new(ROOT), &mut files);
    let mut names = BTreeSet::new();
    for file in files {
        for line in fs::read_to_string(file).unwrap().lines() {
            let code = line.trim_start().trim_start_matches("async ");
            let name = code.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next());
            names.extend(name.map(str::to_owned));
        }
    }
    names
}

#[test]
fn each_attack_is_among_the_requirements() {
    let requirements = include_str!("../../docs/requirements.md");
    let rows = |id: &str| requirements.lines().filter(|line| line.starts_with(&format!("| {id} |"))).count();
    let tried: BTreeSet<&str> =
        ATTACKS.split("row(\"A").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(tried.len() > 25, "{tried:?}");
    for number in tried {
        assert_eq!(rows(&format!("A{number}")), 1, "A{number}");
    }
}

#[test]
fn each_row_of_the_limits_is_what_the_code_does() {
    let functions = functions();
    let rows = LIMITS.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| limit "));
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, limit, default, setting_cell, beyond, code, tests, _] = cells[..] else {
            panic!("six cells are wanted: {row}")
        };
        count += 1;
        assert!(!limit.is_empty() && !beyond.is_empty(), "{row}");
        let code = quoted(code);
        if let [file, name] = code[..] {
            assert_eq!(number(default), constant(file, name), "{limit}");
        }
        // Whether the audit has arguments at all is no number.
        if let Some(name) = quoted(setting_cell).first().filter(|name| **name != "audit_arguments") {
            assert_eq!(number(default), setting(name), "{limit}");
        } else {
            assert_eq!(code.len(), 2, "{limit} is nowhere");
        }
        let mut holders = 0;
        for test in quoted(tests) {
            assert!(functions.contains(test), "{limit}: there is no test {test}");
            holders += 1;
        }
        for script in tests.split("script ").skip(1) {
            let (name, folder) = script.split_once(" of ").unwrap_or_else(|| panic!("{limit}: {script}"));
            let file = Path::new(ROOT).join("llm-bridge/tests").join(folder).join(name);
            assert!(file.is_file(), "{limit}: there is no script {}", file.display());
            holders += 1;
        }
        for attack in tests.split("attack ").skip(1) {
            let id = attack.split([',', ' ']).next().unwrap();
            assert!(ATTACKS.contains(&format!("row(\"{id}\",")), "{limit}: there is no attack {id}");
            holders += 1;
        }
        assert!(holders > 0, "{limit}: no test holds it");
    }
    assert!(count > 50, "{count} rows");
}
