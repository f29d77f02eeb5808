//! What Python's values do and the engine's do not, or do otherwise.

use std::{collections::HashSet, fmt::Write};

use minijinja::{
    Environment, Error, ErrorKind, Output, State, Value,
    value::{Kwargs, Rest, Tuple, ValueKind, from_args},
};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::bounds;

/// The depth to which values are written.
pub(crate) const MAX_DEPTH: usize = 128;

/// Adds Python's methods, and what Jinja2's filters and tests make of its values.
pub(crate) fn add_to(environment: &mut Environment<'_>) {
    environment.set_unknown_method_callback(call_method);
    environment.set_formatter(write);
    environment.add_filter(
        "trim",
        |state: &State, text: &Value, chars: Option<&str>| -> Result<String, Error> {
            bounds::pay_for_text(state, chars.unwrap_or_default())?;
            Ok(strip(&text_of(state, text)?, chars).to_owned())
        },
    );
    environment.add_filter("string", text_of);
    environment.add_filter("int", |value: &Value, default: Option<Value>| {
        let number = || i64::try_from(value.clone()).ok().or_else(|| Some(float_of(value)?.trunc() as i64));
        number().map_or_else(|| default.unwrap_or_else(|| 0.into()), Value::from)
    });
    environment.add_filter("float", |value: &Value, default: Option<Value>| {
        float_of(value).map_or_else(|| default.unwrap_or_else(|| 0.0.into()), Value::from)
    });
    environment.add_filter("wordcount", |state: &State, text: &Value| -> Result<usize, Error> {
        Ok(words(&text_of(state, text)?, usize::MAX, false).len())
    });
    environment
        .add_function("cycler", |items: Rest<Value>| minijinja_contrib::globals::cycler(items.to_vec()));
    environment.add_function("joiner", minijinja_contrib::globals::joiner);
    // To Python, whatever has a length and items is a sequence.
    environment.add_test("sequence", |value: &Value| {
        value.is_undefined()
            || matches!(
                value.kind(),
                ValueKind::Seq | ValueKind::Iterable | ValueKind::Map | ValueKind::String
            )
    });
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment
        .add_test("callable", |value: &Value| value.is_undefined() || value.kind() == ValueKind::Plain);
}

fn float_of(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some(text) => strip(text, None).parse().ok(),
        None if value.kind() == ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        None => f64::try_from(value.clone()).ok(),
    }
}

/// Writes a value as `str` does.
fn write(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let written = match value.as_str() {
        Some(text) => out.write_str(text),
        None => out.write_str(&text_of(state, value)?),
    };
    written.map_err(|_| Error::from(ErrorKind::WriteFailure))
}

/// The value as `str` writes it.
pub(crate) fn text_of(state: &State, value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Number | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            // What is nested too deep is not written, and not paid for twice.
            bounds::pay_for(state, value)?;
            let mut text = String::new();
            write_repr(&mut text, value, 0);
            Ok(text)
        }
        _ => Ok(value.to_string()),
    }
}

/// Writes a value as `repr` does.
fn write_repr(out: &mut String, value: &Value, depth: usize) {
    if depth > MAX_DEPTH {
        out.push_str("...");
        return;
    }
    let items = || value.try_iter().into_iter().flatten();
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::String => write_text(out, value.as_str().unwrap_or_default()),
        ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(number) if !value.is_integer() => write_float(out, number),
            _ => out.push_str(&value.to_string()),
        },
        // Lists that were added up are `Iterable`.
        ValueKind::Seq | ValueKind::Iterable => {
            let is_tuple = value.downcast_object_ref::<Tuple>().is_some();
            out.push(if is_tuple { '(' } else { '[' });
            let mut count = 0;
            for item in items() {
                out.push_str(if count == 0 { "" } else { ", " });
                write_repr(out, &item, depth + 1);
                count += 1;
            }
            out.push_str(match (is_tuple, count) {
                (true, 1) => ",)",
                (true, _) => ")",
                _ => "]",
            });
        }
        ValueKind::Map => {
            out.push('{');
            for (at, key) in items().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_repr(out, &key, depth + 1);
                out.push_str(": ");
                write_repr(out, &value.get_item(&key).unwrap_or_default(), depth + 1);
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
}

/// Writes a text in quotes, with escapes for what cannot be seen.
fn write_text(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for char in text.chars() {
        let code = u32::from(char);
        // Writing into a text does not fail.
        let _ = match char {
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            '\\' => out.write_str("\\\\"),
            char if char == quote => write!(out, "\\{char}"),
            char if is_printable(char) => out.write_char(char),
            _ if code < 0x100 => write!(out, "\\x{code:02x}"),
            _ if code < 0x10000 => write!(out, "\\u{code:04x}"),
            _ => write!(out, "\\U{code:08x}"),
        };
    }
    out.push(quote);
}

/// Whether `repr` writes it as it is, for which Rust and Python have the same rule; but at the beginning of a text, Rust escapes
/// accents too.
fn is_printable(char: char) -> bool {
    match char {
        ' '..='~' => true,
        char if char.is_ascii() => false,
        char => String::from_iter(['a', char]).escape_debug().nth(1) != Some('\\'),
    }
}

/// Writes a number as `repr` does: the shortest digits, with an exponent below 1e-4 and from 1e16 on.
pub(crate) fn write_float(out: &mut String, number: f64) {
    let size = number.abs();
    if number.is_nan() {
        out.push_str("nan");
        return;
    }
    if size != 0.0 && size.is_finite() && !(1e-4..1e16).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        // Writing into a text does not fail.
        let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
        return;
    }
    let _ = write!(out, "{number}");
    if size.is_finite() && number.fract() == 0.0 {
        out.push_str(".0");
    }
}

fn call_method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    // The engine pays for the text itself, and for what is made.
    args.iter().filter_map(Value::as_str).try_for_each(|other| bounds::pay_for_text(state, other))?;
    if let Some(text) = value.as_str()
        && let Some(answer) = text_method(text, method, args)?
    {
        return Ok(answer);
    }
    match (value.kind(), method) {
        // Values never change.
        (ValueKind::Map | ValueKind::Seq, "copy") => from_args::<()>(args).map(|()| value.clone()),
        (ValueKind::Seq, "index") => {
            let (item,): (&Value,) = from_args(args)?;
            bounds::pay_for(state, value)?;
            let at = value.try_iter()?.position(|other| other == *item);
            at.map(Value::from).ok_or_else(|| invalid("the item is not in the list"))
        }
        _ => {
            bounds::pay_for(state, value)?;
            unknown_method_callback(state, value, method, args)
        }
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// Calls a method of a text; `None` for those that the engine has.
fn text_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let one = || from_args::<(&str,)>(args).map(|(other,)| other);
    let chars = || from_args::<(Option<&str>,)>(args).map(|(chars,)| chars);
    Ok(Some(match method {
        "strip" => strip(text, chars()?).into(),
        "lstrip" => lstrip(text, chars()?).into(),
        "rstrip" => rstrip(text, chars()?).into(),
        "title" => from_args::<()>(args).map(|()| title(text))?.into(),
        "removeprefix" => text.strip_prefix(one()?).unwrap_or(text).into(),
        "removesuffix" => text.strip_suffix(one()?).unwrap_or(text).into(),
        "partition" => match text.split_once(one()?) {
            Some((before, after)) => triple([before, one()?, after]),
            None => triple([text, "", ""]),
        },
        "rpartition" => match text.rsplit_once(one()?) {
            Some((before, after)) => triple([before, one()?, after]),
            None => triple(["", "", text]),
        },
        "split" | "rsplit" => {
            let (separator, most, named): (Option<&str>, Option<i64>, Kwargs) = from_args(args)?;
            let separator = match separator {
                None => named.get::<Option<&str>>("sep")?,
                given => given,
            };
            let most = match most {
                None => named.get::<Option<i64>>("maxsplit")?,
                given => given,
            };
            named.assert_all_used()?;
            // Below zero is without a bound.
            let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX - 1);
            split(text, separator, most, method == "rsplit")?
        }
        "splitlines" => {
            let (keep, named): (Option<bool>, Kwargs) = from_args(args)?;
            let keep = match keep {
                None => named.get::<Option<bool>>("keepends")?,
                given => given,
            };
            named.assert_all_used()?;
            lines(text, keep.unwrap_or_default())
        }
        "index" | "rindex" => {
            let found = if method == "index" { text.find(one()?) } else { text.rfind(one()?) };
            let before = found.and_then(|at| text.get(..at)).ok_or_else(|| invalid("substring not found"))?;
            Value::from(before.chars().count())
        }
        _ => return Ok(None),
    }))
}

/// Each letter that does not follow a letter in upper case, all others in lower case.
fn title(text: &str) -> String {
    let mut title = String::with_capacity(text.len());
    let mut in_word = false;
    for char in text.chars() {
        match in_word {
            true => title.extend(char.to_lowercase()),
            false => title.extend(char.to_uppercase()),
        }
        in_word = char.is_alphabetic();
    }
    title
}

fn triple(texts: [&str; 3]) -> Value {
    Value::from(Tuple::from(texts.map(Value::from)))
}

fn is_space(char: char) -> bool {
    char.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&char)
}

fn strip<'t>(text: &'t str, chars: Option<&str>) -> &'t str {
    rstrip(lstrip(text, chars), chars)
}

fn lstrip<'t>(text: &'t str, chars: Option<&str>) -> &'t str {
    text.trim_start_matches(is_stripped(chars))
}

fn rstrip<'t>(text: &'t str, chars: Option<&str>) -> &'t str {
    text.trim_end_matches(is_stripped(chars))
}

/// Whether a character is one of these, however many they are; without them, whether it is a space.
fn is_stripped(chars: Option<&str>) -> impl Fn(char) -> bool {
    let chars = chars.map(|chars| chars.chars().collect::<HashSet<_>>());
    move |char| chars.as_ref().map_or_else(|| is_space(char), |chars| chars.contains(&char))
}

fn split(text: &str, separator: Option<&str>, most: usize, from_end: bool) -> Result<Value, Error> {
    let mut parts: Vec<&str> = match (separator, from_end) {
        (Some(""), _) => return Err(invalid("empty separator")),
        (Some(separator), false) => text.splitn(most + 1, separator).collect(),
        (Some(separator), true) => text.rsplitn(most + 1, separator).collect(),
        (None, _) => words(text, most, from_end),
    };
    if from_end {
        parts.reverse();
    }
    Ok(parts.into_iter().map(Value::from).collect())
}

/// The words of a text; after so many splits, the rest of it without the space at the side where the next would be.
fn words(text: &str, most: usize, from_end: bool) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = if from_end { rstrip(text, None) } else { lstrip(text, None) };
    while !rest.is_empty() {
        let cut = match from_end {
            _ if words.len() == most => None,
            true => rest.rfind(is_space).and_then(|at| {
                let (before, after) = rest.split_at(at);
                let space = after.chars().next().map_or(0, char::len_utf8);
                Some((after.get(space..)?, rstrip(before, None)))
            }),
            false => rest.find(is_space).map(|at| {
                let (before, after) = rest.split_at(at);
                (before, lstrip(after, None))
            }),
        };
        let (word, others) = cut.unwrap_or((rest, ""));
        words.push(word);
        rest = others;
    }
    words
}

/// The lines of a text, which more than `\n` ends for Python.
fn lines(text: &str, keep: bool) -> Value {
    let is_end = |char| {
        matches!(
            char,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find(is_end).unwrap_or(rest.len());
        let (line, after) = rest.split_at(at);
        let end = match after {
            after if after.starts_with("\r\n") => 2,
            after => after.chars().next().map_or(0, char::len_utf8),
        };
        let (whole, others) = rest.split_at(at + end);
        lines.push(Value::from(if keep { whole } else { line }));
        rest = others;
    }
    lines.into_iter().collect()
}
