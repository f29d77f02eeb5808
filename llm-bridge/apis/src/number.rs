//! Integers as JSON defines them: `60.0` is one, and there is no largest.

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Number;

/// Deserializes an integer from 0; numbers beyond 64 bits saturate.
pub fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    read(&Number::deserialize(deserializer)?)
}

/// Deserializes an integer from 0, or null.
pub(crate) fn whole_number_or_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    Option::<Number>::deserialize(deserializer)?.as_ref().map(read).transpose()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // casts of floats saturate
fn read<E: Error>(number: &Number) -> Result<u64, E> {
    let whole = |float: &f64| *float >= 0.0 && float.fract() == 0.0;
    let of_float = || number.as_f64().filter(whole).map(|float| float as u64);
    let fault = || E::custom(format_args!("{number} is no whole number from 0 on"));
    number.as_u64().or_else(of_float).ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use serde_json::{Deserializer, Error};

    use super::*;

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        let read = |json: &str| {
            whole_number(&mut Deserializer::from_str(json)).map_err(|fault: Error| fault.to_string())
        };
        for (json, number) in [
            ("0", 0),
            ("-0.0", 0),
            ("60", 60),
            ("60.0", 60),
            ("6e1", 60),
            ("18446744073709551615", u64::MAX),
            ("18446744073709551616", u64::MAX),
            ("1e300", u64::MAX),
        ] {
            assert_eq!(read(json), Ok(number), "{json}");
        }
        for json in ["-1", "0.5", "-1e300", "\"60\"", "true", "null", "[60]"] {
            assert!(read(json).is_err(), "{json}");
        }
        assert_eq!(whole_number_or_null(&mut Deserializer::from_str("null")).unwrap(), None);
        assert_eq!(whole_number_or_null(&mut Deserializer::from_str("2.0")).unwrap(), Some(2));
        assert!(whole_number_or_null(&mut Deserializer::from_str("2.5")).is_err());
    }
}
