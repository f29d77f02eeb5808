//! B1: every dialect reads what its models write, and the page on dialects tells how that looks.
//!
//! `data/dialects.jsonl` has a case a line, in the shape of the shared corpus; the first part of an id is the row.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use crate::common::{every, offered, parsed, rebuilt, scan};
use serde_json::{Value, json};
use toolrack_dialects::{Dialect, Offered, OfferedTool, Parsed, ScanOptions, dialect, dialects};

fn cases() -> Vec<Value> {
    include_str!("../data/dialects.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Calls, text and thinking, to the byte.
fn is_right(read: &Parsed, expect: &Value) -> bool {
    let arguments = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let calls =
        read.calls.iter().map(|call| json!({"name": call.name, "arguments": arguments(&call.arguments)}));
    calls.collect::<Value>() == expect["calls"]
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
        for only in [None, Some(row)] {
            let options = ScanOptions::default().thinking(case["thinking"] == true);
            let options = only.into_iter().fold(options, ScanOptions::only);
            let whole = scan(text, &[], &offered, &options);
            assert_eq!(rebuilt(&whole), text, "{id}");
            for size in [1, 3, 7] {
                assert_eq!(scan(text, &every(text, size), &offered, &options), whole, "{id} by {size}");
            }
            let read = parsed(&whole);
            // Dialects that write a call alike are distinguished only by who knows the model.
            let named = only.is_none() || read.calls.iter().all(|call| call.dialect == row.name);
            if !named || !is_right(&read, &case["expect"]) {
                wrong.push(format!("{id}, only {options:?}\n  {text:?}\n  {read:?}\n  {}", case["expect"]));
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

fn forecast() -> Arc<Offered> {
    let schema = json!({"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
    let tool = OfferedTool::new("forecast").schema(schema);
    Arc::new(Offered::new([tool]))
}

/// A call as the row writes it. A row whose call is not read back writes none.
pub fn written(row: &Dialect, name: &str, arguments: &Value) -> String {
    row.call(name, arguments.as_object().unwrap()).unwrap_or_else(|| {
        panic!(
            "{}: its call is not read back; `cargo test -p toolrack-dialects --lib renders` shows it",
            row.name
        )
    })
}

fn call(row: &Dialect) -> String {
    let arguments = json!({"city": "Oslo Vest", "days": 31});
    written(row, "forecast", &arguments)
}

fn read(text: &str) -> Parsed {
    read_with(text, &ScanOptions::default())
}

fn read_with(text: &str, options: &ScanOptions) -> Parsed {
    let seen = scan(text, &[], &forecast(), options);
    assert_eq!(rebuilt(&seen), text);
    parsed(&seen)
}

#[test]
fn b1_what_is_shown_is_no_call() {
    for row in dialects() {
        let call = call(row);
        let fenced = [format!("So:\n```rust\n{call}\n```\nOr not."), format!("```text\n{call}\n```\n")];
        let inline = [format!("Write `{call}` to call."), format!("Not `so: {call} ok` at all.")];
        let fenced = fenced.iter().filter(|_| !call.contains('`'));
        for text in fenced.chain(inline.iter().filter(|_| !call.contains(['`', '\n']))) {
            let read = read(text);
            assert_eq!((read.content.as_str(), read.calls.len()), (text.as_str(), 0), "{}", row.name);
        }
    }
}

#[test]
fn b1_what_is_thought_is_no_call() {
    for row in dialects() {
        let call = call(row);
        for (open, close) in row.thinking.iter().chain(&[("<think>", "</think>")]) {
            // A sentence begins thinking only in the prompt.
            let is_prompted = open.starts_with(char::is_alphanumeric);
            let open = if is_prompted { "" } else { open };
            let read = |text: &str| read_with(text, &ScanOptions::default().thinking(is_prompted));
            let inside = read(&format!("{open}Maybe {call} then.{close}No."));
            assert_eq!(inside.reasoning, format!("Maybe {call} then."), "{}", row.name);
            assert_eq!((inside.content.as_str(), inside.calls.len()), ("No.", 0), "{}", row.name);
            let behind = read(&format!("{open}Maybe.{close}\n\n{call}"));
            assert_eq!((behind.reasoning.as_str(), behind.content.as_str()), ("Maybe.", ""), "{}", row.name);
            assert_eq!(behind.calls.len(), 1, "{}", row.name);
        }
    }
}

#[test]
fn b1_an_answer_may_mix_dialects() {
    for one in dialects() {
        for two in dialects() {
            let read = read(&format!("{}\nand\n{}\nend", call(one), call(two)));
            assert_eq!(read.content, "\nand\n\nend", "{} and {}", one.name, two.name);
            assert_eq!(read.calls.len(), 2, "{} and {}", one.name, two.name);
        }
    }
}

#[test]
fn b1_a_call_that_is_cut_off_has_no_half_argument() {
    let whole = json!({"city": "Oslo Vest", "days": 31});
    for row in dialects() {
        let call = call(row);
        for at in (1..call.len()).filter(|at| call.is_char_boundary(*at)) {
            for found in read(&call[..at]).calls {
                let arguments: Value = serde_json::from_str(&found.arguments).unwrap();
                // After a whole argument nothing says that there is another; before any, a bare name is a whole call
                // in one dialect only.
                assert!(arguments != json!({}) || row.name == "mistral", "{}: {}", row.name, &call[..at]);
                let mut members = arguments.as_object().unwrap().iter();
                assert!(members.all(|(key, value)| whole[key] == *value), "{}: {}", row.name, &call[..at]);
                assert!(!found.closed || arguments == whole, "{}: {}", row.name, &call[..at]);
            }
        }
    }
}

/// The cells of a row of a Markdown table; a bar in a cell has a backslash before it.
fn cells(line: &str) -> Vec<String> {
    let line = line.replace("\\|", "\0");
    line.trim_matches('|').split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

#[test]
fn b1_the_page_shows_every_dialect_as_it_is_written() {
    let arguments = json!({"city": "Oslo"});
    let as_written: Vec<(String, String)> = dialects()
        .map(|row| {
            let call = written(row, "weather", &arguments).replace('\n', "⏎");
            let code = if call.contains('`') { format!("`` {call} ``") } else { format!("`{call}`") };
            (format!("`{}`", row.name), code)
        })
        .collect();
    let page = include_str!("../../../../docs/dialects.md");
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
    assert_eq!(shown, as_written);
    let count = format!("[{} dialects]", as_written.len());
    assert!(include_str!("../../../../README.md").contains(&count), "README.md does not say {count}");
}

/// The lines of code of a folder, without tests, comments and rows.
fn code(folder: &Path, lines: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["rows", "tests"].contains(&name.as_str()) {
            code(&path, lines);
        } else if path.is_file() && name != "tests.rs" {
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            lines.extend(code.map(|line| format!("{name}: {line}")));
        }
    }
}

#[test]
fn g18_no_dialect_stands_in_code_outside_its_row() {
    let mut lines = Vec::new();
    code(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut lines);
    assert!(lines.len() > 1000);
    let mut own =
        vec!["\"to=".to_owned(), "\"functions.".to_owned(), "\"[CALL_ID]\"".to_owned(), "ML｜".to_owned()];
    for row in dialects() {
        own.push(format!("\"{}\"", row.name));
        let thinking = row.thinking.iter().flat_map(|(open, close)| [*open, *close]);
        // A code fence is Markdown's.
        let close = row.close.iter().copied().filter(|close| *close != "```");
        // And a bracket is JSON's.
        let delimiters = row.delimiters.iter().map(|delimiter| delimiter.text).filter(|text| *text != "{");
        let delimiters = delimiters.chain(close);
        own.extend(
            delimiters.chain(thinking).chain(row.noise.iter().copied()).map(|text| format!("\"{text}")),
        );
    }
    let faults: Vec<_> =
        own.iter().flat_map(|own| lines.iter().filter(|line| line.contains(own.as_str()))).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
