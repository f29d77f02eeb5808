//! Leaves out what nobody should read: arguments whose schema says `writeOnly`.

use serde_json::{Map, Value};

/// What stands in place of a secret.
const HIDDEN: &str = "(secret)";

/// The arguments with every value hidden whose schema has `"writeOnly": true`, which is how `#[arg(secret)]` and
/// JSON Schema mark it.
pub(crate) fn without_secrets(schema: &Value, arguments: &Map<String, Value>) -> Value {
    let part = |key: &str| schema.get(key).unwrap_or(&Value::Null);
    let member = |(name, value): (&String, &Value)| {
        let schema = part("properties").get(name).unwrap_or(part("additionalProperties"));
        (name.clone(), hidden(schema, value))
    };
    Value::Object(arguments.iter().map(member).collect())
}

fn hidden(schema: &Value, value: &Value) -> Value {
    if schema.get("writeOnly") == Some(&Value::Bool(true)) {
        return Value::from(HIDDEN);
    }
    match value {
        Value::Object(members) => without_secrets(schema, members),
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            items.iter().map(|item| hidden(schema, item)).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_hidden_wherever_it_is() {
        let secret = json!({"type": "string", "writeOnly": true});
        let schema = json!({"properties": {
            "key": secret, "plain": {}, "list": {"items": {"properties": {"pin": secret}}},
        }});
        let given = json!({"key": "k", "plain": "p", "list": [{"pin": 1, "at": 2}], "other": 3});
        let kept =
            json!({"key": "(secret)", "plain": "p", "list": [{"pin": "(secret)", "at": 2}], "other": 3});
        assert_eq!(without_secrets(&schema, given.as_object().unwrap()), kept);
    }
}
