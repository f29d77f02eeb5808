//! Coerces values that do not fit a schema, where the meaning is plain.

use std::cell::Cell;

use serde_json::{Number, Value, json};

use super::choices::{options, referred};
use crate::json::parts;

/// Up to here a floating point number has every whole number.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
/// Coerces a value that does not fit a schema, where the meaning is plain: `"5"` for 5, `"[1, 2]"` for a list,
/// `null` for something left out. What fits already is not touched.
pub(crate) fn coerce(value: &mut Value, schema: &Value) {
    Walk::new(schema, &|value, part| coerce_one(value, part, schema)).visit(value, schema, 0);
}

/// Writes `3.0` as `3` where the schema wants an integer: to JSON Schema both are one, to Rust they are not.
pub(crate) fn settle_integers(value: &mut Value, schema: &Value) {
    if parts(value).any(|(_, part)| part.is_f64()) {
        Walk::new(schema, &settle).visit(value, schema, 0);
    }
}

/// How deep values and references are followed.
const MAX_DEPTH: usize = 64;
/// How many references and alternatives are followed: those that lead back to themselves would multiply without end.
const MAX_FOLLOWED: usize = 100_000;

/// Goes through a value beside its schema.
struct Walk<'s> {
    /// Where references lead.
    root: &'s Value,
    /// What is done with each value and the schema it stands under.
    each: &'s dyn Fn(&mut Value, &Value),
    /// How many references and alternatives it still follows.
    left: Cell<usize>,
}

impl<'s> Walk<'s> {
    fn new(root: &'s Value, each: &'s dyn Fn(&mut Value, &Value)) -> Self {
        Self { root, each, left: Cell::new(MAX_FOLLOWED) }
    }

    /// Visits the same value beside another part of its schema.
    fn follow(&self, value: &mut Value, schema: &Value, depth: usize) {
        if let Some(left) = self.left.get().checked_sub(1) {
            self.left.set(left);
            self.visit(value, schema, depth);
        }
    }

    fn visit(&self, value: &mut Value, schema: &Value, depth: usize) {
        if depth == MAX_DEPTH {
            return;
        }
        if let Some(target) = referred(self.root, schema) {
            self.follow(value, target, depth + 1);
        }
        (self.each)(value, schema);
        let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        for part in list("allOf") {
            self.follow(value, part, depth + 1);
        }
        for choice in list("anyOf").chain(list("oneOf")) {
            if has_type(value, referred(self.root, choice).unwrap_or(choice)) {
                self.follow(value, choice, depth + 1);
            }
        }
        match value {
            Value::Object(object) => {
                let known = schema.get("properties").and_then(Value::as_object);
                let other = schema.get("additionalProperties");
                for (name, value) in object {
                    if let Some(schema) = known.and_then(|known| known.get(name)).or(other) {
                        self.visit(value, schema, depth + 1);
                    }
                }
            }
            Value::Array(items) => {
                let first = list("prefixItems").map(Some);
                let rest = std::iter::repeat(schema.get("items"));
                for (item, schema) in items.iter_mut().zip(first.chain(rest)) {
                    if let Some(schema) = schema {
                        self.visit(item, schema, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }
}

fn coerce_one(value: &mut Value, schema: &Value, root: &Value) {
    leave_out_nulls(value, schema);
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
    let coerced = match choices {
        Some(choices) if choices.iter().any(|choice| has_type(value, choice)) => None,
        Some(choices) => choices.iter().flat_map(types_of).find_map(|name| to_type(value, name)),
        None if has_type(value, schema) => None,
        None => types_of(schema).into_iter().find_map(|name| to_type(value, name)),
    };
    if let Some(coerced) = coerced {
        *value = coerced;
    }
    // A lone `const` is one of several alternatives, which are looked at together.
    if schema.get("const").is_none()
        && let Some(options) = options(root, schema)
    {
        to_option(value, &options);
    }
}

/// Takes out of an object what is `null`, may be left out, and may not be `null`.
fn leave_out_nulls(value: &mut Value, schema: &Value) {
    let (Value::Object(object), Some(Value::Object(properties))) = (value, schema.get("properties")) else {
        return;
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    object.retain(|name, value| {
        let left_out = value.is_null()
            && !is_required(name)
            && properties.get(name).is_some_and(|schema| !has_type(value, schema));
        !left_out
    });
}

fn settle(value: &mut Value, schema: &Value) {
    if !value.is_f64() || !types_of(schema).contains(&"integer") {
        return;
    }
    if let Some(number) = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= MAX_EXACT) {
        // In this range every whole number is one of both kinds.
        let whole = number as i64;
        *value = whole.into();
    }
}

/// Whether a value is of a type that the schema names; a schema that names none takes any.
fn has_type(value: &Value, schema: &Value) -> bool {
    let types = types_of(schema);
    types.is_empty()
        || types.iter().any(|name| match *name {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => true,
        })
}

fn to_type(value: &Value, name: &str) -> Option<Value> {
    match (name, value) {
        ("integer" | "number", Value::String(text)) => {
            let number: Number = serde_json::from_str(text.trim()).ok()?;
            let value = Value::Number(number);
            (name == "number" || has_type(&value, &json!({"type": "integer"}))).then_some(value)
        }
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" => Some(true.into()),
            "false" | "no" => Some(false.into()),
            _ => None,
        },
        ("string", Value::Number(number)) => Some(number.to_string().into()),
        ("string", Value::Bool(flag)) => Some(flag.to_string().into()),
        ("array", Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Array(items)) => Some(Value::Array(items)),
            // A list that was cut off is no list of one text.
            Err(_) if text.trim_start().starts_with('[') => None,
            _ => Some(Value::Array(vec![value.clone()])),
        },
        ("array", Value::Number(_) | Value::Bool(_) | Value::Object(_)) => {
            Some(Value::Array(vec![value.clone()]))
        }
        ("object", Value::String(text)) => {
            serde_json::from_str(text).ok().filter(|value: &Value| value.is_object())
        }
        ("null", Value::String(text)) if matches!(text.trim(), "null" | "None") => Some(Value::Null),
        _ => None,
    }
}

/// The one option that differs from the value only in case or surrounding space.
fn to_option(value: &mut Value, options: &[&Value]) {
    let Value::String(text) = value else { return };
    if options.iter().any(|option| *option == text) {
        return;
    }
    let mut alike = options
        .iter()
        .filter(|option| option.as_str().is_some_and(|option| option.eq_ignore_ascii_case(text.trim())));
    if let (Some(only), None) = (alike.next(), alike.next()) {
        *value = (*only).clone();
    }
}

/// The types that a schema names.
pub(crate) fn types_of(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}
