//! Definitions as providers take them: C5, B4, C6.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "providers/arbitrary.rs"]
mod arbitrary;
#[path = "providers/checker.rs"]
mod checker;
#[allow(dead_code, unreachable_pub)] // of which the scanner's tests use more
#[path = "../dialects/tests/dialects/cases.rs"]
mod common;

use std::path::PathBuf;

use arbitrary::{Maker, arguments, junk};
use checker::faults;
use common::{Dice, lines};
use llm_bridge::provider::{Definer, Definitions, Provider, definition, definitions, remove_nulls};
use proptest::prelude::*;
use registry_core::{Caller, Permission, Registry, ToolCall, ToolPolicy, ToolResult, ToolSpec, handler_fn};
use serde_json::{Map, Value, json};

fn spec(name: &str, schema: Value) -> ToolSpec {
    ToolSpec { description: Some("Does it.".into()), ..ToolSpec::new(name, schema) }
}

/// Both ways of defining: the ordinary one and, where there is one, the strict.
fn definers() -> Vec<Definer> {
    let strict = [Provider::OpenAi, Provider::Responses].map(|provider| Definer::new(provider).strict());
    Provider::ALL.into_iter().map(Definer::new).chain(strict).collect()
}

/// The schema of the only definition.
fn schema_of(provider: Provider, list: &Value) -> &Value {
    let tool = &list[0];
    match provider {
        Provider::OpenAi | Provider::Ollama => &tool["function"]["parameters"],
        Provider::Responses => &tool["parameters"],
        Provider::Anthropic => &tool["input_schema"],
        Provider::Mcp => &tool["inputSchema"],
        Provider::Gemini => {
            let tool = &tool["functionDeclarations"][0];
            tool.get("parameters").unwrap_or(&tool["parametersJsonSchema"])
        }
    }
}

fn assert_accepted(provider: Provider, defined: &Definitions) {
    let faults = faults(provider, &defined.list);
    assert!(faults.is_empty(), "{provider}: {faults:#?}");
}

#[test]
fn c5_an_unknown_provider_is_an_error_that_names_the_known() {
    for name in ["", "OpenAI", "mistral", "gemini "] {
        let error = name.parse::<Provider>().unwrap_err().to_string();
        for known in ["openai", "responses", "ollama", "gemini", "anthropic", "mcp"] {
            assert!(error.contains(known) && error.contains(name), "{error}");
            assert_eq!(known.parse::<Provider>().unwrap().name(), known);
        }
    }
}

#[test]
fn c5_one_tool_has_the_documented_shape() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = spec("travel.weather", schema.clone());
    let function = json!({"name": "travel_weather", "description": "Does it.", "parameters": schema});
    let common = json!({"type": "function", "function": function});
    for (provider, expected) in [
        (Provider::OpenAi, common.clone()),
        (Provider::Ollama, common),
        (
            Provider::Gemini,
            json!({"functionDeclarations": [
                {"name": "travel.weather", "description": "Does it.", "parameters": schema}
            ]}),
        ),
        (
            Provider::Responses,
            json!({"type": "function", "name": "travel_weather", "description": "Does it.", "parameters": schema, "strict": false}),
        ),
        (
            Provider::Anthropic,
            json!({"name": "travel_weather", "description": "Does it.", "input_schema": schema}),
        ),
        (Provider::Mcp, json!({"name": "travel.weather", "description": "Does it.", "inputSchema": schema})),
    ] {
        assert_eq!(definition(provider, &tool).unwrap(), expected, "{provider}");
        let all = definitions(provider, [&tool]);
        assert_eq!((all.losses.len(), all.left_out.len()), (0, 0), "{provider}: {all:?}");
    }
}

#[test]
fn c5_a_deprecated_tool_says_so_to_every_model() {
    let tool = ToolSpec { deprecated: Some("use b".into()), ..spec("a", json!({"type": "object"})) };
    for provider in Provider::ALL {
        let defined = definition(provider, &tool).unwrap().to_string();
        assert!(defined.contains("\"Deprecated: use b. Does it.\""), "{provider}: {defined}");
    }
}

#[test]
fn c5_a_list_for_gemini_is_one_entry_with_all() {
    let tools = [spec("a.b", json!({"type": "object"})), spec("c", json!({"type": "object"}))];
    let defined = definitions(Provider::Gemini, &tools);
    assert_eq!(defined.list.as_array().unwrap().len(), 1);
    let declarations = defined.list[0]["functionDeclarations"].as_array().unwrap();
    assert_eq!(declarations.len(), 2);
    // Without properties `parameters` would be refused.
    assert_eq!(declarations[0]["parametersJsonSchema"], json!({"type": "object", "properties": {}}));
    let none: [ToolSpec; 0] = [];
    assert_eq!(definitions(Provider::Gemini, &none).list, json!([]));
}

#[test]
fn c5_names_are_made_legal_and_found_again() {
    let names = ["math.gcd", "math_gcd", "größe", "2fa", &"long.".repeat(40), "a b", "a.b", "math_gcd_2"];
    let tools: Vec<ToolSpec> = names.iter().map(|name| spec(name, json!({"type": "object"}))).collect();
    for provider in Provider::ALL {
        let defined = definitions(provider, &tools);
        assert_accepted(provider, &defined);
        assert!(defined.left_out.is_empty());
        let wire: Vec<&str> = names.iter().map(|name| defined.names.wire(name).unwrap()).collect();
        for (name, wire) in names.iter().zip(&wire) {
            assert_eq!(defined.names.original(wire), Some(*name), "{provider}");
        }
        // What is legal keeps its name, whatever comes before it.
        assert_eq!((wire[1], wire[7]), ("math_gcd", "math_gcd_2"), "{provider}");
    }
    let reserved = Definer::new(Provider::OpenAi).reserving(["math_gcd"]).definitions(&tools[1..2]);
    assert_eq!(reserved.names.original("math_gcd_2"), Some("math_gcd"));
    assert_eq!(reserved.list[0]["function"]["name"], "math_gcd_2");
}

#[test]
fn c5_what_cannot_be_defined_is_left_out_with_the_reason() {
    let no_schema = json!({"type": "object", "properties": {"n": {"type": "string", "not": 5}}});
    let tools = [
        spec("good", json!({"type": "object", "properties": {"a": {"type": "string"}}})),
        spec("text", json!({"type": "string"})),
        spec("never", json!(false)),
        spec("lost", json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}})),
        spec("remote", json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/s"}}})),
        spec("dict", json!({"type": "object", "properties": {"a": {"type": "dict"}}})),
        spec("list", json!({"type": "object", "properties": []})),
        spec("not", no_schema),
        spec("good", json!({"type": "object"})),
        spec("fine", json!({"type": "object"})),
    ];
    for definer in definers() {
        let defined = definer.definitions(&tools);
        let left_out: Vec<String> = defined.left_out.iter().map(ToString::to_string).collect();
        let expected = ["text", "never", "lost", "remote", "dict", "list", "good"]
            .map(|name| format!("{name}: left out: "));
        let missing: Vec<_> =
            expected.iter().filter(|start| !left_out.iter().any(|line| line.starts_with(*start))).collect();
        assert!(missing.is_empty(), "{definer:?}: {missing:?} in {left_out:#?}");
        assert!(defined.names.wire("good").is_some() && defined.names.wire("fine").is_some());
    }
    let error = definition(Provider::OpenAi, &tools[5]).unwrap_err();
    assert!(error.reason.contains("/properties/a") && error.reason.contains("string, integer"), "{error}");
}

#[test]
fn c5_openai_takes_128_tools() {
    let tools: Vec<ToolSpec> =
        (0..130).map(|number| spec(&format!("tool_{number}"), json!({"type": "object"}))).collect();
    let defined = definitions(Provider::OpenAi, &tools);
    assert_eq!((defined.list.as_array().unwrap().len(), defined.left_out.len()), (128, 2));
    assert!(defined.left_out[0].reason.contains("128"));
    assert_eq!(definitions(Provider::Mcp, &tools).left_out.len(), 0);
}

#[test]
fn c5_a_long_description_is_cut_and_told() {
    let tool = ToolSpec { description: Some("é".repeat(2000)), ..spec("long", json!({"type": "object"})) };
    let defined = definitions(Provider::OpenAi, [&tool]);
    let description = defined.list[0]["function"]["description"].as_str().unwrap();
    assert_eq!(description.chars().count(), 1024);
    assert!(description.ends_with('…'));
    assert_eq!((defined.losses[0].keyword.as_str(), defined.losses[0].widened), ("description", false));
    assert_eq!(definitions(Provider::Anthropic, [&tool]).losses, []);
    let bare = ToolSpec::new("bare", json!({"type": "object"}));
    assert_eq!(
        definition(Provider::Gemini, &bare).unwrap()["functionDeclarations"][0]["description"],
        "bare"
    );
    assert_eq!(definition(Provider::OpenAi, &bare).unwrap()["function"].get("description"), None);
}

#[test]
fn c5_losses_name_the_place_and_what_was_done() {
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 5, "description": "A number."},
        "d": {"type": "boolean", "default": true},
    }});
    let defined = definitions(Provider::Ollama, [&spec("t", schema)]);
    let losses: Vec<String> = defined.losses.iter().map(ToString::to_string).collect();
    assert_eq!(
        losses,
        [
            "t: /properties/n: `exclusiveMinimum` is said in the description; wider than the tool",
            "t: /properties/n: `multipleOf` is said in the description; wider than the tool",
            "t: /properties/d: `default` is said in the description",
        ]
    );
    let properties = &schema_of(Provider::Ollama, &defined.list)["properties"];
    assert_eq!(properties["n"]["description"], "A number. (more than 0; a multiple of 5)");
    assert_eq!(properties["d"], json!({"type": "boolean", "description": "default: true"}));
}

/// Compares with a file, or writes it with `GOLDEN=overwrite`.
fn assert_golden(name: &str, found: &Value) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/providers").join(name);
    let found = serde_json::to_string_pretty(found).unwrap() + "\n";
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "overwrite") {
        std::fs::write(&file, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(expected == found, "{} is otherwise; found:\n{found}", file.display());
}

/// What is defined, with all that was lost.
fn shown(defined: &Definitions) -> Value {
    let losses: Vec<String> = defined.losses.iter().map(ToString::to_string).collect();
    let left_out: Vec<String> = defined.left_out.iter().map(ToString::to_string).collect();
    json!({"list": defined.list, "losses": losses, "left_out": left_out})
}

#[test]
fn c5_tricky_schemas_are_lowered_as_recorded() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/providers/tricky.json");
    let schemas: Map<String, Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let tools: Vec<ToolSpec> = schemas.into_iter().map(|(name, schema)| spec(&name, schema)).collect();
    for provider in Provider::ALL {
        let defined = definitions(provider, &tools);
        assert_accepted(provider, &defined);
        assert_golden(&format!("tricky.{provider}.json"), &shown(&defined));
    }
    let strict = Definer::new(Provider::OpenAi).strict().definitions(&tools);
    assert_accepted(Provider::OpenAi, &strict);
    assert_golden("tricky.openai.strict.json", &shown(&strict));
}

/// Every function set of the benchmark, with the calls that are right.
fn function_sets() -> Vec<(String, Vec<ToolSpec>, Vec<Value>)> {
    lines("corpus/bfcl")
        .into_iter()
        .map(|case| {
            let spec = |tool: &Value| {
                let function = &tool["function"];
                let name = function["name"].as_str().unwrap();
                ToolSpec {
                    description: function["description"].as_str().map(str::to_owned),
                    ..ToolSpec::new(name, function["parameters"].clone())
                }
            };
            let tools = case["tools"].as_array().unwrap().iter().map(spec).collect();
            (case["id"].to_string(), tools, case["calls"].as_array().cloned().unwrap_or_default())
        })
        .collect()
}

#[test]
fn b4_the_benchmarks_functions_are_taken_by_every_provider() {
    for (id, tools, calls) in function_sets() {
        for definer in definers() {
            let defined = definer.definitions(&tools);
            let provider = definer.provider();
            let faults = faults(provider, &defined.list);
            assert!(faults.is_empty(), "{id}: {provider}: {faults:#?}");
            assert!(defined.left_out.is_empty(), "{id}: {provider}: {:?}", defined.left_out);
            for tool in &tools {
                let wire = defined.names.wire(&tool.tool_name).unwrap();
                assert_eq!(defined.names.original(wire), Some(tool.tool_name.as_str()), "{id}");
            }
        }
        // A call that is right stays right: lowering takes away no good arguments.
        for call in &calls {
            let Some(tool) = tools.iter().find(|tool| call["name"] == *tool.tool_name) else { continue };
            let arguments = &call["arguments"];
            if !jsonschema::is_valid(&tool.input_schema, arguments) {
                continue;
            }
            for provider in Provider::ALL {
                let defined = definitions(provider, [tool]);
                let lowered = as_json_schema(schema_of(provider, &defined.list));
                assert!(jsonschema::is_valid(&lowered, arguments), "{id}: {provider}: {arguments} {lowered}");
            }
        }
    }
}

/// What Gemini says with `nullable`, in the words of JSON Schema.
fn as_json_schema(schema: &Value) -> Value {
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn b4_what_fits_the_lowered_schema_fits_the_original(schema in arguments(), seed in any::<u64>()) {
        let Ok(original) = jsonschema::validator_for(&schema) else { return Ok(()) };
        let tool = spec("t", schema.clone());
        for definer in definers() {
            let defined = definer.definitions([&tool]);
            let provider = definer.provider();
            let faults = faults(provider, &defined.list);
            prop_assert!(faults.is_empty(), "{}: {:#?}\n{}\n{}", provider, faults, schema, defined.list);
            if !defined.left_out.is_empty() || defined.losses.iter().any(|loss| loss.widened) {
                continue;
            }
            let lowered = as_json_schema(schema_of(provider, &defined.list));
            let Ok(validator) = jsonschema::validator_for(&lowered) else {
                panic!("{provider}: {lowered} is no schema");
            };
            let mut maker = Maker { root: &lowered, dice: Dice(seed | 1) };
            for _ in 0..60 {
                let mut value = maker.value(&lowered, 0);
                if !validator.is_valid(&value) {
                    continue;
                }
                let given = value.clone();
                if defined.strict.contains("t") {
                    remove_nulls(&schema, &mut value);
                }
                prop_assert!(
                    original.is_valid(&value),
                    "{}: {}\nfits {}\nand not {}", provider, given, lowered, schema
                );
            }
        }
    }

    #[test]
    fn b4_any_json_is_lowered_or_left_out(schema in junk()) {
        let tool = spec("t", schema.clone());
        for definer in definers() {
            let defined = definer.definitions([&tool]);
            let written = defined.names.wire("t").is_some();
            prop_assert_eq!(written, defined.left_out.is_empty());
            prop_assert!(written || !defined.left_out[0].reason.is_empty());
            let mut value = json!({"type": null, "items": [null, {"enum": null}]});
            remove_nulls(&schema, &mut value);
            // What is no schema is taken by nobody; the checker is for those that are.
            if written && jsonschema::validator_for(&schema).is_ok() {
                let faults = faults(definer.provider(), &defined.list);
                prop_assert!(faults.is_empty(), "{}: {:#?}\n{}\n{}", definer.provider(), faults, schema, defined.list);
            }
        }
    }
}

#[tokio::test]
async fn b4_what_is_wider_than_the_tool_is_refused_by_its_own_schema() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 5}}});
    let registry = Registry::builder().without_compiled().build().unwrap();
    let handler = handler_fn(|_, arguments| async move { Ok(ToolResult::new(arguments["n"].clone())) });
    registry.register(spec("fives", schema), ToolPolicy::default(), Some(handler)).unwrap();
    let context = registry.context(Caller::new("somebody", Permission::Owner));
    let selection = registry.select(&context);
    let defined = definitions(Provider::Gemini, selection.tools().iter().map(AsRef::as_ref));
    assert!(defined.losses.iter().any(|loss| loss.keyword == "multipleOf" && loss.widened));
    let lowered = schema_of(Provider::Gemini, &defined.list);
    for (n, is_right) in [(10, true), (7, false)] {
        let arguments = json!({"n": n});
        assert!(jsonschema::is_valid(lowered, &arguments));
        let outcome = selection.execute(&context, ToolCall::new("fives", arguments)).await;
        assert_eq!(outcome.result.is_ok(), is_right, "{n}");
    }
}

/// What the program prints, on standard output and standard error, and how it ends.
#[cfg(feature = "bundled")]
fn toolrack(arguments: &[&str]) -> (String, String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_toolrack"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLRACK_")) {
        command.env_remove(name);
    }
    let output = command.args(arguments).current_dir(folder.path()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[cfg(feature = "bundled")]
#[test]
fn c5_the_bundled_tools_are_printed_as_recorded() {
    for provider in Provider::ALL {
        let allowed = "research.fetch_webpage,calculate,current_time";
        let (list, told, code) =
            toolrack(&["tools", "--format", provider.name(), "--allowed", allowed, "--level", "owner"]);
        assert_eq!(code, Some(0), "{told}");
        let list: Value = serde_json::from_str(&list).unwrap();
        let faults = faults(provider, &list);
        assert!(faults.is_empty(), "{provider}: {faults:#?}");
        let told: Vec<&str> = told.lines().collect();
        assert_golden(&format!("bundled.{provider}.json"), &json!({"list": list, "told": told}));
    }
}

#[cfg(feature = "bundled")]
#[test]
fn c6_only_allowed_tools_are_listed_in_the_listings_own_order() {
    let names = |allowed: &str| -> Vec<String> {
        let (list, _, _) = toolrack(&["tools", "list", "--format", "mcp", "--allowed", allowed]);
        let list: Vec<Value> = serde_json::from_str(&list).unwrap();
        list.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("current_time,calculate"), ["calculate", "current_time"]);
    assert_eq!(names("calculate"), ["calculate"]);
    let (list, told, code) = toolrack(&["tools", "--json", "--allowed", "current_time,no_such,calculate"]);
    let rows: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!((rows.len(), code), (2, Some(0)));
    assert_eq!(rows[0]["name"], "calculate");
    assert!(told.contains("there is no tool `no_such`"), "{told}");
}

#[cfg(feature = "bundled")]
#[test]
fn c5_the_program_refuses_an_unknown_provider_and_names_the_known() {
    for command in [&["tools", "--format", "mistral"][..], &["tools", "list", "--format", "mistral"]] {
        let (list, told, code) = toolrack(command);
        assert_eq!((list.as_str(), code), ("", Some(2)), "{told}");
        for provider in Provider::ALL {
            assert!(told.contains(provider.name()), "{told}");
        }
    }
    // Strict schemas are a matter of a format, and a table is none.
    assert_eq!(toolrack(&["tools", "--strict"]).2, Some(2));
    assert_eq!(toolrack(&["tools", "--format", "mcp", "--json"]).2, Some(2));
}

#[test]
fn b4_hostile_schemas_end_soon() {
    let mut deep = json!({"type": "string"});
    for _ in 0..400 {
        deep = json!({"type": "array", "items": deep});
    }
    let doubling: Map<String, Value> = (0..40)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"type": "object", "properties": {"a": next, "b": next}}))
        })
        .chain([("d40".to_owned(), json!({"type": "string"}))])
        .collect();
    let loops = json!({"type": "object", "properties": {
        "a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"},
        "c": {"allOf": [{"$ref": "#/properties/c"}]}, "d": {"$ref": "#"}, "e": {"anyOf": [{"$ref": "#/properties/e"}]},
    }});
    let wide: Vec<Value> =
        (0..1000).map(|n| json!({"properties": {(format!("p{n}")): {"const": n}}})).collect();
    let much: Map<String, Value> = (0..1000).map(|n| (format!("m{n}"), json!({"type": "null"}))).collect();
    let values: Vec<u32> = (0..20_000).collect();
    let often: Map<String, Value> =
        (0..1000).map(|n| (format!("o{n}"), json!({"$ref": "#/$defs/d"}))).collect();
    for (name, schema) in [
        ("deep", json!({"type": "object", "properties": {"a": deep}})),
        (
            "doubling",
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": doubling}),
        ),
        ("loops", loops),
        ("wide", json!({"type": "object", "anyOf": wide})),
        ("wide_beside_much", json!({"type": "object", "anyOf": wide, "properties": much})),
        ("often", json!({"type": "object", "properties": often, "$defs": {"d": {"enum": values}}})),
    ] {
        for definer in definers() {
            let defined = definer.definitions([&spec(name, schema.clone())]);
            assert!(defined.left_out.len() + defined.names.wire(name).iter().count() == 1, "{name}");
            let mut value = json!({"a": null});
            remove_nulls(&schema, &mut value);
        }
    }
}

#[test]
fn b4_strict_makes_all_required_and_nulls_are_taken_out_again() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer", "minimum": 1},
            "c": {"type": ["string", "null"]},
            "e": {"enum": ["x", "y"], "description": "One of two."},
            "n": {"type": "object", "properties": {"z": {"type": "boolean"}}, "additionalProperties": false},
            "l": {"type": "array", "items": {"$ref": "#/$defs/p"}},
        },
        "required": ["a"],
        "additionalProperties": false,
        "$defs": {"p": {"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": false}},
    });
    let tool = spec("t", schema.clone());
    let defined = Definer::new(Provider::OpenAi).strict().definitions([&tool]);
    assert_accepted(Provider::OpenAi, &defined);
    let function = &defined.list[0]["function"];
    assert_eq!(function["strict"], true);
    let properties = &function["parameters"]["properties"];
    assert_eq!(properties["b"]["type"], json!(["integer", "null"]));
    assert_eq!(properties["c"], json!({"anyOf": [{"type": "string"}, {"type": "null"}]}));
    assert_eq!(properties["e"]["description"], "One of two.");
    let mut arguments = json!({
        "a": "x", "b": null, "c": null, "e": null, "n": {"z": null}, "l": [{"x": null}, {"x": 1}],
    });
    assert!(jsonschema::is_valid(&function["parameters"], &arguments));
    remove_nulls(&schema, &mut arguments);
    assert_eq!(arguments, json!({"a": "x", "c": null, "n": {}, "l": [{}, {"x": 1}]}));
    assert!(jsonschema::is_valid(&schema, &arguments));

    let free = spec("free", json!({"type": "object", "properties": {"any": {"type": "object"}}}));
    let defined = Definer::new(Provider::OpenAi).strict().definitions([&free]);
    assert_eq!(defined.list[0]["function"].get("strict"), None);
    assert!(defined.losses[0].to_string().contains("free: `strict` is not said"), "{:?}", defined.losses);
    assert!(defined.strict.is_empty());
}
