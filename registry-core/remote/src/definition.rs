//! What every definition of a foreign tool is held to.

use registry_core::{json::parts, text::is_invisible};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

/// How many tools of one source are taken.
pub const MAX_TOOLS: usize = 1000;
/// How large the definition of one tool may be, in bytes of JSON.
pub(crate) const MAX_TOOL_BYTES: usize = 64 * 1024;
/// How deep it may nest.
const MAX_DEPTH: usize = 32;
/// The longest name of a tool, its prefix included, in bytes.
pub(crate) const MAX_TOOL_NAME: usize = 128;

/// Reads the definition that is number `at` of a list, and gives the name by which to report on it: its own, or its number.
pub(crate) fn read<T: DeserializeOwned>(definition: &RawValue, at: usize) -> (String, Result<T, String>) {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let json = definition.get();
    let name = serde_json::from_str(json).map_or_else(|_| format!("number {at}"), |named: Named| named.name);
    (name, check(json).and_then(|value| serde_json::from_value(value).map_err(|error| error.to_string())))
}

/// Checks how large a definition is, how deep it nests, and that a person can see all that a model reads of it.
fn check(json: &str) -> Result<Value, String> {
    let bytes = json.len();
    if bytes > MAX_TOOL_BYTES {
        return Err(format!("its definition has {bytes} bytes, and {MAX_TOOL_BYTES} at most are taken"));
    }
    let definition = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if is_deeper(&definition, MAX_DEPTH) {
        return Err(format!("its definition nests deeper than {MAX_DEPTH}"));
    }
    match find_invisible(&definition).map(u32::from) {
        None => Ok(definition),
        Some(code) => Err(format!(
            "its definition has a character that nobody sees, U+{code:04X}, and may say more to a model than to you"
        )),
    }
}

fn is_deeper(value: &Value, than: usize) -> bool {
    let Some(than) = than.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, than)),
        Value::Object(members) => members.values().any(|member| is_deeper(member, than)),
        _ => false,
    }
}

/// The first such character in any text of a definition, names of members included.
fn find_invisible(value: &Value) -> Option<char> {
    let mut texts = parts(value).flat_map(|(name, part)| name.into_iter().chain(part.as_str()));
    texts.find_map(|text| text.chars().find(|c| is_invisible(*c)))
}

pub(crate) fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Whether every part of a name, between its dots, can be part of a tool's name.
pub fn is_legal_name(name: &str) -> bool {
    name.split('.').all(|part| !part.is_empty() && part.chars().all(is_name_character))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(definition: &Value) -> Option<String> {
        check(&definition.to_string()).err()
    }

    #[test]
    fn b3_what_a_person_does_not_see_is_found_anywhere() {
        for hidden in ["\u{200b}", "\u{202e}", "\u{e0041}", "\u{1b}", "\u{ad}"] {
            let text = format!("Reads a file.{hidden}");
            let deep = json!({"properties": {"path": {"enum": [1, text]}}});
            assert!(fault(&deep).unwrap().contains("nobody sees"), "{deep}");
            assert!(fault(&json!({ text: 1 })).unwrap().contains("nobody sees"));
        }
        assert_eq!(fault(&json!("می‌خواهم ❤️")), None);
    }

    #[test]
    fn b3_a_definition_is_bounded() {
        assert!(fault(&json!("x".repeat(MAX_TOOL_BYTES))).unwrap().contains("65536 at most"));
        let deep = (0..40).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
        assert!(fault(&deep).unwrap().contains("nests deeper than 32"));
    }
}
