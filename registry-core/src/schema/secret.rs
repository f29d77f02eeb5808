//! Leaves out what nobody should read: arguments whose schema says `writeOnly`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What stands in place of a secret.
const HIDDEN: &str = "(secret)";

/// References within references are followed so far.
const MAX_DEPTH: usize = 32;

/// The arguments with every value hidden whose schema has `"writeOnly": true`, which is how `#[arg(secret)]` and
/// JSON Schema mark it. Where a schema has a secret, what does not fit it is hidden too: it may be the secret under another
/// name or in another shape.
pub(crate) fn without_secrets(schema: &Value, arguments: &Map<String, Value>) -> Value {
    let reader = Reader { root: schema };
    if reader.has_secret(schema) { reader.members(schema, arguments) } else { arguments.clone().into() }
}

/// The arguments with every value hidden, for a tool of which nothing is known.
pub(crate) fn all_hidden(arguments: &Map<String, Value>) -> Value {
    arguments.keys().map(|name| (name.clone(), HIDDEN.into())).collect::<Map<_, _>>().into()
}

/// Whether a schema, or any schema in it, is of a secret.
pub(crate) fn has_secret(schema: &Value) -> bool {
    Reader { root: schema }.has_secret(schema)
}

/// Reads the schemas within one schema.
struct Reader<'s> {
    root: &'s Value,
}

impl<'s> Reader<'s> {
    /// The schema that is meant; nothing where a reference leads nowhere.
    fn resolved(&self, mut schema: &'s Value) -> Option<&'s Value> {
        for _ in 0..MAX_DEPTH {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return Some(schema) };
            schema = self.root.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }

    fn has_secret(&self, schema: &'s Value) -> bool {
        self.looks_secret(schema, &mut BTreeSet::new())
    }

    /// `seen` are the references that were followed already, which says what schemas that refer to themselves come to.
    fn looks_secret(&self, schema: &'s Value, seen: &mut BTreeSet<&'s str>) -> bool {
        match schema {
            Value::Object(members) => {
                if let Some(reference) = members.get("$ref").and_then(Value::as_str)
                    && seen.insert(reference)
                {
                    match self.resolved(schema) {
                        Some(resolved) if self.looks_secret(resolved, seen) => return true,
                        None => return true,
                        Some(_) => {}
                    }
                }
                members.get("writeOnly") == Some(&Value::Bool(true))
                    || members.values().any(|part| self.looks_secret(part, seen))
            }
            Value::Array(items) => items.iter().any(|item| self.looks_secret(item, seen)),
            _ => false,
        }
    }

    fn members(&self, schema: &'s Value, members: &Map<String, Value>) -> Value {
        let properties = schema.get("properties");
        let member = |(name, value): (&String, &Value)| {
            let schema = properties.and_then(|properties| properties.get(name));
            (name.clone(), schema.map_or_else(|| HIDDEN.into(), |schema| self.value(schema, value)))
        };
        Value::Object(members.iter().map(member).collect())
    }

    fn value(&self, schema: &'s Value, value: &Value) -> Value {
        if !self.has_secret(schema) {
            return value.clone();
        }
        let Some(schema) = self.resolved(schema) else { return HIDDEN.into() };
        match (value, schema.get("items")) {
            _ if schema.get("writeOnly") == Some(&Value::Bool(true)) => HIDDEN.into(),
            (Value::Object(members), _) if schema.get("properties").is_some() => {
                self.members(schema, members)
            }
            (Value::Array(items), Some(schema)) => {
                items.iter().map(|item| self.value(schema, item)).collect()
            }
            _ => HIDDEN.into(),
        }
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
        let referred = json!({"$defs": {"Login": {"properties": {"pin": secret, "at": {}}}}, "properties": {
            "login": {"$ref": "#/$defs/Login"}, "maybe": {"anyOf": [{"$ref": "#/$defs/Login"}, {"type": "null"}]},
            "lost": {"$ref": "#/nowhere"}, "plain": {"type": "string"},
        }});
        let given = json!({"login": {"pin": 1, "at": 2}, "maybe": {"pin": 1}, "lost": 3, "plain": "p"});
        let kept = json!({"login": {"pin": "(secret)", "at": 2}, "maybe": "(secret)", "lost": "(secret)", "plain": "p"});
        assert_eq!(without_secrets(&referred, given.as_object().unwrap()), kept);
        // Schemas that refer to themselves, and one without a secret.
        let node = json!({"properties": {"left": {"$ref": "#/$defs/N"}, "right": {"$ref": "#/$defs/N"}}});
        let open = json!({"$defs": {"N": node}, "properties": {"tree": {"$ref": "#/$defs/N"}}});
        let given = json!({"tree": {"left": {}}, "anything": 1});
        assert_eq!(without_secrets(&open, given.as_object().unwrap()), given);
    }
}
