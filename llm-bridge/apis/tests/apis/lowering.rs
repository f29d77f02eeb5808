//! Schemas lowered to what each provider accepts.

use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolrack_apis::{Definer, Definitions, Provider, remove_nulls};

use crate::{
    arbitrary::{Maker, arguments, junk},
    cases::Dice,
    checker::faults,
    support::{Spec, as_json_schema, assert_accepted, define, definers, definitions, schema_of, spec},
};

/// Compares with a file, or writes it with `GOLDEN=overwrite`.
fn assert_golden(name: &str, found: &Value) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
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
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tricky.json");
    let schemas: Map<String, Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let tools: Vec<Spec> = schemas.into_iter().map(|(name, schema)| spec(&name, schema)).collect();
    for &provider in Provider::ALL {
        let defined = definitions(provider, &tools);
        assert_accepted(provider, &defined);
        assert_golden(&format!("tricky.{provider}.json"), &shown(&defined));
    }
    let strict = define(&Definer::new(Provider::OpenAi).strict(), &tools);
    assert_accepted(Provider::OpenAi, &strict);
    assert_golden("tricky.openai.strict.json", &shown(&strict));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn b4_what_fits_the_lowered_schema_fits_the_original(schema in arguments(), seed in any::<u64>()) {
        let Ok(original) = jsonschema::validator_for(&schema) else { return Ok(()) };
        let tools = [spec("t", schema.clone())];
        for (provider, definer) in definers() {
            let defined = define(&definer, &tools);
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
        let tools = [spec("t", schema.clone())];
        for (provider, definer) in definers() {
            let defined = define(&definer, &tools);
            let written = defined.names.wire("t").is_some();
            prop_assert_eq!(written, defined.left_out.is_empty());
            prop_assert!(written || !defined.left_out[0].reason.is_empty());
            let mut value = json!({"type": null, "items": [null, {"enum": null}]});
            remove_nulls(&schema, &mut value);
            // What is no schema is taken by nobody; the checker is for those that are.
            if written && jsonschema::validator_for(&schema).is_ok() {
                let faults = faults(provider, &defined.list);
                prop_assert!(faults.is_empty(), "{}: {:#?}\n{}\n{}", provider, faults, schema, defined.list);
            }
        }
    }
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
        for (_, definer) in definers() {
            let defined = define(&definer, &[spec(name, schema.clone())]);
            assert!(defined.left_out.len() + defined.names.wire(name).iter().count() == 1, "{name}");
            let mut value = json!({"a": null});
            remove_nulls(&schema, &mut value);
        }
    }
}

#[test]
fn b4_types_beside_values_that_have_none_of_them_take_nothing() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": ["string", "null"], "anyOf": [{"enum": [1, 2]}, {"type": "string"}]},
    }});
    let strict = Definer::new(Provider::OpenAi).strict();
    for (provider, definer) in
        [(Provider::Gemini, Definer::new(Provider::Gemini)), (Provider::OpenAi, strict)]
    {
        let defined = define(&definer, &[spec("t", schema.clone())]);
        let found = &schema_of(provider, &defined.list)["properties"]["a"];
        assert!(!found.to_string().contains("\"enum\":[]"), "{provider}: {found}");
        assert!(!jsonschema::is_valid(&as_json_schema(found), &json!(1)), "{provider}: {found}");
        // Strict definitions take null for a property that is left out.
        let takes_null = provider == Provider::OpenAi;
        assert_eq!(
            jsonschema::is_valid(&as_json_schema(found), &Value::Null),
            takes_null,
            "{provider}: {found}"
        );
    }
}
