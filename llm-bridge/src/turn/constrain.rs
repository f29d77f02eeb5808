//! What keeps a model to calls: to nothing else, where one is required; else to whole ones, once it has opened one.

use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use toolrack_apis::{Passing, Provider, RawJson, Request, ResponseFormat};
use toolrack_dialects::{Dialect, OfferedTool};

use super::{offer::Round, prompt, run::Run};
use crate::upstream::TriggeredForm;

/// The dialect of a call that is an answer in JSON.
const JSON_DIALECT: &str = "bare_json";
/// How many calls a constrained answer has at most.
const MOST_AT_ONCE: usize = 8;

/// What keeps the model to calls.
#[derive(Debug)]
pub(super) struct Constraint {
    /// The dialect of the calls.
    pub(super) dialect: &'static str,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    /// A grammar, in this field of the request.
    Grammar { field: &'static [&'static str], gbnf: String },
    /// One call as the form of the answer, where the server takes no grammar.
    Form(Value),
    /// A grammar that holds from the opening of a call on.
    Triggered { form: TriggeredForm, opening: String, gbnf: String, is_single: bool },
}

impl Run {
    /// What keeps the model to calls in a round. `dialect` is the one in which it calls, where that is known.
    pub(super) async fn constraint(
        &self,
        round: Round,
        dialect: Option<&str>,
        is_raw: bool,
    ) -> Option<Constraint> {
        // A request with a grammar of its own has no room for another.
        if self.is_unconstrained || self.request.has_grammar {
            return None;
        }
        let kind = self.route.kind().filter(|_| self.api == Provider::OpenAi);
        let most = if self.parallel == Some(false) { 1 } else { MOST_AT_ONCE };
        if self.required.is_some() {
            let dialect = toolrack_dialects::dialect(dialect.unwrap_or(prompt::COMMON_DIALECT))?;
            let field = kind.and_then(|kind| kind.grammar);
            return Constraint::to_calls(self.offer.functions(round), dialect, field, most).await;
        }
        let form = kind?.triggered.filter(|form| is_raw || *form != TriggeredForm::LlamaCpp)?;
        if self.request.format.is_some() || !self.is_strict(round) {
            return None;
        }
        let dialect = toolrack_dialects::dialect(dialect?)?;
        Constraint::to_whole_calls(self.offer.callable(round), dialect, form, most).await
    }

    /// Whether calls are kept to the schemas of their tools: as the settings say, else where a client asks for it.
    fn is_strict(&self, round: Round) -> bool {
        let set = self.backend.settings().models.strict_tools(self.route.model());
        set.unwrap_or_else(|| self.offer.has_strict_tool(round))
    }
}

impl Constraint {
    /// The constraint to calls of these functions and nothing else, in a dialect that can write them all.
    async fn to_calls(
        functions: Vec<Value>,
        dialect: &'static Dialect,
        field: Option<&'static [&'static str]>,
        most: usize,
    ) -> Option<Self> {
        let json = toolrack_dialects::dialect(JSON_DIALECT)?;
        if functions.is_empty() {
            return None;
        }
        // Schemas are as large as an outsider likes.
        let made = spawn_blocking(move || {
            let tools = |functions: &[Value]| -> Vec<OfferedTool> {
                functions.iter().cloned().filter_map(offered).collect()
            };
            let all = tools(&functions);
            let grammar = |dialect: &Dialect, tools: &[OfferedTool], field| {
                let gbnf = dialect.grammar(tools, most)?;
                Some(Self { dialect: dialect.name, rule: Rule::Grammar { field, gbnf } })
            };
            let known = match field {
                Some(field) => [dialect, json].into_iter().find_map(|dialect| grammar(dialect, &all, field)),
                // What is too involved for a grammar of ours is so for the server's own, which may not come to an end with it.
                None => json.grammar(&all, most).map(|_| Self::to_form(json, &functions)),
            };
            known.or_else(|| {
                tracing::warn!(
                    "the schemas of the tools are too involved for a grammar; calls are not kept to them"
                );
                let free: Vec<Value> =
                    functions.iter().map(|function| json!({"name": function.get("name")})).collect();
                match field {
                    Some(field) => grammar(json, &tools(&free), field),
                    None => Some(Self::to_form(json, &free)),
                }
            })
        });
        made.await.ok()?
    }

    /// The constraint to one call as the form of the answer.
    fn to_form(json: &Dialect, functions: &[Value]) -> Self {
        Self { dialect: json.name, rule: Rule::Form(form(functions)) }
    }

    /// The constraint to whole calls of these functions, once the model has opened one; `None` where the dialect has no opening, or the
    /// schemas no grammar.
    async fn to_whole_calls(
        functions: Vec<Value>,
        dialect: &'static Dialect,
        form: TriggeredForm,
        most: usize,
    ) -> Option<Self> {
        let opening = dialect.opening()?;
        let made = spawn_blocking(move || {
            let tools: Vec<OfferedTool> = functions.into_iter().filter_map(offered).collect();
            match form {
                TriggeredForm::LlamaCpp => dialect.grammar_from_opening(&tools, most),
                // Each opening of the answer is one call.
                TriggeredForm::Vllm | TriggeredForm::SgLang => dialect.grammar_after_opening(&tools, 1),
            }
        });
        let Some(gbnf) = made.await.ok()? else {
            tracing::warn!(
                "the schemas of the tools are too involved for a grammar; calls are not kept to them"
            );
            return None;
        };
        let rule = Rule::Triggered { form, opening, gbnf, is_single: most == 1 };
        Some(Self { dialect: dialect.name, rule })
    }

    /// Whether it leaves the model nothing but calls to write.
    pub(super) fn leaves_only_calls(&self) -> bool {
        matches!(self.rule, Rule::Grammar { .. })
    }

    /// The text with which it begins to hold, where that is not at once.
    pub(super) fn opening(&self) -> Option<&str> {
        match &self.rule {
            Rule::Triggered { opening, .. } => Some(opening),
            Rule::Grammar { .. } | Rule::Form(_) => None,
        }
    }

    /// Puts it into a request.
    pub(super) fn apply(&self, request: &mut Request) {
        match &self.rule {
            Rule::Grammar { field: [name, inner @ ..], gbnf } => {
                request.format = None;
                set(
                    request,
                    name,
                    &inner.iter().rev().fold(json!(gbnf), |value, name| json!({ *name: value })),
                );
            }
            Rule::Grammar { .. } => {}
            Rule::Form(schema) => {
                request.format = Some(ResponseFormat::JsonSchema {
                    name: Some("call".to_owned()),
                    description: None,
                    schema: schema.clone(),
                    strict: Some(true),
                });
            }
            Rule::Triggered { form: TriggeredForm::LlamaCpp, opening, gbnf, .. } => {
                set(request, "grammar", &json!(gbnf));
                set(request, "grammar_lazy", &json!(true));
                // `common_grammar_trigger_type`: a word.
                set(request, "grammar_triggers", &json!([{"type": 1, "value": opening}]));
            }
            Rule::Triggered { form, opening, gbnf, is_single } => {
                let tag = structural_tag(opening, gbnf, *is_single);
                match form {
                    TriggeredForm::SgLang => set(request, "response_format", &tag),
                    _ => set(request, "structured_outputs", &json!({"structural_tag": tag.to_string()})),
                }
            }
        }
    }
}

/// Text in which the opening of a call is followed by what the grammar says:
/// <https://xgrammar.mlc.ai/docs/structural_tag/structural_tag.html>.
fn structural_tag(opening: &str, gbnf: &str, is_single: bool) -> Value {
    let content = json!({"type": "grammar", "grammar": gbnf});
    let tag = json!({"type": "tag", "begin": opening, "content": content, "end": ""});
    let tags = json!({"type": "triggered_tags", "triggers": [opening], "tags": [tag], "stop_after_first": is_single});
    json!({"type": "structural_tag", "format": tags})
}

/// Sets a field that only OpenAI's API and its kin have.
pub(super) fn set(request: &mut Request, name: &str, value: &Value) {
    if request.passing.to(Provider::OpenAi).is_empty() {
        request.passing = Passing::of(Provider::OpenAi);
    }
    request.passing.push(name, RawJson::of(value));
}

fn offered(mut function: Value) -> Option<OfferedTool> {
    let schema = function.get_mut("parameters").map(Value::take);
    let mut tool = OfferedTool::new(function.get("name")?.as_str()?);
    tool.schema = schema.map(Into::into);
    Some(tool)
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
    let Some(keywords) = schema.as_object_mut() else { return };
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            // Others are to an anchor, or to another document.
            ("$ref", Value::String(reference)) => {
                if let Some(pointer) = reference.strip_prefix('#')
                    && (pointer.is_empty() || pointer.starts_with('/'))
                {
                    *reference = format!("#{place}{pointer}");
                }
            }
            (
                "$defs" | "definitions" | "properties" | "patternProperties" | "dependentSchemas"
                | "dependencies",
                Value::Object(named),
            ) => named.values_mut().for_each(|schema| move_references(schema, place)),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| move_references(schema, place));
            }
            // Data, whatever its members are called.
            ("const" | "enum" | "default" | "examples" | "example", _) => {}
            // A schema; one that no keyword stands for may be referred to.
            (_, value) => move_references(value, place),
        }
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

    #[test]
    fn b15_data_and_anchors_stay_as_they_are_where_a_schema_is_moved() {
        let data = json!({"$ref": "#/$defs/city"});
        let kept = json!({
            "properties": {
                "at": {"$ref": "#here"},
                "far": {"$ref": "https://example.org/a.json#/b"},
                "data": {"const": data, "enum": [data], "default": data, "examples": [data], "x-more": [data]},
            },
        });
        let mut moved = kept.clone();
        move_references(&mut moved, "/a");
        assert_eq!(moved, kept);
        let at = |reference: &str| {
            let schema = json!({"$ref": reference});
            json!({
                "$ref": reference, "$defs": {"enum": schema}, "properties": {"$ref": schema, "default": schema},
                "items": [schema], "anyOf": [schema], "not": schema, "dependencies": {"a": ["b"], "c": schema},
                "contentSchema": schema, "x-more": schema,
            })
        };
        for (before, after) in [("#", "#/a"), ("#/$defs/enum", "#/a/$defs/enum")] {
            let mut moved = at(before);
            move_references(&mut moved, "/a");
            assert_eq!(moved, at(after));
        }
    }

    fn sent(constraint: &Constraint, name: &str) -> Value {
        let mut request = Request::default();
        constraint.apply(&mut request);
        serde_json::from_str(request.passing.get(Provider::OpenAi, name).unwrap().get()).unwrap()
    }

    #[tokio::test]
    async fn b14_schemas_that_are_too_involved_do_not_reach_the_server() {
        let hermes = toolrack_dialects::dialect("hermes").unwrap();
        let long = json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1_000_000}}, "required": ["a"]});
        let function = json!({"name": "act", "parameters": long});
        for field in [None, Some(&["grammar"][..])] {
            let made = Constraint::to_calls(vec![function.clone()], hermes, field, 1).await.unwrap();
            assert_eq!(made.dialect, JSON_DIALECT);
            let mut request = Request::default();
            made.apply(&mut request);
            match field {
                Some(_) => {
                    let grammar = sent(&made, "grammar");
                    assert!(grammar.as_str().unwrap().contains("\\\"name\\\": \\\"act\\\""), "{grammar}");
                }
                None => {
                    let Some(ResponseFormat::JsonSchema { schema, .. }) = &request.format else {
                        panic!("{request:?}")
                    };
                    assert_eq!(schema["properties"]["name"]["enum"], json!(["act"]));
                    assert_eq!(schema["properties"]["arguments"], json!({"type": "object"}));
                }
            }
        }
    }

    #[tokio::test]
    async fn b14_each_server_gets_the_grammar_in_its_field() {
        let hermes = toolrack_dialects::dialect("hermes").unwrap();
        for field in [&["grammar"][..], &["structured_outputs", "grammar"]] {
            let made = Constraint::to_calls(vec![function("a")], hermes, Some(field), 1).await.unwrap();
            assert_eq!((made.dialect, made.leaves_only_calls(), made.opening()), ("hermes", true, None));
            let sent = sent(&made, field[0]);
            let grammar = field[1..].iter().fold(&sent, |value, name| &value[*name]);
            assert!(grammar.as_str().unwrap().starts_with("root ::= "), "{sent}");
        }
    }

    #[tokio::test]
    async fn b14_each_server_gets_the_grammar_behind_an_opening_in_its_form() {
        let hermes = toolrack_dialects::dialect("hermes").unwrap();
        let made = async |form, most| {
            Constraint::to_whole_calls(vec![function("a")], hermes, form, most).await.unwrap()
        };
        let llama = made(TriggeredForm::LlamaCpp, 8).await;
        assert_eq!((llama.leaves_only_calls(), llama.opening()), (false, Some("<tool_call>")));
        assert_eq!(sent(&llama, "grammar_lazy"), true);
        assert_eq!(sent(&llama, "grammar_triggers"), json!([{"type": 1, "value": "<tool_call>"}]));
        assert!(sent(&llama, "grammar").as_str().unwrap().starts_with("root ::= \"<tool_call>\" "));
        let sglang = sent(&made(TriggeredForm::SgLang, 1).await, "response_format");
        let grammar = sglang["format"]["tags"][0]["content"]["grammar"].clone();
        assert!(!grammar.as_str().unwrap().starts_with("root ::= \"<tool_call>\""), "{grammar}");
        let tag = json!({
            "type": "tag", "begin": "<tool_call>", "content": {"type": "grammar", "grammar": grammar}, "end": "",
        });
        let tags = json!({
            "type": "triggered_tags", "triggers": ["<tool_call>"], "tags": [tag], "stop_after_first": true,
        });
        assert_eq!(sglang, json!({"type": "structural_tag", "format": tags}));
        let vllm = sent(&made(TriggeredForm::Vllm, 1).await, "structured_outputs");
        let tag: Value = serde_json::from_str(vllm["structural_tag"].as_str().unwrap()).unwrap();
        assert_eq!(tag, sglang);
        let pythonic = toolrack_dialects::dialect("pythonic").unwrap();
        let none = Constraint::to_whole_calls(vec![function("a")], pythonic, TriggeredForm::Vllm, 1).await;
        assert!(none.is_none());
    }
}
