//! Compares the arguments of a call with those that an example expects.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// An argument that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub(super) struct Difference {
    pub(super) argument: String,
    /// The value that was given, as JSON; `None` where there was none.
    pub(super) given: Option<String>,
}

/// The expected arguments that are missing or others. What is given besides does not count.
pub(super) fn differences(expected: &Value, given: &Map<String, Value>) -> Vec<Difference> {
    let expected = expected.as_object().into_iter().flatten();
    expected
        .filter(|(name, value)| !given.get(*name).is_some_and(|given| is_same(value, given)))
        .map(|(name, _)| Difference { argument: name.clone(), given: given.get(name).map(Value::to_string) })
        .collect()
}

/// Whether a value will do for an expected one: a text with all its words, in any order, and with its operators if it computes with numbers;
/// a number that counts the same.
fn is_same(expected: &Value, given: &Value) -> bool {
    match (expected, given) {
        (Value::String(a), Value::String(b)) => {
            let (wanted, there) = (words(a), words(b));
            let same_operators =
                !wanted.iter().any(|word| is_number(word)) || operators(a).is_subset(&operators(b));
            a.trim() == b.trim() || (!wanted.is_empty() && wanted.is_subset(&there) && same_operators)
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit())
}

fn operators(text: &str) -> BTreeSet<char> {
    text.chars().filter(|c| "+-*/%^=<>".contains(*c)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b18_arguments_are_compared_by_what_they_mean() {
        let given = |value: Value| value.as_object().cloned().unwrap();
        let expected = json!({"city": "Oslo", "days": 3});
        assert_eq!(differences(&expected, &given(json!({"city": " oslo", "days": 3.0, "unit": "K"}))), []);
        let other = differences(&expected, &given(json!({"city": "Bergen"})));
        let names: Vec<(&str, Option<&str>)> =
            other.iter().map(|one| (one.argument.as_str(), one.given.as_deref())).collect();
        assert_eq!(names, [("city", Some("\"Bergen\"")), ("days", None)]);
        for (expected, given, same) in [
            ("123 * 456", "456*123", true),
            ("123 * 456", "123 + 456", false),
            ("state-of-the-art", "state of the art", true),
            ("Oslo", "oslo, Norway", true),
            ("rust async", "async programming in Rust", true),
            ("Oslo", "Oslofjord", false),
            ("+", "-", false),
            ("notes/milk.md", "notes/plan.md", false),
        ] {
            assert_eq!(is_same(&json!(expected), &json!(given)), same, "{expected}: {given}");
        }
        let nested = json!({"place": {"names": ["A", "b"]}});
        assert_eq!(differences(&nested, &given(json!({"place": {"names": ["a", "B"], "more": 1}}))), []);
        assert_eq!(differences(&nested, &given(json!({"place": {"names": ["a"]}}))).len(), 1);
    }
}
