//! Tool definitions of the Anthropic Messages API: <https://docs.anthropic.com/en/api/messages>.
//!
//! Names are `[a-zA-Z0-9_-]{1,128}` and unique. A schema is valid JSON Schema 2020-12 whose root is an object without `oneOf`, `allOf`
//! or `anyOf`; the names of its top properties are `[a-zA-Z0-9_.-]{1,64}`. The last two are from the API's error
//! messages. Strict mode is not used: it supports neither bounds nor many optional properties, and rejects whole requests for the
//! size of their grammar.

use serde_json::{Map, Value};

use crate::{
    names::NameRule,
    rules::{Depth, Form, Keywords, Parts, Rules},
};

pub(crate) const RULES: Rules = Rules {
    name: NameRule { extra: "-", begins_with_letter: false, max_length: 128 },
    max_description: None,
    needs_description: false,
    max_tools: None,
    forms: &[Form {
        field: "input_schema",
        at_root: Keywords::AllBut(&["oneOf", "anyOf", "allOf"]),
        property_names: Some((
            NameRule { extra: ".-", begins_with_letter: false, max_length: 64 },
            Depth::Root,
        )),
        ..Form::JSON_SCHEMA
    }],
    strict: None,
    write,
    list: Value::Array,
};

fn write(parts: &Parts<'_>) -> Value {
    let mut tool = Map::new();
    tool.insert("name".to_owned(), parts.name.into());
    tool.extend(parts.description.map(|text| ("description".to_owned(), text.into())));
    tool.insert(parts.field.to_owned(), parts.schema.clone().into());
    tool.into()
}
