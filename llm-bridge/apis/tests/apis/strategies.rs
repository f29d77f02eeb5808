//! Random parts of requests, for the properties of each API.

use proptest::{option, prelude::*};
use serde_json::json;
use toolrack_apis::{Passing, Provider, RawJson, Sampling};

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
    let others = (option::of(-1_i64..99), option::of(any::<i64>()), option::of(share()), option::of(share()));
    (numbers, others, proptest::collection::vec(text(), 0..3)).prop_map(|(numbers, others, stop)| {
        let (max_tokens, temperature, top_p, min_p) = numbers;
        let (top_k, seed, presence_penalty, frequency_penalty) = others;
        let seed = seed.filter(|seed| *seed != i64::MIN);
        Sampling {
            max_tokens,
            temperature,
            top_p,
            top_k,
            min_p,
            presence_penalty,
            frequency_penalty,
            seed,
            stop,
        }
    })
}
