//! What the tests of each API use: random parts of requests, and the cost of a token.

use proptest::{option, prelude::*};
use serde_json::{Value, json};
use toolrack_apis::{
    Content, Encode, Message, Passing, Piece, Provider, RawJson, Sampling, TurnEvent, Wire,
    openai::OpenAiWire,
};

pub fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z\\n\"\\\\ü😀\u{0}]{1,12}", "[ -~]{1,30}"]
}

pub fn name() -> impl Strategy<Value = String> {
    "[A-Za-z_][A-Za-z0-9_.-]{0,8}"
}

/// Half in steps that are written exactly.
fn share() -> impl Strategy<Value = f64> {
    (0_u32..=200).prop_map(|steps| f64::from(steps) / 64.0)
}

pub fn passing(api: Provider, names: &'static [&'static str]) -> impl Strategy<Value = Passing> {
    let field = (prop::sample::select(names), prop_oneof![Just(json!(1)), Just(json!({"a": ["b\n"]}))]);
    proptest::collection::vec(field, 0..3).prop_map(move |fields| {
        let mut passing = Passing::of(api);
        for (name, value) in fields {
            passing.push(name, RawJson::of(&value));
        }
        passing
    })
}

pub fn sampling() -> impl Strategy<Value = Sampling> {
    let numbers = (option::of(0_u64..1 << 40), option::of(share()), option::of(share()), option::of(share()));
    let others = (
        option::of(-1_i64..99),
        option::of(any::<i64>()),
        option::of(share()),
        option::of(share()),
        option::of(share()),
    );
    (numbers, others, proptest::collection::vec(text(), 0..3)).prop_map(|(numbers, others, stop)| {
        let (max_tokens, temperature, top_p, min_p) = numbers;
        let (top_k, seed, presence_penalty, frequency_penalty, repeat_penalty) = others;
        let seed = seed.filter(|seed| *seed != i64::MIN);
        Sampling {
            max_tokens,
            temperature,
            top_p,
            top_k,
            min_p,
            presence_penalty,
            frequency_penalty,
            repeat_penalty,
            seed,
            stop,
        }
    })
}

/// Passing fields of an object and, under `name`, of an object inside.
pub fn leftover(
    api: Provider,
    names: &'static [&'static str],
    name: &'static str,
) -> impl Strategy<Value = Passing> {
    (passing(api, names), any::<bool>()).prop_map(move |(mut passing, inner)| {
        if inner {
            passing.push(name, RawJson::of(&json!({"y": 1})));
        }
        passing
    })
}

/// Adds passing fields to an object. Those of an object inside are merged into it.
pub fn with(mut object: Value, passing: &Passing, api: Provider) -> Value {
    for (name, value) in passing.to(api) {
        let value: Value = serde_json::from_str(value.get()).unwrap();
        let fields = object.as_object_mut().unwrap();
        match (fields.get_mut(&**name), value) {
            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
            (Some(known), value) => panic!("{name} is {known}, and {value} passes"),
            (None, value) => drop(fields.insert(name.to_string(), value)),
        }
    }
    object
}

/// Messages whose results have no media, which wires move out of them.
pub fn without_media_in_results(mut messages: Vec<Message>) -> Vec<Message> {
    for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
        if let Content::Result(result) = &mut part.content {
            result.parts.retain(|part| !matches!(part.content, Content::Media(_)));
        }
    }
    messages
}

/// An object without nulls, which are fields that are not there.
pub fn object(mut object: Value) -> Value {
    object.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    object
}

/// A token from a chat server to a client makes at most 8 allocations. The encoder has begun its answer.
pub fn assert_few_allocations(mut encoder: Box<dyn Encode>, out: &mut Vec<u8>) {
    const MOST: u64 = 8;
    let chunk = concat!(
        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",",
        "\"system_fingerprint\":\"b1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,",
        "\"finish_reason\":null}]}\n\n"
    );
    let mut decoder = OpenAiWire.decoder("text/event-stream");
    let mut pieces = Vec::with_capacity(8);
    let mut token = || {
        out.clear();
        decoder.push(chunk.as_bytes(), &mut pieces).unwrap();
        for piece in pieces.drain(..) {
            let event = match piece {
                Piece::Text(text) => TurnEvent::Text(text),
                Piece::Passing(passing) => TurnEvent::Passing(passing),
                other => panic!("{other:?}"),
            };
            encoder.event(event, out);
        }
    };
    token();
    let made = allocation_counter::measure(&mut token).count_total;
    println!("allocations of one token: {made}");
    assert!(made <= MOST, "one token makes {made} allocations, more than {MOST}");
}
