//! Schemas that somebody wrote to do harm: each is dealt with soon, and the grammar is not large.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use regex::Regex;
use serde_json::{Map, Value, json};

use super::texts::Dice;
use crate::{OfferedTool, dialect};

/// The longest grammar there is, and how long it takes, on a slow machine as well.
const MOST_BYTES: usize = 8 << 20;
const LONGEST: Duration = Duration::from_secs(30);

fn grammar(name: &str, schemas: &[Value]) -> Option<String> {
    let tool = |(at, schema): (usize, &Value)| OfferedTool {
        name: format!("tool_{at}"),
        schema: Some(Arc::new(schema.clone())),
        tag: None,
    };
    let tools: Vec<_> = schemas.iter().enumerate().map(tool).collect();
    let began = Instant::now();
    let grammar = dialect(name).unwrap().grammar(&tools, 8);
    let took = began.elapsed();
    let length = grammar.as_ref().map_or(0, String::len);
    assert!(took < LONGEST && length < MOST_BYTES, "{name}: {length} bytes after {took:?}");
    let repeated = Regex::new(r"\{(\d+)(?:,(\d+))?\}").unwrap();
    for bounds in grammar.iter().flat_map(|grammar| repeated.captures_iter(grammar)) {
        let number = |at: usize| bounds.get(at).map(|number| number.as_str().parse::<usize>().unwrap());
        let (least, most) = (number(1).unwrap(), number(2).or(number(1)).unwrap());
        assert!(least <= most && most <= 256, "{name}: {}", &bounds[0]);
    }
    grammar
}

/// The same in each notation.
fn grammars(schema: &Value) -> Vec<Option<String>> {
    let schemas = [schema.clone()];
    ["hermes", "qwen3_coder", "pythonic", "gemma4"].map(|name| grammar(name, &schemas)).into()
}

fn argument(schema: Value) -> Value {
    json!({"type": "object", "properties": {"a": schema, "b": {"type": "string"}}})
}

/// Each refers twice to the next.
fn doubled(key: &str, levels: usize) -> Value {
    let mut definitions = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({key: [next.clone(), next]}));
    }
    definitions.insert(format!("d{levels}"), json!({"type": "string"}));
    json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": definitions,
    })
}

fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!({"type": "string"}), |schema, _| wrap(schema))
}

#[test]
fn b14_references_in_circles_end() {
    for schema in [
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "object"}]}),
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
        json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "object", "anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/a"}]}}}),
    ] {
        for grammar in grammars(&schema) {
            assert!(grammar.is_some(), "{schema}");
        }
        grammars(&argument(schema));
    }
    // Something that has to be there has to have the same in it.
    let endless = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "other": {"$ref": "#"}},
        "required": ["next", "other"],
    });
    assert_eq!(grammars(&endless), [const { None }; 4]);
}

#[test]
fn b14_schemas_that_double_at_each_level_end() {
    for levels in [8, 30, 3000] {
        for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            grammars(&doubled(key, levels));
        }
        let chain = doubled("allOf", levels);
        assert_eq!(grammar("hermes", &[chain]).is_some(), levels < 3000);
    }
    // All choices with all others.
    let choice = json!({"anyOf": [{"minLength": 1}, {"minLength": 2}, {"minLength": 3}]});
    assert_eq!(
        grammars(&argument(json!({"type": "string", "allOf": vec![choice; 20]}))),
        [const { None }; 4]
    );
    let tree = json!({
        "type": "object",
        "properties": Map::from_iter((0..20).map(|at| (format!("n{at}"), json!({"$ref": "#"})))),
    });
    for grammar in grammars(&tree) {
        assert!(grammar.is_some_and(|grammar| grammar.len() < 32768));
    }
}

#[test]
fn b14_deep_schemas_end() {
    for levels in [5, 40, 120] {
        for schema in [
            nested(levels, |schema| json!({"anyOf": [schema]})),
            nested(levels, |schema| json!({"allOf": [schema]})),
            nested(levels, |schema| json!({"type": "array", "items": schema})),
            nested(
                levels,
                |schema| json!({"type": "object", "properties": {"a": schema, "b": {"type": "integer"}}}),
            ),
            nested(levels, |schema| json!({"type": "object", "additionalProperties": schema})),
        ] {
            let has_parts = schema.get("type").is_some();
            let schema = argument(schema);
            for grammar in grammars(&schema) {
                assert_eq!(grammar.is_some(), !has_parts || levels <= 40, "{levels}");
            }
        }
    }
}

#[test]
fn b14_large_schemas_end() {
    let names = |count: usize| (0..count).map(|at| format!("name_{at}"));
    let many = 20_000;
    let strings = |count| Value::from_iter(names(count));
    let distinct = Map::from_iter(names(1000).enumerate().map(|(at, name)| {
        (name, json!({"type": "string", "minLength": at * 3, "maxLength": 9000 + at * 5}))
    }));
    for (what, schema) in [
        ("types", argument(json!({"type": vec!["string"; many]}))),
        ("required", json!({"type": "object", "required": strings(many)})),
        (
            "properties",
            json!({"type": "object", "properties": Map::from_iter(names(many).map(|name| (name, json!({}))))}),
        ),
        (
            "members",
            json!({"type": "object", "properties": Map::from_iter(names(1025).map(|name| (name, json!({}))))}),
        ),
        ("enum", argument(json!({"enum": strings(4097)}))),
        ("huge enum", argument(json!({"enum": strings(many)}))),
        ("long enum", argument(json!({"enum": [ "x".repeat(3 << 20), "y" ]}))),
        ("long name", json!({"type": "object", "properties": {"x".repeat(3 << 20): {"type": "string"}}})),
        ("enums", argument(json!({"allOf": vec![json!({"enum": strings(1000)}); 300]}))),
        ("parts", argument(json!({"allOf": vec![json!({"type": "string"}); many]}))),
        (
            "choices",
            argument(json!({"anyOf": vec![json!({"type": "array", "items": {"enum": [1, 2, 3]}}); many]})),
        ),
        (
            "items",
            argument(
                json!({"type": "array", "minItems": 250, "prefixItems": vec![json!({"enum": strings(100)}); 1000]}),
            ),
        ),
        ("lengths", json!({"type": "object", "properties": distinct})),
        (
            "reference",
            argument(json!({"anyOf": vec![json!({"$ref": format!("#/{}", "a/".repeat(1 << 10))}); 5000]})),
        ),
    ] {
        for grammar in grammars(&schema) {
            // The same many times is small.
            let is_one = matches!(what, "types" | "items");
            assert_eq!(grammar.is_some(), is_one, "{what}");
        }
    }
    for grammar in grammars(&argument(json!({"enum": strings(1000)}))) {
        assert!(grammar.is_some());
    }
}

#[test]
fn b14_no_argument_is_left_out_because_the_grammar_would_be_large() {
    let small = argument(json!({"type": "integer"}));
    let large = json!({
        "type": "object",
        "properties": {"large": {"enum": Value::from_iter((0..20_000).map(|at| format!("name_{at}")))}, "small": {"type": "integer"}},
    });
    for name in ["hermes", "qwen3_coder", "gemma4"] {
        assert!(grammar(name, std::slice::from_ref(&small)).is_some());
        assert_eq!(grammar(name, &[small.clone(), large.clone()]), None);
        assert_eq!(grammar(name, &[large.clone(), small.clone()]), None);
    }
}

/// A schema of all that there is, with bounds and references at random.
fn random(dice: &mut Dice, depth: usize) -> Value {
    const NAMES: &[&str] = &["a", "b", "c d", "é\"", "</parameter>", ""];
    const NUMBERS: &[&str] = &[
        "-1",
        "0",
        "0.5",
        "1",
        "16",
        "17",
        "255",
        "256",
        "1999",
        "2000",
        "1e15",
        "1e300",
        "18446744073709551615",
        "-9223372036854775808",
    ];
    const TARGETS: &[&str] =
        &["#", "#/$defs/x", "#/$defs/y", "#/properties/a", "#/properties/a/items", "#/nothing", "other.json"];
    let number = |dice: &mut Dice| serde_json::from_str::<Value>(NUMBERS[dice.below(NUMBERS.len())]).unwrap();
    let mut schema = Map::new();
    for _ in 0..=dice.below(4) {
        let below =
            |dice: &mut Dice| if depth == 0 { json!({"type": "string"}) } else { random(dice, depth - 1) };
        let (key, value) = match dice.below(20) {
            0 => return json!(dice.below(3) > 0),
            1 | 2 => (
                "type",
                json!(
                    ["string", "integer", "number", "boolean", "null", "array", "object", "any"]
                        [dice.below(8)]
                ),
            ),
            3 => ("type", json!(["string", "integer", "integer", "array"])),
            4 => (
                "enum",
                (0..dice.below(40))
                    .map(|_| {
                        json!([NAMES[dice.below(NAMES.len())], 1, 1.5, null, {"a": []}])[dice.below(5)].take()
                    })
                    .collect(),
            ),
            5 => ("const", json!(NAMES[dice.below(NAMES.len())])),
            6..9 => {
                let key = [
                    "minimum",
                    "maximum",
                    "exclusiveMinimum",
                    "exclusiveMaximum",
                    "minLength",
                    "maxLength",
                    "minItems",
                    "maxItems",
                ];
                (key[dice.below(8)], number(dice))
            }
            9 => ("items", below(dice)),
            10 => ("prefixItems", (0..dice.below(4)).map(|_| below(dice)).collect()),
            11 => ("additionalProperties", below(dice)),
            12 => ("required", (0..dice.below(4)).map(|_| NAMES[dice.below(NAMES.len())]).collect()),
            13..15 => (
                "properties",
                Value::from_iter((0..dice.below(6)).map(|_| (NAMES[dice.below(NAMES.len())], below(dice)))),
            ),
            15 => ("$ref", json!(TARGETS[dice.below(TARGETS.len())])),
            16 => ("allOf", (0..dice.below(3)).map(|_| below(dice)).collect()),
            17 => ("$defs", json!({"x": below(dice), "y": below(dice)})),
            _ => (["anyOf", "oneOf"][dice.below(2)], (0..dice.below(4)).map(|_| below(dice)).collect()),
        };
        schema.insert(key.into(), value);
    }
    schema.into()
}

#[test]
fn b14_whatever_a_schema_is_its_grammar_is_made_soon() {
    let mut dice = Dice(3);
    let mut made = 0;
    for _ in 0..400 {
        let depth = dice.below(7);
        let properties = Map::from_iter(["a", "b"].map(|name| (name.to_owned(), random(&mut dice, depth))));
        let definitions = json!({"x": random(&mut dice, 2), "y": random(&mut dice, 2)});
        let schema = json!({"type": "object", "properties": properties, "$defs": definitions});
        made += grammars(&schema).iter().flatten().count();
    }
    assert!(made > 800, "{made}");
}
