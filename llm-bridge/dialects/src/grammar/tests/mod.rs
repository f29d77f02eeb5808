//! What a grammar lets through is read as it should be.

mod hostile;
mod numbers;
mod texts;
mod whatever;

use std::sync::Arc;

use serde_json::{Value, json};

use self::texts::{Dice, lets_through};
use super::{
    Start,
    expression::{Obstacle, Rules},
    scalar::text_of,
    value::{Notation, Values},
};
use crate::{Dialect, Offered, OfferedTool, ScanOptions, dialect, dialects, parse};

/// The dialects whose calls begin with nothing of their own, or with an ordinary word.
const WITHOUT_OPENING: &[&str] = &[
    "bare_json",
    "xlam",
    "phi4_mini_json",
    "firefunction",
    "command_r_plus",
    "generic",
    "functionary_v32",
    "qwen_agent",
    "pythonic",
    "nexusraven",
    "beam",
    "muse",
];

fn schemas() -> Vec<Value> {
    vec![
        json!({"type": "object", "properties": {}}),
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "unit": {"enum": ["metric", "imperial"]},
                "exact": {"type": "boolean"},
            },
            "required": ["city"],
            "additionalProperties": false,
        }),
        json!({
            "type": "object",
            "properties": {
                "ids": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
                "names": {"type": "array", "items": {"type": "string"}},
                "place": {
                    "type": "object",
                    "properties": {"lat": {"type": "number"}, "name": {"type": ["string", "null"]}},
                    "required": ["lat"],
                    "additionalProperties": false,
                },
                "code": {"type": "string", "minLength": 3, "maxLength": 5},
                "page": {"type": "string", "minLength": 1},
                "any": {},
                "choice": {"anyOf": [{"type": "integer", "minimum": 0}, {"$ref": "#/$defs/word"}]},
            },
            "required": ["ids", "place", "code"],
            "$defs": {"word": {"type": "string", "enum": ["all", "none"]}},
        }),
        json!({
            "type": "object",
            "properties": {"people": {"type": "object", "required": ["adults", "children"]}},
            "required": ["people", "when"],
        }),
        json!({
            "allOf": [
                {"type": "object", "properties": {"a": {"const": "x"}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"type": "number"}}, "required": ["b"]},
            ],
        }),
    ]
}

/// Schemas of which a part is easily missed.
fn awkward_schemas() -> Vec<Value> {
    vec![
        json!({
            "type": "object",
            "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
            "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
            "additionalProperties": false,
        }),
        json!({
            "type": "object",
            "properties": {
                "short": {"$ref": "#/$defs/text", "maxLength": 2},
                "narrow": {"type": "integer", "minimum": -7, "anyOf": [{"maximum": -5}, {"const": 12}]},
                "kind": {"enum": ["a", "b", "c", 1], "type": "string", "not": {"const": "c"}, "allOf": [{"enum": ["b", "d", 1]}]},
                "long": {"type": "string", "minLength": 257, "maxLength": 258},
            },
            "required": ["short", "narrow", "kind", "long"],
            "$defs": {"text": {"type": "string", "minLength": 1, "maxLength": 9}},
        }),
        json!({
            "type": "object",
            "properties": {
                "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false, "minItems": 2},
                "rest": {"type": "array", "prefixItems": [{"const": "x"}], "items": {"type": "boolean"}, "maxItems": 3},
                "many": {"type": "array", "items": {"type": "null"}, "minItems": 17},
                "never": false,
                "none": {"type": "array", "items": false},
                "two": {"type": "array", "items": {"type": "integer"}, "allOf": [{"minItems": 1}, {"maxItems": 2}]},
            },
            "required": ["pair", "many", "none"],
        }),
        json!({
            "type": "object",
            "properties": {
                "share": {"type": "number", "minimum": -1, "maximum": 1},
                "positive": {"type": "number", "exclusiveMinimum": 0},
                "fraction": {"type": "number", "exclusiveMinimum": -0.25, "exclusiveMaximum": 12.5},
                "big": {"type": "integer", "minimum": 999, "exclusiveMaximum": 1_000_000},
                "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            },
            "required": ["share", "positive", "fraction", "big", "port"],
        }),
        json!({
            "type": "object",
            "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}}},
            "required": ["value"],
            "additionalProperties": false,
        }),
        json!({
            "oneOf": [
                {"properties": {"kind": {"const": "file"}, "path": {"type": "string"}}, "required": ["kind", "path"]},
                {"properties": {"kind": {"const": "page"}, "address": {"type": "string"}}, "required": ["kind", "address"]},
            ],
            "type": "object",
            "properties": {"kind": {"enum": ["file", "page", "none"]}},
            "required": ["kind"],
        }),
        json!({
            "type": "object",
            "properties": {
                "space": {"enum": ["", " x ", "\n", "a\nb\n", "\tc"]},
                "marks": {"enum": ["<b>&amp;", "\"q\"", "\\n", "</parameter>", "{\"a\": [", "1", "null"], "type": "string"},
                "mixed": {"enum": [1, -2.5, true, null, "x", [1, "a"], {"b": {"c": []}}]},
                "a name": {"type": "boolean"},
                "with.\"quotes\"": {"type": "boolean"},
            },
            "required": ["mixed"],
        }),
        json!({
            "$ref": "#/$defs/arguments",
            "required": ["count"],
            "$defs": {
                "arguments": {
                    "type": "object",
                    "properties": {"count": {"$ref": "#/$defs/count"}, "other": {"allOf": [{"$ref": "#/$defs/count"}, {"minimum": 5}]}},
                    "additionalProperties": {"type": "boolean"},
                },
                "count": {"type": "integer", "minimum": 0, "maximum": 7},
            },
        }),
    ]
}

fn tool(schema: &Value) -> OfferedTool {
    OfferedTool { name: "get_weather".into(), schema: Some(Arc::new(schema.clone())), tag: None }
}

/// Texts of a grammar.
fn texts(row: &Dialect, schema: &Value, start: Start<'_>, count: usize) -> Vec<String> {
    let mut rules = Rules::default();
    let root = row.answer(&[tool(schema)], 2, start, &mut rules);
    let root = root.unwrap_or_else(|why| panic!("{}: there is no grammar for {schema}: {why:?}", row.name));
    let mut dice = Dice(17);
    let text = |_| {
        let mut text = String::new();
        dice.write(&root, &rules, &mut text);
        text
    };
    (0..count).map(text).collect()
}

#[test]
fn b14_what_a_grammar_lets_through_is_read_as_calls_that_fit_the_schema() {
    for row in dialects() {
        for schema in schemas().into_iter().chain(awkward_schemas()) {
            let valid = jsonschema::validator_for(&schema).unwrap();
            for text in texts(row, &schema, Start::Answer, 40) {
                let offered = Arc::new(Offered::new([tool(&schema)]));
                let options = ScanOptions::default().only(row);
                let parsed = parse(&text, offered, options);
                assert!(
                    matches!(parsed.calls.len(), 1 | 2),
                    "{}: {text}\nis read as\n{parsed:#?}\nwith {schema}",
                    row.name
                );
                for call in &parsed.calls {
                    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                    assert!(
                        call.name == "get_weather" && valid.is_valid(&arguments),
                        "{}: {text}\nis read as {arguments}\nwith {schema}",
                        row.name
                    );
                }
            }
        }
    }
}

/// What a model of the dialect writes before the opening of a call, at the beginning of its answer.
fn before_opening(row: &Dialect) -> &'static str {
    if row.name == "harmony" { "<|channel|>commentary " } else { "Let me see.\n" }
}

#[test]
fn b14_what_follows_the_opening_of_a_call_is_a_call_that_fits_the_schema() {
    let without: Vec<&str> = dialects().filter(|row| row.opening().is_none()).map(|row| row.name).collect();
    assert_eq!(without, WITHOUT_OPENING);
    for row in dialects() {
        let Some(opening) = row.opening() else {
            assert_eq!(row.grammar_from_opening(&[tool(&json!({}))], 1), None);
            continue;
        };
        for schema in schemas().into_iter().chain(awkward_schemas()) {
            let valid = jsonschema::validator_for(&schema).unwrap();
            let whole = texts(row, &schema, Start::Opening(&opening), 20);
            let after = texts(row, &schema, Start::AfterOpening(&opening), 20);
            assert!(whole.iter().all(|text| text.starts_with(&opening)), "{}: {whole:?}", row.name);
            for call in whole.into_iter().chain(after.into_iter().map(|text| opening.clone() + &text)) {
                let text = before_opening(row).to_owned() + &call;
                let options = ScanOptions::default().only(row);
                let parsed = parse(&text, Arc::new(Offered::new([tool(&schema)])), options);
                let fits = |call: &crate::Call| {
                    let arguments = serde_json::from_str(&call.arguments).unwrap();
                    call.name == "get_weather" && valid.is_valid(&arguments)
                };
                let is_read = matches!(parsed.calls.len(), 1 | 2) && parsed.calls.iter().all(fits);
                assert!(is_read, "{}: {text}\nis read as\n{parsed:#?}\nwith {schema}", row.name);
            }
        }
    }
}

#[test]
fn b14_a_grammar_is_written_in_gbnf() {
    let schema = json!({
        "type": "object",
        "properties": {"on": {"type": "boolean"}, "id": {"type": "integer", "minimum": 0}},
        "required": ["on"],
    });
    let tools = [OfferedTool { name: "set".into(), ..tool(&schema) }];
    assert_eq!(
        dialect("mimo").unwrap().grammar(&tools, 1).unwrap(),
        concat!(
            "root ::= r4\n",
            "r0 ::= \"true\" | \"false\"\n",
            "r1 ::= \"<parameter=on>\" r0 \"</parameter>\"\n",
            "r2 ::= \"0\" | ([1-9] [0-9]{0,18})\n",
            "r3 ::= \"<parameter=id>\" r2 \"</parameter>\"\n",
            r#"r4 ::= "<tool_call><function=set>" (r1 r3?) "</function></tool_call>""#,
            "\n",
        )
    );
}

/// The grammar of a value, or why there is none.
fn value_of(schema: &Value) -> Result<impl Fn(&str) -> bool, Obstacle> {
    let mut rules = Rules::default();
    let value = Values::new(schema, Notation::Json, &mut rules).value(&[schema])?;
    Ok(move |text: &str| lets_through(&value, &rules, text))
}

#[test]
fn b14_texts_are_as_long_as_the_schema_says() {
    for (least, most) in [
        (0, 0),
        (0, 1),
        (3, 3),
        (0, 256),
        (256, 256),
        (0, 257),
        (255, 257),
        (257, 257),
        (200, 280),
        (280, 280),
        (0, 512),
        (512, 512),
        (511, 513),
        (1, 1000),
        (700, 769),
    ] {
        let mut rules = Rules::default();
        let char = crate::grammar::expression::Expression::text("a");
        let text = text_of(char, (least, Some(most)), &mut rules).unwrap();
        for length in [0, 1, 2, 255, 256, 257, 279, 280, 281, 511, 512, 513, 768].into_iter().chain([
            least,
            most,
            most + 1,
        ]) {
            let fits = (least..=most).contains(&length);
            assert_eq!(lets_through(&text, &rules, &"a".repeat(length)), fits, "{least}..={most}: {length}");
        }
        let before =
            least.checked_sub(1).is_some_and(|length| lets_through(&text, &rules, &"a".repeat(length)));
        assert!(!before, "{least}..={most}");
    }
    for (schema, obstacle) in [
        (json!({"type": "string", "minLength": 5, "maxLength": 4}), Obstacle::NoValue),
        (json!({"type": "string", "minLength": 1_000_000}), Obstacle::TooLarge),
        (json!({"type": "string", "minLength": 1e300}), Obstacle::TooLarge),
    ] {
        assert_eq!(value_of(&schema).err(), Some(obstacle), "{schema}");
    }
}

#[test]
fn b14_lists_are_as_long_as_the_schema_says() {
    let ones = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    for (schema, fits, fails) in [
        (json!({"minItems": 17}), &[17, 17][..], &[0, 16, 18][..]),
        (json!({"minItems": 2}), &[2, 16], &[1, 17]),
        (json!({"maxItems": 30}), &[0, 1, 30], &[31]),
        (json!({"maxItems": 1_000_000}), &[0, 256], &[]),
        (json!({"minItems": 256, "maxItems": 300}), &[256], &[255, 257]),
        (json!({"minItems": 3, "maxItems": 3}), &[3], &[2, 4]),
        (json!({"maxItems": 0}), &[0], &[1]),
        (json!({"prefixItems": [{"const": 1}, {"const": 1}]}), &[0, 1, 2, 16], &[17]),
        (json!({"prefixItems": [{"const": 1}, {"const": 1}, false], "minItems": 1}), &[1, 2], &[0, 3]),
        (json!({"prefixItems": [{"const": 1}], "items": false}), &[0, 1], &[2]),
    ] {
        let mut schema = schema;
        schema["type"] = "array".into();
        if schema.get("items").is_none() {
            schema["items"] = json!({"const": 1});
        }
        let value = value_of(&schema).unwrap();
        fits.iter().for_each(|count| assert!(value(&ones(*count)), "{schema}: {count}"));
        fails.iter().for_each(|count| assert!(!value(&ones(*count)), "{schema}: {count}"));
    }
    for (schema, obstacle) in [
        (json!({"type": "array", "minItems": 3, "maxItems": 2}), Obstacle::NoValue),
        (json!({"type": "array", "minItems": 257}), Obstacle::TooLarge),
        (json!({"type": "array", "minItems": u64::MAX}), Obstacle::TooLarge),
        (json!({"type": "array", "items": false, "minItems": 1}), Obstacle::NoValue),
        (json!({"prefixItems": [true, false], "minItems": 2}), Obstacle::NoValue),
    ] {
        assert_eq!(value_of(&schema).err(), Some(obstacle), "{schema}");
    }
}

#[test]
fn b14_all_that_a_schema_says_holds_together() {
    let defs = json!({"text": {"type": "string", "maxLength": 3}, "no": false});
    for (schema, fits, fails) in [
        (
            json!({"properties": {"a": {"const": 1}, "b": {"const": 2}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            &[r#"{"a":1}"#, r#"{"b":2}"#, r#"{"a":1,"b":2}"#][..],
            &["{}", "1"][..],
        ),
        (json!({"$ref": "#/$defs/text", "minLength": 2}), &[r#""ab""#, r#""abc""#], &[r#""a""#, r#""abcd""#]),
        (
            json!({"type": ["string", "null"], "oneOf": [{"maxLength": 1}, {"type": "integer"}]}),
            &[r#""a""#, "null"],
            &[r#""ab""#, "1"],
        ),
        (
            json!({"enum": [1, 2, "b"], "type": "integer", "anyOf": [{"const": 2}, {"const": "b"}, {"const": 3}]}),
            &["2"],
            &["1", "3", r#""b""#],
        ),
        (json!({"enum": [1, 5, 9], "minimum": 2, "exclusiveMaximum": 9}), &["5"], &["1", "9"]),
        (json!({"enum": ["a", "abc"], "$ref": "#/$defs/text", "minLength": 2}), &[r#""abc""#], &[r#""a""#]),
        (json!({"type": ["integer", "string", "string", "number"]}), &["1", "1.5", r#""a""#], &["null"]),
        (json!({"properties": {"a": false, "b": {"const": 1}}}), &["{}", r#"{"b":1}"#], &[r#"{"a":1}"#]),
        (
            json!({"anyOf": [false, {"const": 1}, {"$ref": "#/$defs/no"}, {"$ref": "#/$defs/unknown"}]}),
            &["1"],
            &["2"],
        ),
        (
            json!({"allOf": [{"properties": {"a": {"minimum": 3}}}, {"properties": {"a": {"type": "integer", "maximum": 4}}}], "required": ["a"]}),
            &[r#"{"a":3}"#, r#"{"a":4}"#],
            &["{}", r#"{"a":2}"#, r#"{"a":5}"#],
        ),
        (
            json!({"type": "object", "additionalProperties": {"const": 1}, "required": ["a", "b"]}),
            &[r#"{"a":1,"b":1}"#],
            &["{}", r#"{"a":1}"#, r#"{"a":2,"b":1}"#],
        ),
        (json!({"type": "object", "additionalProperties": false}), &["{}"], &[r#"{"a": 1}"#]),
        (json!({"type": "string", "nullable": true, "maxLength": 1}), &[r#""a""#, "null"], &[r#""ab""#]),
        (
            json!({"type": "array", "items": [{"const": 1}], "additionalItems": {"const": 2}}),
            &["[]", "[1]", "[1,2,2]"],
            &["[2]", "[1,1]"],
        ),
    ] {
        let mut schema = schema;
        schema["$defs"] = defs.clone();
        let value = value_of(&schema).unwrap();
        fits.iter().for_each(|text| assert!(value(text), "{schema}: {text}"));
        fails.iter().for_each(|text| assert!(!value(text), "{schema}: {text}"));
    }
    for schema in [
        json!(false),
        json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"anyOf": []}),
        json!({"enum": []}),
        json!({"enum": ["a"], "const": "b"}),
        json!({"type": "integer", "const": "b"}),
        json!({"$ref": "#/$defs/unknown"}),
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"properties": {"a": false}, "required": ["a"]}),
        json!({"type": "object", "additionalProperties": false, "required": ["a"]}),
        json!({"type": "integer", "anyOf": [{"minimum": 5}], "maximum": 4}),
        json!({"properties": {"next": {"$ref": "#"}}, "required": ["next"]}),
    ] {
        assert_eq!(value_of(&schema).err(), Some(Obstacle::NoValue), "{schema}");
    }
}

#[test]
fn b14_a_schema_that_stands_in_itself_is_followed_three_times() {
    let list = json!({
        "type": "object",
        "properties": {"value": {"const": 1}, "next": {"$ref": "#"}},
        "required": ["value"],
        "additionalProperties": false,
    });
    let nested = |depth: usize| {
        format!("{}{{\"value\":1}}{}", "{\"value\":1,\"next\":".repeat(depth), "}".repeat(depth))
    };
    let value = value_of(&list).unwrap();
    (0..4).for_each(|depth| assert!(value(&nested(depth)), "{depth}"));
    assert!(!value(&nested(9)));
    let grammar = dialect("hermes").unwrap().grammar(&[tool(&list)], 1).unwrap();
    assert!(grammar.len() < 2048, "{}", grammar.len());
}
