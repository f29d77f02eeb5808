//! Differences between the arguments of the same calls.

use serde_json::Value;

use super::Class;
use crate::{
    call::{Called, same},
    case::Case,
};

/// The class of all the differences between these calls, if it is one and the same.
pub(super) fn class(case: &Case, ours: &[Called], theirs: &[Called]) -> Option<Class> {
    let mut found = None;
    for (ours, theirs) in ours.iter().zip(theirs) {
        if ours.name != theirs.name {
            return None;
        }
        let (Value::Object(one), Value::Object(two)) = (&ours.arguments, &theirs.arguments) else {
            if !theirs.arguments.is_object() {
                found = Some(Class::NoObject);
                continue;
            }
            return None;
        };
        if one.len() != two.len() {
            return None;
        }
        for (key, one) in one {
            let two = two.get(key)?;
            if !same(one, two) {
                let types = case.schema(&ours.name, key).and_then(types);
                let class = value(one, two, types.as_deref())?;
                // The first is reported where there are several.
                found = found.or(Some(class));
            }
        }
    }
    found
}

/// What a schema lets a value be: the names of types. None: it says nothing.
fn types(schema: &Value) -> Option<Vec<&str>> {
    let silent = |key: &String| matches!(key.as_str(), "description" | "title" | "default" | "examples");
    let schema = schema.as_object().filter(|schema| !schema.keys().all(silent))?;
    let mut names = Vec::new();
    match schema.get("type") {
        Some(Value::String(name)) => names.push(name.as_str()),
        Some(Value::Array(several)) => names.extend(several.iter().filter_map(Value::as_str)),
        _ => {}
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        let several = schema.get(key).and_then(Value::as_array).into_iter().flatten();
        names.extend(several.filter_map(types).flatten());
    }
    Some(names)
}

/// Whether the value is of one of these types; where none is named, any value is.
fn fits(value: &Value, types: &[&str]) -> bool {
    types.is_empty()
        || types.iter().any(|name| match value {
            Value::Null => *name == "null",
            Value::Bool(_) => *name == "boolean",
            Value::Number(number) => {
                *name == "number" || *name == "integer" && number.as_f64().is_some_and(|n| n.fract() == 0.0)
            }
            Value::String(_) => *name == "string",
            Value::Array(_) => *name == "array",
            Value::Object(_) => *name == "object",
        })
}

/// The class of a difference between two values, by the types that the schema names for it.
fn value(ours: &Value, theirs: &Value, types: Option<&[&str]>) -> Option<Class> {
    match (ours, theirs) {
        (Value::String(one), Value::String(two)) if one.trim() == two.trim() => return Some(Class::Blank),
        (Value::String(one), Value::String(two)) if decoded(one) == decoded(two) => {
            return Some(Class::Entities);
        }
        // Quotes may have been read as JSON.
        (Value::String(one), Value::String(_)) => {
            let class = if types.is_some() { Class::Typed } else { Class::Guessed };
            return reads_as(one, theirs).then_some(class);
        }
        (Value::Number(one), Value::Number(two)) => {
            let (one, two) = (one.as_f64()?, two.as_f64()?);
            return ((one - two).abs() <= 1e-9 * one.abs()).then_some(Class::Number);
        }
        (Value::Object(one), Value::Object(two)) if one.len() == two.len() => {
            return first(one.iter().map(|(key, one)| (one, two.get(key))));
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            return first(one.iter().zip(two.iter().map(Some)));
        }
        _ => {}
    }
    match (ours, types) {
        (Value::String(text), None) => reads_as(text, theirs).then_some(Class::Guessed),
        (_, None) => None,
        (_, Some(types)) => {
            let text = matches!(ours, Value::String(_)) || matches!(theirs, Value::String(_));
            (text && (fits(ours, types) || !fits(theirs, types))).then_some(Class::Typed)
        }
    }
}

fn first<'a>(pairs: impl Iterator<Item = (&'a Value, Option<&'a Value>)>) -> Option<Class> {
    let mut found = None;
    for (one, two) in pairs {
        let two = two?;
        if !same(one, two) {
            // The schema is not followed into what is nested; there, any type counts as said.
            found = found.or(Some(value(one, two, Some(&[]))?));
        }
    }
    found
}

/// The text is this value, as JSON or as one of the words of other languages.
fn reads_as(text: &str, value: &Value) -> bool {
    let text = text.trim();
    if serde_json::from_str::<Value>(text).is_ok_and(|read| same(&read, value)) {
        return true;
    }
    match value {
        Value::Null => ["none", "null", "nil"].contains(&text.to_lowercase().as_str()),
        Value::Bool(value) => text.to_lowercase() == value.to_string(),
        Value::Number(number) => text.parse().ok() == number.as_f64(),
        // A literal of another language: no more than that it is one is decided here.
        Value::Array(_) => text.starts_with(['[', '(']),
        Value::Object(_) => text.starts_with('{'),
        Value::String(_) => false, // JSON strings are read above.
    }
}

fn decoded(text: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&apos;", "'"),
        ("&#x27;", "'"),
        ("&amp;", "&"),
    ];
    pairs
        .iter()
        .fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values() {
        let (integer, text): (Option<&[&str]>, Option<&[&str]>) = (Some(&["integer"]), Some(&["string"]));
        for (ours, theirs, types, class) in [
            (json!("5"), json!(5), None, Some(Class::Guessed)),
            (json!("5"), json!(5), text, Some(Class::Typed)),
            (json!("5"), json!(5), integer, None),
            (json!(5), json!("5"), integer, Some(Class::Typed)),
            (json!("a few"), Value::Null, integer, Some(Class::Typed)),
            (json!("None"), Value::Null, None, Some(Class::Guessed)),
            (json!("\"ls\""), json!("ls"), None, Some(Class::Guessed)),
            (json!(" a\n"), json!("a"), None, Some(Class::Blank)),
            (json!("a &lt; b"), json!("a < b"), None, Some(Class::Entities)),
            (json!("a"), json!("b"), None, None),
            (json!("a b"), json!("a"), text, None),
            (json!("\"ls\""), json!("ls"), text, Some(Class::Typed)),
            (json!([1, "2"]), json!([1, 2]), None, Some(Class::Typed)),
            (json!(0.1), json!(0.100_000_000_001), integer, Some(Class::Number)),
            (json!(1), json!(2), integer, None),
        ] {
            assert_eq!(value(&ours, &theirs, types), class, "{ours} {theirs}");
        }
    }
}
