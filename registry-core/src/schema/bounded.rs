//! Schemas that somebody else may have written: their patterns are bounded, and so is the work of checking values.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::work::Work;
use crate::json::parts;

/// How large a pattern may be when it is compiled, in bytes.
pub(super) const MAX_PATTERN: usize = 1 << 20;
/// How large all patterns of a schema may be together. They take this as it is compiled, and a multiple when they match.
const MAX_PATTERNS: usize = 2 << 20;
/// How large all patterns of a source of tools may be together.
const MAX_PATTERNS_OF_SOURCE: usize = 16 << 20;

/// Validates values by a schema that somebody else may have written: its patterns are bounded, and what would take too long is not begun.
#[derive(Debug)]
pub struct BoundedValidator {
    pub(super) validator: Validator,
    pub(super) work: Work,
}

impl BoundedValidator {
    /// # Errors
    /// What is wrong with the schema.
    pub fn new(schema: &Value) -> Result<Self, String> {
        Self::among(schema, 0)
    }

    /// The same for a schema of a source whose schemas have so many patterns together.
    fn among(schema: &Value, patterns: usize) -> Result<Self, String> {
        let work = Work::of(schema).map_err(|fault| format!("its input schema is not taken: {fault}"))?;
        let share = MAX_PATTERNS / patterns_in(schema).max(1);
        let of_source = MAX_PATTERNS_OF_SOURCE / patterns.max(1);
        let size = MAX_PATTERN.min(share).min(of_source);
        let options = PatternOptions::regex().size_limit(size).dfa_size_limit(MAX_PATTERN);
        let validator = jsonschema::options().with_pattern_options(options).build(schema);
        Ok(Self { validator: validator.map_err(|error| invalid_schema(&error))?, work })
    }

    /// What is wrong with a value, at most so many faults, each with its place. `schema` is the one this was made of.
    ///
    /// # Errors
    /// When checking it would take too long.
    pub fn faults(&self, value: &Value, schema: &Value, most: usize) -> Result<Vec<String>, &'static str> {
        self.work.check(schema, value)?;
        let faults = self.validator.iter_errors(value).take(most);
        Ok(faults.map(|fault| format!("{fault} (at `{}`)", fault.instance_path())).collect())
    }
}

/// How many patterns a schema has. A [source's](check_input_among) are counted together.
pub fn patterns_in(schema: &Value) -> usize {
    let patterns = parts(schema).map(|part| match part {
        (Some("pattern"), Value::String(_)) => 1,
        (Some("patternProperties"), Value::Object(patterns)) => patterns.len(),
        _ => 0,
    });
    patterns.sum()
}

/// Checks that a schema can be that of a tool's arguments.
///
/// # Errors
/// What is wrong with it.
pub fn check_input(schema: &Value) -> Result<(), String> {
    check_input_among(schema, 0)
}

/// The same for a tool of a source whose tools have [so many patterns](patterns_in) together: the more there are, the smaller each has
/// to be.
///
/// # Errors
/// What is wrong with it.
pub fn check_input_among(schema: &Value, patterns: usize) -> Result<(), String> {
    check_is_object(schema)?;
    BoundedValidator::among(schema, patterns).map(drop)
}

pub(super) fn check_is_object(schema: &Value) -> Result<(), String> {
    if schema.is_null() {
        return Err("it has no input schema, or making it panicked".to_owned());
    }
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(
            "its input schema has to be an object schema: `\"type\": \"object\"` at the top".to_owned()
        );
    }
    Ok(())
}

pub(super) fn invalid_schema(error: &jsonschema::ValidationError<'_>) -> String {
    let text = error.to_string();
    let meant = match text.ends_with("is not a \"regex\"") {
        true => ", or one that is too large when it is compiled",
        false => "",
    };
    format!("its input schema is not valid: {text}{meant} (at `{}`)", error.instance_path())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn a4_patterns_are_bounded_alone_in_a_tool_and_in_a_source() {
        let patterns = |pattern: &str, many: usize| {
            let properties: Map<String, Value> =
                (0..many).map(|at| (format!("p{at}"), json!({"pattern": pattern}))).collect();
            json!({"type": "object", "properties": properties})
        };
        // The attack: 3 MB each.
        let large = r"^\p{L}{100}N$";
        for many in [1, 100] {
            let error = check_input(&patterns(large, many)).unwrap_err();
            assert!(error.contains("too large") && error.contains("/pattern"), "{error}");
        }
        let name = r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$";
        let schema = patterns(name, 60);
        assert_eq!((patterns_in(&schema), check_input(&schema)), (60, Ok(())));
        assert_eq!(check_input_among(&schema, 1000), Ok(()));
        assert!(check_input_among(&schema, 100_000).is_err());
    }
}
