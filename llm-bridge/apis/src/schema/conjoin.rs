//! Merges two schemas: exactly what matches both matches the result.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::vocabulary::{is_annotation, modernize};

type Schema = Map<String, Value>;

const PROPERTIES: [&str; 3] = ["properties", "patternProperties", "additionalProperties"];
/// Keywords that depend on each other.
const GROUPS: [&[&str]; 4] = [
    &PROPERTIES,
    &["items", "prefixItems", "unevaluatedItems"],
    &["contains", "minContains", "maxContains"],
    &["if", "then", "else"],
];
/// Keywords whose subschemas apply to the same instance.
pub(super) const IN_PLACE: [&str; 9] =
    ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "$dynamicRef", "patternProperties"];

/// Merges `inner`, a part of `outer`, into `outer`. What cannot be merged into one keyword goes into `allOf`. Annotations of `outer`
/// take precedence.
pub(super) fn conjoin(outer: &mut Schema, mut inner: Schema) {
    settle_unevaluated(&mut inner);
    let mut rest = Map::new();
    if has_unevaluated(&inner) {
        // It depends on the keywords of `inner`, which would no longer be visible to it.
        rest = inner;
    } else {
        conjoin_properties(outer, &mut inner);
        conjoin_items(outer, &mut inner);
        for group in GROUPS {
            if group.iter().any(|keyword| outer.contains_key(*keyword)) {
                rest.extend(group.iter().filter_map(|keyword| inner.shift_remove_entry(*keyword)));
            }
        }
        for (keyword, value) in inner {
            match outer.get(&keyword) {
                None => {
                    outer.insert(keyword, value);
                }
                Some(same) if *same == value || is_annotation(&keyword) => {}
                Some(other) if keyword == "type" && common_types(other, &value).is_none() => {
                    // No value has both types.
                    outer.insert("enum".to_owned(), json!([]));
                }
                Some(other) => match merge(&keyword, other, &value) {
                    Some(merged) => {
                        outer.insert(keyword, merged);
                    }
                    None => {
                        rest.insert(keyword, value);
                    }
                },
            }
        }
    }
    if !rest.is_empty()
        && let Value::Array(branches) = outer.entry("allOf").or_insert_with(|| json!([]))
    {
        branches.push(rest.into());
    }
}

fn has_unevaluated(schema: &Schema) -> bool {
    schema.contains_key("unevaluatedProperties") || schema.contains_key("unevaluatedItems")
}

/// Merges two schemas, neither part of the other, which may be booleans.
pub(super) fn both(outer: &Value, inner: &Value) -> Value {
    match (outer, inner) {
        (Value::Bool(false), _) | (_, Value::Bool(false)) => json!(false),
        (Value::Bool(true), other) | (other, Value::Bool(true)) => other.clone(),
        (Value::Object(outer), Value::Object(inner)) => {
            let (mut outer, mut inner) = (outer.clone(), inner.clone());
            modernize(&mut outer);
            modernize(&mut inner);
            settle_unevaluated(&mut outer);
            if has_unevaluated(&outer) {
                // Neither is part of the other, so it must not see the keywords of the other.
                return json!({ "allOf": [outer, inner] });
            }
            conjoin(&mut outer, inner);
            outer.into()
        }
        _ => json!({ "allOf": [outer, inner] }),
    }
}

/// Replaces `unevaluatedProperties` with `additionalProperties` where they are equivalent.
pub(super) fn settle_unevaluated(schema: &mut Schema) {
    if IN_PLACE.iter().any(|keyword| *keyword != "patternProperties" && schema.contains_key(*keyword)) {
        return;
    }
    if let Some(others) = schema.shift_remove("unevaluatedProperties") {
        schema.entry("additionalProperties").or_insert(others);
    }
}

/// A property has to match what either schema requires of it, by name or by `additionalProperties`.
fn conjoin_properties(outer: &mut Schema, inner: &mut Schema) {
    let has = |schema: &Schema, keyword: &str| schema.contains_key(keyword);
    if has(outer, "patternProperties")
        || has(inner, "patternProperties")
        || !PROPERTIES.iter().any(|keyword| has(outer, keyword))
        || !PROPERTIES.iter().any(|keyword| has(inner, keyword))
    {
        return;
    }
    let is_named = |schema: &Schema| schema.get("properties").is_none_or(Value::is_object);
    if !is_named(outer) || !is_named(inner) {
        return;
    }
    let named = |schema: &mut Schema| match schema.get_mut("properties").map(Value::take) {
        Some(Value::Object(named)) => named,
        _ => Map::new(),
    };
    let (mut all, of_inner) = (named(outer), named(inner));
    let others = |schema: &Schema| schema.get("additionalProperties").cloned().unwrap_or(json!(true));
    let (outer_rest, inner_rest) = (others(outer), others(inner));
    if inner_rest != true {
        for (_, one) in all.iter_mut().filter(|(name, _)| !of_inner.contains_key(*name)) {
            *one = both(one, &inner_rest);
        }
    }
    for (name, other) in of_inner {
        let one = both(all.get(&name).unwrap_or(&outer_rest), &other);
        all.insert(name, one);
    }
    for keyword in PROPERTIES {
        inner.shift_remove(keyword);
    }
    outer.insert("properties".to_owned(), all.into());
    let rest = both(&outer_rest, &inner_rest);
    if rest == true {
        outer.shift_remove("additionalProperties");
    } else {
        outer.insert("additionalProperties".to_owned(), rest);
    }
}

fn conjoin_items(outer: &mut Schema, inner: &mut Schema) {
    if ["prefixItems", "unevaluatedItems"]
        .iter()
        .any(|keyword| outer.contains_key(*keyword) || inner.contains_key(*keyword))
    {
        return;
    }
    if let Some(one) = outer.get_mut("items")
        && let Some(other) = inner.shift_remove("items")
    {
        *one = both(one, &other);
    }
}

/// One value that is equivalent to both, if there is one.
fn merge(keyword: &str, one: &Value, other: &Value) -> Option<Value> {
    let numbers = || one.as_f64().zip(other.as_f64());
    let pick = |first: bool| if first { one.clone() } else { other.clone() };
    match keyword {
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            numbers().map(|(a, b)| pick(a >= b))
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            numbers().map(|(a, b)| pick(a <= b))
        }
        "uniqueItems" => Some(json!(*one == true || *other == true)),
        "required" => {
            let (names, others) = (one.as_array()?, other.as_array()?);
            let known: HashSet<&Value> = names.iter().collect();
            let others = others.iter().filter(|name| !known.contains(name));
            Some(names.iter().chain(others).cloned().collect())
        }
        "enum" => {
            let values: HashSet<&Value> = other.as_array()?.iter().collect();
            Some(one.as_array()?.iter().filter(|value| values.contains(value)).cloned().collect())
        }
        "type" => common_types(one, other),
        _ => None,
    }
}

/// The types in both lists; an integer is also a number.
fn common_types(one: &Value, other: &Value) -> Option<Value> {
    let list = |value: &Value| -> Option<Vec<String>> {
        match value {
            Value::String(name) => Some(vec![name.clone()]),
            Value::Array(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
            _ => None,
        }
    };
    let (one, other) = (list(one)?, list(other)?);
    let set = |types: &[String]| -> HashSet<String> { types.iter().cloned().collect() };
    let (of_one, of_other) = (set(&one), set(&other));
    let takes = |types: &HashSet<String>, name: &str| {
        types.contains(name) || (name == "integer" && types.contains("number"))
    };
    let mut common: Vec<&String> = one.iter().filter(|name| takes(&of_other, name)).collect();
    common.extend(other.iter().filter(|name| takes(&of_one, name) && !of_one.contains(*name)));
    match common.as_slice() {
        [] => None,
        [only] => Some(json!(only)),
        several => Some(json!(several)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conjoined(outer: Value, inner: Value) -> Value {
        both(&outer, &inner)
    }

    #[test]
    fn what_both_say_is_said_once() {
        for (outer, inner, expected) in [
            (json!({"minimum": 1}), json!({"minimum": 3, "maximum": 9}), json!({"minimum": 3, "maximum": 9})),
            (
                json!({"type": ["string", "number"]}),
                json!({"type": ["integer", "null"]}),
                json!({"type": "integer"}),
            ),
            (json!({"enum": [1, 2, 3]}), json!({"enum": [3, 2, 5]}), json!({"enum": [2, 3]})),
            (json!({"required": ["a"]}), json!({"required": ["b", "a"]}), json!({"required": ["a", "b"]})),
            (json!({"description": "mine"}), json!({"description": "its"}), json!({"description": "mine"})),
            (
                json!({"pattern": "a"}),
                json!({"pattern": "b"}),
                json!({"pattern": "a", "allOf": [{"pattern": "b"}]}),
            ),
            (json!({"type": "string"}), json!({"type": "null"}), json!({"type": "string", "enum": []})),
            (json!(true), json!({"minimum": 1}), json!({"minimum": 1})),
            (json!({"minimum": 1}), json!(false), json!(false)),
        ] {
            assert_eq!(conjoined(outer.clone(), inner.clone()), expected, "{outer} and {inner}");
        }
    }

    #[test]
    fn a_closed_object_closes_the_other() {
        let outer = json!({"properties": {"a": {"type": "string"}}, "additionalProperties": false});
        let inner = json!({"properties": {"a": {"minLength": 1}, "b": {"type": "null"}}});
        let expected = json!({
            "properties": {"a": {"type": "string", "minLength": 1}, "b": false},
            "additionalProperties": false,
        });
        assert_eq!(conjoined(outer, inner), expected);
    }

    #[test]
    fn what_is_about_the_inner_schema_stays_with_it() {
        let outer = json!({"properties": {"a": {}}});
        let inner = json!({"anyOf": [{"properties": {"b": {}}}], "unevaluatedProperties": false});
        let expected = json!({"properties": {"a": {}}, "allOf": [inner.clone()]});
        assert_eq!(conjoined(outer, inner), expected);
    }
}
