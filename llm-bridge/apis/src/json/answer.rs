//! Answers of model servers, read leniently and in one pass.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::fields::Name;
use crate::{
    number::whole_number,
    passing::{MAX_FIELDS, is_ours},
};

/// The known fields of an object.
pub(crate) trait Known<'de>: Default {
    /// Reads the value of a field from `map`, if the field is known; otherwise reads nothing and returns false.
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// An object of a model server: its known fields, and the others as they are, without nulls and what only Toolrack may say. Anything but an object is one without
/// fields.
#[derive(Debug, Default)]
pub(crate) struct Open<'a, T> {
    pub(crate) known: T,
    pub(crate) rest: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'de, T: Known<'de>> Deserialize<'de> for Open<'de, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit<T>(PhantomData<T>);

        impl<'de, T: Known<'de>> Visitor<'de> for Visit<T> {
            type Value = Open<'de, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut open = Open { known: T::default(), rest: Vec::new() };
                while let Some(Name(name)) = map.next_key()? {
                    if open.known.read(&name, &mut map)? {
                        continue;
                    }
                    let value: &'de RawValue = map.next_value()?;
                    let is_wanted = value.get() != "null" && !is_ours(&name);
                    if is_wanted && open.rest.len() < MAX_FIELDS {
                        open.rest.push((name, value));
                    }
                }
                Ok(open)
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
                Ok(Open { known: T::default(), rest: Vec::new() })
            }

            fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Self::Value, E> {
                self.visit_unit()
            }

            fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Self::Value, E> {
                self.visit_unit()
            }

            fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Self::Value, E> {
                self.visit_unit()
            }

            fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Self::Value, E> {
                self.visit_unit()
            }

            fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Self::Value, E> {
                self.visit_unit()
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                self.visit_unit()
            }
        }

        deserializer.deserialize_any(Visit(PhantomData))
    }
}

/// A text of a model server; empty if there is none or it is something else. Half a character, as from servers that cut a text
/// anywhere, becomes U+FFFD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(text_of(value).unwrap_or_default()))
    }
}

/// The text that a value is.
pub(crate) fn text_of(value: &RawValue) -> Option<String> {
    let json = value.get();
    if !json.starts_with('"') {
        return None;
    }
    serde_json::from_str(json).or_else(|_| serde_json::from_str(&replace_halves(json))).ok()
}

/// The arguments of a call: text in most APIs, and any other JSON as it is written. Null is none.
#[derive(Debug, Default)]
pub(crate) struct ArgumentsText(pub(crate) String);

impl<'de> Deserialize<'de> for ArgumentsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(match text_of(value) {
            Some(text) => text,
            None if value.get() == "null" => String::new(),
            None => value.get().to_owned(),
        }))
    }
}

/// A count of a model server: `2.0` is 2, and anything else than a number from 0 on is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(whole_number(&mut serde_json::Deserializer::from_str(value.get())).ok()))
    }
}

/// Reads JSON that may have escaped lone surrogates, which servers send that cut a text anywhere; they become U+FFFD.
///
/// # Errors
/// When it is not JSON for another reason.
pub fn read_lenient(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match replace_halves(text) {
        mended if mended == text => Err(error),
        mended => serde_json::from_str(&mended),
    })
}

/// Replaces every escaped lone surrogate with U+FFFD.
fn replace_halves(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, _)) = rest.split_once('\\') {
        mended.push_str(before);
        let escape = rest.get(before.len()..).unwrap_or_default();
        let (taken, kept) = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, escape.get(..12)),
            (Some(_), _) => (6, Some("\\ufffd")),
            // A backslash and the character that it escapes.
            (None, _) => (2, escape.get(..2)),
        };
        let Some(kept) = kept else { return text.to_owned() };
        mended.push_str(kept);
        rest = escape.get(taken..).unwrap_or_default();
    }
    mended + rest
}

/// The surrogate that is escaped at the start of a text.
fn surrogate(text: &str) -> Option<u16> {
    let unit = u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    (0xD800..=0xDFFF).contains(&unit).then_some(unit)
}

/// Reads an array item by item; anything else has no items.
pub(crate) fn each<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    mut take: impl FnMut(T),
) -> Result<(), D::Error> {
    struct Visit<F, T>(F, PhantomData<T>);

    impl<'de, F: FnMut(T), T: Deserialize<'de>> Visitor<'de> for Visit<F, T> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            while let Some(item) = items.next_element()? {
                (self.0)(item);
            }
            Ok(())
        }

        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_str<E>(self, _: &str) -> Result<(), E> {
            Ok(())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(())
        }
    }

    deserializer.deserialize_any(Visit(&mut take, PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Known1 {
        text: Text,
        count: Count,
    }

    impl<'de> Known<'de> for Known1 {
        fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
            match name {
                "text" => self.text = map.next_value()?,
                "count" => self.count = map.next_value()?,
                _ => return Ok(false),
            }
            Ok(true)
        }
    }

    #[test]
    fn a51_of_the_other_fields_of_an_answer_so_many_are_read() {
        let others: String = (0..2 * MAX_FIELDS).map(|number| format!("\"x{number}\": 1, ")).collect();
        let json = format!("{{{others}\"text\": \"a\"}}");
        let open: Open<'_, Known1> = serde_json::from_str(&json).unwrap();
        assert_eq!((open.rest.len(), open.known.text.0.as_str()), (MAX_FIELDS, "a"));
    }

    #[test]
    fn an_answer_may_have_other_types_and_fields() {
        let read = |json| serde_json::from_str::<Open<'_, Known1>>(json).unwrap();
        let open = read(r#"{"text": "a\ud83d", "x": {"y": 1}, "count": 2.0, "z": null}"#);
        assert_eq!((open.known.text.0.as_str(), open.known.count.0), ("a\u{fffd}", Some(2)));
        assert_eq!(open.rest.len(), 1);
        let open = read(r#"{"text": ["a"], "count": -1}"#);
        assert_eq!((open.known.text.0.as_str(), open.known.count.0), ("", None));
        for json in ["null", "[1]", "\"a\"", "1.5", "true", "-1", "1"] {
            assert!(read(json).rest.is_empty());
        }
    }
}
