//! Whether what a tool's schema shows a model, and what its examples call it with, would pass its own validation; and whether bytes are numbers
//! in it.

use serde_json::{Map, Value, json};

use super::{faults::describe, validate::ArgumentChecker};
use crate::spec::Example;

/// What a default, an example of an argument or an example of a call does wrong.
pub(crate) fn inconsistencies(
    checker: &ArgumentChecker,
    schema: &Value,
    examples: &[Example],
) -> Vec<String> {
    let mut found = Vec::new();
    visit(schema, "", &mut |members, place| {
        let example = |example| ("example", example);
        let examples = members.get("examples").and_then(Value::as_array).into_iter().flatten().map(example);
        let default = members.get("default").map(|value| ("default", value));
        for (role, value) in default.into_iter().chain(examples) {
            if let Some(fault) = fault(schema, members, value) {
                found.push(format!("the {role} of `{place}` does not fit: {fault}"));
            }
        }
    });
    for Example { question, arguments } in examples {
        let faults = checker.faults(arguments, schema);
        if !faults.is_empty() {
            found.push(format!("the example \"{question}\": {}", faults.join("; ")));
        }
    }
    found
}

/// Where a schema has a list of any length of numbers from 0 to 255, as `Vec<u8>` is one by whatever name.
pub(crate) fn bytes(schema: &Value) -> Vec<String> {
    let byte = json!({"type": "integer", "minimum": 0, "maximum": 255});
    let mut found = Vec::new();
    visit(schema, "", &mut |members, place| {
        if members.get("items") == Some(&byte) && !members.contains_key("maxItems") {
            found.push(place.to_owned());
        }
    });
    found
}

/// Looks at each part of a schema, with the names that lead to it.
fn visit(schema: &Value, place: &str, look: &mut dyn FnMut(&Map<String, Value>, &str)) {
    let Value::Object(members) = schema else { return };
    look(members, place);
    for (name, field) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        visit(field, &place, look);
    }
    for (name, definition) in members.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        visit(definition, name, look);
    }
    for keyword in ["items", "additionalProperties"] {
        visit(members.get(keyword).unwrap_or(&Value::Null), place, look);
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for part in members.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            visit(part, place, look);
        }
    }
}

/// Why a value does not fit a part of a schema.
fn fault(root: &Value, part: &Map<String, Value>, value: &Value) -> Option<String> {
    let mut schema = part.clone();
    if let Some(definitions) = root.get("$defs") {
        schema.entry("$defs").or_insert_with(|| definitions.clone());
    }
    let schema = Value::Object(schema);
    let validator = ArgumentChecker::validator(&schema).ok()?;
    validator.iter_errors(value).next().map(|error| describe(&error, &schema))
}
