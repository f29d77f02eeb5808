//! Writes arguments as a model of the dialect would.

use serde_json::{Map, Value};

use super::{LiteralStyle, string::hides, word};
use crate::repair::MAX_DEPTH;

/// The pairs without the brackets around them; nothing if one cannot be written so that it is read back as it is.
pub(crate) fn write(style: LiteralStyle, arguments: &Map<String, Value>) -> Option<String> {
    let mut out = String::new();
    for (index, (key, value)) in arguments.iter().enumerate() {
        separate(style, index, &mut out);
        out.push_str(&write_argument_key(style, key)?);
        self::value(style, value, 1, &mut out)?;
    }
    Some(out)
}

/// A value among others.
pub(crate) fn write_value(style: LiteralStyle, value: &Value) -> Option<String> {
    let mut out = String::new();
    self::value(style, value, 1, &mut out)?;
    Some(out)
}

/// What stands before an argument's value.
pub(crate) fn write_argument_key(style: LiteralStyle, key: &str) -> Option<String> {
    Some(format!("{}{}", bare_key(style, key)?, char::from(style.assign)))
}

/// What stands before the value of an object's member.
pub(crate) fn write_member_key(style: LiteralStyle, key: &str) -> Option<String> {
    if !style.is_python() {
        return Some(format!("{}:", bare_key(style, key)?));
    }
    let mut out = String::new();
    string(style, key, &mut out)?;
    Some(out + ": ")
}

impl LiteralStyle {
    /// What stands between values.
    pub(crate) fn separator(&self) -> &'static str {
        if self.is_python() { ", " } else { "," }
    }
}

fn separate(style: LiteralStyle, index: usize, out: &mut String) {
    if index > 0 {
        out.push_str(style.separator());
    }
}

fn bare_key(style: LiteralStyle, key: &str) -> Option<&str> {
    let plain = |char| !matches!(char, ':' | ',' | '"' | '\'' | '{' | '}' | '[' | ']');
    let good = if style.is_python() {
        word::is_identifier(key)
    } else {
        let own = style.quotes.iter().any(|own| key.starts_with(own));
        !key.is_empty() && !own && key.trim() == key && key.chars().all(plain)
    };
    good.then_some(key)
}

fn value(style: LiteralStyle, value: &Value, depth: usize, out: &mut String) -> Option<()> {
    let python = style.is_python();
    if depth >= MAX_DEPTH && (value.is_array() || value.is_object()) {
        return None;
    }
    match value {
        Value::Null => out.push_str(if python { "None" } else { "null" }),
        Value::Bool(true) => out.push_str(if python { "True" } else { "true" }),
        Value::Bool(false) => out.push_str(if python { "False" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => string(style, text, out)?,
        Value::Array(values) => {
            out.push('[');
            for (index, entry) in values.iter().enumerate() {
                separate(style, index, out);
                self::value(style, entry, depth + 1, out)?;
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (key, entry)) in members.iter().enumerate() {
                separate(style, index, out);
                out.push_str(&write_member_key(style, key)?);
                self::value(style, entry, depth + 1, out)?;
            }
            out.push('}');
        }
    }
    Some(())
}

fn string(style: LiteralStyle, text: &str, out: &mut String) -> Option<()> {
    if let Some(delimiter) = style.quotes.first() {
        if hides(&style, delimiter, text) {
            return None;
        }
        out.push_str(&format!("{delimiter}{text}{delimiter}"));
        return Some(());
    }
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..'\x20' => out.push_str(&format!("\\x{:02x}", u32::from(char))),
            _ => out.push(char),
        }
    }
    out.push('"');
    Some(())
}
