//! Whole answers as models write them, well and badly, with the reading that serves a user best: B1 and D1 to D19.
//!
//! `data/answers.jsonl` has one a line: `{"id", "input", "thinking"?, "calls": [[name, arguments], …], "content", "reasoning"}`.
//! The dialect is never named.

use std::collections::BTreeSet;

use crate::common::{offering, read};
use serde_json::{Value, json};
use toolrack_dialects::ScanOptions;

fn tools() -> Value {
    let (text, whole, list) =
        (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "array"}));
    let tool = |required: &[&str], properties: Value| json!({"type": "object", "required": required, "properties": properties});
    json!({
        "get_weather": tool(&["city"], json!({"city": text, "days": whole, "unit": text})),
        "run": tool(&["cmd"], json!({"cmd": text, "timeout": {"type": "number"}, "bg": {"type": "boolean"}})),
        "write_file": tool(&["path", "content"], json!({"path": text, "content": text})),
        "get_time": tool(&[], json!({})),
        "search": tool(&["query"], json!({"query": text, "limit": whole, "tags": list, "filter": {"type": "object"}, "any": {}})),
    })
}

#[test]
fn b1_whole_answers_are_read_in_any_pieces() {
    let offered = offering(tools());
    let (mut wrong, mut ids) = (Vec::new(), BTreeSet::new());
    for line in include_str!("../data/answers.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let options = ScanOptions::default().thinking(case["thinking"] == true);
        let read = read(case["input"].as_str().unwrap(), &offered, &options);
        let calls = read.calls.iter().map(|call| {
            let arguments = serde_json::from_str::<Value>(&call.arguments).unwrap();
            json!([call.name, arguments])
        });
        let found = json!([calls.collect::<Value>(), read.content, read.reasoning]);
        let expected = json!([case["calls"], case["content"], case["reasoning"]]);
        if found != expected {
            wrong
                .push(format!("{}\n  {}\n  found {found}\n  expected {expected}", case["id"], case["input"]));
        }
        assert!(ids.insert(case["id"].to_string()), "{} is there twice", case["id"]);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ids.len() > 300);
}
