//! Writes calls of this family.

use serde_json::{Map, Value};

use super::{Arguments, Head, NamedStyle, TagStyle, tags::TypeAttribute};
use crate::{elements, literal, render::type_name, table::Dialect};

impl NamedStyle {
    /// A call, without the delimiters of a wrapper; nothing where it cannot be written.
    pub(crate) fn write(&self, row: &Dialect, name: &str, arguments: &Map<String, Value>) -> Option<String> {
        let line = if row.lines { "\n" } else { "" };
        let mut out = self.head.write(name)?;
        // JSON that begins on a line of its own ends on one.
        let on_line = out.ends_with('\n') && matches!(self.arguments, Arguments::Json);
        match self.arguments {
            Arguments::Json => out.push_str(&row.unmarked(serde_json::to_string(arguments).ok()?)),
            Arguments::Literals(style) => {
                out.push_str(&literal::write(style, arguments)?);
                out.push(char::from(style.close));
            }
            Arguments::Tags(style) => {
                // The name's own tag ends the line, if it does not end with one.
                out.push_str(if out.ends_with('\n') { "" } else { line });
                for (key, value) in arguments {
                    out.push_str(&style.write(key, value, line)?);
                    out.push_str(line);
                }
            }
        }
        out.push_str(if on_line && !self.end.is_empty() { "\n" } else { "" });
        out.extend(self.end.iter().copied());
        Some(if self.list { format!("[{out}]") } else { out })
    }
}

impl Head {
    fn write(&self, name: &str) -> Option<String> {
        Some(match self {
            Self::Recipient => String::new(),
            Self::Attribute { open, name: attribute, close } => {
                format!("{open}{attribute}=\"{}\"{close}", escaped(name))
            }
            Self::AfterId { open, before, close } => format!("{open}0{before}{name}{close}"),
            Self::Between { open, close, before, written_id, .. } => {
                format!("{open}{before}{name}{written_id}{}", close.first()?)
            }
        })
    }
}

impl TagStyle {
    pub(crate) fn write(&self, key: &str, value: &Value, line: &str) -> Option<String> {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // Whether it ends the value would depend on the schema of whoever reads it.
        if text.contains(self.key.open()) {
            return None;
        }
        let kind = match self.types {
            TypeAttribute::None => String::new(),
            TypeAttribute::Name => format!(" type=\"{}\"", type_name(value)),
            TypeAttribute::IsString => format!(" string=\"{}\"", value.is_string()),
        };
        let head = match self.key {
            Head::Attribute { open, name, close } => {
                format!("{open}{name}=\"{}\"{kind}{close}", escaped(key))
            }
            head => head.write(key)?,
        };
        let framed =
            self.framed && (self.lines || text.starts_with(['\r', '\n']) || text.ends_with(['\r', '\n']));
        let framing = if framed { "\n" } else { "" };
        let between = if self.value.is_empty() { "" } else { line };
        // Without a schema for them, only texts are read back from a tree as they are.
        if self.elements && (value.is_string() || only_texts(value)) {
            let mut tree = String::new();
            elements::render(value, self.key.open(), self.end, &mut tree)?;
            return Some(format!("{head}{tree}{}{key}>", self.end));
        }
        let end = if self.elements { format!("{}{key}>", self.end) } else { self.end.to_owned() };
        Some(format!("{head}{between}{}{framing}{text}{framing}{end}", self.value))
    }
}

/// Whether the value has entries, and they are texts.
fn only_texts(value: &Value) -> bool {
    match value {
        Value::Array(values) => !values.is_empty() && values.iter().all(Value::is_string),
        Value::Object(members) => !members.is_empty() && members.values().all(Value::is_string),
        _ => false,
    }
}

/// The text as the value of an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}
