//! Values as JSON, and how long they are without writing it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

/// Takes so many bytes, and keeps none of them: what is longer is looked at no further.
#[derive(Debug, Clone, Copy)]
pub struct Room(pub usize);

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a value has at most so many bytes as JSON.
pub fn is_within(value: &(impl Serialize + ?Sized), most: usize) -> bool {
    serde_json::to_writer(Room(most), value).is_ok()
}

/// How many bytes a value has as JSON.
pub(crate) fn length(value: &(impl Serialize + ?Sized)) -> u64 {
    let mut room = Room(usize::MAX);
    // There is room for all.
    let _ = serde_json::to_writer(&mut room, value);
    (usize::MAX - room.0) as u64
}

/// A value and all that is in it, in the order of its text: each with its name, where it is the member of an object.
pub fn parts(value: &Value) -> impl Iterator<Item = (Option<&str>, &Value)> {
    let mut left = vec![(None, value)];
    std::iter::from_fn(move || {
        let part = left.pop()?;
        match part.1 {
            Value::Array(items) => left.extend(items.iter().rev().map(|item| (None, item))),
            Value::Object(members) => {
                left.extend(members.iter().rev().map(|(name, member)| (Some(name.as_str()), member)));
            }
            _ => {}
        }
        Some(part)
    })
}

/// A value as JSON, in which an `f32` has its own digits: `serde_json::to_value` makes 20.100000381469727 of 20.1.
pub(crate) fn to_value(value: &(impl Serialize + ?Sized)) -> serde_json::Result<Value> {
    let mut read = serde_json::to_value(value)?;
    // As a text it has them; that takes longer, and few values have such numbers.
    if may_be_widened(&read) {
        take_digits(&mut read, &serde_json::from_str(&serde_json::to_string(value)?)?);
    }
    Ok(read)
}

/// Narrows the numbers that are narrow in the text of the same value. The others stay: the text of an `f64` is not always read exactly.
fn take_digits(value: &mut Value, text: &Value) {
    match (value, text) {
        (Value::Array(items), Value::Array(texts)) => {
            items.iter_mut().zip(texts).for_each(|(item, text)| take_digits(item, text));
        }
        (Value::Object(fields), Value::Object(texts)) => {
            fields.values_mut().zip(texts.values()).for_each(|(field, text)| take_digits(field, text));
        }
        (wide, text) if wide.is_f64() => {
            let narrow = wide.as_f64().map(narrowed);
            if narrow == text.as_f64() {
                *wide = narrow.into();
            }
        }
        _ => {}
    }
}

/// Whether there is a number in it that other digits would give as an `f32`.
fn may_be_widened(value: &Value) -> bool {
    let is_wide = |part: &Value| part.is_f64() && part.as_f64().is_some_and(|wide| narrowed(wide) != wide);
    parts(value).any(|(_, part)| is_wide(part))
}

/// The number that the digits of an `f32` stand for, where it was one.
#[expect(clippy::cast_possible_truncation, reason = "only what is not cut is an `f32`")]
pub(crate) fn narrowed(wide: f64) -> f64 {
    let narrow = wide as f32;
    if f64::from(narrow) != wide {
        return wide;
    }
    narrow.to_string().parse().unwrap_or(wide)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn p2_a_number_has_the_digits_of_its_type() {
        let sizes = [12_345_678_848.0, 20.1, 20.1_f32.into(), 0.5];
        let value = to_value(&(20.1_f32, [0.1_f32, 1.5e-7], sizes, u64::MAX, "20.1")).unwrap();
        assert_eq!(
            value.to_string(),
            r#"[20.1,[0.1,1.5e-7],[12345678848.0,20.1,20.100000381469727,0.5],18446744073709551615,"20.1"]"#
        );
        // The same as a text, where nothing else is an `f32`.
        assert_eq!(to_value(&sizes).unwrap(), json!(sizes));
    }

    #[test]
    fn p2_the_parts_of_a_value_come_in_the_order_of_its_text() {
        let value = json!({"a": [1, {"b": "x"}], "c": null});
        let parts: Vec<String> = parts(&value).map(|(name, part)| format!("{name:?} {part}")).collect();
        assert_eq!(
            parts,
            [
                r#"None {"a":[1,{"b":"x"}],"c":null}"#,
                r#"Some("a") [1,{"b":"x"}]"#,
                "None 1",
                r#"None {"b":"x"}"#,
                r#"Some("b") "x""#,
                r#"Some("c") null"#
            ]
        );
    }

    #[test]
    fn a37_a_value_is_within_its_length_and_no_less() {
        for value in [json!({}), json!({"a": [1.5, null, "é\n\""]}), json!("x".repeat(1000))] {
            let length = value.to_string().len();
            assert!(is_within(&value, length) && !is_within(&value, length - 1), "{value}");
            assert_eq!(super::length(&value), length as u64);
        }
    }
}
