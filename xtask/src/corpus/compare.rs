//! Whether a reading is the one that is expected.

use std::collections::BTreeMap;

use serde_json::{Value, from_str, value::RawValue};

use super::{
    case::{Call, Expected},
    read::Reading,
};

/// What is right of a reading; null is what the expectation leaves open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    pub(super) calls: bool,
    pub(super) content: Option<bool>,
    pub(super) reasoning: Option<bool>,
    /// It does not depend on the pieces.
    pub(super) pieces: bool,
}

impl Verdict {
    pub(super) fn right(self) -> bool {
        self.calls && self.content.unwrap_or(true) && self.reasoning.unwrap_or(true) && self.pieces
    }
}

pub(super) fn compare(reading: &Reading, expected: &Expected) -> Verdict {
    Verdict {
        calls: same_calls(&reading.calls, &expected.calls),
        content: expected.content.as_deref().map(|content| content_fits(reading, content)),
        reasoning: expected.reasoning.as_deref().map(|text| text.trim() == reading.reasoning.trim()),
        pieces: reading.differing.is_empty(),
    }
}

fn same_calls(one: &[Call], two: &[Call]) -> bool {
    let same = |(one, two): (&Call, &Call)| one.name == two.name && same_json(&one.arguments, &two.arguments);
    one.len() == two.len() && one.iter().zip(two).all(same)
}

/// Equal as values: the order of members means nothing, and of two with one name the last counts.
fn same_json(one: &RawValue, two: &RawValue) -> bool {
    type List<'t> = Vec<&'t RawValue>;
    type Members<'t> = BTreeMap<String, &'t RawValue>;
    let (one, two) = (one.get(), two.get());
    match (one.as_bytes().first(), two.as_bytes().first()) {
        (Some(b'['), Some(b'[')) => match (from_str::<List<'_>>(one), from_str::<List<'_>>(two)) {
            (Ok(one), Ok(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same_json(one, two))
            }
            _ => false,
        },
        (Some(b'{'), Some(b'{')) => match (from_str::<Members<'_>>(one), from_str::<Members<'_>>(two)) {
            (Ok(one), Ok(two)) => {
                one.len() == two.len()
                    && one.iter().all(|(name, one)| two.get(name).is_some_and(|two| same_json(one, two)))
            }
            _ => false,
        },
        (Some(b'-' | b'0'..=b'9'), Some(b'-' | b'0'..=b'9')) => same_number(one, two),
        _ => matches!((from_str::<Value>(one), from_str::<Value>(two)), (Ok(one), Ok(two)) if one == two),
    }
}

/// Whole numbers are compared by their digits, as they may be longer than a machine's; `2` equals `2.0`.
fn same_number(one: &str, two: &str) -> bool {
    let whole = |number: &str| number.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    if whole(one) && whole(two) {
        return one == two || (one.trim_start_matches('-') == "0" && two.trim_start_matches('-') == "0");
    }
    matches!((one.parse::<f64>(), two.parse::<f64>()), (Ok(one), Ok(two)) if one == two)
}

/// The same text, runs of white space aside. Some drop the text that stands beside calls: where there are calls,
/// whole pieces of ours may be missing, but none that looks like a part of a call that has leaked.
fn content_fits(reading: &Reading, expected: &str) -> bool {
    let expected = words(expected);
    if words(&reading.content) == expected {
        return true;
    }
    if reading.calls.is_empty() {
        return false;
    }
    // How far the expected text can be made up of the pieces so far.
    let mut reached = vec![0];
    for piece in pieces(&reading.content, &reading.offsets) {
        let piece = words(&piece);
        let mut next: Vec<usize> = if leaked(&piece, &reading.calls) { Vec::new() } else { reached.clone() };
        for place in reached {
            let rest = expected.get(place..).unwrap_or_default();
            let behind = rest.trim_start();
            if behind.starts_with(&piece) {
                next.push(place + (rest.len() - behind.len()) + piece.len());
            }
        }
        next.sort_unstable();
        next.dedup();
        reached = next;
    }
    reached.contains(&expected.len())
}

/// The text with one space for each run of white space, and none around it.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text before, between and behind the calls.
fn pieces(content: &str, offsets: &[usize]) -> Vec<String> {
    let mut characters = content.chars();
    let mut begin = 0;
    let mut pieces = Vec::new();
    for offset in offsets {
        pieces.push(characters.by_ref().take(offset.saturating_sub(begin)).collect());
        begin = *offset;
    }
    pieces.push(characters.collect());
    pieces
}

/// Whether a piece of text holds what marks and bodies of calls are made of, or a name of one.
fn leaked(piece: &str, calls: &[Call]) -> bool {
    piece.contains(['<', '>', '[', ']', '{', '}', '|', '｜'])
        || piece.contains("```")
        || calls.iter().any(|call| piece.contains(&call.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn arguments_are_compared_as_values() {
        for (one, two) in [
            (r#"{"a": 1, "b": [true, null]}"#, r#"{"b":[true,null],"a":1.0}"#),
            ("2", "2.0"),
            ("2e1", "20"),
            ("0.1", "0.10"),
            ("-0", "0"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            (r#""\u00e5/""#, r#""å\/""#),
            (r#"{"a": 1, "a": 2}"#, r#"{"a": 2}"#),
        ] {
            assert!(same_json(&raw(one), &raw(two)), "{one} {two}");
        }
        for (one, two) in [
            ("2", "3"),
            ("2", "\"2\""),
            ("0.1", "0.2"),
            ("123456789012345678901234567890", "123456789012345678901234567891"),
            ("9007199254740993", "9007199254740992"),
            ("[1, 2]", "[2, 1]"),
            ("[1]", "[1, 1]"),
            (r#"{"a": 1}"#, r#"{"a": 1, "b": 1}"#),
            (r#"{"a": 1}"#, r#"{"b": 1}"#),
            ("{}", "[]"),
            ("null", "false"),
            ("\"a\"", "\"a \""),
        ] {
            assert!(!same_json(&raw(one), &raw(two)), "{one} {two}");
        }
    }

    /// A reading of `pieces` with a call to `f` between each two.
    fn fits(pieces: &[&str], expected: &str) -> bool {
        let mut reading = Reading {
            source: String::new(),
            content: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            offsets: Vec::new(),
            differing: Vec::new(),
        };
        for (number, piece) in pieces.iter().enumerate() {
            if number > 0 {
                reading.calls.push(Call { name: "find".into(), arguments: raw("{}") });
                reading.offsets.push(reading.content.chars().count());
            }
            reading.content.push_str(piece);
        }
        content_fits(&reading, expected)
    }

    #[test]
    fn whole_pieces_of_text_beside_calls_may_be_dropped() {
        let pieces = ["Öne \n", " two", "", "\nthree"];
        for expected in [
            "",
            "Öne",
            "two",
            "three",
            "Öne two",
            "Öne\ttwo three",
            "Önetwo three",
            "Öne three",
            " two three ",
        ] {
            assert!(fits(&pieces, expected), "{expected}");
        }
        for expected in ["Ö", "wo", "two Öne", "Öne two three four", "threethree", "Öne tw", "four"] {
            assert!(!fits(&pieces, expected), "{expected}");
        }
        for (text, expected) in [("One", ""), ("One two", "One"), ("", "One")] {
            assert!(!fits(&[text], expected), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_part_of_a_call_is_not_dropped() {
        for leak in ["</tool_call>", "]", "<｜end｜>", "```", "One two</function>", "{\"a\": 1}", "find: 1"]
        {
            assert!(!fits(&["One", leak], "One"), "{leak}");
            assert!(!fits(&[leak, ""], ""), "{leak}");
            assert!(fits(&["One", leak], leak), "{leak}");
            assert!(fits(&["One", leak], &format!("One {leak}")), "{leak}");
        }
    }
}
