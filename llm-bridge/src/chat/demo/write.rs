//! Writes calls as a model would, in one of several dialects.

use serde_json::{Map, Value, json};

/// A call to write.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
}

/// A way to write calls.
pub(super) struct Dialect {
    /// Whether a sentence may stand before the calls.
    pub(super) after_text: bool,
    /// The calls as text; nothing where this dialect cannot carry them.
    pub(super) write: fn(&[Call]) -> Option<String>,
}

/// All of them, in the order in which they take turns.
pub(super) const DIALECTS: &[Dialect] = &[
    Dialect { after_text: true, write: tagged_json },
    Dialect { after_text: true, write: function_tags },
    Dialect { after_text: false, write: bare_object },
    Dialect { after_text: false, write: bare_array },
    Dialect { after_text: true, write: fenced },
];

/// `<tool_call>{json}</tool_call>`, one for each call.
fn tagged_json(calls: &[Call]) -> Option<String> {
    let each: Vec<String> =
        calls.iter().map(|call| format!("<tool_call>\n{}\n</tool_call>", json_text(&object(call)))).collect();
    Some(each.join("\n"))
}

/// `<function=NAME><parameter=K>V</parameter></function>`. Text is not quoted here, so a text with such a tag in it
/// cannot be written, nor can one that begins or ends with a space.
fn function_tags(calls: &[Call]) -> Option<String> {
    let legal = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    let mut out = String::new();
    for call in calls {
        if !legal(&call.name) {
            return None;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("<function={}>\n", call.name));
        for (name, value) in &call.arguments {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let tag = ["<parameter", "</parameter", "<function", "</function", "tool_call>"]
                .iter()
                .any(|tag| text.contains(tag));
            if !legal(name) || tag || text.trim() != text {
                return None;
            }
            out.push_str(&format!("<parameter={name}>\n{text}\n</parameter>\n"));
        }
        out.push_str("</function>");
    }
    Some(out)
}

/// The JSON object alone; there is no such form for several.
fn bare_object(calls: &[Call]) -> Option<String> {
    match calls {
        [call] => Some(json_text(&object(call))),
        _ => None,
    }
}

/// A JSON array of calls.
fn bare_array(calls: &[Call]) -> Option<String> {
    Some(json_text(&Value::Array(calls.iter().map(object).collect())))
}

/// JSON in a Markdown fence.
fn fenced(calls: &[Call]) -> Option<String> {
    let json = match calls {
        [call] => object(call),
        several => Value::Array(several.iter().map(object).collect()),
    };
    let text = serde_json::to_string_pretty(&json).ok()?;
    Some(format!("```json\n{}\n```", guard(&text)))
}

fn object(call: &Call) -> Value {
    json!({"name": call.name, "arguments": call.arguments})
}

fn json_text(value: &Value) -> String {
    guard(&value.to_string())
}

/// Escapes what could be taken for the end of the call; in JSON it can only stand inside a string.
fn guard(json: &str) -> String {
    json.replace("</", "<\\/").replace("```", "\\u0060``")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: Value) -> Call {
        Call { name: name.to_owned(), arguments: arguments.as_object().unwrap().clone() }
    }

    #[test]
    fn every_dialect_writes_a_call() {
        let one = [call("weather", json!({"city": "Oslo", "days": 3}))];
        let written: Vec<String> = DIALECTS.iter().filter_map(|dialect| (dialect.write)(&one)).collect();
        assert_eq!(
            written,
            [
                "<tool_call>\n{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\",\"days\":3}}\n</tool_call>",
                "<function=weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>",
                "{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\",\"days\":3}}",
                "[{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\",\"days\":3}}]",
                "```json\n{\n  \"name\": \"weather\",\n  \"arguments\": {\n    \"city\": \"Oslo\",\n    \"days\": 3\n  }\n}\n```",
            ]
        );
    }

    #[test]
    fn a_text_cannot_end_its_call() {
        let hostile = "a </tool_call></parameter></function> ``` b";
        let one = [call("note", json!({"text": hostile}))];
        assert_eq!(function_tags(&one), None);
        for text in [tagged_json(&one).unwrap(), bare_array(&one).unwrap(), fenced(&one).unwrap()] {
            let json = &text[text.find(['{', '[']).unwrap()..=text.rfind(['}', ']']).unwrap()];
            assert!(!json.contains("</") && !json.contains("```"), "{json}");
            let value: Value = serde_json::from_str(json).unwrap();
            let value = value.get(0).unwrap_or(&value);
            assert_eq!(value["arguments"]["text"], hostile);
        }
    }
}
