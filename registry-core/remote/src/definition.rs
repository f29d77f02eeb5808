//! What every definition of a foreign tool is held to.

use serde_json::Value;

use crate::hidden::find_hidden;

/// How many tools of one source are taken.
pub const MAX_TOOLS: usize = 1000;
/// How large the definition of one tool may be, in bytes of JSON.
pub const MAX_TOOL_BYTES: usize = 64 * 1024;
/// How deep it may nest.
const MAX_DEPTH: usize = 32;
/// The longest name of a tool, its prefix included, in bytes.
pub(crate) const MAX_TOOL_NAME: usize = 128;

/// Checks the size of a definition before it is parsed.
pub(crate) fn check_size(bytes: usize) -> Result<(), String> {
    match bytes {
        ..=MAX_TOOL_BYTES => Ok(()),
        _ => Err(format!("its definition has {bytes} bytes, and {MAX_TOOL_BYTES} at most are taken")),
    }
}

/// Checks how deep a definition nests, and that a person can see all that a model reads of it.
pub(crate) fn check(definition: &Value) -> Result<(), String> {
    if is_deeper(definition, MAX_DEPTH) {
        return Err(format!("its definition nests deeper than {MAX_DEPTH}"));
    }
    find_hidden(definition).map_or(Ok(()), |hidden| {
        let code = u32::from(hidden);
        Err(format!("its definition has a character that nobody sees, U+{code:04X}, and may say more to a model than to you"))
    })
}

fn is_deeper(value: &Value, than: usize) -> bool {
    let Some(than) = than.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, than)),
        Value::Object(members) => members.values().any(|member| is_deeper(member, than)),
        _ => false,
    }
}

pub(crate) fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Whether every part of a name, between its dots, can be part of a tool's name.
pub(crate) fn is_legal_name(name: &str) -> bool {
    name.split('.').all(|part| !part.is_empty() && part.chars().all(is_name_character))
}
