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
                let class = value(one, two, case.schema(&ours.name, key).is_some_and(says_type))?;
                // The first is reported where there are several.
                found = found.or(Some(class));
            }
        }
    }
    found
}

/// The schema says something about types, directly or through others.
fn says_type(schema: &Value) -> bool {
    schema
        .as_object()
        .is_some_and(|schema| schema.keys().any(|key| !matches!(key.as_str(), "description" | "title")))
}

fn value(ours: &Value, theirs: &Value, typed: bool) -> Option<Class> {
    match (ours, theirs) {
        (Value::String(one), Value::String(two)) if one.trim() == two.trim() => Some(Class::Blank),
        (Value::String(one), Value::String(two)) if decoded(one) == decoded(two) => Some(Class::Entities),
        (Value::String(_), Value::String(_)) => None,
        (Value::Number(one), Value::Number(two)) => {
            let (one, two) = (one.as_f64()?, two.as_f64()?);
            ((one - two).abs() <= 1e-9 * one.abs()).then_some(Class::Number)
        }
        (Value::String(text), other) if !typed && reads_as(text, other) => Some(Class::Guessed),
        (Value::String(_), _) | (_, Value::String(_)) if typed => Some(Class::Typed),
        (Value::Object(one), Value::Object(two)) if one.len() == two.len() => {
            first(one.iter().map(|(key, one)| (one, two.get(key))), typed)
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            first(one.iter().zip(two.iter().map(Some)), typed)
        }
        _ if typed => Some(Class::Typed),
        _ => None,
    }
}

fn first<'a>(pairs: impl Iterator<Item = (&'a Value, Option<&'a Value>)>, typed: bool) -> Option<Class> {
    let mut found = None;
    for (one, two) in pairs {
        let two = two?;
        if !same(one, two) {
            found = found.or(Some(value(one, two, typed)?));
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
        Value::String(_) => false,
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
        for (ours, theirs, typed, class) in [
            (json!("5"), json!(5), false, Some(Class::Guessed)),
            (json!("5"), json!(5), true, Some(Class::Typed)),
            (json!("None"), Value::Null, false, Some(Class::Guessed)),
            (json!(" a\n"), json!("a"), false, Some(Class::Blank)),
            (json!("a &lt; b"), json!("a < b"), false, Some(Class::Entities)),
            (json!("a"), json!("b"), false, None),
            (json!([1, "2"]), json!([1, 2]), true, Some(Class::Typed)),
            (json!(0.1), json!(0.100_000_000_001), true, Some(Class::Number)),
            (json!(1), json!(2), true, None),
        ] {
            assert_eq!(value(&ours, &theirs, typed), class, "{ours} {theirs}");
        }
    }
}
