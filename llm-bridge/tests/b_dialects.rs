//! B1: every dialect reads what its models write, and the page on dialects tells how that looks.
//!
//! `data/dialects.jsonl` has a case a line, in the shape of the shared corpus; the first part of an id is the row.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{every, offered, parsed, rebuilt, same_calls, scan};
use llm_bridge::dialect::{Parsed, ScanOptions, dialect, dialects};
use serde_json::{Value, json};

fn cases() -> Vec<Value> {
    include_str!("data/dialects.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Calls, text and thinking, to the byte.
fn is_right(read: &Parsed, expect: &Value) -> bool {
    same_calls(&read.calls, expect["calls"].as_array().unwrap())
        && read.content == expect["content"].as_str().unwrap()
        && read.reasoning == expect["reasoning"].as_str().unwrap()
}

#[test]
fn b1_own_cases_in_any_pieces() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (id, text) = (case["id"].as_str().unwrap(), case["input"].as_str().unwrap());
        let offered = offered(&case["tools"]);
        let row = dialect(case["dialect"].as_str().unwrap()).unwrap();
        for only in [None, Some(row.name)] {
            let thinking = case["thinking"] == true;
            let options = ScanOptions { thinking, only, ..ScanOptions::default() };
            let whole = scan(text, &[], &offered, &options);
            assert_eq!(rebuilt(&whole), text, "{id}");
            for size in [1, 3, 7] {
                assert_eq!(scan(text, &every(text, size), &offered, &options), whole, "{id} by {size}");
            }
            let read = parsed(&whole);
            // Dialects that write a call alike are told apart only by who knows the model.
            let named = only.is_none() || read.calls.iter().all(|call| call.dialect == row.name);
            if !named || !is_right(&read, &case["expect"]) {
                wrong.push(format!("{id}, only {only:?}\n  {text:?}\n  {read:?}\n  {}", case["expect"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn b1_every_dialect_has_cases() {
    let mut counts: BTreeMap<String, usize> = dialects().map(|row| (row.name.to_owned(), 0)).collect();
    let mut ids = BTreeSet::new();
    for case in cases() {
        let (id, row) = (case["id"].as_str().unwrap().to_owned(), case["dialect"].as_str().unwrap());
        *counts.get_mut(row).unwrap() += usize::from(id.starts_with(&format!("{row}/")));
        assert!(ids.insert(id.clone()), "{id} is there twice");
    }
    let few: Vec<_> = counts.iter().filter(|(_, count)| **count < 4).collect();
    assert!(few.is_empty(), "fewer than four cases: {few:?}");
}

/// The cells of a row of a Markdown table; a bar in a cell has a backslash before it.
fn cells(line: &str) -> Vec<String> {
    let line = line.replace("\\|", "\0");
    line.trim_matches('|').split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

#[test]
fn b1_the_page_shows_every_dialect_as_it_is_written() {
    let arguments = json!({"city": "Oslo"});
    let written: Vec<(String, String)> = dialects()
        .map(|row| {
            let call = row.call("weather", arguments.as_object().unwrap()).unwrap().replace('\n', "⏎");
            let code = if call.contains('`') { format!("`` {call} ``") } else { format!("`{call}`") };
            (format!("`{}`", row.name), code)
        })
        .collect();
    let page = include_str!("../../docs/dialects.md");
    let shown: Vec<(String, String)> = page
        .lines()
        .skip_while(|line| !line.starts_with("| dialect |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| match cells(line).as_slice() {
            [name, models, call] => {
                assert!(!models.is_empty(), "{name} has no models");
                (name.clone(), call.clone())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(shown, written);
}
