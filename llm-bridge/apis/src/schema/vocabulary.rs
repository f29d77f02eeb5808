//! The keywords of JSON Schema 2020-12, and the translation of older drafts.
//!
//! Source: <https://json-schema.org/draft/2020-12/json-schema-core> and `json-schema-validation`.

use serde_json::{Map, Value};

/// The kind of a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A schema.
    Schema,
    /// Schemas by name.
    Map,
    /// A list of schemas.
    List,
    /// No subschema.
    Plain,
}

pub(super) fn kind(keyword: &str) -> Kind {
    match keyword {
        "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "items"
        | "unevaluatedItems"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contentSchema" => Kind::Schema,
        "properties" | "patternProperties" | "dependentSchemas" => Kind::Map,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Kind::List,
        _ => Kind::Plain,
    }
}

/// The types that a keyword applies to; `None` for all.
pub(super) fn domain(keyword: &str) -> Option<&'static [&'static str]> {
    match keyword {
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "required"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependentRequired"
        | "dependentSchemas" => Some(&["object"]),
        "items" | "prefixItems" | "unevaluatedItems" | "contains" | "minContains" | "maxContains"
        | "minItems" | "maxItems" | "uniqueItems" => Some(&["array"]),
        "minLength" | "maxLength" | "pattern" => Some(&["string"]),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            Some(&["number", "integer"])
        }
        _ => None,
    }
}

/// Whether removing the keyword may let more values match.
pub(super) fn is_constraint(keyword: &str, value: &Value) -> bool {
    const APPLIED: [&str; 9] = ["type", "enum", "const", "not", "if", "allOf", "anyOf", "oneOf", "$ref"];
    match keyword {
        "format" => value.as_str().is_some_and(is_format),
        "additionalProperties" | "unevaluatedProperties" | "items" | "unevaluatedItems" => *value != true,
        "uniqueItems" => *value == true,
        _ => domain(keyword).is_some() || APPLIED.contains(&keyword),
    }
}

/// Whether JSON Schema defines a format; others are not validated.
pub(super) fn is_format(name: &str) -> bool {
    const FORMATS: [&str; 19] = [
        "date-time",
        "date",
        "time",
        "duration",
        "email",
        "idn-email",
        "hostname",
        "idn-hostname",
        "ipv4",
        "ipv6",
        "uri",
        "uri-reference",
        "iri",
        "iri-reference",
        "uuid",
        "uri-template",
        "json-pointer",
        "relative-json-pointer",
        "regex",
    ];
    FORMATS.contains(&name)
}

/// Whether a keyword is an annotation.
pub(super) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title" | "description" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
    )
}

pub(super) const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];

/// The types that `type` names.
///
/// # Errors
/// What it has to be.
pub(super) fn types(schema: &Map<String, Value>) -> Result<Option<Vec<&str>>, String> {
    let named: Vec<&Value> = match schema.get("type") {
        None => return Ok(None),
        Some(Value::Array(names)) => names.iter().collect(),
        Some(name) => vec![name],
    };
    // Each once, however often it is named.
    let mut known: Vec<&str> = Vec::new();
    for name in &named {
        match name.as_str().filter(|name| TYPES.contains(name)) {
            Some(name) if known.contains(&name) => {}
            Some(name) => known.push(name),
            None => known.clear(),
        }
        if known.is_empty() {
            break;
        }
    }
    if known.is_empty() {
        return Err(format!("`type` has to be of {}", TYPES.join(", ")));
    }
    Ok(Some(known))
}

/// Checks the value of a keyword without subschemas.
///
/// # Errors
/// What it has to be.
pub(super) fn check(keyword: &str, value: &Value) -> Result<(), String> {
    let texts = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    let is_count = |value: &Value| value.as_f64().is_some_and(|count| count >= 0.0 && count.fract() == 0.0);
    let (fits, wanted) = match keyword {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => (value.is_number(), "a number"),
        "multipleOf" => (value.as_f64().is_some_and(|of| of > 0.0), "a number above zero"),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => (is_count(value), "a whole number from 0"),
        "pattern" | "format" | "title" | "description" => (value.is_string(), "a text"),
        "uniqueItems" => (value.is_boolean(), "true or false"),
        "required" => (texts(value), "a list of names"),
        "enum" => (value.is_array(), "a list of values"),
        "dependentRequired" => {
            (value.as_object().is_some_and(|all| all.values().all(texts)), "lists of names by name")
        }
        _ => return Ok(()),
    };
    if fits { Ok(()) } else { Err(format!("`{keyword}` has to be {wanted}")) }
}

/// Translates older drafts to 2020-12, and removes what constrains nothing.
pub(super) fn modernize(schema: &mut Map<String, Value>) {
    const SILENT: [&str; 10] = [
        "$schema",
        "$id",
        "$comment",
        "$vocabulary",
        "$defs",
        "definitions",
        "$anchor",
        "$dynamicAnchor",
        "$recursiveAnchor",
        // OpenAPI's; JSON Schema does not define it.
        "nullable",
    ];
    schema.retain(|keyword, _| !SILENT.contains(&keyword.as_str()));
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(is_exclusive) = schema.get(exclusive).and_then(Value::as_bool) {
            schema.shift_remove(exclusive);
            if is_exclusive && let Some(value) = schema.shift_remove(bound) {
                schema.insert(exclusive.to_owned(), value);
            }
        }
    }
    let others = schema.shift_remove("additionalItems");
    if schema.get("items").is_some_and(Value::is_array) {
        let tuple = schema.shift_remove("items").unwrap_or_default();
        schema.insert("prefixItems".to_owned(), tuple);
        schema.extend(others.map(|others| ("items".to_owned(), others)));
    }
    if let Some(Value::Object(dependencies)) = schema.shift_remove("dependencies") {
        for (name, needed) in dependencies {
            let keyword = if needed.is_array() { "dependentRequired" } else { "dependentSchemas" };
            if let Value::Object(all) = schema.entry(keyword).or_insert_with(|| Map::new().into()) {
                all.insert(name, needed);
            }
        }
    }
    if !schema.contains_key("if") {
        schema.shift_remove("then");
        schema.shift_remove("else");
    } else if !schema.contains_key("then") && !schema.contains_key("else") {
        schema.shift_remove("if");
    }
    if !schema.contains_key("contains") {
        schema.shift_remove("minContains");
        schema.shift_remove("maxContains");
    }
}
