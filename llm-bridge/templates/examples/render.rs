//! Renders templates: reads a case in JSON from each line and writes what became of it as a line of JSON.
//!
//! ```text
//! {"template": "…", "messages": […], "tools": […], "add_generation_prompt": true, "bos_token": "<s>", "others": {}}
//! {"prompt": "…"}
//! ```

use std::io::{BufRead, Write, stdin, stdout};

use jiff::civil::date;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use toolrack_templates::{Conversation, Template, TemplateError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        let answer = match render(&case) {
            Ok(prompt) => json!({ "prompt": prompt }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

/// Renders a case, at a time that is always the same.
fn render(case: &Value) -> Result<String, TemplateError> {
    let text = |name: &str| case.get(name).and_then(Value::as_str);
    let list = |name: &str| case.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let conversation = Conversation {
        tools: list("tools"),
        add_generation_prompt: case.get("add_generation_prompt").and_then(Value::as_bool).unwrap_or_default(),
        bos_token: text("bos_token"),
        eos_token: text("eos_token"),
        others: case.get("others").and_then(Value::as_object).cloned().unwrap_or_default(),
        now: date(2026, 2, 3).at(4, 5, 6, 0).to_zoned(TimeZone::UTC).ok(),
        ..Conversation::new(list("messages"))
    };
    Template::new(text("template").unwrap_or_default())?.render(&conversation)
}
