//! Whether alternatives exclude one another, so that `oneOf` says no more than `anyOf`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Schema, vocabulary::types};

/// The maximum number of values, names and pairs of alternatives that are compared for one schema. Beyond it alternatives are taken to
/// overlap.
const MAX_COMPARED: usize = 200_000;

/// How much has been compared.
#[derive(Debug, Default)]
pub(super) struct Compared(usize);

impl Compared {
    /// Whether so much more may be compared.
    fn may(&mut self, more: usize) -> bool {
        let all = self.0.saturating_add(more);
        let may = all <= MAX_COMPARED;
        if may {
            self.0 = all;
        }
        may
    }

    /// Whether it is known that no value matches both.
    pub(super) fn are_apart(&mut self, one: Option<&Schema>, other: Option<&Schema>) -> bool {
        let (Some(one), Some(other)) = (one, other) else { return self.may(1) };
        if let (Some(one), Some(other)) = (values(one), values(other)) {
            return self.may(1 + one.len() + other.len()) && share_nothing(one, other);
        }
        let (Ok(Some(types)), Ok(Some(other_types))) = (types(one), types(other)) else { return false };
        let meets = |a: &str, b: &str| {
            a == b || (a == "integer" && b == "number") || (a == "number" && b == "integer")
        };
        if !types.iter().any(|a| other_types.iter().any(|b| meets(a, b))) {
            return self.may(1);
        }
        // Objects with a property that discriminates between them.
        let objects = types == ["object"] && other_types == ["object"];
        let (names, other_names) = (required(one), required(other));
        if !objects || !self.may(1 + names.len() + other_names.len()) {
            return false;
        }
        let other_names: HashSet<&str> = other_names.iter().filter_map(Value::as_str).collect();
        let both = names.iter().filter_map(Value::as_str).filter(|name| other_names.contains(name));
        both.filter_map(|name| property(one, name).zip(property(other, name)))
            .any(|(a, b)| self.are_apart(Some(a), Some(b)))
    }
}

/// The only values that match, if the schema lists them.
fn values(schema: &Schema) -> Option<&[Value]> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(std::slice::from_ref(value)),
        (None, Some(Value::Array(values))) => Some(values),
        _ => None,
    }
}

fn required(schema: &Schema) -> &[Value] {
    schema.get("required").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn property<'s>(schema: &'s Schema, name: &str) -> Option<&'s Map<String, Value>> {
    schema.get("properties")?.get(name)?.as_object()
}

/// A value without parts, as schemas compare it: `1` and `1.0` are equal.
#[derive(PartialEq, Eq, Hash)]
enum Flat<'v> {
    Null,
    Bool(bool),
    Number(Option<u64>),
    Text(&'v str),
}

impl<'v> Flat<'v> {
    fn of(value: &'v Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(is) => Self::Bool(*is),
            // The two zeros are one.
            Value::Number(number) => Self::Number(number.as_f64().map(|number| (number + 0.0).to_bits())),
            Value::String(text) => Self::Text(text),
            Value::Array(_) | Value::Object(_) => return None,
        })
    }
}

/// Whether no value is in both lists. Of values with parts that is not known.
fn share_nothing(one: &[Value], other: &[Value]) -> bool {
    let Some(one) = one.iter().map(Flat::of).collect::<Option<HashSet<_>>>() else { return false };
    other.iter().all(|value| Flat::of(value).is_some_and(|value| !one.contains(&value)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(value: &Value) -> Schema {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn alternatives_are_apart_if_no_value_matches_both() {
        let object = |kind: &str| {
            let kind = json!({"properties": {"kind": {"const": kind}}, "type": "object"});
            json!({"type": "object", "properties": {"of": kind, "a": {}}, "required": ["a", "of"]})
        };
        let mut discriminated = object("x");
        discriminated["properties"]["of"]["required"] = json!(["kind"]);
        let mut otherwise = object("y");
        otherwise["properties"]["of"]["required"] = json!(["kind"]);
        for (one, other, apart) in [
            (json!({"enum": [1, "a"]}), json!({"enum": [2, "b"]}), true),
            (json!({"enum": [1, "a"]}), json!({"const": 1.0}), false),
            (json!({"const": 0}), json!({"const": -0.0}), false),
            (json!({"enum": [[1]]}), json!({"enum": [2]}), false),
            (json!({"enum": [1]}), json!({"enum": [[2]]}), false),
            (json!({"type": "string"}), json!({"type": ["null", "number"]}), true),
            (json!({"type": "integer"}), json!({"type": "number"}), false),
            (json!({"type": "integer"}), json!({}), false),
            (discriminated.clone(), otherwise, true),
            (discriminated, object("y"), false),
        ] {
            let (first, second) = (schema(&one), schema(&other));
            assert_eq!(Compared::default().are_apart(Some(&first), Some(&second)), apart, "{one} {other}");
            assert_eq!(Compared::default().are_apart(Some(&second), Some(&first)), apart, "{other} {one}");
        }
        assert!(Compared::default().are_apart(None, Some(&Map::new())));
    }

    #[test]
    fn so_much_is_compared_and_no_more() {
        let values = |from: usize| schema(&json!({ "enum": (from..from + 100).collect::<Vec<_>>() }));
        let branches: Vec<Schema> = (0..200).map(|index| values(index * 100)).collect();
        let mut compared = Compared::default();
        let mut pairs = 0;
        for (index, one) in branches.iter().enumerate() {
            for other in branches.iter().skip(index + 1) {
                pairs += usize::from(compared.are_apart(Some(one), Some(other)));
            }
        }
        assert_eq!(pairs, MAX_COMPARED / 201);
        assert!(compared.0 <= MAX_COMPARED);
    }
}
