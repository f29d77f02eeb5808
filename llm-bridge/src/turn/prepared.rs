//! Definitions made once for each tool, for the requests that need them again and again.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Weak},
};

use parking_lot::RwLock;
use registry_core::Tool;
use serde_json::Value;
use toolrack_apis::{Definer, LeftOut, Provider, Subject};

use crate::definition::subject;

/// What stands for the name while a definition is made. Nobody can guess it, so no description contains it.
static NAME: LazyLock<String> =
    LazyLock::new(|| format!("name_{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..)));

/// The definitions of tools for each API of model servers that is in use.
#[derive(Debug, Default)]
pub(crate) struct Prepared(RwLock<HashMap<Provider, Arc<PreparedDefinitions>>>);

impl Prepared {
    /// The definitions for an API.
    pub(crate) fn of(&self, api: Provider) -> Arc<PreparedDefinitions> {
        if let Some(prepared) = self.0.read().get(&api) {
            return Arc::clone(prepared);
        }
        let mut all = self.0.write();
        Arc::clone(all.entry(api).or_insert_with(|| Arc::new(PreparedDefinitions::new(api))))
    }
}

/// The definitions of tools for an API of model servers, each in the schema that the API takes.
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
    definition: Option<Definition>,
}

/// Whose definitions are written into prompts: models have learned them in this shape.
pub(crate) const FOR_PROMPTS: Provider = Provider::OpenAi;

/// The JSON of a definition before and after the tool's name.
#[derive(Debug, Clone)]
pub(crate) struct Definition(Arc<(String, String)>);

impl PreparedDefinitions {
    /// None yet, for an API.
    fn new(api: Provider) -> Self {
        Self { definer: Definer::new(api), kept: RwLock::default() }
    }

    /// A tool's definition. Of a tool that cannot be defined the log says why, once.
    pub(crate) fn definition(&self, tool: &Arc<Tool>) -> Option<Definition> {
        let address = Arc::as_ptr(tool).addr();
        if let Some(kept) = self.kept.read().get(&address) {
            return kept.definition.clone();
        }
        let definition = self.define(subject(tool));
        let mut all = self.kept.write();
        if all.len() == all.capacity() {
            all.retain(|_, kept| kept.tool.strong_count() > 0);
        }
        // Another thread may have been first, and has said what there is to say.
        let kept = all.entry(address).or_insert_with(|| {
            if let Err(left_out) = &definition {
                let (tool, reason) = (tool.name(), &left_out.reason);
                tracing::warn!(tool, reason, "tool_left_out_of_prompts");
            }
            Kept { tool: Arc::downgrade(tool), definition: definition.ok() }
        });
        kept.definition.clone()
    }

    /// The definition of a tool with another description than its own.
    pub(crate) fn described(&self, tool: &Tool, description: String) -> Option<Definition> {
        self.define(Subject { description: description.into(), ..subject(tool) }).ok()
    }

    fn define(&self, tool: Subject<'_>) -> Result<Definition, LeftOut> {
        let json = self.definer.definition(Subject { name: &NAME, ..tool })?.to_string();
        let (before, after) = json.split_once(NAME.as_str()).unwrap_or((&json, ""));
        Ok(Definition(Arc::new((before.to_owned(), after.to_owned()))))
    }
}

impl Definition {
    /// Appends the JSON. The name is one with characters that need no escape.
    pub(crate) fn write(&self, name: &str, json: &mut String) {
        let (before, after) = &*self.0;
        json.push_str(before);
        json.push_str(name);
        json.push_str(after);
    }

    /// The function in a definition [for prompts](FOR_PROMPTS): `{"name", "description", "parameters"}`.
    pub(crate) fn function(&self, name: &str) -> Value {
        self.to_value(name).get_mut("function").map(Value::take).unwrap_or_default()
    }

    /// The definition as JSON.
    fn to_value(&self, name: &str) -> Value {
        let mut json = String::new();
        self.write(name, &mut json);
        serde_json::from_str(&json).unwrap_or_default()
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
        for &api in Provider::ALL {
            let all = Prepared::default();
            let prepared = all.of(api);
            assert!(Arc::ptr_eq(&prepared, &all.of(api)));
            let (first, again) = (prepared.definition(&tool).unwrap(), prepared.definition(&tool).unwrap());
            assert!(Arc::ptr_eq(&first.0, &again.0));
            let expected = Definer::new(api).definition(Subject { name: "a_b", ..subject(&tool) }).unwrap();
            assert_eq!(first.to_value("a_b"), expected);
            let other = prepared.described(&tool, "Other.".into()).unwrap().to_value("x").to_string();
            assert!(other.contains("Other.") && !other.contains(NAME.as_str()), "{other}");
        }
    }

    #[test]
    fn b11_what_cannot_be_defined_is_left_out_and_what_is_gone_is_forgotten() {
        let prepared = PreparedDefinitions::new(Provider::OpenAi);
        let unknown = tool(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}));
        assert!(prepared.definition(&unknown).is_none() && prepared.definition(&unknown).is_none());
        for _ in 0..1000 {
            prepared.definition(&tool(json!({"type": "object"}))).unwrap();
        }
        assert!(prepared.kept.read().len() < 100);
        assert!(prepared.definition(&unknown).is_none());
    }
}
