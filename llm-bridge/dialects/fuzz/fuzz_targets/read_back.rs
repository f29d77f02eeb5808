//! A call to any tool with any arguments, written in every dialect that can, is read back as it is.
#![no_main]

use std::sync::Arc;

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use toolrack_dialects::{Offered, OfferedTool, ScanOptions, dialects};
use toolrack_dialects_fuzz::{
    common::{parsed, rebuilt, scan},
    text,
};

#[derive(Debug, Arbitrary)]
enum Argument<'b> {
    Null,
    Bool(bool),
    Whole(i64),
    Fraction(f64),
    Text(&'b [u8]),
    List(Vec<Argument<'b>>),
    Object(Vec<(&'b [u8], Argument<'b>)>),
}

impl From<Argument<'_>> for Value {
    fn from(argument: Argument<'_>) -> Self {
        match argument {
            Argument::Null => Self::Null,
            Argument::Bool(value) => Self::from(value),
            Argument::Whole(value) => Self::from(value),
            Argument::Fraction(value) => Self::from(value),
            Argument::Text(bytes) => Self::from(text(bytes)),
            Argument::List(values) => values.into_iter().map(Self::from).collect(),
            Argument::Object(members) => Self::Object(object(members)),
        }
    }
}

fn object(members: Vec<(&[u8], Argument<'_>)>) -> Map<String, Value> {
    members.into_iter().map(|(key, value)| (text(key), value.into())).collect()
}

/// A name, arguments, and where the text is cut: as JSON, or as the fuzzer has it.
fn case(bytes: &[u8]) -> Option<(String, Map<String, Value>, Vec<u8>)> {
    if let Ok(json) = serde_json::from_slice::<Value>(bytes) {
        let name = json.get("name")?.as_str()?.to_owned();
        return Some((name, json.get("arguments")?.as_object()?.clone(), Vec::new()));
    }
    let mut bytes = Unstructured::new(bytes);
    let name =
        if bytes.ratio(1, 4).ok()? { text(Arbitrary::arbitrary(&mut bytes).ok()?) } else { "f".into() };
    let cuts = Arbitrary::arbitrary(&mut bytes).ok()?;
    Some((name, object(Arbitrary::arbitrary_take_rest(bytes).ok()?), cuts))
}

/// The schema as its owner would have it: the types of these values.
fn schema(arguments: &Map<String, Value>) -> Value {
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let properties = arguments.iter().map(|(key, value)| (key.clone(), json!({"type": kind(value)})));
    json!({"properties": properties.collect::<Map<_, _>>()})
}

fuzz_target!(|bytes: &[u8]| {
    let Some((name, arguments, cuts)) = case(bytes) else { return };
    // Numbers are only as exact as their reader, so both sides come from text.
    let given: Value = serde_json::from_str(&Value::from(arguments.clone()).to_string()).expect("JSON");
    let offered = Arc::new(Offered::new([OfferedTool::new(&name).schema(schema(&arguments))]));
    for row in dialects() {
        let Some(call) = row.call(&name, &arguments) else { continue };
        for (before, after) in [("", ""), ("Text: a `b`.\n", "\nand on")] {
            let text = format!("{before}{call}{after}");
            let cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) * text.len() / 256).collect();
            let seen = scan(&text, &cuts, &offered, &ScanOptions::default());
            let read = parsed(&seen);
            let [one] = read.calls.as_slice() else {
                panic!("{}: {} calls in {text:?}", row.name, read.calls.len())
            };
            assert_eq!(one.name, name, "{}: {text:?}", row.name);
            let ours: Value = serde_json::from_str(&one.arguments).expect("JSON");
            assert_eq!(ours, given, "{}: {text:?}", row.name);
            assert_eq!(read.content, format!("{before}{after}"), "{}: {text:?}", row.name);
            assert_eq!(rebuilt(&seen), text, "{}", row.name);
        }
    }
});
