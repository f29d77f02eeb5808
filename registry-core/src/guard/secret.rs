//! Leaves out what nobody should read: arguments whose schema says `writeOnly`.

use serde_json::{Map, Value};

/// What stands in place of a secret.
const HIDDEN: &str = "(secret)";

/// The arguments with every value hidden whose schema has `"writeOnly": true`, which is how `#[arg(secret)]` and
/// JSON Schema mark it. Where a schema has a secret, what does not fit it is hidden too: it may be the secret under another
/// name or in another shape.
pub(crate) fn without_secrets(schema: &Value, arguments: &Map<String, Value>) -> Value {
    let secretive = has_secret(schema);
    let part = |key: &str| schema.get(key).unwrap_or(&Value::Null);
    let member = |(name, value): (&String, &Value)| {
        let kept = match part("properties").get(name) {
            Some(schema) => hidden(schema, value),
            None if secretive => Value::from(HIDDEN),
            None => hidden(part("additionalProperties"), value),
        };
        (name.clone(), kept)
    };
    Value::Object(arguments.iter().map(member).collect())
}

fn is_secret(schema: &Value) -> bool {
    schema.get("writeOnly") == Some(&Value::Bool(true))
}

/// Whether a schema, or any schema in it, is of a secret.
fn has_secret(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => is_secret(schema) || members.values().any(has_secret),
        Value::Array(items) => items.iter().any(has_secret),
        _ => false,
    }
}

fn hidden(schema: &Value, value: &Value) -> Value {
    if is_secret(schema) {
        return Value::from(HIDDEN);
    }
    match (value, schema.get("items")) {
        (Value::Object(members), _) if schema.get("properties").is_some() || !has_secret(schema) => {
            without_secrets(schema, members)
        }
        (Value::Array(items), Some(schema)) => items.iter().map(|item| hidden(schema, item)).collect(),
        (other, _) if !has_secret(schema) => other.clone(),
        _ => Value::from(HIDDEN),
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
            "key": secret, "plain": {}, "list": {"items": {"properties": {"pin": secret, "at": {}}}},
        }});
        let given = json!({"key": "k", "plain": {"p": 1}, "list": [{"pin": 1, "at": 2}]});
        let kept = json!({"key": "(secret)", "plain": {"p": 1}, "list": [{"pin": "(secret)", "at": 2}]});
        assert_eq!(without_secrets(&schema, given.as_object().unwrap()), kept);
        // A misspelt name, and another shape.
        let given = json!({"keyy": "k", "list": {"pin": 1}, "plain": 1});
        let kept = json!({"keyy": "(secret)", "list": "(secret)", "plain": 1});
        assert_eq!(without_secrets(&schema, given.as_object().unwrap()), kept);
        let open = json!({"properties": {"plain": {}}});
        assert_eq!(without_secrets(&open, given.as_object().unwrap()), given);
    }
}
