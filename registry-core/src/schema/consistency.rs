//! Whether what a tool's schema shows a model, and what its examples call it with, would pass its own validation.

use serde_json::Value;

use super::{faults::describe, validate::ArgumentChecker};
use crate::spec::Example;

/// What a default, an example of an argument or an example of a call does wrong.
pub(crate) fn inconsistencies(
    checker: &ArgumentChecker,
    schema: &Value,
    examples: &[Example],
) -> Vec<String> {
    let mut found = Vec::new();
    shown(schema, schema, "", &mut found);
    for Example { question, arguments } in examples {
        let faults = checker.faults(arguments, schema);
        if !faults.is_empty() {
            found.push(format!("the example \"{question}\": {}", faults.join("; ")));
        }
    }
    found
}

/// Checks the defaults and examples in a part of a schema against that part.
fn shown(root: &Value, schema: &Value, place: &str, found: &mut Vec<String>) {
    let Value::Object(members) = schema else { return };
    let example = |example| ("example", example);
    let examples = members.get("examples").and_then(Value::as_array).into_iter().flatten().map(example);
    for (role, value) in members.get("default").map(|value| ("default", value)).into_iter().chain(examples) {
        if let Some(fault) = fault(root, schema, value) {
            found.push(format!("the {role} of `{place}` does not fit: {fault}"));
        }
    }
    for (name, field) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        shown(root, field, &place, found);
    }
    for (name, definition) in members.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        shown(root, definition, name, found);
    }
    for keyword in ["items", "additionalProperties"] {
        shown(root, members.get(keyword).unwrap_or(&Value::Null), place, found);
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for part in members.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            shown(root, part, place, found);
        }
    }
}

/// Why a value does not fit a part of a schema.
fn fault(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let mut schema = schema.clone();
    if let (Value::Object(schema), Some(definitions)) = (&mut schema, root.get("$defs")) {
        schema.entry("$defs").or_insert_with(|| definitions.clone());
    }
    let validator = ArgumentChecker::validator(&schema).ok()?;
    validator.iter_errors(value).next().map(|error| describe(&error, &schema))
}
