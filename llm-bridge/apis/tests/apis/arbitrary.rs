//! Schemas and values for the properties.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names of properties, one of which few providers take.
const NAMES: [&str; 4] = ["a", "b", "c", "d-e"];

/// A schema of a tool's arguments, with all that JSON Schema has to say.
pub(crate) fn arguments() -> impl Strategy<Value = Value> {
    (schema(), simple(), keywords(schema())).prop_map(|(part, other, mut root)| {
        let Value::Object(fields) = &mut root else { return root };
        fields.insert("type".into(), json!("object"));
        let node = json!({
            "type": "object",
            "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["v"],
            "additionalProperties": false,
        });
        // A reference that leads to itself at once would never end in the validator.
        let one = json!({"type": "object", "properties": {"a": part}});
        fields.insert("$defs".into(), json!({"one": one, "other": other, "node": node}));
        root
    })
}

fn schema() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        6 => simple(),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(json!({"$ref": "#/$defs/one"})),
        1 => Just(json!({"$ref": "#/$defs/node"})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| prop_oneof![2 => keywords(inner.boxed()), 1 => simple()]).boxed()
}

fn simple() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({"type": "string"})),
        (0..4u8, 0..9u8).prop_map(|(a, b)| json!({"type": "string", "minLength": a, "maxLength": b})),
        Just(json!({"type": "string", "pattern": "^x"})),
        Just(json!({"type": "string", "format": "date-time"})),
        Just(json!({"type": ["string", "null"], "enum": ["x", "y", null]})),
        Just(json!({"enum": ["x", 1, true, null, {"a": 1}]})),
        Just(json!({"enum": [1, 2]})),
        Just(json!({"const": "x"})),
        Just(json!({"const": 3})),
        (-3..3i8, -3..9i8).prop_map(|(a, b)| json!({"type": "integer", "minimum": a, "exclusiveMaximum": b})),
        Just(json!({"type": ["integer", "string"], "minimum": 2, "minLength": 2})),
        Just(json!({"type": "number", "multipleOf": 2})),
        Just(json!({"type": "boolean", "description": "On or off.", "default": true})),
        Just(json!({"type": "null"})),
        Just(json!({"type": "array"})),
        Just(json!({"type": "object"})),
    ]
}

/// A schema of some keywords.
fn keywords(inner: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let name = || proptest::sample::select(&NAMES[..]).prop_map(str::to_owned);
    let parts = || prop::collection::vec(inner.clone(), 1..3).prop_map(Value::from);
    let one = |keyword: &'static str| inner.clone().prop_map(move |part| vec![(keyword, part)]).boxed();
    let many = |keyword: &'static str| parts().prop_map(move |parts| vec![(keyword, parts)]).boxed();
    let just = |fields: Value| {
        Just(fields).prop_map(|fields| match fields {
            Value::Object(fields) => fields
                .into_iter()
                .map(|(keyword, value)| (&*Box::leak(keyword.into_boxed_str()), value))
                .collect::<Vec<(&str, Value)>>(),
            _ => Vec::new(),
        })
    };
    let properties = prop::collection::btree_map(name(), inner.clone(), 1..4)
        .prop_map(|all| vec![("properties", json!(all)), ("type", json!("object"))]);
    let required =
        prop::collection::btree_set(name(), 0..3).prop_map(|names| vec![("required", json!(names))]);
    let piece = prop_oneof![
        6 => properties.boxed(),
        3 => required.boxed(),
        1 => one("additionalProperties"),
        2 => just(json!({"additionalProperties": false})).boxed(),
        1 => just(json!({"unevaluatedProperties": false})).boxed(),
        1 => just(json!({"patternProperties": {"^a": {"type": "string"}}})).boxed(),
        1 => just(json!({"dependentRequired": {"a": ["b"]}})).boxed(),
        1 => just(json!({"minProperties": 1, "title": "T"})).boxed(),
        2 => one("items"),
        1 => many("prefixItems"),
        1 => just(json!({"type": "array", "minItems": 1, "maxItems": 3})).boxed(),
        1 => just(json!({"uniqueItems": true, "nullable": true})).boxed(),
        1 => one("contains"),
        3 => many("anyOf"),
        2 => many("oneOf"),
        2 => many("allOf"),
        1 => one("not"),
        1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| vec![("if", a), ("then", b)]).boxed(),
        1 => just(json!({"$ref": "#/$defs/other", "description": "One."})).boxed(),
        1 => just(json!({"type": ["object", "null"]})).boxed(),
    ];
    prop::collection::vec(piece, 1..4)
        .prop_map(|pieces| {
            let fields = pieces.into_iter().flatten().map(|(keyword, value)| (keyword.to_owned(), value));
            Value::Object(fields.collect::<Map<_, _>>())
        })
        .boxed()
}

/// Any JSON, with the words of JSON Schema in it.
pub(crate) fn junk() -> impl Strategy<Value = Value> {
    const WORDS: [&str; 24] = [
        "type",
        "object",
        "array",
        "string",
        "properties",
        "required",
        "items",
        "$ref",
        "#",
        "#/properties/type",
        "$defs",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
        "enum",
        "const",
        "additionalProperties",
        "minimum",
        "pattern",
        "$id",
        "description",
        "prefixItems",
        "if",
    ];
    let word = || proptest::sample::select(&WORDS[..]).prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
        ".{0,9}".prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..6).prop_map(|all| json!(all)),
        ]
    });
    (tree, any::<bool>()).prop_map(|(mut value, is_object)| {
        if is_object && let Value::Object(fields) = &mut value {
            fields.insert("type".into(), json!("object"));
        }
        value
    })
}

/// Makes values that come near to a schema.
pub(crate) struct Maker<'r> {
    pub(crate) root: &'r Value,
    pub(crate) dice: crate::cases::Dice,
}

impl Maker<'_> {
    fn pick(&mut self, count: usize) -> usize {
        self.dice.roll(count)
    }

    pub(crate) fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if depth > 6 || self.pick(12) == 0 {
            return self.any();
        }
        if let Some(pointer) = schema["$ref"].as_str() {
            let target = self.root.pointer(&pointer[1..]).cloned().unwrap_or_default();
            return self.value(&target, depth + 1);
        }
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
            return values[self.pick(values.len())].clone();
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            if let Some(branches) = schema[keyword].as_array().filter(|all| !all.is_empty()) {
                let branch = branches[self.pick(branches.len())].clone();
                let mut value = self.value(&branch, depth + 1);
                let mut own = schema.clone();
                own.as_object_mut().unwrap().remove(keyword);
                if let (Value::Object(fields), Value::Object(more)) =
                    (&mut value, self.value(&own, depth + 1))
                {
                    fields.extend(more);
                }
                return value;
            }
        }
        let kind = match &schema["type"] {
            Value::String(kind) => kind.clone(),
            Value::Array(kinds) => kinds[self.pick(kinds.len())].as_str().unwrap().to_owned(),
            _ if schema.get("properties").is_some() => "object".into(),
            _ if schema.get("items").is_some() => "array".into(),
            _ => return self.any(),
        };
        match kind.as_str() {
            "object" => self.object(schema, depth),
            "array" => {
                let count = self.pick(4);
                (0..count)
                    .map(|index| {
                        let place = schema["prefixItems"].get(index).unwrap_or(&schema["items"]).clone();
                        self.value(&place, depth + 1)
                    })
                    .collect()
            }
            "string" => ["", "x", "xyz", "y", "2024-01-01T00:00:00Z"][self.pick(5)].into(),
            "integer" => [-2, 0, 1, 2, 3, 8][self.pick(6)].into(),
            "number" => json!([-2.5, 0.0, 1.0, 2.0, 3.5, 8.0][self.pick(6)]),
            "boolean" => (self.pick(2) == 0).into(),
            _ => Value::Null,
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let required: Vec<String> = serde_json::from_value(schema["required"].clone()).unwrap_or_default();
        let mut fields = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if required.contains(name) || self.pick(3) > 0 {
                fields.insert(name.clone(), self.value(property, depth + 1));
            }
        }
        for name in required {
            fields.entry(name).or_insert_with(|| json!("x"));
        }
        if self.pick(3) == 0 {
            let name = NAMES[self.pick(NAMES.len())];
            let others = schema["additionalProperties"].clone();
            let value = self.value(&others, depth + 1);
            fields.entry(name).or_insert(value);
        }
        fields.into()
    }

    fn any(&mut self) -> Value {
        let all = [
            json!(null),
            json!(true),
            json!(1),
            json!(2.5),
            json!("x"),
            json!([]),
            json!([1, "x"]),
            json!({}),
            json!({"a": 1}),
            json!({"v": 1, "next": {"v": "x"}}),
        ];
        all[self.pick(all.len())].clone()
    }
}
