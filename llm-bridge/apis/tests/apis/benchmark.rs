//! The functions of the Berkeley function-calling leaderboard, with the calls that are right.

use serde_json::Value;
use toolrack_apis::Provider;

use crate::{
    cases::lines,
    checker::faults,
    support::{Spec, as_json_schema, define, definers, definitions, schema_of},
};

/// Every function set of the benchmark, with the calls that are right.
fn function_sets() -> Vec<(String, Vec<Spec>, Vec<Value>)> {
    lines("corpus/bfcl")
        .into_iter()
        .map(|case| {
            let spec = |tool: &Value| {
                let function = &tool["function"];
                let name = function["name"].as_str().unwrap();
                Spec {
                    name: name.to_owned(),
                    description: function["description"].as_str().unwrap_or_default().to_owned(),
                    schema: function["parameters"].clone(),
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
        for (provider, definer) in definers() {
            let defined = define(&definer, &tools);
            let faults = faults(provider, &defined.list);
            assert!(faults.is_empty(), "{id}: {provider}: {faults:#?}");
            assert!(defined.left_out.is_empty(), "{id}: {provider}: {:?}", defined.left_out);
            for tool in &tools {
                let wire = defined.names.wire(&tool.name).unwrap();
                assert_eq!(defined.names.original(wire), Some(tool.name.as_str()), "{id}");
            }
        }
        // A call that is right stays right: lowering takes away no good arguments.
        for call in &calls {
            let Some(tool) = tools.iter().find(|tool| call["name"] == *tool.name) else { continue };
            let arguments = &call["arguments"];
            if !jsonschema::is_valid(&tool.schema, arguments) {
                continue;
            }
            for &provider in Provider::ALL {
                let defined = definitions(provider, std::slice::from_ref(tool));
                let lowered = as_json_schema(schema_of(provider, &defined.list));
                assert!(jsonschema::is_valid(&lowered, arguments), "{id}: {provider}: {arguments} {lowered}");
            }
        }
    }
}
