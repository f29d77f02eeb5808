//! Types a value that a dialect writes as plain text, by the tool's schema.

use serde_json::Value;

use super::repair;

/// What a schema lets a value be, as a bit set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

const STRING: u8 = 1;
const NUMBER: u8 = 2;
const INTEGER: u8 = 4;
const BOOLEAN: u8 = 8;
const NULL: u8 = 16;
const ARRAY: u8 = 32;
const OBJECT: u8 = 64;

/// References deeper than this are circular or not worth following.
const MAX_DEPTH: usize = 8;

impl Types {
    /// The types of one property of an arguments schema. Unknown means text.
    pub(super) fn of(schema: Option<&Value>, property: &str) -> Self {
        let Some(root) = schema else { return Self(STRING) };
        let mut bits = 0;
        collect_property(root, root, property, 0, &mut bits);
        Self(if bits == 0 { STRING } else { bits })
    }

    /// Only a string fits, so that the text can be handed on as it comes.
    pub(super) fn is_text(self) -> bool {
        self.0 == STRING
    }

    /// Writes the text as JSON onto `out`; true if it had to be repaired.
    pub(super) fn write(self, text: &str, out: &mut String) -> bool {
        let short = text.trim();
        if let Some(literal) = self.literal(short) {
            out.push_str(literal);
            return false;
        }
        let opened = (short.starts_with('{') && self.0 & OBJECT != 0)
            || (short.starts_with('[') && self.0 & ARRAY != 0);
        if opened {
            if repair::is_json(short) {
                out.push_str(short);
                return false;
            }
            if let Some(fixed) = repair::value(short) {
                out.push_str(&fixed);
                return true;
            }
        }
        out.push('"');
        escape(text, out);
        out.push('"');
        false
    }

    fn literal(self, text: &str) -> Option<&str> {
        let is = |bits: u8| self.0 & bits != 0;
        match text {
            "true" | "True" | "TRUE" if is(BOOLEAN) => Some("true"),
            "false" | "False" | "FALSE" if is(BOOLEAN) => Some("false"),
            "null" | "None" | "NULL" if is(NULL) => Some("null"),
            _ if is(NUMBER | INTEGER) && is_number(text) => {
                let whole = !text.contains(['.', 'e', 'E']);
                (whole || is(NUMBER) || text.ends_with(".0")).then_some(text)
            }
            _ => None,
        }
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) && repair::is_json(text)
}

/// Appends `text` with what JSON needs escaped, without the quotes.
pub(super) fn escape(text: &str, out: &mut String) {
    if let Ok(quoted) = serde_json::to_string(text) {
        out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
    }
}

fn collect_property(root: &Value, schema: &Value, property: &str, depth: usize, bits: &mut u8) {
    if depth > MAX_DEPTH {
        return;
    }
    let schema = resolve(root, schema);
    if let Some(found) = schema.get("properties").and_then(|list| list.get(property)) {
        collect(root, found, depth + 1, bits);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for branch in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            collect_property(root, branch, property, depth + 1, bits);
        }
    }
    if *bits == 0
        && let Some(extra) = schema.get("additionalProperties")
    {
        collect(root, extra, depth + 1, bits);
    }
}

fn collect(root: &Value, schema: &Value, depth: usize, bits: &mut u8) {
    if depth > MAX_DEPTH {
        return;
    }
    let schema = resolve(root, schema);
    match schema.get("type") {
        Some(Value::String(name)) => *bits |= bit(name),
        Some(Value::Array(names)) => {
            *bits |= names.iter().filter_map(Value::as_str).fold(0, |all, name| all | bit(name));
        }
        _ => {
            let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
            *bits |= listed.chain(schema.get("const")).fold(0, |all, value| all | bit_of(value));
            if schema.get("properties").is_some() {
                *bits |= OBJECT;
            }
            if schema.get("items").is_some() {
                *bits |= ARRAY;
            }
        }
    }
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        *bits |= NULL;
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for branch in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            collect(root, branch, depth + 1, bits);
        }
    }
}

fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    target.and_then(|path| root.pointer(path)).unwrap_or(schema)
}

/// The second names are no JSON Schema, but tools written by hand have them.
fn bit(name: &str) -> u8 {
    match name {
        "string" | "str" | "text" => STRING,
        "number" | "float" | "double" => NUMBER,
        "integer" | "int" => INTEGER,
        "boolean" | "bool" => BOOLEAN,
        "null" => NULL,
        "array" | "list" => ARRAY,
        "object" | "dict" => OBJECT,
        _ => 0,
    }
}

fn bit_of(value: &Value) -> u8 {
    match value {
        Value::String(_) => STRING,
        Value::Number(number) if number.is_f64() => NUMBER,
        Value::Number(_) => INTEGER,
        Value::Bool(_) => BOOLEAN,
        Value::Null => NULL,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn typed(schema: Value, text: &str) -> String {
        let mut out = String::new();
        Types::of(Some(&json!({"properties": {"x": schema}})), "x").write(text, &mut out);
        out
    }

    #[test]
    fn follows_the_schema() {
        assert_eq!(typed(json!({"type": "integer"}), " 42 "), "42");
        assert_eq!(typed(json!({"type": "string"}), "42"), "\"42\"");
        assert_eq!(typed(json!({"type": "boolean"}), "True"), "true");
        assert_eq!(typed(json!({"type": ["string", "null"]}), "null"), "null");
        assert_eq!(
            typed(json!({"anyOf": [{"type": "number"}, {"type": "string"}]}), "2 dollars"),
            "\"2 dollars\""
        );
        assert_eq!(typed(json!({"type": "array"}), "[1,\n 2]"), "[1,\n 2]");
        assert_eq!(typed(json!({"type": "array"}), "['a', True]"), r#"["a", true]"#);
        assert_eq!(typed(json!({"type": "number"}), "9007199254740993"), "9007199254740993");
        assert_eq!(typed(json!({"enum": [1, 2]}), "2"), "2");
        assert_eq!(typed(json!({}), "7"), "\"7\"");
        assert_eq!(typed(json!({"type": "integer"}), "soon"), "\"soon\"");
    }
}
