//! JSON Schema 2020-12 for a form that accepts all of it: the schema is kept, including `$schema`, `$id`, anchors and dynamic
//! references.

use serde_json::{Map, Value, json};

use super::{
    Lowered, Schema,
    reference::Anchors,
    vocabulary::{Kind, check, kind, types},
};

/// Keywords of older drafts and of OpenAPI that 2020-12 does not define, or defines otherwise.
const OTHERS: [&str; 5] =
    ["dependencies", "additionalItems", "$recursiveRef", "$recursiveAnchor", "nullable"];

/// The schema with an object at the root, and properties that are objects too, as MCP clients expect.
///
/// # Errors
/// Why it has to be lowered: it is of an older draft, or invalid.
pub(super) fn keep(schema: &Value) -> Result<Lowered, String> {
    let Value::Object(root) = schema else { return Err("the schema is no object".to_owned()) };
    if !types(root)?.is_none_or(|names| names.contains(&"object")) {
        return Err("arguments are an object, and its schema asks for something else".to_owned());
    }
    // Hosts look for `properties` at the root and do not resolve references.
    if root.contains_key("$ref") {
        return Err("the root is a reference".to_owned());
    }
    let mut reading = Reading::default();
    let mut root = reading.object(root)?;
    if !reading.has_resources {
        let anchors = Anchors::default();
        let references = &mut reading.references.iter();
        references.try_for_each(|reference| anchors.pointer(schema, reference).map(drop))?;
    }
    root.insert("type".to_owned(), json!("object"));
    root.entry("properties").or_insert_with(|| json!({}));
    Ok(Lowered { schema: root, losses: Vec::new(), words: Vec::new() })
}

/// What was found in the schema.
#[derive(Default)]
struct Reading {
    is_below_root: bool,
    /// Whether subschemas have an `$id`, so that the meaning of a reference depends on its place. The registry resolved them when
    /// the tool was registered.
    has_resources: bool,
    references: Vec<String>,
}

impl Reading {
    fn schema(&mut self, schema: &Value) -> Result<Value, String> {
        match schema {
            Value::Object(schema) => self.object(schema).map(Value::Object),
            Value::Bool(_) => Ok(schema.clone()),
            other => Err(format!("{other} is no schema")),
        }
    }

    fn object(&mut self, schema: &Schema) -> Result<Schema, String> {
        self.has_resources |= std::mem::replace(&mut self.is_below_root, true) && schema.contains_key("$id");
        types(schema)?;
        schema.iter().map(|(keyword, value)| Ok((keyword.clone(), self.keyword(keyword, value)?))).collect()
    }

    fn keyword(&mut self, keyword: &str, value: &Value) -> Result<Value, String> {
        check(keyword, value)?;
        if OTHERS.contains(&keyword) {
            return Err(format!("`{keyword}` is no word of 2020-12"));
        }
        match keyword {
            "$schema" if !is_2020_12(value) => return Err(format!("it is of the draft {value}")),
            "$id" | "$anchor" | "$dynamicAnchor" | "$comment" if !value.is_string() => {
                return Err(format!("`{keyword}` has to be a text"));
            }
            "$ref" | "$dynamicRef" => {
                let reference = value.as_str().ok_or_else(|| format!("`{keyword}` has to be a text"))?;
                self.references.push(reference.to_owned());
            }
            _ => {}
        }
        match (kind(keyword), value) {
            (Kind::Schema, schema) => self.schema(schema),
            (Kind::Map, Value::Object(schemas)) => self.map(keyword, schemas),
            (Kind::Plain, Value::Object(schemas)) if matches!(keyword, "$defs" | "definitions") => {
                self.map(keyword, schemas)
            }
            (Kind::List, Value::Array(schemas)) => schemas.iter().map(|schema| self.schema(schema)).collect(),
            (Kind::Map | Kind::List, _) => Err(format!("`{keyword}` has to have schemas in it")),
            (Kind::Plain, _) if matches!(keyword, "$defs" | "definitions") => {
                Err(format!("`{keyword}` has to be schemas by name"))
            }
            (Kind::Plain, value) => Ok(value.clone()),
        }
    }

    fn map(&mut self, keyword: &str, schemas: &Map<String, Value>) -> Result<Value, String> {
        let read = |(name, schema): (&String, &Value)| {
            let schema = match schema {
                Value::Bool(true) if keyword == "properties" => json!({}),
                Value::Bool(false) if keyword == "properties" => json!({"not": {}}),
                schema => self.schema(schema)?,
            };
            Ok((name.clone(), schema))
        };
        schemas.iter().map(read).collect::<Result<Map<_, _>, String>>().map(Value::Object)
    }
}

fn is_2020_12(schema: &Value) -> bool {
    let named = schema.as_str().map(|uri| uri.trim_end_matches('#'));
    named == Some("https://json-schema.org/draft/2020-12/schema")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_2020_12_stays_and_what_is_not_is_left_to_others() {
        let whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "https://a.example/tree",
            "type": "object",
            "$dynamicAnchor": "node",
            "properties": {
                "children": {"type": "array", "items": {"$dynamicRef": "#node"}},
                "address": {"$ref": "#address"},
                "other": {"$ref": "https://a.example/part"},
            },
            "$defs": {
                "address": {"$anchor": "address", "type": "object"},
                "part": {"$id": "part", "type": "string"},
            },
            "unevaluatedProperties": false,
        });
        assert_eq!(Value::Object(keep(&whole).unwrap().schema), whole);
        let plain = keep(&json!({"properties": {"a": true, "b": false}})).unwrap().schema;
        assert_eq!(
            Value::Object(plain),
            json!({"properties": {"a": {}, "b": {"not": {}}}, "type": "object"})
        );
        for (schema, why) in [
            (json!({"$schema": "http://json-schema.org/draft-07/schema#"}), "draft-07"),
            (json!({"properties": {"a": {"items": [{}]}}}), "no schema"),
            (json!({"dependencies": {"a": ["b"]}}), "no word of 2020-12"),
            (json!({"properties": {"a": {"$ref": "#/$defs/none"}}}), "leads to nothing"),
            (json!({"properties": {"a": {"$dynamicRef": "#none"}}}), "leads to nothing"),
            (json!({"properties": {"a": {"$ref": "https://elsewhere.example/x"}}}), "leads to nothing"),
            (json!({"properties": {"a": {"minimum": "1"}}}), "a number"),
            (json!({"$defs": [{}]}), "by name"),
            (json!({"allOf": {}}), "schemas in it"),
            (json!({"type": "array"}), "are an object"),
            (json!(true), "no object"),
        ] {
            let fault = keep(&schema).unwrap_err();
            assert!(fault.contains(why), "{schema}: {fault}");
        }
    }
}
