//! Schemas that a hostile module or MCP server sends: what they cost to be lowered grows no faster than they do.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolrack_apis::{Definer, Provider};

use crate::support::{define, definers, spec};

fn many<T: Into<Value>>(count: usize, one: impl Fn(usize) -> T) -> Value {
    (0..count).map(one).map(Into::into).collect()
}

fn named(count: usize, one: impl Fn(usize) -> (String, Value)) -> Value {
    (0..count).map(one).collect::<Map<String, Value>>().into()
}

/// A tool whose argument `a` has this schema.
fn of(part: Value, definitions: Value) -> Value {
    json!({"type": "object", "properties": {"a": part}, "$defs": definitions})
}

/// Shapes that would take quadratic work, by how many parts they have.
fn shapes(count: usize) -> Vec<(&'static str, Value)> {
    let text = || json!({"type": "string"});
    let names = |letter: char| many(4 * count, move |at| format!("{letter}{at}"));
    let anchors =
        named(count, |at| (format!("d{at}"), json!({"$anchor": format!("a{at}"), "type": "string"})));
    let deep = named(count, |at| (format!("d{at}"), json!({"$defs": {"x": {"type": "string"}}})));
    vec![
        (
            "branches of anyOf",
            of(json!({"anyOf": many(count, |at| json!({"type": "string", "minLength": at}))}), json!({})),
        ),
        (
            "enum",
            of(
                json!({"allOf": [{"enum": many(8 * count, |at| 2 * at)}, {"enum": many(8 * count, |at| 2 * at + 1)}]}),
                json!({}),
            ),
        ),
        (
            "required",
            of(
                json!({"type": "object", "allOf": [{"required": names('a')}, {"required": names('b')}]}),
                json!({}),
            ),
        ),
        (
            "required of all",
            json!({"type": "object", "required": names('a'), "properties": named(4 * count, |at| (format!("a{at}"), text()))}),
        ),
        (
            "types",
            of(
                json!({"allOf": [{"type": many(8 * count, |_| "string")}, {"type": many(8 * count, |_| "null")}]}),
                json!({}),
            ),
        ),
        (
            "types of values",
            of(json!({"type": many(8 * count, |_| "null"), "enum": many(8 * count, |at| at)}), json!({})),
        ),
        (
            "allOf",
            of(
                json!({"allOf": many(count, |at| json!({"properties": {format!("p{at}"): {"type": "string"}}}))}),
                json!({}),
            ),
        ),
        (
            "anchors",
            of(
                json!({"properties": named(count, |at| (format!("p{at}"), json!({"$ref": format!("#a{at}")})))}),
                anchors,
            ),
        ),
        (
            "names",
            of(
                json!({"properties": named(count, |at| (format!("p{at}"), json!({"$ref": format!("#/$defs/d{at}/$defs/x")})))}),
                deep,
            ),
        ),
    ]
}

#[test]
fn b4_hostile_schemas_are_lowered_in_time_that_grows_as_they_do() {
    let cost = |schema: &Value, definer: &Definer| {
        let tools = [spec("t", schema.clone())];
        let begin = Instant::now();
        let defined = define(definer, &tools);
        let took = begin.elapsed();
        assert_eq!(defined.left_out.len() + defined.names.wire("t").iter().count(), 1);
        took
    };
    for (provider, definer) in definers() {
        for ((name, small), (_, large)) in shapes(100).into_iter().zip(shapes(800)) {
            // 8 times the schema; quadratic work would take 64 times as long, however busy the machine is meanwhile.
            let is_linear = (0..3).any(|_| {
                let took = cost(&small, &definer);
                cost(&large, &definer) < took * 32 + Duration::from_millis(100)
            });
            assert!(is_linear, "{name}, {provider}");
        }
    }
}

#[test]
fn b4_alternatives_beyond_the_limit_are_taken_to_overlap() {
    let tool = |branches: usize| {
        let branches = many(branches, |at| json!({"enum": many(100, |value| 100 * at + value)}));
        [spec("t", of(json!({ "oneOf": branches }), json!({})))]
    };
    let is_lost = |branches: usize| {
        let defined = define(&Definer::new(Provider::Ollama), &tool(branches));
        assert!(defined.left_out.is_empty());
        defined.losses.iter().any(|loss| loss.keyword == "oneOf" && loss.widened)
    };
    assert!(!is_lost(10) && is_lost(95));
}

#[test]
fn b4_places_with_long_names_do_not_fill_the_memory() {
    // Each of the losses names its place.
    let parts = named(2000, |at| (format!("p{at}"), json!({"type": "string", "not": {"const": at}})));
    let schema = |name: String| json!({"type": "object", "properties": {name: {"type": "object", "properties": parts}}});
    for (_, definer) in definers() {
        let defined = define(&definer, &[spec("t", schema("n".repeat(100_000)))]);
        let size: usize = defined.losses.iter().map(|loss| loss.path.len()).sum();
        assert!(size < 8 << 20, "{size} bytes");
        let short = define(&definer, &[spec("t", schema("n".repeat(100)))]);
        assert!(short.left_out.is_empty(), "{:?}", short.left_out);
    }
}

#[test]
fn b4_what_is_merged_too_often_is_left_out() {
    let left_out = |count: usize| {
        let all = many(count, |at| json!({"required": [format!("p{at}")]}));
        define(&Definer::new(Provider::Ollama), &[spec("t", of(json!({ "allOf": all }), json!({})))])
            .left_out
            .len()
    };
    assert_eq!([left_out(300), left_out(2000)], [0, 1]);
}
