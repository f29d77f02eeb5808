//! What the demo model says in its own words: from a result, or when there is nothing to call.

use serde_json::Value;

use super::{DemoTool, outline};

/// A longer result is shortened to this many characters.
const MOST: usize = 1_500;
/// Tools that are named when none fits.
const NAMED: usize = 5;

const SIGNATURE: &str = "*Written by the built-in demo model, which only repeats what the tool returned.*";

/// A tool's result as the history has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The tool, where the history says which.
    pub(super) tool: Option<String>,
    pub(super) text: String,
}

/// Presents results.
pub(super) fn from_results(outcomes: &[Outcome]) -> String {
    let each: Vec<String> = outcomes.iter().map(present).collect();
    format!("{}\n\n{SIGNATURE}", each.join("\n\n"))
}

fn present(outcome: &Outcome) -> String {
    let tool = outcome.tool.as_deref().filter(|tool| !tool.is_empty());
    let tool = tool.map_or_else(
        || "The tool".to_owned(),
        |tool| format!("`{}`", shorten(&one_line(tool)).replace('`', "'")),
    );
    let text = outcome.text.trim();
    if text.is_empty() || text == "null" {
        return format!("{tool} ran and returned nothing.");
    }
    let value: Option<Value> = serde_json::from_str(text).ok();
    if let Some(what) = fault(text, value.as_ref()) {
        return format!("{tool} could not do it: {}", quote(&what));
    }
    match value {
        Some(Value::Object(fields)) if fields.is_empty() => format!("{tool} ran and returned nothing."),
        Some(Value::Array(items)) if items.is_empty() => format!("{tool} found nothing."),
        Some(Value::Object(fields)) if fields.len() == 1 => {
            let (name, value) = fields.into_iter().next().unwrap_or_default();
            match value {
                Value::Array(items) if items.is_empty() => format!("{tool} found nothing."),
                value @ (Value::Array(_) | Value::Object(_)) => returned(&tool, &value),
                // What was done, and to what: "created", "deleted".
                value if is_deed(&name) => format!("{tool} {name} {}", quote(&scalar(&value))),
                value => format!("{tool} says: {}", quote(&scalar(&value))),
            }
        }
        Some(Value::Object(mut fields)) if fields.keys().any(|name| is_main(name)) => {
            // What counts first, the rest below it.
            let main =
                fields.keys().find(|name| is_main(name) && fields.get(*name).is_some_and(is_scalar)).cloned();
            let main = main.and_then(|name| fields.shift_remove(&name));
            match main {
                Some(main) => {
                    let list = outlined(&Value::Object(fields));
                    format!("{tool} says: {}\n\n{list}", quote(&scalar(&main)))
                }
                None => returned(&tool, &Value::Object(fields)),
            }
        }
        Some(value @ (Value::Object(_) | Value::Array(_))) => returned(&tool, &value),
        Some(Value::String(text)) => format!("{tool} says: {}", quote(&text)),
        // As it was written: parsing would turn 4.0 and 1e3 into something else.
        _ => format!("{tool} says: {}", quote(text)),
    }
}

fn returned(tool: &str, value: &Value) -> String {
    format!("Here is what {tool} returned:\n\n{}", outlined(value))
}

/// JSON as Markdown, no longer than it may be.
fn outlined(value: &Value) -> String {
    let text = outline::outline(value, MOST * 4);
    shorten(text.trim_end())
}

/// What went wrong, if that is what the result says.
fn fault(text: &str, value: Option<&Value>) -> Option<String> {
    if let Some(Value::Object(fields)) = value {
        let failed = fields.get("success") == Some(&Value::Bool(false))
            || fields.get("ok") == Some(&Value::Bool(false));
        let error = fields.get("error").filter(|error| !matches!(error, Value::Null | Value::Bool(false)));
        let message = match error {
            Some(Value::Object(inner)) => inner.get("message").map(scalar).or_else(|| error.map(scalar)),
            Some(Value::Bool(true)) | None => fields.get("message").map(scalar),
            Some(other) => Some(scalar(other)),
        };
        return (failed || error.is_some())
            .then(|| message.unwrap_or_else(|| "it gave no reason.".to_owned()));
    }
    let start: String = text.chars().take(6).collect();
    (start.eq_ignore_ascii_case("error:")).then(|| text.chars().skip(6).collect::<String>().trim().to_owned())
}

/// One line stays on the line; several become a quotation, so that nothing in them reads as our own markup.
fn quote(text: &str) -> String {
    let text = shorten(text.trim());
    if text.contains('\n') {
        let lines: Vec<String> = text.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
        format!("\n\n{}", lines.join("\n"))
    } else {
        text
    }
}

/// Cuts a text and makes what looks like the mark of a call harmless: a result must not be read as a call when it is repeated.
fn shorten(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    for _ in 0..MOST {
        let Some(c) = chars.next() else { break };
        let tag = c == '<'
            && chars.peek().is_some_and(|c| c.is_alphabetic() || matches!(c, '/' | '|' | '!' | '｜'));
        let mark = c == '[' && {
            let ahead: String = chars.clone().filter(|c| *c != '/').take(4).collect();
            ahead.eq_ignore_ascii_case("tool")
        };
        if tag {
            out.push_str("&lt;");
        } else if mark {
            out.push_str("&#91;");
        } else {
            out.push(c);
        }
    }
    if chars.peek().is_some() {
        out.truncate(out.trim_end().len());
        out.push_str(" … (shortened)");
    }
    out
}

pub(super) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn is_deed(name: &str) -> bool {
    name.len() > 4 && name.ends_with("ed") && name.chars().all(|c| c.is_ascii_lowercase())
}

fn is_main(name: &str) -> bool {
    matches!(name, "result" | "answer" | "value" | "text" | "message" | "summary")
}

pub(super) fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Object(_) | Value::Array(_))
}

pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

/// Says what it is, what it could use, and how to have a real model.
pub(super) fn introduction(tools: &[DemoTool<'_>]) -> String {
    let mut text = String::from(
        "I am the built-in demo model: I have no intelligence, I only match the words of your question to a tool.",
    );
    if tools.is_empty() {
        text.push_str(" There is no tool I may use here.");
    } else {
        text.push_str(" None fits this question. I could use:\n\n");
        for tool in tools.iter().take(NAMED) {
            let first =
                tool.description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("a tool");
            let first = first.split_inclusive(". ").next().unwrap_or(first).trim();
            let short: String = first.chars().take(120).collect();
            let first = if short.len() < first.len() { format!("{}…", short.trim_end()) } else { short };
            text.push_str(&format!("- `{}`: {}\n", tool.name, shorten(&first)));
        }
        if tools.len() > NAMED {
            text.push_str(&format!("- and {} more\n", tools.len() - NAMED));
        }
    }
    text.push_str(
        "\n\nFor real answers connect a model: `toolrack serve --upstream http://127.0.0.1:11434/v1 --model NAME` \
         with the address of Ollama, llama.cpp, vLLM or LM Studio.",
    );
    text.replace("\n\n\n", "\n\n")
}
