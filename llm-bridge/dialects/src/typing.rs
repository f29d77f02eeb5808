//! Types a value that a dialect writes as plain text, by the tool's schema.

use serde_json::Value;

use super::{literal::number, repair};

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

/// A place with more alternatives than this is not worth following.
const MAX_ALTERNATIVES: usize = 256;

/// What a schema says of one place in the arguments: all that may apply there, references followed.
#[derive(Debug)]
pub(super) struct Shape<'a> {
    root: Option<&'a Value>,
    alternatives: Vec<&'a Value>,
}

impl<'a> Shape<'a> {
    /// `root` is what the references of `schema` begin at.
    pub(super) fn of(root: Option<&'a Value>, schema: Option<&'a Value>) -> Self {
        Self::any(root, schema.into_iter().collect())
    }

    fn any(root: Option<&'a Value>, schemas: Vec<&'a Value>) -> Self {
        let mut shape = Self { root, alternatives: Vec::new() };
        for schema in schemas {
            shape.add(schema);
        }
        let mut at = 0;
        while let Some(schema) = shape.alternatives.get(at).copied() {
            let path = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
            if let Some(target) = path.and_then(|path| root?.pointer(path)) {
                shape.add(target);
            }
            for key in ["anyOf", "oneOf", "allOf"] {
                for branch in list(schema, key) {
                    shape.add(branch);
                }
            }
            at += 1;
        }
        shape
    }

    /// Each is taken once, so that circular references end.
    fn add(&mut self, schema: &'a Value) {
        let known = self.alternatives.iter().any(|other| std::ptr::eq(*other, schema));
        if !known && self.alternatives.len() < MAX_ALTERNATIVES {
            self.alternatives.push(schema);
        }
    }

    /// One property of the object at this place.
    pub(super) fn property(&self, name: &str) -> Self {
        let own = |schema: &&'a Value| schema.get("properties")?.get(name);
        let mut found: Vec<_> = self.alternatives.iter().filter_map(own).collect();
        if found.is_empty() {
            found =
                self.alternatives.iter().filter_map(|schema| schema.get("additionalProperties")).collect();
        }
        Self::any(self.root, found)
    }

    /// The entries of the array at this place.
    pub(super) fn items(&self) -> Self {
        let mut found = Vec::new();
        for schema in &self.alternatives {
            found.extend(schema.get("items").filter(|items| items.is_object()));
            found.extend(list(schema, "items").chain(list(schema, "prefixItems")));
        }
        Self::any(self.root, found)
    }

    /// The value, as JSON, among those to which the schema limits this place that is written as this text; nothing if there is none.
    pub(super) fn choice(&self, text: &str) -> Option<String> {
        let choices =
            self.alternatives.iter().flat_map(|schema| list(schema, "enum").chain(schema.get("const")));
        let named = |text: &str| choices.clone().any(|choice| choice.as_str() == Some(text));
        let quoted = || serde_json::from_str::<String>(text).ok().filter(|text| named(text));
        let choice = if named(text) { Some(text.to_owned()) } else { quoted() }?;
        Some(Value::String(choice).to_string())
    }

    /// Whether the schema says anything of this place.
    pub(super) fn is_known(&self) -> bool {
        !self.alternatives.is_empty()
    }

    /// The types of a value at this place, where the schema states any.
    pub(super) fn types(&self) -> Option<Types> {
        let bits = self.alternatives.iter().fold(0, |bits, schema| bits | bits_of(schema));
        (bits != 0).then_some(Types(bits))
    }

    /// The types of a value at this place, and those it has where nothing is said of it.
    pub(super) fn types_or(&self, unknown: Types) -> Types {
        self.types().unwrap_or(unknown)
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + Clone {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

impl Types {
    /// Only text.
    pub(super) const TEXT: Self = Self(STRING);
    /// Whatever JSON the text is.
    pub(super) const ANY: Self = Self(STRING | NUMBER | INTEGER | BOOLEAN | NULL | ARRAY | OBJECT);

    /// The type of this name; unknown means text.
    pub(super) fn named(name: &str) -> Self {
        let bits = bit(name);
        Self(if bits == 0 { STRING } else { bits })
    }

    /// The types of one property of an arguments schema. Unknown means text.
    pub(super) fn of(schema: Option<&Value>, property: &str) -> Self {
        Shape::of(schema, schema).property(property).types_or(Self::TEXT)
    }

    /// A string fits.
    pub(super) fn has_text(self) -> bool {
        self.0 & STRING != 0
    }

    /// An array fits.
    pub(super) fn has_array(self) -> bool {
        self.0 & ARRAY != 0
    }

    /// An object fits.
    pub(super) fn has_object(self) -> bool {
        self.0 & OBJECT != 0
    }

    /// Only a string fits, so that the text can be handed on as it comes.
    pub(super) fn is_text(self) -> bool {
        self.0 == STRING
    }

    /// Texts fit, and other values that may be written as a text is.
    pub(super) fn is_mixed(self) -> bool {
        self.has_text() && !self.is_text()
    }

    /// Writes the text as JSON onto `out`; true if it had to be repaired.
    pub(super) fn write(self, text: &str, out: &mut String) -> bool {
        let short = text.trim();
        if !self.has_text()
            && short.starts_with('"')
            && let Ok(inner) = serde_json::from_str::<String>(short)
        {
            // A string where none fits holds the value.
            self.write(&inner, out);
            return true;
        }
        if let Some(literal) = self.literal(short) {
            out.push_str(literal);
            return false;
        }
        if let Some(number) = self.number(short) {
            out.push_str(&number);
            return true;
        }
        let opened = (short.starts_with('{') && self.0 & OBJECT != 0)
            || (short.starts_with('[') && self.0 & ARRAY != 0);
        if opened {
            if repair::is_json(short) {
                out.push_str(short);
                return false;
            }
            if let Some(fixed) = unescaped(short).or_else(|| repair::value(short)) {
                out.push_str(&fixed);
                return true;
            }
        }
        quoted(text, out);
        false
    }

    fn literal(self, text: &str) -> Option<&str> {
        let is = |bits: u8| self.0 & bits != 0;
        match text {
            "true" | "True" | "TRUE" if is(BOOLEAN) => Some("true"),
            "false" | "False" | "FALSE" if is(BOOLEAN) => Some("false"),
            // Where no text fits, it is an argument that the model does without, whatever the schema says of that.
            "null" | "None" | "NULL" if is(NULL) || !self.has_text() => Some("null"),
            _ if is_number(text) => self.fits(text).then_some(text),
            _ => None,
        }
    }

    /// The number that is meant where it is not written as JSON has it. Where a text fits as well, it is that.
    fn number(self, text: &str) -> Option<String> {
        let digits = text
            .trim_start_matches(['+', '-'])
            .starts_with(|first: char| first.is_ascii_digit() || first == '.');
        let number = digits.then(|| number(text)).flatten()?;
        (!self.has_text() && self.fits(&number)).then_some(number)
    }

    /// Whether a number of JSON fits.
    fn fits(self, number: &str) -> bool {
        let whole = !number.contains(['.', 'e', 'E']);
        self.0 & NUMBER != 0 || self.0 & INTEGER != 0 && (whole || number.ends_with(".0"))
    }
}

/// The JSON that is written as it would stand in a string, with its quotes escaped.
fn unescaped(text: &str) -> Option<String> {
    let escaped = text.contains("\\\"").then(|| format!("\"{text}\""))?;
    serde_json::from_str::<String>(&escaped).ok().filter(|text| repair::is_json(text))
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) && repair::is_json(text)
}

/// Where the first byte is that JSON needs escaped.
fn needs_escape(bytes: &[u8]) -> Option<usize> {
    let special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    // In blocks, which the compiler compares as one.
    let (blocks, _) = bytes.as_chunks::<16>();
    let plain = |block: &&[u8; 16]| !block.iter().fold(false, |found, byte| found | special(byte));
    let from = 16 * blocks.iter().take_while(plain).count();
    bytes.get(from..)?.iter().position(special).map(|at| from + at)
}

/// Appends `text` with what JSON needs escaped, without the quotes.
pub(super) fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    out.reserve(text.len() + text.len() / 32);
    while let Some(at) = needs_escape(rest.as_bytes()) {
        let (plain, from) = rest.split_at(at);
        out.push_str(plain);
        match from.bytes().next() {
            Some(b'"') => out.push_str("\\\""),
            Some(b'\\') => out.push_str("\\\\"),
            Some(b'\n') => out.push_str("\\n"),
            Some(b'\r') => out.push_str("\\r"),
            Some(b'\t') => out.push_str("\\t"),
            Some(control) => out.push_str(&format!("\\u{control:04x}")),
            None => {}
        }
        rest = from.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
}

/// Appends `text` as a string of JSON.
pub(super) fn quoted(text: &str, out: &mut String) {
    out.push('"');
    escape(text, out);
    out.push('"');
}

/// What one schema says by itself.
fn bits_of(schema: &Value) -> u8 {
    let mut bits = match schema.get("type") {
        Some(Value::String(name)) => bit(name),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).fold(0, |bits, name| bits | bit(name))
        }
        _ => {
            let values = list(schema, "enum").chain(schema.get("const"));
            let object = schema.get("properties").map_or(0, |_| OBJECT);
            let array = schema.get("items").map_or(0, |_| ARRAY);
            values.fold(object | array, |bits, value| bits | bit_of(value))
        }
    };
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        bits |= NULL;
    }
    bits
}

/// The second names are no JSON Schema, but tools written by hand have them.
fn bit(name: &str) -> u8 {
    match name {
        "string" | "str" | "text" => STRING,
        "number" | "float" | "double" => NUMBER,
        "integer" | "int" | "uint" => INTEGER,
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
    fn follows_references_and_alternatives() {
        let root = json!({
            "$defs": {
                "size": {"$ref": "#/$defs/number"},
                "number": {"type": "integer"},
                "tree": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "array", "items": {"$ref": "#/$defs/tree"}}]},
            },
            "anyOf": [
                {"properties": {"size": {"$ref": "#/$defs/size"}}},
                {"properties": {"size": {"type": "null"}, "tree": {"$ref": "#/$defs/tree"}}},
            ],
            "additionalProperties": {"type": "boolean"},
        });
        let shape = Shape::of(Some(&root), Some(&root));
        assert_eq!(shape.property("size").types_or(Types::TEXT), Types(INTEGER | NULL));
        assert_eq!(shape.property("tree").items().items().types_or(Types::TEXT), Types(ARRAY));
        assert_eq!(shape.property("other").types_or(Types::TEXT), Types(BOOLEAN));
        assert!(!shape.items().is_known());
    }

    #[test]
    fn escapes_as_json_does() {
        let text: String = ('\0'..'\u{100}').chain("\\n 杭\u{2028}".chars()).collect();
        let mut out = String::new();
        quoted(&text, &mut out);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
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
