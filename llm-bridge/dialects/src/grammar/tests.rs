//! What a grammar lets through is read as it should be.

use std::sync::Arc;

use serde_json::{Value, json};

use super::expression::{Expression, Rules};
use crate::{Dialect, Offered, OfferedTool, ScanOptions, dialect, dialects, parse};

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }

    /// A text that the grammar lets through.
    fn write(&mut self, expression: &Expression, rules: &Rules, out: &mut String) {
        match expression {
            Expression::Text(text) => out.push_str(text),
            Expression::Within(ranges) => {
                let (first, last) = ranges[self.below(ranges.len())];
                let many = u32::from(last) - u32::from(first) + 1;
                let offset = u32::try_from(self.below(many as usize)).unwrap();
                out.push(char::from_u32(u32::from(first) + offset).unwrap());
            }
            Expression::Except { chars, lines } => {
                // What the dialects have a meaning for, often.
                const FREQUENT: &[char] = &[
                    '<', '>', '/', '"', '\'', '\\', '\n', ' ', '{', '}', '[', ']', '|', '=', ':', ',', 'a',
                    'ｆ', '｜',
                ];
                let char = loop {
                    let char = FREQUENT[self.below(FREQUENT.len())];
                    if !chars.contains(&char) && (*lines || char != '\n') {
                        break char;
                    }
                };
                out.push(char);
            }
            Expression::Sequence(parts) => parts.iter().for_each(|part| self.write(part, rules, out)),
            Expression::OneOf(parts) => {
                let at = self.below(parts.len());
                self.write(&parts[at], rules, out);
            }
            Expression::Repeat(part, least, most) => {
                let more = self.below((most - least + 1).min(4));
                (0..least + more).for_each(|_| self.write(part, rules, out));
            }
            Expression::Rule(number) => self.write(&rules.all[*number], rules, out),
        }
    }
}

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

fn tool(schema: &Value) -> OfferedTool {
    OfferedTool { name: "get_weather".into(), schema: Some(Arc::new(schema.clone())), tag: None }
}

/// Texts of a grammar.
fn texts(row: &Dialect, schema: &Value, count: usize) -> Vec<String> {
    let mut rules = Rules::default();
    let root = row.answer(&[tool(schema)], 2, &mut rules);
    let root = root.unwrap_or_else(|| panic!("{}: there is no grammar for {schema}", row.name));
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
        for schema in schemas() {
            let valid = jsonschema::validator_for(&schema).unwrap();
            for text in texts(row, &schema, 40) {
                let offered = Arc::new(Offered::new([tool(&schema)]));
                let options = ScanOptions { only: Some(row.name), ..ScanOptions::default() };
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
            "root ::= r3\n",
            "r0 ::= \"true\" | \"false\"\n",
            "r1 ::= \"0\" | ([1-9] [0-9]{0,14})\n",
            "r2 ::= \"<parameter=id>\" r1 \"</parameter>\"\n",
            r#"r3 ::= "<tool_call><function=set>" (("<parameter=on>" r0 "</parameter>") r2?) "</function></tool_call>""#,
            "\n",
        )
    );
}

#[test]
fn b14_a_grammar_has_bounds() {
    // Each level twice: what no list of rules would hold.
    let mut schema = json!({"type": "string"});
    for level in 0..40 {
        schema = json!({"type": "object", "properties": {"a": schema.clone(), "b": {"type": "integer", "minimum": level}}});
    }
    assert!(dialect("hermes").unwrap().grammar(&[tool(&schema)], 1).is_some());
    let endless = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "other": {"$ref": "#"}},
        "required": ["next", "other"],
    });
    assert_eq!(dialect("hermes").unwrap().grammar(&[tool(&endless)], 1), None);
    let list = json!({
        "type": "object",
        "properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}},
        "required": ["value"],
    });
    let grammar = dialect("hermes").unwrap().grammar(&[tool(&list)], 1).unwrap();
    assert!(grammar.len() < 8192, "{}", grammar.len());
}
