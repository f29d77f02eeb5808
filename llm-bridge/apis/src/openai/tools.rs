//! Tool definitions of the chat completions API.
//!
//! Rules and their sources:
//! - shape, name `[A-Za-z0-9_-]{1,64}`: the API reference, <https://platform.openai.com/docs/api-reference/chat>, and its OpenAPI
//!   document, <https://github.com/openai/openai-openapi>
//! - the root has type `object` and no `oneOf`, `anyOf`, `allOf`, `enum` or `not`; arrays have `items`; at most 128 tools and 1024
//!   characters of description: the API's error messages
//! - the strict subset and its limits: <https://platform.openai.com/docs/guides/structured-outputs>

use serde_json::{Map, Value, json};

use crate::{
    names::NameRule,
    rules::{Form, Keywords, Parts, Rules, Values},
};

pub(crate) const RULES: Rules = Rules {
    name: NameRule { extra: "-", begins_with_letter: false, max_length: 64 },
    max_description: Some(1024),
    needs_description: false,
    max_tools: Some(128),
    forms: &[FORM],
    strict: Some(&STRICT),
    write,
    list: Value::Array,
};

/// What is accepted without `strict`.
pub(crate) const FORM: Form = Form {
    field: "parameters",
    at_root: Keywords::AllBut(&["oneOf", "anyOf", "allOf", "enum", "const", "not"]),
    needs_items: true,
    ..Form::JSON_SCHEMA
};

/// What is accepted with `strict`. References are inlined: one with a description beside it is rejected.
pub(crate) const STRICT: Form = Form {
    field: "parameters",
    keywords: Keywords::Only(&[
        "type",
        "title",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "enum",
        "const",
        "anyOf",
        "pattern",
        "format",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ]),
    at_root: Keywords::Only(&[
        "type",
        "title",
        "description",
        "properties",
        "required",
        "additionalProperties",
    ]),
    references: false,
    typed: true,
    needs_items: true,
    declared: true,
    values: Values::Any,
    formats: Some(&[
        ("string", "date-time"),
        ("string", "time"),
        ("string", "date"),
        ("string", "duration"),
        ("string", "email"),
        ("string", "hostname"),
        ("string", "ipv4"),
        ("string", "ipv6"),
        ("string", "uuid"),
    ]),
    strict: true,
    ..Form::JSON_SCHEMA
};

fn write(parts: &Parts<'_>) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), parts.name.into());
    function.extend(parts.description.map(|text| ("description".to_owned(), text.into())));
    function.insert(parts.field.to_owned(), parts.schema.clone().into());
    function.extend(parts.strict.then(|| ("strict".to_owned(), true.into())));
    json!({ "type": "function", "function": function })
}
