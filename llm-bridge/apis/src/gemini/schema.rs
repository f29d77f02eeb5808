//! Schemas of clients in the API's subset of OpenAPI: <https://ai.google.dev/api/caching#Schema>.

use serde_json::{Map, Value, json};

use crate::json::camel_case;

/// The same schema as JSON Schema. Names of keywords may be in camel case or in snake case, those of types in capitals, and integers
/// may be strings.
pub(super) fn json_schema(schema: Value) -> Value {
    let Value::Object(keywords) = schema else { return schema };
    let mut written = Map::new();
    let mut nullable = false;
    for (keyword, value) in keywords {
        let keyword = match camel_case(&keyword) {
            name if matches!(name.as_ref(), "ref" | "defs") => format!("${name}"),
            name => name.into_owned(),
        };
        let value = match keyword.as_str() {
            "nullable" => {
                nullable = value == true;
                continue;
            }
            "type" if value == "TYPE_UNSPECIFIED" => continue,
            "type" => type_name(value),
            "properties" | "$defs" => each_value(value),
            "items" | "additionalProperties" => json_schema(value),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => each_item(value),
            "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties" => {
                number(value)
            }
            _ => value,
        };
        written.insert(keyword, value);
    }
    if nullable {
        allow_null(&mut written);
    }
    written.into()
}

fn type_name(value: Value) -> Value {
    match value {
        Value::String(name) => name.to_ascii_lowercase().into(),
        Value::Array(names) => names.into_iter().map(type_name).collect(),
        other => other,
    }
}

fn each_value(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.into_iter().map(|(name, schema)| (name, json_schema(schema))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

fn each_item(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(json_schema).collect(),
        other => other,
    }
}

fn number(value: Value) -> Value {
    match value.as_str().map(str::parse::<u64>) {
        Some(Ok(number)) => number.into(),
        _ => value,
    }
}

fn allow_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") {
        alternatives.push(json!({"type": "null"}));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
    if let Some(kind @ Value::String(_)) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_becomes_json_schema() {
        for (schema, expected) in [
            (json!({"type": "STRING"}), json!({"type": "string"})),
            (
                json!({"type": "OBJECT", "properties": {"any_of": {"type": "INTEGER", "nullable": true}}}),
                json!({"type": "object", "properties": {"any_of": {"type": ["integer", "null"]}}}),
            ),
            (
                json!({"any_of": [{"type": "STRING"}], "nullable": true}),
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            ),
            (
                json!({"type": "ARRAY", "max_items": "3", "minItems": 1, "items": {"type": "NUMBER"}}),
                json!({"type": "array", "maxItems": 3, "minItems": 1, "items": {"type": "number"}}),
            ),
            (
                json!({"type": "STRING", "enum": ["A"], "nullable": true}),
                json!({"type": ["string", "null"], "enum": ["A", null]}),
            ),
            (
                json!({"type": "TYPE_UNSPECIFIED", "ref": "#/$defs/a", "defs": {"a": {"type": "BOOLEAN"}}}),
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}}),
            ),
        ] {
            assert_eq!(json_schema(schema.clone()), expected, "{schema}");
        }
    }
}
