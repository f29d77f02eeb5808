//! This registry as a module of another: what it answers to `GET /manifest`.

use registry_core::{Selection, Source, Tool};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{ManifestParameter, ManifestTool, Modules};

/// A manifest of this registry's tools, each in the seed's form and with its whole schema.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ServedManifest {
    /// The name as a module, the prefix of all its tools.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The program's version.
    pub version: String,
    /// The tools, by name.
    pub tools: Vec<ManifestTool>,
}

impl Modules {
    /// The manifest of what a caller may use. Tools of modules are among it, and say through how many servers a call of them goes.
    pub fn serve(&self, name: &str, selection: &Selection) -> ServedManifest {
        ServedManifest {
            name: name.to_owned(),
            description: "The tools of a Toolrack.".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tools: selection.tools().iter().map(|tool| self.serve_tool(name, tool)).collect(),
        }
    }

    fn serve_tool(&self, prefix: &str, tool: &Tool) -> ManifestTool {
        let (spec, policy) = (tool.spec(), tool.policy());
        ManifestTool {
            name: format!("{prefix}.{}", tool.name()),
            description: tool.description().into_owned(),
            required_permission: Some(policy.permission.to_string()),
            parameters: Some(parameters(&spec.input_schema)),
            input_schema: Some(Value::clone(&spec.input_schema)),
            output_schema: Some(spec.output_schema.clone()).filter(|schema| !schema.is_null()),
            title: spec.title.clone(),
            version: spec.version.clone(),
            tags: Some(spec.tags.clone()).filter(|tags| !tags.is_empty()),
            // The description says it already.
            deprecated: None,
            effect: Some(policy.effect.as_str().to_owned()),
            reads: Some(tool.reads()),
            sends: Some(tool.sends()),
            hops: self.hops(tool),
        }
    }

    fn hops(&self, tool: &Tool) -> u8 {
        let Source::Remote(remote) = tool.source() else { return 0 };
        let module = self.shared.by_name.get(&*remote.name).filter(|module| module.source.remote == *remote);
        module.and_then(|module| module.source.hops(tool.name())).unwrap_or(1)
    }
}

/// The arguments one by one, for those who read no schema: what is inside of them is not said.
fn parameters(schema: &Value) -> Vec<ManifestParameter> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
    let parameter = |(name, property): (&String, &Value)| ManifestParameter {
        name: name.clone(),
        kind: property.get("type").and_then(Value::as_str).unwrap_or("any").to_owned(),
        description: property.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        required: is_required(name),
        allowed: property.get("enum").and_then(Value::as_array).cloned(),
    };
    properties.iter().map(parameter).collect()
}
