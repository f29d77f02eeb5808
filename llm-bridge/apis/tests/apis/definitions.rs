//! Shape, names and bounds of definitions.

use serde_json::json;
use toolrack_apis::{Definer, Hints, Provider, Subject, remove_nulls};

use crate::support::{Spec, assert_accepted, define, definers, definitions, schema_of, spec};

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
        (Provider::Mcp, json!({"name": "travel_weather", "description": "Does it.", "inputSchema": schema})),
    ] {
        assert_eq!(Definer::new(provider).definition(tool.subject()).unwrap(), expected, "{provider}");
        let all = definitions(provider, std::slice::from_ref(&tool));
        assert_eq!((all.losses.len(), all.left_out.len()), (0, 0), "{provider}: {all:?}");
    }
}

#[test]
fn c5_a_list_for_gemini_is_one_entry_with_all() {
    let tools = [spec("a.b", json!({"type": "object"})), spec("c", json!({"type": "object"}))];
    let defined = definitions(Provider::Gemini, &tools);
    assert_eq!(defined.list.as_array().unwrap().len(), 1);
    let declarations = defined.list[0]["functionDeclarations"].as_array().unwrap();
    assert_eq!(declarations.len(), 2);
    assert_eq!(definitions(Provider::Gemini, &[]).list, json!([]));
}

#[test]
fn c5_names_are_made_legal_and_found_again() {
    let names = ["math.gcd", "math_gcd", "größe", "2fa", &"long.".repeat(40), "a b", "a.b", "math_gcd_2"];
    let tools: Vec<Spec> = names.iter().map(|name| spec(name, json!({"type": "object"}))).collect();
    for &provider in Provider::ALL {
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
    let reserved = define(&Definer::new(Provider::OpenAi).reserving(["math_gcd"]), &tools[1..2]);
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
    for (_, definer) in definers() {
        let defined = define(&definer, &tools);
        let left_out: Vec<String> = defined.left_out.iter().map(ToString::to_string).collect();
        let expected = ["text", "never", "lost", "remote", "dict", "list", "good"]
            .map(|name| format!("{name}: left out: "));
        let missing: Vec<_> =
            expected.iter().filter(|start| !left_out.iter().any(|line| line.starts_with(*start))).collect();
        assert!(missing.is_empty(), "{definer:?}: {missing:?} in {left_out:#?}");
        assert!(defined.names.wire("good").is_some() && defined.names.wire("fine").is_some());
    }
    let error = Definer::new(Provider::OpenAi).definition(tools[5].subject()).unwrap_err();
    assert!(error.reason.contains("/properties/a") && error.reason.contains("string, integer"), "{error}");
}

#[test]
fn c5_openai_takes_128_tools() {
    let tools: Vec<Spec> =
        (0..130).map(|number| spec(&format!("tool_{number}"), json!({"type": "object"}))).collect();
    let defined = definitions(Provider::OpenAi, &tools);
    assert_eq!((defined.list.as_array().unwrap().len(), defined.left_out.len()), (128, 2));
    assert!(defined.left_out[0].reason.contains("128"));
    assert_eq!(definitions(Provider::Mcp, &tools).left_out.len(), 0);
}

#[test]
fn c5_a_long_description_is_cut_and_told() {
    let tools = [Spec { description: "é".repeat(2000), ..spec("long", json!({"type": "object"})) }];
    let defined = definitions(Provider::OpenAi, &tools);
    let description = defined.list[0]["function"]["description"].as_str().unwrap();
    assert_eq!(description.chars().count(), 1024);
    assert!(description.ends_with('…'));
    assert_eq!((defined.losses[0].keyword.as_str(), defined.losses[0].widened), ("description", false));
    assert_eq!(definitions(Provider::Anthropic, &tools).losses, []);
    let schema = json!({"type": "object"});
    let bare = Subject::new("bare", "", &schema);
    let defined = Definer::new(Provider::Gemini).definition(bare.clone()).unwrap();
    assert_eq!(defined["functionDeclarations"][0]["description"], "bare");
    let defined = Definer::new(Provider::OpenAi).definition(bare).unwrap();
    assert_eq!(defined["function"].get("description"), None);
}

#[test]
fn c5_losses_name_the_place_and_what_was_done() {
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 5, "description": "A number."},
        "d": {"type": "boolean", "default": true},
    }});
    let defined = definitions(Provider::Ollama, &[spec("t", schema)]);
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
    let strict = Definer::new(Provider::OpenAi).strict();
    let defined = define(&strict, &[spec("t", schema.clone())]);
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

    // An alternative that no value fits allows no null.
    let contradictory = json!({"type": "object", "anyOf": [
        {"properties": {"c": {}}, "anyOf": [{"type": "integer"}]},
        {"properties": {"c": {"enum": [1, 2]}}},
    ]});
    let mut arguments = json!({"c": null});
    remove_nulls(&contradictory, &mut arguments);
    assert_eq!(arguments, json!({}));

    let free = spec("free", json!({"type": "object", "properties": {"any": {"type": "object"}}}));
    let defined = define(&strict, &[free]);
    assert_eq!(defined.list[0]["function"].get("strict"), None);
    assert!(defined.losses[0].to_string().contains("free: `strict` is not said"), "{:?}", defined.losses);
    assert!(defined.strict.is_empty());
}

#[test]
fn s9_a_tool_without_parameters_declares_none_to_gemini() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Nothing", "type": "object"}),
    ] {
        let defined = definitions(Provider::Gemini, &[spec("now", schema.clone())]);
        let declaration = &defined.list[0]["functionDeclarations"][0];
        assert_eq!(*declaration, json!({"name": "now", "description": "Does it."}), "{schema}");
        assert!(defined.losses.is_empty() && defined.left_out.is_empty(), "{schema}: {defined:?}");
    }
    // Properties of any name are parameters too.
    let open = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let defined = definitions(Provider::Gemini, &[spec("tag", open.clone())]);
    let declaration = &defined.list[0]["functionDeclarations"][0];
    assert_eq!(declaration["parametersJsonSchema"]["additionalProperties"], open["additionalProperties"]);
}

#[test]
fn b3_hints_are_annotations_of_mcp() {
    let schema = json!({"type": "object"});
    let hints = |read_only, destructive, idempotent| {
        let hints = Some(Hints { read_only, destructive, idempotent, open_world: destructive });
        let tool = Subject { hints, ..Subject::new("t", "", &schema) };
        Definer::new(Provider::Mcp).definition(tool).unwrap()["annotations"].clone()
    };
    assert_eq!(hints(true, false, true), json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(
        hints(false, true, false),
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true})
    );
    let unknown = Definer::new(Provider::Mcp).definition(Subject::new("t", "", &schema)).unwrap();
    assert_eq!(unknown.get("annotations"), None);
}
