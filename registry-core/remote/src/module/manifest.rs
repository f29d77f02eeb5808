//! What a module says of itself: the body of `GET /manifest`.

use registry_core::flow::{Reads, Sends};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::definition::{self, MAX_TOOLS};

/// A module's manifest as it came. Of what it may have beside this nothing is read.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Manifest {
    /// What the module calls itself; a tool's name may begin with it.
    #[serde(default)]
    pub(super) name: String,
    /// The module's version.
    pub(super) version: Option<String>,
    /// The tools, each read by itself so that a bad one costs no other.
    tools: Vec<Box<RawValue>>,
}

/// A tool in a manifest, in the seed's form and with what ours adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestTool {
    /// The name, with or without the module's own as a prefix.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The level a caller needs: `guest`, `user`, `admin` or `owner`. What is none of them, or missing, counts as `owner`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_permission: Option<String>,
    /// The arguments, one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<ManifestParameter>>,
    /// JSON Schema of the arguments. It goes before `parameters`, which cannot say what is inside of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// A short name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Why it should not be used any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// `read`, `write` or `destructive`. It is believed only where it is worse than what the operator says of the module; what
    /// is none of them counts as `destructive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// What its results may hold: `private`, `untrusted`, both or an empty list for neither. It is believed only where the operator says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
    /// Where its arguments go: `outside` or `nothing`. It is believed only where the operator says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends: Option<Sends>,
    /// Through how many servers a call goes before it comes to the tool, this one not counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u8,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// One argument of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestParameter {
    /// Its name.
    pub name: String,
    /// A type of JSON Schema, or its name in Python.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is, for the model.
    #[serde(default)]
    pub description: String,
    /// Whether it has to be given.
    #[serde(default)]
    pub required: bool,
    /// The values it may have, where not any.
    #[serde(rename = "enum", default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<Value>>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// Why all of it is no use.
    pub(super) fn read(json: &[u8]) -> Result<Self, String> {
        let manifest: Self =
            serde_json::from_slice(json).map_err(|error| format!("the manifest cannot be read: {error}"))?;
        match manifest.tools.len() {
            ..=MAX_TOOLS => Ok(manifest),
            many => Err(format!("the manifest has {many} tools, and {MAX_TOOLS} at most are taken")),
        }
    }

    /// The tools, or what is wrong with each, with the name it gives itself as far as it is shown.
    pub(super) fn tools(&self) -> impl Iterator<Item = (String, Result<ManifestTool, String>)> {
        self.tools.iter().zip(1..).map(|(json, at)| definition::read(json, at))
    }
}

impl ManifestTool {
    /// The schema of the arguments.
    ///
    /// # Errors
    /// What is wrong with the parameters.
    pub(super) fn schema(&self) -> Result<Value, String> {
        match (&self.input_schema, &self.parameters) {
            (Some(schema), _) if !schema.is_null() => Ok(schema.clone()),
            (_, parameters) => of_parameters(parameters.as_deref().unwrap_or_default()),
        }
    }
}

fn of_parameters(parameters: &[ManifestParameter]) -> Result<Value, String> {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for ManifestParameter { name, kind, description, required: is_required, allowed } in parameters {
        let mut property = Map::new();
        if let Some(kind) = json_type(kind).map_err(|fault| format!("its parameter {name}: {fault}"))? {
            property.insert("type".to_owned(), kind.into());
        }
        property.insert("description".to_owned(), description.as_str().into());
        if let Some(allowed) = allowed.as_ref().filter(|allowed| !allowed.is_empty()) {
            property.insert("enum".to_owned(), allowed.clone().into());
        }
        if properties.insert(name.clone(), property.into()).is_some() {
            return Err(format!("it has two parameters named {name}"));
        }
        if *is_required {
            required.push(name.as_str());
        }
    }
    Ok(serde_json::json!({"type": "object", "properties": properties, "required": required}))
}

/// The JSON type; none where it is any. Modules are often Python, and say so.
fn json_type(kind: &str) -> Result<Option<&str>, String> {
    match kind {
        "string" | "integer" | "number" | "boolean" | "array" | "object" => Ok(Some(kind)),
        "str" => Ok(Some("string")),
        "int" => Ok(Some("integer")),
        "float" => Ok(Some("number")),
        "bool" => Ok(Some("boolean")),
        "list" => Ok(Some("array")),
        "dict" => Ok(Some("object")),
        "any" => Ok(None),
        _ => Err(format!(
            "there is no type `{kind}`; the types are string, integer, number, boolean, array, object"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::MAX_TOOL_BYTES;

    fn only(tool: Value) -> (String, Result<ManifestTool, String>) {
        let manifest = json!({"name": "m", "description": "", "tools": [tool]}).to_string();
        let manifest = Manifest::read(manifest.as_bytes()).unwrap();
        manifest.tools().next().unwrap()
    }

    #[test]
    fn m1_the_seeds_tool_is_read_and_its_parameters_become_a_schema() {
        let (name, tool) = only(json!({
            "name": "research.web_search",
            "description": "Search the web and return results",
            "required_permission": "guest",
            "parameters": [
                {"name": "query", "type": "string", "description": "Search query", "required": true},
                {"name": "max_results", "type": "integer", "description": "Max results", "required": false},
                {"name": "order", "type": "str", "description": "Order", "required": false, "enum": ["date", "rank"]},
            ],
        }));
        assert_eq!(name, "research.web_search");
        assert_eq!(
            tool.unwrap().schema().unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Search query"},
                    "max_results": {"type": "integer", "description": "Max results"},
                    "order": {"type": "string", "description": "Order", "enum": ["date", "rank"]},
                },
                "required": ["query"],
            })
        );
    }

    #[test]
    fn m1_an_input_schema_goes_before_parameters() {
        let nested =
            json!({"type": "object", "properties": {"at": {"type": "object", "properties": {"x": {}}}}});
        let parameters = json!([{"name": "at", "type": "object", "description": "", "required": true}]);
        let tool = json!({"name": "f", "description": "", "input_schema": nested, "parameters": parameters});
        assert_eq!(only(tool).1.unwrap().schema().unwrap(), nested);
        let neither = only(json!({"name": "f", "description": ""})).1.unwrap().schema().unwrap();
        assert_eq!(neither, json!({"type": "object", "properties": {}, "required": []}));
    }

    #[test]
    fn m1_a_bad_tool_is_reported_by_its_name() {
        let mut deep = json!({});
        (0..40).for_each(|_| deep = json!({ "properties": deep.clone() }));
        for (tool, name, fault) in [
            (json!({"name": "f"}), "f", "missing field `description`"),
            (json!({"description": "x"}), "number 1", "missing field `name`"),
            (json!("f"), "number 1", "expected struct"),
            (json!({"name": "f", "description": "x".repeat(MAX_TOOL_BYTES)}), "f", "65536 at most are taken"),
            (json!({"name": "f", "description": "", "input_schema": deep}), "f", "nests deeper than 32"),
            (json!({"name": "f", "description": "Adds.\u{e0041}"}), "f", "U+E0041"),
            (json!({"name": "f", "description": "", "hops": 300}), "f", "invalid value"),
        ] {
            let (found, tool) = only(tool);
            let error = tool.unwrap_err();
            assert!(found == name && error.contains(fault), "{found}: {error}");
        }
        let of = |parameters: Value| {
            let tool: ManifestTool =
                serde_json::from_value(json!({"name": "f", "description": "", "parameters": parameters}))
                    .unwrap();
            tool.schema().unwrap_err()
        };
        assert!(of(json!([{"name": "a", "type": "text"}])).contains("no type `text`"));
        assert!(
            of(json!([{"name": "a", "type": "any"}, {"name": "a", "type": "any"}]))
                .contains("two parameters")
        );
    }

    #[test]
    fn m1_what_is_no_manifest_is_reported() {
        let many = format!(r#"{{"tools":[{}0]}}"#, "0,".repeat(MAX_TOOLS));
        let deep = format!(r#"{{"tools":[{}"#, "[".repeat(100_000));
        for (json, fault) in [
            ("<html>", "cannot be read"),
            ("{}", "missing field `tools`"),
            ("[]", "cannot be read"),
            (&many, "1001 tools, and 1000 at most"),
            (&deep, "cannot be read"),
        ] {
            let error = Manifest::read(json.as_bytes()).unwrap_err();
            assert!(error.contains(fault), "{error}");
        }
    }
}
