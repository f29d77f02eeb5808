//! How a round is asked whose calls are required, so that the model can write nothing else.

use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use toolrack_apis::{Passing, Provider, RawJson, Request, ResponseFormat};
use toolrack_dialects::{Dialect, OfferedTool};

/// The dialect of a call that is an answer in JSON.
const JSON_DIALECT: &str = "bare_json";

/// What keeps the model to calls.
#[derive(Debug)]
pub(super) enum Constraint {
    /// A grammar, in this field of the request.
    Grammar { field: &'static [&'static str], gbnf: String },
    /// One call as the form of the answer, where the server takes no grammar.
    Form(Value),
}

impl Constraint {
    /// The constraint to calls of these functions, in a dialect that can write them all, and that dialect.
    pub(super) async fn to_calls(
        functions: Vec<Value>,
        dialect: &'static Dialect,
        field: Option<&'static [&'static str]>,
        most: usize,
    ) -> Option<(&'static Dialect, Self)> {
        let json = toolrack_dialects::dialect(JSON_DIALECT)?;
        if functions.is_empty() {
            return None;
        }
        // Schemas are as large as an outsider likes.
        let made = spawn_blocking(move || {
            let form = (json, Self::Form(form(&functions)));
            let Some(field) = field else { return form };
            let tools: Vec<OfferedTool> = functions.into_iter().filter_map(offered).collect();
            let grammar = [dialect, json].into_iter().find_map(|dialect| {
                let gbnf = dialect.grammar(&tools, most)?;
                Some((dialect, Self::Grammar { field, gbnf }))
            });
            grammar.unwrap_or_else(|| {
                tracing::warn!("the schemas of the tools are too involved for a grammar; the server gets them as they are");
                form
            })
        });
        made.await.ok()
    }

    /// Puts it into a request.
    pub(super) fn apply(&self, request: &mut Request) {
        match self {
            Self::Grammar { field: [name, inner @ ..], gbnf } => {
                let value = inner.iter().rev().fold(json!(gbnf), |value, name| json!({ *name: value }));
                if request.passing.to(Provider::OpenAi).is_empty() {
                    request.passing = Passing::of(Provider::OpenAi);
                }
                request.passing.push(*name, RawJson::of(&value));
                request.format = None;
            }
            Self::Grammar { .. } => {}
            Self::Form(schema) => {
                request.format = Some(ResponseFormat::JsonSchema {
                    name: Some("call".to_owned()),
                    description: None,
                    schema: schema.clone(),
                    strict: Some(true),
                });
            }
        }
    }
}

fn offered(mut function: Value) -> Option<OfferedTool> {
    let schema = function.get_mut("parameters").map(Value::take);
    Some(OfferedTool {
        name: function.get("name")?.as_str()?.to_owned(),
        schema: schema.map(Into::into),
        tag: None,
    })
}

/// The schema of one call, as [`JSON_DIALECT`] has it.
fn form(functions: &[Value]) -> Value {
    let call = |(at, function): (usize, &Value)| {
        let place = if functions.len() == 1 { String::new() } else { format!("/anyOf/{at}") };
        let mut arguments = function.get("parameters").cloned().unwrap_or_else(|| json!({"type": "object"}));
        move_references(&mut arguments, &format!("{place}/properties/arguments"));
        json!({
            "type": "object",
            "properties": {"name": {"type": "string", "enum": [function.get("name")]}, "arguments": arguments},
            "required": ["name", "arguments"],
            "additionalProperties": false,
        })
    };
    let mut calls: Vec<Value> = functions.iter().enumerate().map(call).collect();
    match calls.len() {
        1 => calls.remove(0),
        _ => json!({"anyOf": calls}),
    }
}

/// Makes references within a schema hold where it stands at `place` of another.
fn move_references(schema: &mut Value, place: &str) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(rest) = reference.strip_prefix('#')
            {
                *reference = format!("#{place}{rest}");
            }
            members.iter_mut().for_each(|(_, member)| move_references(member, place));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| move_references(value, place)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str) -> Value {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"$ref": "#/$defs/city"}},
            "$defs": {"city": {"type": "string"}},
        });
        json!({"name": name, "description": "Does.", "parameters": schema})
    }

    #[test]
    fn b15_the_form_of_a_call_keeps_the_references_of_its_schema() {
        for count in [1, 2] {
            let functions: Vec<Value> = ["a", "b"].into_iter().take(count).map(function).collect();
            let form = form(&functions);
            let valid = jsonschema::validator_for(&form).unwrap();
            assert!(valid.is_valid(&json!({"name": "a", "arguments": {"city": "Oslo"}})));
            for wrong in [
                json!({"name": "c", "arguments": {}}),
                json!({"name": "a", "arguments": {"city": 1}}),
                json!({"name": "a"}),
            ] {
                assert!(!valid.is_valid(&wrong), "{wrong}");
            }
        }
    }

    #[tokio::test]
    async fn b14_each_server_gets_the_grammar_in_its_field() {
        let hermes = toolrack_dialects::dialect("hermes").unwrap();
        for field in [&["grammar"][..], &["structured_outputs", "grammar"]] {
            let made = Constraint::to_calls(vec![function("a")], hermes, Some(field), 1).await;
            let (dialect, constraint) = made.unwrap();
            assert_eq!(dialect.name, "hermes");
            let mut request = Request::default();
            constraint.apply(&mut request);
            let sent = request.passing.get(Provider::OpenAi, field[0]).unwrap().get();
            let sent: Value = serde_json::from_str(sent).unwrap();
            let grammar = field[1..].iter().fold(&sent, |value, name| &value[*name]);
            assert!(grammar.as_str().unwrap().starts_with("root ::= "), "{sent}");
        }
    }
}
