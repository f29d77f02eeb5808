//! Helpers of the tests.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use toolrack_apis::{Definer, Definitions, Provider, Subject};

use crate::checker::faults;

/// A tool of a test, which owns what its subject borrows.
pub struct Spec {
    pub name: String,
    pub description: String,
    pub schema: Value,
}

impl Spec {
    pub fn subject(&self) -> Subject<'_> {
        Subject::new(&self.name, self.description.as_str(), &self.schema)
    }
}

pub fn spec(name: &str, schema: Value) -> Spec {
    Spec { name: name.to_owned(), description: "Does it.".to_owned(), schema }
}

pub fn define(definer: &Definer, tools: &[Spec]) -> Definitions {
    definer.definitions(tools.iter().map(Spec::subject))
}

pub fn definitions(provider: Provider, tools: &[Spec]) -> Definitions {
    define(&Definer::new(provider), tools)
}

/// Both ways of defining: the ordinary one and, where there is one, the strict.
pub fn definers() -> Vec<(Provider, Definer)> {
    let ordinary = Provider::ALL.iter().map(|provider| (*provider, Definer::new(*provider)));
    let strict =
        [Provider::OpenAi, Provider::Responses].map(|provider| (provider, Definer::new(provider).strict()));
    ordinary.chain(strict).collect()
}

/// What a declaration without a schema means.
static NO_PARAMETERS: LazyLock<Value> =
    LazyLock::new(|| json!({"type": "object", "additionalProperties": false}));

/// The schema of the only definition.
pub fn schema_of(provider: Provider, list: &Value) -> &Value {
    let tool = &list[0];
    match provider {
        Provider::OpenAi | Provider::Ollama => &tool["function"]["parameters"],
        Provider::Responses => &tool["parameters"],
        Provider::Anthropic => &tool["input_schema"],
        Provider::Mcp => &tool["inputSchema"],
        Provider::Gemini => {
            let tool = &tool["functionDeclarations"][0];
            tool.get("parameters").or(tool.get("parametersJsonSchema")).unwrap_or(&NO_PARAMETERS)
        }
    }
}

pub fn assert_accepted(provider: Provider, defined: &Definitions) {
    let faults = faults(provider, &defined.list);
    assert!(faults.is_empty(), "{provider}: {faults:#?}");
}

/// What Gemini says with `nullable`, in the words of JSON Schema.
pub fn as_json_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut fields: Map<String, Value> =
                fields.iter().map(|(key, value)| (key.clone(), as_json_schema(value))).collect();
            if fields.get("nullable") == Some(&json!(true)) {
                fields.remove("nullable");
                return json!({"anyOf": [fields, {"type": "null"}]});
            }
            fields.into()
        }
        Value::Array(items) => items.iter().map(as_json_schema).collect(),
        other => other.clone(),
    }
}
