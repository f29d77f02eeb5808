//! Tool definitions of the Gemini API: <https://ai.google.dev/api/caching#FunctionDeclaration>.
//!
//! A schema goes under one of two keys. `parameters` is a subset of OpenAPI's schema object: an unknown key,
//! a list of types, an array without `items` and an object without properties are each a 400 for the whole request
//! (<https://ai.google.dev/api/caching#Schema>). `parametersJsonSchema` supports more of JSON Schema, but fewer bounds. The
//! first exists in every version of the API and is preferred; a schema that it cannot express goes under the second.
//!
//! Names start with a letter or `_`, may contain dots, colons and dashes, and have at most 128 characters; names of parameters have no
//! such signs and at most 64. The formats are `date-time` for strings, `float` and `double`, `int32` and `int64`.

use serde_json::{Map, Value, json};

use crate::{
    names::NameRule,
    rules::{Depth, Form, Keywords, Parts, Rules, Values},
};

const PROPERTY: NameRule = NameRule { extra: "", begins_with_letter: true, max_length: 64 };

pub(crate) const RULES: Rules = Rules {
    name: NameRule { extra: ".:-", begins_with_letter: true, max_length: 128 },
    max_description: None,
    needs_description: true,
    max_tools: None,
    forms: &[OPEN_API, JSON_SCHEMA],
    strict: None,
    write,
    list,
};

const OPEN_API: Form = Form {
    whole: false,
    field: "parameters",
    keywords: Keywords::Only(&[
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
        "items",
        "minimum",
        "maximum",
    ]),
    at_root: Keywords::Only(&[
        "type",
        "title",
        "description",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
    ]),
    references: false,
    type_lists: false,
    nullable: true,
    typed: true,
    needs_properties: true,
    needs_items: true,
    declared: true,
    values: Values::Texts,
    formats: Some(&[
        ("string", "date-time"),
        ("number", "float"),
        ("number", "double"),
        ("integer", "int32"),
        ("integer", "int64"),
    ]),
    property_names: Some((PROPERTY, Depth::Everywhere)),
    strict: false,
};

const JSON_SCHEMA: Form = Form {
    field: "parametersJsonSchema",
    keywords: Keywords::Only(&[
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "properties",
        "additionalProperties",
        "required",
    ]),
    at_root: Keywords::Only(&[
        "type",
        "title",
        "description",
        "properties",
        "additionalProperties",
        "required",
    ]),
    references: false,
    needs_items: true,
    declared: true,
    values: Values::TextsAndNumbers,
    property_names: Some((PROPERTY, Depth::Everywhere)),
    ..Form::JSON_SCHEMA
};

fn write(parts: &Parts<'_>) -> Value {
    let mut declaration = Map::new();
    declaration.insert("name".to_owned(), parts.name.into());
    declaration.extend(parts.description.map(|text| ("description".to_owned(), text.into())));
    if has_parameters(parts) {
        declaration.insert(parts.field.to_owned(), parts.schema.clone().into());
    }
    declaration.into()
}

/// Whether the tool takes any argument. Both keys are optional, and `parameters` without properties is rejected.
fn has_parameters(parts: &Parts<'_>) -> bool {
    let schema = parts.schema;
    schema.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty())
        || schema.get("additionalProperties").is_some_and(|others| *others != false)
        || parts.subject.input_schema.get("patternProperties").is_some()
}

/// One entry with all declarations.
fn list(declarations: Vec<Value>) -> Value {
    if declarations.is_empty() {
        return json!([]);
    }
    json!([{ "functionDeclarations": declarations }])
}
