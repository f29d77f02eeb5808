//! What a tool is to a model: its name, what it does, what it takes and what it gives.

use std::{borrow::Cow, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The description of a tool. It says nothing about who may call it, which is the tool's policy.
///
/// Once registered a spec does not change; a new version replaces it whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// The unique name, `module.tool` or `tool`.
    pub tool_name: String,
    /// A short name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A semantic version, where the tool has one.
    #[serde(default)]
    pub version: Option<String>,
    /// What the tool does, for the model that chooses it.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON Schema of the arguments, an object or a boolean; a tool that is called needs an object schema.
    pub input_schema: Arc<Value>,
    /// JSON Schema of the result; `null` where nothing is promised.
    pub output_schema: Value,
    /// Words to find the tool by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Why the tool should not be used any more and what to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
}

/// What a person may ask, and the call that a model should make then. A tool is tried with it; models do not see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Example {
    /// What the person asks.
    pub question: String,
    /// The arguments of the call, an object.
    pub arguments: Value,
}

impl ToolSpec {
    /// The description for a model. That a tool is deprecated comes first, so that the model looks at another.
    pub fn described(&self) -> Cow<'_, str> {
        let description = self.description.as_deref().unwrap_or_default();
        match &self.deprecated {
            None => description.into(),
            Some(why) => format!("Deprecated: {}. {description}", why.trim_end_matches('.'))
                .trim_end()
                .to_owned()
                .into(),
        }
    }

    /// A spec with a name and an input schema, and nothing else.
    pub fn new(tool_name: impl Into<String>, input_schema: Value) -> Self {
        Self { tool_name: tool_name.into(), input_schema: Arc::new(input_schema), ..Self::default() }
    }
}
