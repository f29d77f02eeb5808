//! What holds for any tool and any question.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::cases::calls;
use super::*;

#[test]
fn anything_required_gets_a_value_that_fits() {
    for of in [
        json!({"type": "string", "pattern": "^[a-f0-9]{8}$"}),
        json!({"type": "string", "minLength": 40, "maxLength": 42}),
        json!({"type": "string", "pattern": "^[a-z]+$", "minLength": 9}),
        json!({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5}),
        json!({"type": "number", "minimum": 0.25, "maximum": 0.5}),
        json!({"type": "integer", "multipleOf": 7, "minimum": 20}),
        json!({"type": "integer", "maximum": -5}),
        json!({"const": {"a": 1}}),
        json!({"enum": [null, 3]}),
        json!({"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 2, "uniqueItems": true}),
        json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}], "minItems": 2, "maxItems": 2}),
        json!({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}]}),
        json!({"allOf": [{"type": "string"}, {"maxLength": 3}]}),
        json!({"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}, "minItems": 1}),
        json!({"type": "string", "format": "uuid"}),
        json!({"type": "object", "required": ["a"]}),
        json!({"not": {"type": "string"}, "type": ["string", "integer"]}),
        json!(true),
        json!({}),
    ] {
        let parameters = json!({"type": "object", "properties": {"thing": of}, "required": ["thing"]});
        let tools = [DemoTool { name: "frobnicate", description: "Frobnicates.", parameters: &parameters }];
        let got = calls("frobnicate please", &tools);
        assert_eq!(got.len(), 1, "{of}");
        assert!(got[0].1.get("thing").is_some(), "{of}");
    }
    // A schema that contains itself ends.
    let tree = json!({"$defs": {"T": {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/T"}}}, "required": ["v", "kids"]}}, "$ref": "#/$defs/T"});
    assert_eq!(
        calls("plant 3", &[DemoTool { name: "plant", description: "Plants a tree.", parameters: &tree }])
            .len(),
        1
    );
}

#[test]
fn a_schema_that_branches_into_itself_ends() {
    let many: Vec<Value> = (0..10).map(|_| json!({"$ref": "#"})).collect();
    let fields: Map<String, Value> = (0..6).map(|n| (format!("f{n}"), json!({"$ref": "#"}))).collect();
    let names: Vec<&String> = fields.keys().collect();
    for parameters in [
        json!({"anyOf": many}),
        json!({"type": "object", "properties": {"a": {"anyOf": many}}, "required": ["a"]}),
        json!({"type": "object", "properties": fields, "required": names}),
        json!({"type": "array", "items": {"$ref": "#"}, "minItems": 10}),
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, "minItems": 3}}, "required": ["a"]}),
    ] {
        let tools = [DemoTool { name: "loop", description: "Loops.", parameters: &parameters }];
        let answer = DemoModel::new()
            .answer(&[json!({"role": "user", "content": "use loop: 3 times in Oslo"})], &tools);
        assert!(answer.contains("loop"));
    }
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        (0_u64..20, 0_u64..20)
            .prop_map(|(a, b)| json!({"type": "string", "minLength": a, "maxLength": a + b})),
        (-50_i64..50, 0_i64..50)
            .prop_map(|(a, b)| json!({"type": "integer", "minimum": a, "maximum": a + b})),
        (-5.0..5.0_f64, 0.1..5.0_f64)
            .prop_map(|(a, b)| json!({"type": "number", "exclusiveMinimum": a, "maximum": a + b})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": ["string", "null"], "format": "date"})),
        Just(json!({"type": "string", "pattern": "^[A-Z]{2}\\d+$"})),
        prop::collection::vec("[a-z]{1,6}", 1..4).prop_map(|all| json!({"enum": all})),
        Just(json!({"$ref": "#/nowhere"})),
        Just(json!({})),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0_u64..3)
                .prop_map(|(item, least)| json!({"type": "array", "items": item, "minItems": least})),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|any| json!({"anyOf": any})),
            any_object(inner),
        ]
    })
}

fn any_object(inner: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    const NAMES: &[&str] =
        &["city", "url", "count", "from", "to", "tags", "note", "time_zone", "q", "größe", ""];
    prop::collection::vec((prop::sample::select(NAMES), inner, any::<bool>()), 0..5).prop_map(|fields| {
        let properties: Map<String, Value> =
            fields.iter().map(|(name, of, _)| ((*name).to_owned(), of.clone())).collect();
        let required: std::collections::BTreeSet<&str> =
            fields.iter().filter(|field| field.2).map(|field| field.0).collect();
        json!({"type": "object", "properties": properties, "required": required})
    })
}

fn any_question() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("weather in Oslo"),
        Just("2+2"),
        Just("\""),
        Just("'"),
        Just("http://"),
        Just("https://ä.io/ß?x"),
        Just("and"),
        Just("?"),
        Just("{"),
        Just("}"),
        Just("tags"),
        Just(":"),
        Just("="),
        Just("7 pm"),
        Just("tomorrow"),
        Just("to"),
        Just("-3.5e9"),
        Just("((("),
        Just("frob"),
        Just("İstanbul"),
        Just("ﬀ"),
        Just("99999999999999999999"),
        Just("titled"),
        Just("\n"),
        Just("😀"),
    ];
    prop_oneof![prop::collection::vec(word, 0..10).prop_map(|words| words.join(" ")), any::<String>()]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop_oneof![
            Just("type".to_owned()),
            Just("properties".to_owned()),
            Just("required".to_owned()),
            Just("role".to_owned()),
            Just("content".to_owned()),
            Just("anyOf".to_owned()),
            Just("enum".to_owned()),
            Just("text".to_owned()),
            Just("pattern".to_owned()),
            Just("minItems".to_owned()),
            any::<String>()
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn calls_validate_whatever_is_asked(schema in any_object(any_schema()), question in any_question()) {
        let tools = [DemoTool { name: "frob", description: "Frobs a thing.", parameters: &schema }];
        let arguments = Value::Object(fill::fill("frob", &schema, &Question::new(&question, vec!["frob".to_owned()])));
        if let Ok(validator) = jsonschema::validator_for(&schema) {
            prop_assert!(validator.is_valid(&arguments), "{} for {}", arguments, schema);
        }
        let answer = DemoModel::new().answer(&[json!({"role": "user", "content": format!("use frob: {question}")})], &tools);
        prop_assert!(!answer.is_empty());
        prop_assert_eq!(pieces(&answer).collect::<String>(), answer);
    }

    #[test]
    fn nothing_makes_it_panic(messages in prop::collection::vec(any_json(), 0..4), schema in any_json(), role in prop_oneof![Just("user"), Just("tool")], question in any_question(), name in any::<String>()) {
        let tools = [DemoTool { name: &name, description: &question, parameters: &schema }, DemoTool { name: "weather", description: "", parameters: &schema }];
        let mut messages = messages;
        let model = DemoModel::new();
        prop_assert!(!model.answer(&messages, &tools).is_empty());
        messages.push(json!({"role": role, "content": question}));
        prop_assert!(!model.answer(&messages, &tools).is_empty());
    }
}
