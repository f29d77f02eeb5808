//! Arguments on their way from a model to a tool: bent toward the schema where they do not fit, then checked.

use std::fmt::Write as _;

use jsonschema::{PatternOptions, ValidationError, Validator, error::ValidationErrorKind};
use serde_json::{Map, Value};

use crate::{
    coerce::{coerce, settle_integers, types_of},
    guard::has_secret,
    nearest::nearest,
    result::{ErrorKind, ToolError},
};

/// How many faults the model is told of at once.
const MAX_FAULTS: usize = 8;

/// Checks the arguments of one tool.
#[derive(Debug)]
pub(crate) struct ArgumentChecker {
    validator: Validator,
    has_secret: bool,
}

impl ArgumentChecker {
    /// A checker for an input schema.
    ///
    /// # Errors
    /// What is wrong with the schema.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        if schema.is_null() {
            return Err("it has no input schema, or making it panicked".to_owned());
        }
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(
                "its input schema has to be an object schema: `\"type\": \"object\"` at the top".to_owned()
            );
        }
        let validator = jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema);
        let validator = validator.map_err(|error| {
            format!("its input schema is not valid: {error} (at `{}`)", error.instance_path())
        })?;
        Ok(Self { validator, has_secret: has_secret(schema) })
    }

    /// Whether an argument is marked as secret.
    pub(crate) fn has_secret(&self) -> bool {
        self.has_secret
    }

    /// The arguments as the tool takes them.
    ///
    /// # Errors
    /// `InvalidArguments`, with what was wrong, where, and what is expected.
    pub(crate) fn fit(
        &self,
        tool: &str,
        schema: &Value,
        arguments: Value,
    ) -> Result<Map<String, Value>, ToolError> {
        let mut arguments = match arguments {
            Value::Object(object) => Value::Object(object),
            Value::Null => Value::Object(Map::new()),
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(Value::Object(object)) => Value::Object(object),
                _ if text.trim().is_empty() => Value::Object(Map::new()),
                _ => return Err(not_an_object(tool, schema, "a text")),
            },
            other => return Err(not_an_object(tool, schema, kind_of(&other))),
        };
        if !self.validator.is_valid(&arguments) {
            coerce(&mut arguments, schema);
            let faults: Vec<String> = self
                .validator
                .iter_errors(&arguments)
                .take(MAX_FAULTS)
                .map(|error| describe(&error, schema))
                .collect();
            if !faults.is_empty() {
                return Err(invalid(tool, schema, &faults));
            }
        }
        settle_integers(&mut arguments, schema);
        match arguments {
            Value::Object(object) => Ok(object),
            other => Err(not_an_object(tool, schema, kind_of(&other))),
        }
    }
}

fn not_an_object(tool: &str, schema: &Value, found: &str) -> ToolError {
    invalid(tool, schema, &[format!("expected one JSON object, found {found}")])
}

fn invalid(tool: &str, schema: &Value, faults: &[String]) -> ToolError {
    let faults = faults.join("; ");
    ToolError::new(ErrorKind::InvalidArguments, format!("the arguments do not fit: {faults}")).with_feedback(
        format!(
            "The arguments for `{tool}` do not fit: {faults}. It takes {}. Call it again with these mended.",
            summary(schema)
        ),
    )
}

/// One fault, in words that say where and what is expected.
fn describe(error: &ValidationError<'_>, schema: &Value) -> String {
    let path = error.instance_path().to_string();
    let place = path.trim_start_matches('/').replace('/', ".");
    let parent = if place.is_empty() { String::new() } else { format!(" in `{place}`") };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("`{}` is missing{parent}", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected
            .iter()
            .map(|name| {
                let known = properties_at(schema, &path);
                match nearest(name, known.into_iter()).first() {
                    Some(meant) => format!("there is no `{name}`{parent}; did you mean `{meant}`?"),
                    None => format!("there is no `{name}`{parent}"),
                }
            })
            .collect::<Vec<_>>()
            .join("; "),
        // The words for any other fault quote the value, and with it whatever is inside.
        _ if has_secret(schema) => format!("`{place}`: {}", error.masked()),
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            format!("`{place}` is {}, which is none of the forms it may have", shorten(error.instance()))
        }
        _ if place.is_empty() => error.to_string(),
        _ => format!("`{place}`: {error}"),
    }
}

/// The names of the properties of the object at a JSON pointer.
fn properties_at<'s>(schema: &'s Value, pointer: &str) -> Vec<&'s str> {
    let mut schema = schema;
    for step in pointer.split('/').skip(1) {
        let next = schema.get("properties").and_then(|all| all.get(step)).or_else(|| schema.get("items"));
        let Some(next) = next else { return Vec::new() };
        schema = next;
    }
    schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

/// What a tool takes, in one line.
fn summary(schema: &Value) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty())
    else {
        return "no arguments: {}".to_owned();
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut text = String::from("{");
    for (index, (name, property)) in properties.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}\"{name}\"{optional}: {}", type_summary(property));
    }
    text.push('}');
    text
}

fn type_summary(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    let bounds = match (schema.get("minimum"), schema.get("maximum")) {
        (Some(min), Some(max)) => format!(" {min} to {max}"),
        (Some(min), None) => format!(" from {min}"),
        (None, Some(max)) => format!(" to {max}"),
        (None, None) => String::new(),
    };
    let name = types_of(schema).join(" or ");
    if name.is_empty() { "any".to_owned() } else { name + &bounds }
}

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fit(schema: &Value, arguments: Value) -> Result<Value, String> {
        ArgumentChecker::new(schema)
            .unwrap()
            .fit("weather", schema, arguments)
            .map(Value::Object)
            .map_err(|error| error.feedback().to_owned())
    }

    fn weather() -> Value {
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "unit": {"enum": ["metric", "imperial"]},
                "hours": {"type": "array", "items": {"type": "integer"}},
                "place": {"type": "object", "properties": {"lat": {"type": "number"}}},
            },
            "required": ["city"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn b6_what_fits_is_not_touched() {
        let arguments = json!({"city": "5", "days": 3, "hours": [1], "place": {"lat": 1.5}});
        assert_eq!(fit(&weather(), arguments.clone()), Ok(arguments));
    }

    #[test]
    fn b6_what_is_plainly_meant_is_bent() {
        for (given, taken) in [
            (json!({"city": "Oslo", "days": "3"}), json!({"city": "Oslo", "days": 3})),
            (json!({"city": 5}), json!({"city": "5"})),
            (json!({"city": "Oslo", "hours": "[1, \"2\"]"}), json!({"city": "Oslo", "hours": [1, 2]})),
            (json!({"city": "Oslo", "hours": 4}), json!({"city": "Oslo", "hours": [4]})),
            (json!({"city": "Oslo", "unit": " Metric"}), json!({"city": "Oslo", "unit": "metric"})),
            (json!({"city": "Oslo", "days": null}), json!({"city": "Oslo"})),
            (
                json!({"city": "Oslo", "place": "{\"lat\": \"1.5\"}"}),
                json!({"city": "Oslo", "place": {"lat": 1.5}}),
            ),
            (json!("{\"city\": \"Oslo\"}"), json!({"city": "Oslo"})),
            (
                json!({"city": "Oslo", "days": 3.0, "hours": [1e2]}),
                json!({"city": "Oslo", "days": 3, "hours": [100]}),
            ),
        ] {
            assert_eq!(fit(&weather(), given.clone()), Ok(taken), "{given}");
        }
    }

    #[test]
    fn b6_what_does_not_fit_is_told_with_place_and_expectation() {
        for (given, told) in [
            (json!({}), "`city` is missing"),
            (json!({"city": "Oslo", "dais": 3}), "there is no `dais`; did you mean `days`?"),
            (json!({"city": "Oslo", "days": 30}), "`days`: 30 is greater than the maximum of 14"),
            (json!({"city": "Oslo", "hours": [1, "x"]}), "`hours.1`: \"x\" is not of type \"integer\""),
            (json!([1]), "expected one JSON object, found a list"),
            (json!("Oslo"), "expected one JSON object, found a text"),
        ] {
            let text = fit(&weather(), given.clone()).unwrap_err();
            assert!(text.contains(told), "{given}: {text}");
            assert!(text.contains("\"city\": string, \"days\"?: integer 1 to 14"), "{text}");
        }
    }

    #[test]
    fn a_schema_that_is_none_is_refused_with_the_reason() {
        for (schema, reason) in [
            (json!({"type": "string"}), "object schema"),
            (json!({"type": "object", "properties": {"a": {"type": "text"}}}), "/properties/a/type"),
            (json!({"type": "object", "properties": {"a": {"pattern": "("}}}), "/properties/a/pattern"),
        ] {
            let error = ArgumentChecker::new(&schema).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn b6_every_place_of_a_value_is_bent() {
        let schema = json!({
            "type": "object",
            "$defs": {"tree": {"type": "object", "properties": {
                "size": {"type": "integer"}, "branches": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            }}},
            "properties": {
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}]},
                "tree": {"$ref": "#/$defs/tree"},
                "either": {"oneOf": [{"type": "object", "properties": {"x": {"type": "integer"}}}, {"type": "null"}]},
            },
        });
        let given = json!({
            "map": {"a": "1", "b": 2.0}, "pair": ["3", "true"], "either": {"x": "4"},
            "tree": {"size": 5.0, "branches": [{"size": "6"}]},
        });
        let taken = json!({
            "map": {"a": 1, "b": 2}, "pair": [3, true], "either": {"x": 4},
            "tree": {"size": 5, "branches": [{"size": 6}]},
        });
        assert_eq!(fit(&schema, given), Ok(taken));
        let endless = json!({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}});
        assert_eq!(fit(&endless, json!({"a": 1.0})), Ok(json!({"a": 1.0})));
    }

    #[test]
    fn choices_are_tried_in_order() {
        let schema = json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}}});
        assert_eq!(fit(&schema, json!({"a": "4"})), Ok(json!({"a": 4})));
        assert_eq!(fit(&schema, json!({"a": "true"})), Ok(json!({"a": true})));
        assert_eq!(fit(&schema, json!({"a": false})), Ok(json!({"a": false})));
    }
}
