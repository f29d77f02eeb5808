use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::*;

const OPEN: &str = "]<]minimax[>[<";
const CLOSE: &str = "]<]minimax[>[</";

/// The tags of the dialect for those of a text that is easier to read.
fn tags(text: &str) -> String {
    text.replace('<', OPEN).replace(&format!("{OPEN}/"), CLOSE)
}

fn value(schema: Value, text: &str) -> Option<(Value, bool)> {
    let root = json!({"properties": {"x": schema}});
    let mut out = String::new();
    let repaired =
        write_argument(&tags(text), OPEN, CLOSE, Some(&root), "x", ParseOptions::default(), &mut out)?;
    Some((serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}")), repaired))
}

fn strict(schema: Value, text: &str, expected: Value) {
    assert_eq!(value(schema, text), Some((expected, false)), "{text}");
}

#[test]
fn follows_the_schema() {
    strict(json!({"type": "integer"}), "5", json!(5));
    strict(json!({"type": "string"}), "\n  5 \n", json!("\n  5 \n"));
    strict(json!({"type": "boolean"}), "True", json!(true));
    let place = json!({"properties": {"city": {"type": "string"}, "zip": {"type": "integer"}}});
    strict(place, "<city>NYC</city>\n<zip>10001</zip>", json!({"city": "NYC", "zip": 10001}));
    let tags = json!({"type": "array", "items": {"type": "string"}});
    strict(tags, "<item>red</item><item>7</item>", json!(["red", "7"]));
    let numbers = json!({"type": "array", "items": {"type": "integer"}});
    strict(numbers.clone(), "<x>1</x><x>2</x>", json!([1, 2]));
    strict(numbers, "[1, 2]", json!([1, 2]));
    let orders = json!({"type": "array", "items": {"properties": {"sku": {"type": "string"}, "qty": {"type": "integer"}}}});
    strict(
        orders.clone(),
        "<item><sku>book</sku><qty>2</qty></item><item><sku>007</sku><qty>5</qty></item>",
        json!([{"sku": "book", "qty": 2}, {"sku": "007", "qty": 5}]),
    );
    strict(
        json!({"properties": {"order": orders}}),
        "<order><qty>1</qty></order><order><qty>2</qty></order>",
        json!({"order": [{"qty": 1}, {"qty": 2}]}),
    );
    let scores = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    strict(scores, "<score>42</score><rank>7</rank>", json!({"score": 42, "rank": 7}));
    let tag = json!({"type": "object", "properties": {"tag": {"type": "string"}}});
    strict(tag, "<tag>a</tag><other>1</other><tag>b</tag>", json!({"tag": ["a", "b"], "other": "1"}));
}

#[test]
fn without_a_schema_all_is_text() {
    strict(json!({}), "1", json!("1"));
    strict(json!({}), "", json!(""));
    strict(json!({}), "<item>a</item><item>b</item>", json!({"item": ["a", "b"]}));
    let mut out = String::new();
    let text = tags("<a>1</a><a>2</a>");
    assert_eq!(write_argument(&text, OPEN, CLOSE, None, "x", ParseOptions::default(), &mut out), Some(false));
    assert_eq!(out, r#"{"a":["1","2"]}"#);
}

#[test]
fn unions_are_told_by_the_tags() {
    let union = json!({"anyOf": [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"field": {"type": "string"}, "limit": {"type": "integer"}}},
    ]});
    strict(union.clone(), "<item>a</item>", json!(["a"]));
    strict(union.clone(), "<field>a</field><limit>3</limit>", json!({"field": "a", "limit": 3}));
    strict(union, "<field>a</field>", json!({"field": "a"}));
    let scalar = json!({"oneOf": [{"type": "integer"}, {"type": "object", "properties": {"max": {"type": "integer"}}}]});
    strict(scalar.clone(), "5", json!(5));
    strict(scalar, "<max>5</max>", json!({"max": 5}));
}

#[test]
fn empty_elements_follow_the_schema() {
    strict(json!({"type": "array"}), "\n  ", json!([]));
    strict(json!({"type": "object"}), "", json!({}));
    strict(json!({"oneOf": [{"type": "null"}, {"type": "array"}]}), "", json!([]));
    strict(json!({"anyOf": [{"type": "string"}, {"type": "object"}]}), "", json!(""));
}

#[test]
fn the_end_of_an_empty_list_may_be_missing() {
    let days = json!({"type": "array", "items": {"properties": {
        "name": {"type": "string"}, "times": {"type": "array", "items": {"type": "string"}}}}});
    let text = "<item><name>Sunday</name><times></item><item><times> <item>9:00</item></times></item>";
    let expected = json!([{"name": "Sunday", "times": []}, {"times": ["9:00"]}]);
    assert_eq!(value(days.clone(), text), Some((expected, true)));
    let missing = json!({"properties": {"list": days}});
    assert_eq!(value(missing, "<list>"), Some((json!({"list": []}), true)));
    for text in ["<item><name></item>", "<item><times>9:00</item>", "<item><other></item>", "<item><times>"] {
        assert_eq!(value(days.clone(), text), None, "{text}");
    }
}

#[test]
fn tags_have_to_match() {
    for text in ["<a>", "</a>", "<a>1</b>", "<a><b>1</a></b>", "<a", "<>1</>", "<a>1</a", "<a\n>1</a\n>"] {
        assert_eq!(value(json!({"type": "object"}), text), None, "{text}");
    }
    let nested = |depth: usize| format!("{}1{}", "<n>".repeat(depth), "</n>".repeat(depth));
    assert!(value(json!({}), &nested(MAX_DEPTH)).is_some());
    assert!(value(json!({}), &nested(MAX_DEPTH + 1)).is_none());
}

#[test]
fn text_beside_elements_is_kept() {
    let expected = json!({"$text": "child", "b": "1", "$$text": "note"});
    let text = "note<$text>child</$text><b>1</b>\n";
    assert_eq!(value(json!({"type": "object"}), text), Some((expected, true)));
    assert_eq!(value(json!({"type": "array"}), "note<item>1</item>"), None);
}

#[test]
fn finds_the_end_behind_elements_of_the_same_name() {
    let text = tags("1<n>2<no>3</no><n></n></n>4</n>5</n>");
    let end = text.len() - tags("</n>").len() - 1 - tags("</n>").len();
    for step in 1..text.len() {
        let mut finder = End::new(0);
        let found = (1..=text.len())
            .filter(|length| length % step == 0 || *length == text.len())
            .find_map(|length| finder.feed(&text[..length], OPEN, CLOSE, "n"));
        assert_eq!(found, Some(end));
    }
}

fn schema_of(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: serde_json::Map<_, _> =
                members.iter().map(|(name, value)| (name.clone(), schema_of(value))).collect();
            json!({"type": "object", "properties": members})
        }
        // Entries of one type, as the strategy makes them.
        Value::Array(values) => {
            json!({"type": "array", "items": values.first().map_or(json!({}), schema_of)})
        }
        Value::String(_) => json!({"type": "string"}),
        Value::Number(_) => json!({"type": "number"}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Null => json!({"type": "null"}),
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        vec(prop_oneof!["[a-z <>/\n\\]\\[]{1,4}", Just("]<]minimax[>[".to_owned())], 0..4)
            .prop_map(|parts| Value::from(parts.concat())),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0..4_usize).prop_map(|(value, count)| Value::from(vec![value; count])),
            vec(("[a-z$_ -]{1,4}", inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reads_back_what_is_rendered(value in json_value()) {
        let (schema, mut text) = (schema_of(&value), String::new());
        if render(&value, OPEN, CLOSE, &mut text).is_some() {
            let mut out = String::new();
            let root = json!({"properties": {"x": schema}});
            let repaired = write_argument(&text, OPEN, CLOSE, Some(&root), "x", ParseOptions::default(), &mut out);
            prop_assert_eq!(repaired, Some(false), "{}", text);
            prop_assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), value);
        }
    }

    #[test]
    fn garbage_gives_json_or_nothing(parts in vec(prop::sample::select(vec![
        "<a>", "</a>", "<item>", "</item>", "<", "</", ">", " ", "1", "x\"", "\n", "é",
    ]), 0..16)) {
        for schema in [json!({}), json!({"type": "array", "items": {"type": ["object", "integer"]}})] {
            let mut out = String::new();
            let root = json!({"properties": {"x": schema}});
            if write_argument(&tags(&parts.concat()), OPEN, CLOSE, Some(&root), "x", ParseOptions::default(), &mut out).is_some() {
                prop_assert!(serde_json::from_str::<Value>(&out).is_ok(), "{}", out);
            }
        }
    }
}
