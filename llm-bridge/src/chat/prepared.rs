//! Definitions made once for each tool, for the requests that need them again and again.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, Weak},
};

use registry_core::Tool;
use serde_json::Value;
use toolrack_apis::{Definer, LeftOut, Provider, Subject};

use crate::definition::subject;

/// How the object of every function begins, up to its name.
const HEAD: &str = r#"{"name":""#;

/// The definitions of tools for chat completions, each in the schema that the API takes.
#[derive(Debug)]
pub(crate) struct PreparedDefinitions {
    definer: Definer,
    /// By the tool's address, which no other tool gets as long as the weak reference is here.
    kept: RwLock<HashMap<usize, Kept>>,
}

#[derive(Debug)]
struct Kept {
    tool: Weak<Tool>,
    /// `None` for a tool that cannot be defined.
    function: Option<Function>,
}

/// A function without its name: what stands behind that in JSON.
#[derive(Debug, Clone)]
pub(crate) struct Function(Arc<str>);

impl Default for PreparedDefinitions {
    fn default() -> Self {
        Self { definer: Definer::new(Provider::OpenAi), kept: RwLock::default() }
    }
}

impl PreparedDefinitions {
    /// A tool's function. Of a tool that cannot be defined the log says why, once.
    pub(crate) fn function(&self, tool: &Arc<Tool>) -> Option<Function> {
        let address = Arc::as_ptr(tool).addr();
        if let Some(kept) = self.kept.read().unwrap_or_else(PoisonError::into_inner).get(&address) {
            return kept.function.clone();
        }
        let function = self.define(subject(tool));
        let mut all = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() == all.capacity() {
            all.retain(|_, kept| kept.tool.strong_count() > 0);
        }
        // Another thread may have been first, and has said what there is to say.
        let kept = all.entry(address).or_insert_with(|| {
            if let Err(left_out) = &function {
                tracing::warn!(tool = left_out.tool, reason = left_out.reason, "tool_left_out_of_prompts");
            }
            Kept { tool: Arc::downgrade(tool), function: function.ok() }
        });
        kept.function.clone()
    }

    /// The function of a tool with another description than its own.
    pub(crate) fn described(&self, tool: &Tool, description: String) -> Option<Function> {
        self.define(Subject { description: description.into(), ..subject(tool) }).ok()
    }

    fn define(&self, tool: Subject<'_>) -> Result<Function, LeftOut> {
        let mut definition = self.definer.definition(tool)?;
        if let Some(name) = definition.pointer_mut("/function/name") {
            *name = "".into();
        }
        let function = definition.get("function").map(Value::to_string).unwrap_or_default();
        Ok(Function(function.strip_prefix(HEAD).unwrap_or_default().into()))
    }
}

impl Function {
    /// Appends `{"name", "description", "parameters"}`. The name is one with characters that need no escape.
    pub(crate) fn write(&self, name: &str, json: &mut String) {
        json.push_str(HEAD);
        json.push_str(name);
        json.push_str(&self.0);
    }

    /// Appends the definition with this function.
    pub(crate) fn write_definition(&self, name: &str, json: &mut String) {
        json.push_str(r#"{"type":"function","function":"#);
        self.write(name, json);
        json.push('}');
    }
}

#[cfg(test)]
mod tests {
    use registry_core::{Registry, ToolPolicy, ToolSpec};
    use serde_json::json;

    use super::*;

    fn tool(schema: Value) -> Arc<Tool> {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let spec = ToolSpec { description: Some("Does \"it\".".into()), ..ToolSpec::new("a.b", schema) };
        registry.register(spec, ToolPolicy::new(), None).unwrap()
    }

    #[test]
    fn b11_a_definition_is_made_once_and_is_that_of_the_provider() {
        // A list of anything is not taken without saying so.
        let tool = tool(json!({"type": "object", "properties": {"list": {"type": "array"}}}));
        let prepared = PreparedDefinitions::default();
        let (first, again) = (prepared.function(&tool).unwrap(), prepared.function(&tool).unwrap());
        assert!(Arc::ptr_eq(&first.0, &again.0));
        let mut json = String::new();
        first.write_definition("a_b", &mut json);
        let expected = Definer::new(Provider::OpenAi).definition(subject(&tool)).unwrap();
        assert_eq!(json, expected.to_string());
        assert_ne!(expected["function"]["parameters"], *tool.spec().input_schema);
        let mut json = String::new();
        prepared.described(&tool, "Other.".into()).unwrap().write("x", &mut json);
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["description"], "Other.");
    }

    #[test]
    fn b11_what_cannot_be_defined_is_left_out_and_what_is_gone_is_forgotten() {
        let prepared = PreparedDefinitions::default();
        let unknown = tool(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}));
        assert!(prepared.function(&unknown).is_none() && prepared.function(&unknown).is_none());
        for _ in 0..1000 {
            prepared.function(&tool(json!({"type": "object"}))).unwrap();
        }
        assert!(prepared.kept.read().unwrap().len() < 100);
        assert!(prepared.function(&unknown).is_none());
    }
}
