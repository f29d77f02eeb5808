//! Helpers of the scanner's tests.

use std::sync::Arc;

pub use crate::cases::{Dice, lines};
use serde_json::Value;
use toolrack_dialects::{Abort, Call, Event, Offered, OfferedTool, Parsed, ScanOptions, Scanner};

/// An event that owns its text; neighbours of one kind are joined, as how they were cut means nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    Text(String),
    Reasoning(String),
    Frame(String),
    Begin(usize, String),
    Delta(usize, String),
    Call(Call),
    Aborted(usize, String, Abort),
}

pub fn note(seen: &mut Vec<Seen>, event: Event<'_>) {
    match (seen.last_mut(), event) {
        (Some(Seen::Text(all)), Event::Text(text)) => all.push_str(text),
        (Some(Seen::Reasoning(all)), Event::Reasoning(text)) => all.push_str(text),
        (Some(Seen::Frame(all)), Event::Frame(text)) => all.push_str(text),
        (Some(Seen::Delta(one, all)), Event::CallDelta { index, arguments }) if *one == index => {
            all.push_str(arguments);
        }
        (_, Event::Text(text)) => seen.push(Seen::Text(text.into())),
        (_, Event::Reasoning(text)) => seen.push(Seen::Reasoning(text.into())),
        (_, Event::Frame(text)) => seen.push(Seen::Frame(text.into())),
        (_, Event::CallBegin { index, name, .. }) => seen.push(Seen::Begin(index, name.into())),
        (_, Event::CallDelta { index, arguments }) => seen.push(Seen::Delta(index, arguments.into())),
        (_, Event::Call(call)) => seen.push(Seen::Call(call)),
        (_, Event::Aborted { index, source, reason }) => {
            seen.push(Seen::Aborted(index, source.into(), reason))
        }
    }
}

/// The events of a text cut at these places (byte offsets that are no character boundary are ignored).
pub fn scan(text: &str, cuts: &[usize], offered: &Arc<Offered>, options: &ScanOptions) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut scanner = Scanner::new(Arc::clone(offered), options.clone());
    let mut from = 0;
    let mut cuts: Vec<usize> = cuts.iter().copied().filter(|cut| text.is_char_boundary(*cut)).collect();
    cuts.sort_unstable();
    for cut in cuts.into_iter().chain([text.len()]) {
        scanner.push(&text[from..cut], &mut |event: Event<'_>| note(&mut seen, event));
        from = cut;
    }
    scanner.finish(&mut |event: Event<'_>| note(&mut seen, event));
    seen
}

/// Cuts after every `size` characters.
pub fn every(text: &str, size: usize) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).step_by(size).collect()
}

/// Reads the text whole and in pieces, and asks that it makes no difference.
pub fn read(text: &str, offered: &Arc<Offered>, options: &ScanOptions) -> Parsed {
    for deltas in [options.deltas, true] {
        let options = options.clone().deltas(deltas);
        let whole = scan(text, &[], offered, &options);
        assert_eq!(rebuilt(&whole), text);
        for size in [1, 2, 3, 7] {
            let pieces = scan(text, &every(text, size), offered, &options);
            let same =
                if deltas { without_deltas(&pieces) == without_deltas(&whole) } else { pieces == whole };
            assert!(same, "in pieces of {size}: {text}\n{whole:#?}\n{pieces:#?}");
            // What is handed on early is how the arguments begin.
            for event in &pieces {
                let Seen::Call(call) = event else { continue };
                let given = pieces.iter().filter_map(|event| match event {
                    Seen::Delta(index, part) if *index == call.index => Some(part.as_str()),
                    _ => None,
                });
                assert!(
                    !deltas || given.collect::<String>() == call.arguments,
                    "in pieces of {size}: {text}"
                );
            }
        }
    }
    parsed(&scan(text, &[], offered, options))
}

fn without_deltas(seen: &[Seen]) -> Vec<&Seen> {
    seen.iter().filter(|event| !matches!(event, Seen::Delta(..))).collect()
}

/// Tools with these arguments schemas.
pub fn offering(tools: Value) -> Arc<Offered> {
    let tool = |(name, schema): (&String, &Value)| OfferedTool::new(name).schema(schema.clone());
    Arc::new(Offered::new(tools.as_object().unwrap().iter().map(tool)))
}

/// Asks for these calls, written as `[name, arguments]`, and this text without the white space around it.
pub fn expect(text: &str, offered: &Arc<Offered>, calls: &Value, content: &str) {
    let read = read(text, offered, &ScanOptions::default());
    let arguments = |call: &Call| serde_json::from_str::<Value>(&call.arguments).unwrap();
    let found: Value =
        read.calls.iter().map(|call| Value::from(vec![call.name.clone().into(), arguments(call)])).collect();
    assert_eq!((&found, read.content.trim()), (calls, content), "{text}");
}

pub fn parsed(seen: &[Seen]) -> Parsed {
    let mut parsed = Parsed::default();
    for event in seen {
        match event {
            Seen::Text(text) => parsed.take(Event::Text(text)),
            Seen::Reasoning(text) => parsed.take(Event::Reasoning(text)),
            Seen::Call(call) => parsed.take(Event::Call(call.clone())),
            _ => {}
        }
    }
    parsed
}

/// All the bytes that came out.
pub fn rebuilt(seen: &[Seen]) -> String {
    let mut all = String::new();
    for event in seen {
        match event {
            Seen::Text(text) | Seen::Reasoning(text) | Seen::Frame(text) => all.push_str(text),
            Seen::Call(call) if !call.shown => all.push_str(&call.source),
            _ => {}
        }
    }
    all
}

/// The tools of a case: OpenAI definitions, or null for names that are not known.
pub fn offered(tools: &Value) -> Arc<Offered> {
    let Some(tools) = tools.as_array() else { return Arc::new(Offered::any()) };
    Arc::new(Offered::new(tools.iter().map(|tool| {
        let function = tool.get("function").unwrap_or(tool);
        let mut tool = OfferedTool::new(function["name"].as_str().unwrap_or_default());
        tool.schema = function.get("parameters").cloned().map(Arc::new);
        tool
    })))
}

/// Equal as values; a whole number equals itself written as a fraction.
pub fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => one == two || one.as_f64() == two.as_f64(),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one.iter().all(|(key, one)| two.get(key).is_some_and(|two| same(one, two)))
        }
        _ => one == two,
    }
}

pub fn same_calls(calls: &[Call], expected: &[Value]) -> bool {
    calls.len() == expected.len()
        && calls.iter().zip(expected).all(|(call, expected)| {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            expected["name"].as_str() == Some(&call.name) && same(&arguments, &expected["arguments"])
        })
}
