//! What each provider refuses, written from what the providers say and not from how schemas are lowered.

use std::{
    collections::{HashMap, HashSet},
    sync::{LazyLock, Mutex},
};

use regex::Regex;
use serde_json::{Map, Value};
use toolrack_apis::Provider;

/// What is wrong with the `tools` of a request.
pub(crate) fn faults(provider: Provider, tools: &Value) -> Vec<String> {
    let mut checker = Checker { provider, faults: Vec::new() };
    let Some(list) = tools.as_array() else { return vec!["no array".into()] };
    let list: Vec<&Value> = match provider {
        Provider::Gemini => {
            checker.ask(list.len() <= 1, "more than one entry with declarations");
            list.iter().flat_map(|tool| only(tool, "functionDeclarations").as_array().unwrap()).collect()
        }
        _ => list.iter().collect(),
    };
    let mut names = HashSet::new();
    for tool in list {
        let name = checker.tool(tool);
        checker.ask(names.insert(name.clone()), &format!("{name} is there twice"));
    }
    checker.ask(provider != Provider::OpenAi || names.len() <= 128, "more than 128 tools");
    checker.faults
}

fn only<'v>(value: &'v Value, key: &str) -> &'v Value {
    let object = value.as_object().unwrap();
    assert_eq!(object.keys().collect::<Vec<_>>(), [key], "{value}");
    &object[key]
}

struct Checker {
    provider: Provider,
    faults: Vec<String>,
}

impl Checker {
    fn ask(&mut self, holds: bool, fault: &str) {
        if !holds {
            self.faults.push(fault.to_owned());
        }
    }

    fn keys(&mut self, value: &Map<String, Value>, known: &[&str], place: &str) {
        for key in value.keys() {
            self.ask(known.contains(&key.as_str()), &format!("{place}: unknown key {key}"));
        }
    }

    fn tool(&mut self, tool: &Value) -> String {
        let (function, schema_key, known): (&Value, &str, &[&str]) = match self.provider {
            Provider::OpenAi | Provider::Ollama => {
                self.keys(tool.as_object().unwrap(), &["type", "function"], "tool");
                self.ask(tool["type"] == "function", "type is not function");
                (&tool["function"], "parameters", &["name", "description", "parameters", "strict"])
            }
            Provider::Responses => {
                self.ask(tool["type"] == "function" && tool["strict"].is_boolean(), "no type or strict");
                (tool, "parameters", &["type", "name", "description", "parameters", "strict"])
            }
            Provider::Gemini => {
                let json = tool.get("parametersJsonSchema").is_some();
                self.ask(!json || tool.get("parameters").is_none(), "both schemas");
                let key = if json { "parametersJsonSchema" } else { "parameters" };
                (tool, key, &["name", "description", "parameters", "parametersJsonSchema"])
            }
            Provider::Anthropic => (tool, "input_schema", &["name", "description", "input_schema"]),
            Provider::Mcp => {
                let known = &["name", "title", "description", "inputSchema", "outputSchema", "annotations"];
                (tool, "inputSchema", known)
            }
        };
        let name = function["name"].as_str().unwrap().to_owned();
        self.keys(function.as_object().unwrap(), known, &name);
        let (pattern, longest_description) = match self.provider {
            Provider::OpenAi => ("^[A-Za-z0-9_-]{1,64}$", 1024),
            Provider::Responses => ("^[a-zA-Z0-9_-]{1,128}$", 1024),
            Provider::Anthropic => ("^[a-zA-Z0-9_-]{1,128}$", usize::MAX),
            Provider::Ollama | Provider::Mcp => ("^[A-Za-z_][A-Za-z0-9_-]{0,63}$", usize::MAX),
            Provider::Gemini => ("^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$", usize::MAX),
        };
        self.ask(matches(pattern, &name), &format!("name {name}"));
        let description = function.get("description").map(|text| text.as_str().unwrap());
        self.ask(
            description.map_or(0, |text| text.chars().count()) <= longest_description,
            "long description",
        );
        self.ask(
            description.is_some_and(|text| !text.is_empty()) || self.provider != Provider::Gemini,
            "no description",
        );
        let Some(schema) = function.get(schema_key) else {
            self.ask(self.provider == Provider::Gemini, "no schema");
            return name;
        };
        self.root(schema, &name);
        match (self.provider, schema_key) {
            (Provider::OpenAi | Provider::Responses, _) if function["strict"] == true => {
                self.strict(schema, &name)
            }
            (Provider::OpenAi | Provider::Responses, _) => self.arrays_have_items(schema, &name),
            (Provider::Ollama, _) => {
                for property in schema["properties"].as_object().into_iter().flat_map(Map::values) {
                    self.ollama(property, &name);
                }
            }
            (Provider::Gemini, "parameters") => self.open_api(schema, &name),
            (Provider::Gemini, _) => self.gemini_json(schema, &name),
            (Provider::Anthropic | Provider::Mcp, _) => {}
        }
        name
    }

    fn root(&mut self, schema: &Value, name: &str) {
        self.ask(schema["type"] == "object", &format!("{name}: the root is no object"));
        self.ask(
            jsonschema::draft202012::meta::is_valid(schema),
            &format!("{name}: not JSON Schema 2020-12: {schema}"),
        );
        let refused: &[&str] = match self.provider {
            Provider::OpenAi | Provider::Responses => &["oneOf", "anyOf", "allOf", "enum", "not"],
            Provider::Anthropic => &["oneOf", "anyOf", "allOf"],
            _ => &[],
        };
        for key in refused {
            self.ask(schema.get(*key).is_none(), &format!("{name}: {key} at the root"));
        }
        if self.provider == Provider::Ollama {
            self.keys(
                schema.as_object().unwrap(),
                &["type", "$defs", "items", "required", "properties"],
                name,
            );
        }
        if self.provider == Provider::Anthropic {
            let legal = "^[a-zA-Z0-9_.-]{1,64}$";
            for key in schema["properties"].as_object().into_iter().flat_map(Map::keys) {
                self.ask(matches(legal, key), &format!("{name}: property {key}"));
            }
        }
        self.references(schema, schema, name);
    }

    /// Every reference leads somewhere.
    fn references(&mut self, root: &Value, value: &Value, name: &str) {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            self.ask(found.is_some(), &format!("{name}: {reference} leads nowhere"));
        }
        for part in schemas_in(value) {
            self.references(root, part, name);
        }
    }

    fn arrays_have_items(&mut self, value: &Value, name: &str) {
        let is_array = value["type"] == "array"
            || value["type"].as_array().is_some_and(|types| types.iter().any(|kind| kind == "array"));
        self.ask(!is_array || value.get("items").is_some(), &format!("{name}: array without items"));
        for part in schemas_in(value) {
            self.arrays_have_items(part, name);
        }
    }

    fn parts(&mut self, schema: &Value, name: &str, check: fn(&mut Self, &Value, &str)) {
        for part in schema["properties"].as_object().into_iter().flat_map(Map::values) {
            check(self, part, name);
        }
        for key in ["items", "additionalProperties"] {
            schema.get(key).filter(|part| part.is_object()).inspect(|part| check(self, part, name));
        }
        for key in ["anyOf", "prefixItems"] {
            for part in schema[key].as_array().into_iter().flatten() {
                check(self, part, name);
            }
        }
    }

    fn strict(&mut self, schema: &Value, name: &str) {
        let known = [
            "type",
            "title",
            "description",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "minItems",
            "maxItems",
            "enum",
            "anyOf",
            "pattern",
            "format",
            "multipleOf",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ];
        self.keys(schema.as_object().unwrap(), &known, name);
        self.ask(
            schema.get("type").is_some() || schema.get("anyOf").is_some(),
            &format!("{name}: no type: {schema}"),
        );
        if schema["type"] == "object" || schema["type"].as_array().is_some_and(|all| all[0] == "object") {
            let properties: HashSet<&str> =
                schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            let required: HashSet<&str> =
                schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            self.ask(properties == required, &format!("{name}: not all required"));
            self.ask(schema["additionalProperties"] == false, &format!("{name}: open"));
        }
        if let Some(format) = schema.get("format").and_then(Value::as_str) {
            let known =
                ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
            self.ask(known.contains(&format), &format!("{name}: format {format}"));
        }
        self.parts(schema, name, Self::strict);
    }

    fn ollama(&mut self, schema: &Value, name: &str) {
        let known = ["anyOf", "type", "items", "description", "enum", "properties", "required"];
        self.keys(schema.as_object().unwrap(), &known, name);
        self.parts(schema, name, Self::ollama);
    }

    /// The names and the required ones of an object of Gemini's.
    fn gemini_object(&mut self, schema: &Value, name: &str) {
        let legal = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";
        for key in schema["properties"].as_object().into_iter().flat_map(Map::keys) {
            self.ask(matches(legal, key), &format!("{name}: property {key}"));
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            let is_there = schema["properties"].get(required.as_str().unwrap()).is_some();
            self.ask(is_there, &format!("{name}: {required} is required and not there"));
        }
    }

    fn open_api(&mut self, schema: &Value, name: &str) {
        let known = [
            "type",
            "format",
            "title",
            "description",
            "nullable",
            "enum",
            "maxItems",
            "minItems",
            "properties",
            "required",
            "minProperties",
            "maxProperties",
            "minLength",
            "maxLength",
            "pattern",
            "example",
            "anyOf",
            "propertyOrdering",
            "default",
            "items",
            "minimum",
            "maximum",
        ];
        self.keys(schema.as_object().unwrap(), &known, name);
        let kind = schema["type"].as_str();
        self.ask(
            kind.is_some_and(|kind| kind != "null") || schema.get("anyOf").is_some(),
            &format!("{name}: no type: {schema}"),
        );
        if schema.get("anyOf").is_some() {
            let beside: Vec<&String> = schema
                .as_object()
                .unwrap()
                .keys()
                .filter(|key| !["anyOf", "nullable", "description", "title"].contains(&key.as_str()))
                .collect();
            self.ask(beside.is_empty(), &format!("{name}: {beside:?} beside anyOf"));
        }
        let is_empty = schema["properties"].as_object().is_none_or(Map::is_empty);
        self.ask(kind != Some("object") || !is_empty, &format!("{name}: object without properties"));
        self.ask(
            kind != Some("array") || schema.get("items").is_some(),
            &format!("{name}: array without items"),
        );
        for value in schema["enum"].as_array().into_iter().flatten() {
            self.ask(
                value.as_str().is_some_and(|text| !text.is_empty()) && kind == Some("string"),
                &format!("{name}: enum {value}"),
            );
        }
        let formats: &[&str] = match kind {
            Some("string") => &["date-time", "enum"],
            Some("number") => &["float", "double"],
            Some("integer") => &["int32", "int64"],
            _ => &[],
        };
        if let Some(format) = schema.get("format").and_then(Value::as_str) {
            self.ask(formats.contains(&format), &format!("{name}: format {format} of {kind:?}"));
        }
        self.gemini_object(schema, name);
        self.parts(schema, name, Self::open_api);
    }

    fn gemini_json(&mut self, schema: &Value, name: &str) {
        let known = [
            "$id",
            "$defs",
            "$ref",
            "$anchor",
            "type",
            "format",
            "title",
            "description",
            "enum",
            "items",
            "prefixItems",
            "minItems",
            "maxItems",
            "minimum",
            "maximum",
            "anyOf",
            "oneOf",
            "properties",
            "additionalProperties",
            "required",
            "propertyOrdering",
        ];
        self.keys(schema.as_object().unwrap(), &known, name);
        for value in schema["enum"].as_array().into_iter().flatten() {
            self.ask(value.is_string() || value.is_number(), &format!("{name}: enum {value}"));
        }
        self.gemini_object(schema, name);
        self.parts(schema, name, Self::gemini_json);
    }
}

/// Whether a pattern matches; patterns are read once.
fn matches(pattern: &'static str, text: &str) -> bool {
    static READ: LazyLock<Mutex<HashMap<&str, Regex>>> = LazyLock::new(Mutex::default);
    let mut read = READ.lock().unwrap();
    read.entry(pattern).or_insert_with(|| Regex::new(pattern).unwrap()).is_match(text)
}

/// The schemas that are parts of a schema.
fn schemas_in(schema: &Value) -> Vec<&Value> {
    let named = ["properties", "patternProperties", "dependentSchemas", "$defs"];
    let single = [
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "items",
        "unevaluatedItems",
        "contains",
    ];
    let applied = ["not", "if", "then", "else", "contentSchema"];
    let several = ["allOf", "anyOf", "oneOf", "prefixItems"];
    let named = named.iter().filter_map(|key| schema[*key].as_object()).flat_map(Map::values);
    let single = single.iter().chain(&applied).filter_map(|key| schema.get(*key));
    let several = several.iter().filter_map(|key| schema[*key].as_array()).flatten();
    named.chain(single).chain(several).collect()
}
