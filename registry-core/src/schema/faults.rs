//! Says what is wrong with the arguments of a call, so that a model can mend them.

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::Value;

use super::{
    choices::{MAX_FOUND, MAX_LISTED, fits_none, form, not_one_of, quoted},
    has_secret,
};
use crate::{
    nearest::nearest,
    result::{ErrorKind, ToolError},
    text::shorten,
};

/// The arguments are none.
pub(crate) fn not_an_object(tool: &str, schema: &Value, found: &Value) -> ToolError {
    invalid(tool, schema, &[format!("expected one JSON object, found {}", kind_of(found))])
}

/// The arguments are too much to be checked.
pub(crate) fn too_much(tool: &str, fault: &str) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, format!("the arguments are not taken: {fault}"))
        .with_feedback(format!("The arguments for `{tool}` are not taken: {fault}."))
}

/// The arguments have these faults.
pub(crate) fn invalid(tool: &str, schema: &Value, faults: &[String]) -> ToolError {
    let faults = faults.join("; ");
    let end = if faults.ends_with(['.', '?']) { "" } else { "." };
    ToolError::new(ErrorKind::InvalidArguments, format!("the arguments do not fit: {faults}")).with_feedback(
        format!(
            "The arguments for `{tool}` do not fit: {faults}{end}{} Call it again with these mended.",
            summary(schema)
        ),
    )
}

/// One fault, in words that say where and what is expected.
pub(crate) fn describe(error: &ValidationError<'_>, schema: &Value) -> String {
    let path = error.instance_path().to_string();
    let place = path.trim_start_matches('/').replace('/', ".");
    let parent = if place.is_empty() { String::new() } else { format!(" in `{place}`") };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("`{}` is missing{parent}", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected
            .iter()
            .take(MAX_LISTED)
            .map(|name| {
                let known = properties_at(schema, &path);
                match nearest(name, known.into_iter()).first() {
                    Some(meant) => format!("there is no `{name}`{parent}; did you mean `{meant}`?"),
                    None => format!("there is no `{}`{parent}", shorten(name.clone(), MAX_FOUND)),
                }
            })
            .collect::<Vec<_>>()
            .join("; "),
        ValidationErrorKind::Enum { options } => {
            let options: Vec<&Value> = options.as_array().into_iter().flatten().collect();
            at(&place, &not_one_of(quotable(error, schema), &options))
        }
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            let alternatives = schema.pointer(error.schema_path().as_str()).and_then(Value::as_array);
            let alternatives = alternatives.map_or(&[][..], Vec::as_slice);
            at(&place, &fits_none(quotable(error, schema), schema, alternatives))
        }
        // The words for any other fault quote the value, and with it whatever is inside, however long.
        _ => at(&place, &error.masked_with(quoted(quotable(error, schema))).to_string()),
    }
}

fn at(place: &str, fault: &str) -> String {
    if place.is_empty() { fault.to_owned() } else { format!("`{place}`: {fault}") }
}

/// The value at fault, unless it may be secret.
fn quotable<'e>(error: &'e ValidationError<'_>, schema: &Value) -> Option<&'e Value> {
    Some(error.instance().as_ref()).filter(|_| !has_secret(schema))
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

/// What a tool takes, in one line; empty where its properties do not say.
fn summary(schema: &Value) -> String {
    /// The keywords that admit a property, or ask for it, beside `properties`.
    const SAYING_MORE: [&str; 6] = ["$ref", "allOf", "anyOf", "if", "oneOf", "patternProperties"];
    let says_more = SAYING_MORE.iter().any(|keyword| schema.get(keyword).is_some())
        || schema.get("additionalProperties").is_some_and(Value::is_object);
    match form(schema, schema).as_str() {
        "object" if says_more => String::new(),
        "object" => " It takes no arguments: {}.".to_owned(),
        form => format!(" It takes {form}."),
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
