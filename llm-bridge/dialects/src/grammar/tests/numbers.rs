//! Numbers are within their bounds, and none is left out.

use serde_json::{Value, json};

use super::{Obstacle, texts::Dice, value_of};

#[test]
fn b14_whole_numbers_are_those_within_the_bounds() {
    let mut dice = Dice(5);
    let mut schemas = vec![
        json!({}),
        json!({"minimum": 0}),
        json!({"minimum": 1}),
        json!({"maximum": -1}),
        json!({"maximum": 0}),
        json!({"minimum": 0.5, "maximum": 99.5}),
        json!({"exclusiveMinimum": 0, "exclusiveMaximum": 100}),
        json!({"minimum": -9_223_372_036_854_775_808_i64, "exclusiveMaximum": i64::MAX}),
        json!({"exclusiveMinimum": -1e300, "maximum": 1e300}),
        json!({"exclusiveMinimum": i64::MIN, "maximum": u64::MAX}),
    ];
    for _ in 0..300 {
        let mut bound = || i64::try_from(dice.below(2400)).unwrap() - 1200;
        let (one, other) = (bound(), bound());
        let keys = [["minimum", "maximum"], ["exclusiveMinimum", "exclusiveMaximum"]][dice.below(2)];
        schemas.push(json!({keys[0]: one.min(other), keys[1]: one.max(other) + 2}));
    }
    for mut schema in schemas {
        schema["type"] = "integer".into();
        let valid = jsonschema::validator_for(&schema).unwrap();
        let value = value_of(&schema).unwrap();
        let near = (-30..=30).chain(
            schema
                .as_object()
                .unwrap()
                .values()
                .filter_map(Value::as_i64)
                .flat_map(|bound| (-12..=12).map(move |more| bound.saturating_add(more))),
        );
        let random = (0..40).map(|_| i64::try_from(dice.below(4000)).unwrap() - 2000);
        for number in near.chain(random).filter(|number| number.unsigned_abs() < 1_000_000_000_000_000) {
            assert_eq!(value(&number.to_string()), valid.is_valid(&number.into()), "{schema}: {number}");
        }
        assert!(!value("-0") && !value("01") && !value("1.0") && !value(""), "{schema}");
    }
}

#[test]
fn b14_numbers_are_those_within_the_bounds() {
    let mut dice = Dice(7);
    let mut schemas = vec![
        json!({}),
        json!({"minimum": 0}),
        json!({"exclusiveMinimum": 0}),
        json!({"exclusiveMinimum": 0, "maximum": 1}),
        json!({"minimum": -1, "maximum": 1}),
        json!({"exclusiveMinimum": -1, "exclusiveMaximum": 1}),
        json!({"minimum": -90, "maximum": 90}),
        json!({"maximum": 0}),
        json!({"exclusiveMaximum": 0}),
        json!({"minimum": 0.25, "maximum": 0.5}),
        json!({"minimum": -1e300, "maximum": 1e-300}),
        json!({"minimum": i64::MIN, "maximum": u64::MAX}),
    ];
    for _ in 0..300 {
        let mut bound = || (dice.below(2400) as f64 - 1200.0) / [1.0, 10.0, 100.0][dice.below(3)];
        let (one, other) = (bound(), bound());
        let keys = [["minimum", "maximum"], ["exclusiveMinimum", "exclusiveMaximum"]][dice.below(2)];
        schemas.push(json!({keys[0]: one.min(other), keys[1]: one.max(other) + 0.5}));
    }
    for mut schema in schemas {
        schema["type"] = "number".into();
        let valid = jsonschema::validator_for(&schema).unwrap();
        let value = value_of(&schema).unwrap();
        let bounds: Vec<f64> = schema.as_object().unwrap().values().filter_map(Value::as_f64).collect();
        let near = bounds
            .iter()
            .flat_map(|bound| (-12..=12).map(move |more| format!("{:.2}", bound + f64::from(more) / 20.0)));
        let random = (0..40).map(|_| format!("{}", (dice.below(400_000) as f64 - 200_000.0) / 1000.0));
        let plain =
            ["0", "-0.5", "0.5", "0.05", "-0.001", "1", "-1", "12.75", "1.0", "-1.50"].map(str::to_owned);
        for text in near.chain(random).chain(plain).filter(|text| text.len() < 20) {
            // Zeros after a bound are not written, nor is a zero below zero.
            let number = text.parse::<f64>().unwrap();
            let short = format!("{number}").replace("-0", if number == 0.0 { "0" } else { "-0" });
            let fits = valid.is_valid(&serde_json::from_str(&text).unwrap());
            assert_eq!(value(&short), fits, "{schema}: {short}");
            assert!(fits || !value(&text), "{schema}: {text}");
        }
        assert!(!value("-") && !value("1.") && !value(".5") && !value("00.5") && !value(""), "{schema}");
    }
}

#[test]
fn b14_bounds_that_no_number_is_within_leave_none() {
    for (schema, obstacle) in [
        (json!({"type": "integer", "minimum": 2, "maximum": 1}), Obstacle::NoValue),
        (json!({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}), Obstacle::NoValue),
        (json!({"type": "integer", "minimum": 0.1, "maximum": 0.9}), Obstacle::NoValue),
        (json!({"type": "number", "exclusiveMinimum": 1, "maximum": 1}), Obstacle::NoValue),
        (json!({"type": "number", "minimum": 0.5, "maximum": -0.5}), Obstacle::NoValue),
        (json!({"type": "integer", "exclusiveMinimum": i64::MAX}), Obstacle::TooLarge),
        (json!({"type": "integer", "exclusiveMaximum": i64::MIN}), Obstacle::TooLarge),
        (json!({"type": "number", "minimum": 1e300}), Obstacle::TooLarge),
    ] {
        assert_eq!(value_of(&schema).err(), Some(obstacle), "{schema}");
    }
}
