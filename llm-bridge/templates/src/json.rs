//! The filter `tojson`: `json.dumps` of Python, with the defaults of `apply_chat_template`.

use std::fmt::Write;

use minijinja::{
    Error, ErrorKind, State, Value,
    value::{Kwargs, Rest, ValueKind},
};

use crate::{
    bounds,
    python::{MAX_DEPTH, text_of, write_float},
};

/// The deepest indentation of a level.
const MAX_INDENT: usize = 64;

/// How JSON is written.
struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sort_keys: bool,
}

/// `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`
pub(crate) fn tojson(
    state: &State,
    value: &Value,
    given: Rest<Value>,
    named: Kwargs,
) -> Result<String, Error> {
    let argument = |at: usize, name: &str| -> Result<Option<Value>, Error> {
        let value = match given.get(at) {
            Some(value) => Some(value.clone()),
            None => named.get::<Option<Value>>(name)?,
        };
        Ok(value.filter(|value| !value.is_none() && !value.is_undefined()))
    };
    let (ensure_ascii, indent) = (argument(0, "ensure_ascii")?, argument(1, "indent")?);
    let (separators, sort_keys) = (argument(2, "separators")?, argument(3, "sort_keys")?);
    named.assert_all_used()?;
    let indent = indent.map(indentation).transpose()?;
    let (item, key) = match separators {
        Some(separators) => separators_of(state, &separators)?,
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
    };
    let is_true = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let style =
        Style { ensure_ascii: is_true(ensure_ascii), indent, item, key, sort_keys: is_true(sort_keys) };
    bounds::pay_for(state, value)?;
    let mut out = String::new();
    style.write(&mut out, state, value, 0)?;
    Ok(out)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson: {}", message.into()))
}

fn indentation(value: Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.chars().take(MAX_INDENT).collect());
    }
    let count =
        value.as_i64().or_else(|| (value.kind() == ValueKind::Bool).then(|| i64::from(value.is_true())));
    let count = count.ok_or_else(|| invalid("`indent` is a number or a text"))?;
    Ok(" ".repeat(usize::try_from(count).unwrap_or(0).min(MAX_INDENT)))
}

fn separators_of(state: &State, value: &Value) -> Result<(String, String), Error> {
    let texts: Vec<Value> = value.try_iter()?.take(3).collect();
    match texts.as_slice() {
        [item, key] => Ok((text_of(state, item)?, text_of(state, key)?)),
        _ => Err(invalid("`separators` are two texts")),
    }
}

impl Style {
    fn write(&self, out: &mut String, state: &State, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(invalid(format!("the value is nested more than {MAX_DEPTH} levels deep")));
        }
        let before = out.len();
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => write_number(out, value),
            ValueKind::String => self.write_text(out, value.as_str().unwrap_or_default()),
            // Lists that were added up are `Iterable`.
            ValueKind::Seq | ValueKind::Iterable => self.write_items(out, state, value, depth)?,
            ValueKind::Map => self.write_members(out, state, value, depth)?,
            kind => return Err(invalid(format!("a value of the kind `{kind}` cannot be written as JSON"))),
        }
        state.consume_fuel(u64::try_from((out.len() - before) / 64 + 1).unwrap_or(u64::MAX))
    }

    fn write_items(&self, out: &mut String, state: &State, value: &Value, depth: usize) -> Result<(), Error> {
        out.push('[');
        let mut is_empty = true;
        for item in value.try_iter()? {
            self.begin(out, is_empty, depth);
            is_empty = false;
            self.write(out, state, &item, depth + 1)?;
        }
        self.end(out, is_empty, depth);
        out.push(']');
        Ok(())
    }

    fn write_members(
        &self,
        out: &mut String,
        state: &State,
        value: &Value,
        depth: usize,
    ) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.sort_keys {
            keys.sort();
        }
        out.push('{');
        for (at, key) in keys.iter().enumerate() {
            self.begin(out, at == 0, depth);
            self.write_text(out, &key_text(key)?);
            out.push_str(&self.key);
            self.write(out, state, &value.get_item(key)?, depth + 1)?;
        }
        self.end(out, keys.is_empty(), depth);
        out.push('}');
        Ok(())
    }

    /// What stands before an item.
    fn begin(&self, out: &mut String, is_first: bool, depth: usize) {
        if !is_first {
            out.push_str(&self.item);
        }
        self.break_line(out, depth + 1);
    }

    /// What stands after the last item.
    fn end(&self, out: &mut String, is_empty: bool, depth: usize) {
        if !is_empty {
            self.break_line(out, depth);
        }
    }

    fn break_line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    }

    fn write_text(&self, out: &mut String, text: &str) {
        out.push('"');
        for char in text.chars() {
            match char {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                char if char < ' '
                    || self.ensure_ascii && !char.is_ascii()
                    || self.ensure_ascii && char == '\u{7f}' =>
                {
                    for unit in char.encode_utf16(&mut [0; 2]) {
                        // Writing into a text does not fail.
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                char => out.push(char),
            }
        }
        out.push('"');
    }
}

fn write_number(out: &mut String, value: &Value) {
    match f64::try_from(value.clone()) {
        Ok(number) if !value.is_integer() => match number {
            number if number.is_nan() => out.push_str("NaN"),
            number if number.is_infinite() => {
                out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" })
            }
            number => write_float(out, number),
        },
        _ => {
            let _ = write!(out, "{value}");
        }
    }
}

fn key_text(key: &Value) -> Result<String, Error> {
    Ok(match key.kind() {
        ValueKind::String => key.as_str().unwrap_or_default().to_owned(),
        ValueKind::None => "null".to_owned(),
        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.to_owned(),
        ValueKind::Number => {
            let mut text = String::new();
            write_number(&mut text, key);
            text
        }
        kind => return Err(invalid(format!("a value of the kind `{kind}` cannot be a key"))),
    })
}
