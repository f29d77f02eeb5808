//! JSON Schemas of Rust types, in the form that models and providers take best.

mod bounded;
mod choices;
mod coerce;
mod consistency;
mod faults;
pub(crate) mod from_call;
pub(crate) mod literal;
mod loosen;
mod output;
pub(crate) mod parameter;
pub(crate) mod probe;
mod secret;
mod validate;
mod work;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

pub use bounded::{BoundedValidator, check_input, check_input_among, patterns_in};
pub(crate) use coerce::{coerce, settle_integers};
pub(crate) use consistency::{bytes, inconsistencies};
pub(crate) use faults::describe as describe_fault;
use from_call::Describe;
pub use from_call::{Argument, ByHost, ByModel, FromCall, FromList, FromText, Shown};
pub use loosen::{as_object_schema, without_unusable_patterns};
pub use output::Output;
pub use parameter::{Counted, Number, Text};
pub(crate) use secret::{all_hidden, has_secret, without_secrets};
pub(crate) use validate::{ArgumentChecker, ValidationError};

use crate::json::narrowed;

/// The schema of an argument struct: an object, nested types in place, without what only Rust knows.
pub fn of_arguments<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_deserialize());
    tidy(&mut schema);
    if let Value::Object(root) = &mut schema {
        // A struct's own name and docs say nothing that the tool's do not.
        root.remove("title");
        root.remove("description");
        root.entry("type").or_insert_with(|| "object".into());
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// The schema of a list of arguments: what `of_arguments` gives for a struct with these as fields.
pub(crate) fn object_of(parameters: &[&dyn Describe]) -> Value {
    let mut generator = generator(SchemaSettings::draft2020_12().for_deserialize());
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in parameters {
        let Some((name, schema, is_optional)) = parameter.describe(&mut generator) else { continue };
        properties.insert(name.to_owned(), schema.into());
        if !is_optional {
            required.push(name);
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if let Value::Object(schema) = &mut schema {
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema.insert("additionalProperties".to_owned(), false.into());
        // Types that contain themselves are the only ones that are not written in place.
        let definitions = generator.take_definitions(true);
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), definitions.into());
        }
    }
    tidy(&mut schema);
    schema
}

/// The schema of a tool's result.
fn of_output<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_serialize());
    tidy(&mut schema);
    schema
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    generator(settings).into_root_schema_for::<T>().into()
}

fn generator(settings: SchemaSettings) -> SchemaGenerator {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    SchemaGenerator::new(settings)
}

/// Takes out what providers refuse and models need not read: formats of Rust's own, and `null` as a value of
/// something that may be left out anyway.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if is_f32(object) || object.get("items").and_then(Value::as_object).is_some_and(is_f32) {
                object.get_mut("default").into_iter().for_each(narrow);
            }
            if object.get("format").and_then(Value::as_str).is_some_and(is_rust_format) {
                object.remove("format");
            }
            allow_omission_only(object);
            object.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn is_f32(schema: &Map<String, Value>) -> bool {
    schema.get("format").is_some_and(|format| format == "float")
}

/// Gives numbers the digits that they have as `f32`.
fn narrow(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => *value = number.as_f64().map(narrowed).into(),
        Value::Array(items) => items.iter_mut().for_each(narrow),
        _ => {}
    }
}

fn is_rust_format(format: &str) -> bool {
    matches!(format, "float" | "double" | "char") || format.starts_with("int") || format.starts_with("uint")
}

/// An optional property is one that is left out; `null` for it is read as that (see `arguments`), so the schema need not offer it.
fn allow_omission_only(object: &mut Map<String, Value>) {
    let required: Vec<String> = object
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
    for (name, property) in properties {
        if let Value::Object(property) = property
            && !required.contains(name)
        {
            remove_null(property);
        }
    }
}

fn remove_null(property: &mut Map<String, Value>) {
    if property.get("default").is_some_and(Value::is_null) {
        property.remove("default");
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = property.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            property.remove("anyOf");
            for (key, value) in only {
                property.entry(key).or_insert(value);
            }
        }
    }
}

/// What `#[arg]` adds to a schema; which keyword says it depends on the type.
#[derive(Debug, Clone)]
pub enum Bound {
    /// Least and greatest number, and whether the greatest is itself too much.
    Range {
        /// The least.
        min: Option<Value>,
        /// The greatest, or the first that is too great.
        max: Option<Value>,
        /// Whether `max` itself is too great.
        exclusive: bool,
    },
    /// Least and greatest number of characters or items.
    Length {
        /// The least.
        min: Option<u64>,
        /// The greatest.
        max: Option<u64>,
    },
    /// A regular expression that has to match.
    Pattern(&'static str),
    /// Shown to nobody: neither the audit nor a person who approves the call sees the value.
    Secret,
}

impl schemars::transform::Transform for Bound {
    fn transform(&mut self, schema: &mut Schema) {
        let Some(object) = schema.as_object_mut() else { return };
        match self {
            Self::Range { min, max, exclusive } => {
                set(object, "minimum", min.clone());
                set(object, if *exclusive { "exclusiveMaximum" } else { "maximum" }, max.clone());
                if *exclusive && max.is_some() {
                    object.remove("maximum");
                }
            }
            Self::Length { min, max } => {
                let (least, greatest) = match type_of(object) {
                    "array" => ("minItems", "maxItems"),
                    "object" => ("minProperties", "maxProperties"),
                    _ => ("minLength", "maxLength"),
                };
                set(object, least, min.map(Value::from));
                set(object, greatest, max.map(Value::from));
            }
            Self::Pattern(pattern) => set(object, "pattern", Some((*pattern).into())),
            Self::Secret => set(object, "writeOnly", Some(true.into())),
        }
    }
}

fn set(object: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value);
    }
}

/// The one type of a schema besides `null`.
fn type_of(object: &Map<String, Value>) -> &str {
    match object.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or_default()
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        /// How many.
        #[schemars(transform = Bound::Range { min: Some(1.into()), max: Some(14.into()), exclusive: true })]
        count: u8,
        /// Names.
        #[schemars(transform = Bound::Length { min: Some(1), max: None })]
        names: Option<Vec<String>>,
        unit: Option<Unit>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Metric,
        Imperial,
    }

    #[test]
    fn a_schema_is_plain() {
        assert_eq!(
            of_arguments::<Arguments>(),
            json!({
                "type": "object",
                "properties": {
                    "count": {"description": "How many.", "type": "integer", "minimum": 1, "exclusiveMaximum": 14},
                    "names": {"description": "Names.", "type": "array", "items": {"type": "string"}, "minItems": 1},
                    "unit": {"type": "string", "enum": ["metric", "imperial"]},
                },
                "required": ["count"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn no_arguments_are_an_object_too() {
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        assert_eq!(
            of_arguments::<Nothing>(),
            json!({"type": "object", "additionalProperties": false, "properties": {}})
        );
    }
}
