//! Whether the arguments of a call are the person's own words.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// So much of what the person has said is compared, the last of it, in bytes.
const MAX_SAID: usize = 64 << 10;
/// So much of the arguments: longer ones are not the person's own.
const MAX_WORDS: usize = 2000;
/// A number below this says too little to carry anything.
const SMALL: u64 = 100;

/// Whether all words of the arguments are in what the person has said, and there is one at least, or `empty` where there is none. What the
/// schema names as the values of an argument is no word of anybody.
pub(super) fn are_own(arguments: &Map<String, Value>, schema: &Value, said: &str, empty: bool) -> bool {
    let start = said.ceil_char_boundary(said.len().saturating_sub(MAX_SAID));
    let said: HashSet<String> = words(said.get(start..).unwrap_or_default()).collect();
    let mut given = Vec::new();
    for (name, value) in arguments {
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        let choices = property.and_then(|property| property.get("enum")).and_then(Value::as_array);
        match property {
            _ if choices.is_some_and(|choices| choices.contains(value)) => {}
            Some(_) => collect(value, &mut given),
            // A name that the schema does not have is the caller's.
            None => collect(&Value::from_iter([(name.clone(), value.clone())]), &mut given),
        }
        if given.len() > MAX_WORDS {
            return false;
        }
    }
    if given.is_empty() { empty } else { given.iter().all(|word| said.contains(word)) }
}

fn collect(value: &Value, given: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) if number.as_u64().is_some_and(|number| number < SMALL) => {}
        Value::Number(number) => given.extend(words(&number.to_string())),
        Value::String(text) => given.extend(words(text).take(MAX_WORDS + 1)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, given)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            given.extend(words(name));
            collect(value, given);
        }),
    }
}

/// Letters and digits that stand together, in lower case. What is neither, such as an emoji, is a word by itself, so that nothing is
/// carried in it.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_part = |c: char| c.is_alphanumeric();
    let is_between = |c: char| c.is_whitespace() || c.is_ascii_punctuation();
    text.split(is_between)
        .flat_map(move |run| {
            let mut pieces: Vec<&str> = Vec::new();
            let mut start = 0;
            for (at, c) in run.char_indices().filter(|(_, c)| !is_part(*c)) {
                pieces.extend([run.get(start..at), run.get(at..at + c.len_utf8())].into_iter().flatten());
                start = at + c.len_utf8();
            }
            pieces.extend(run.get(start..));
            pieces
        })
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn own(arguments: Value, said: &str) -> bool {
        let schema = json!({"properties": {"a": {}, "n": {}, "kind": {"enum": ["fact", "rule"]}}});
        are_own(arguments.as_object().unwrap(), &schema, said, false)
    }

    #[test]
    fn b20_the_persons_own_words_are_told_from_others() {
        let said =
            "Remember as a fact: the office is closed on Fridays. Write it to notes/office.md, 1200 times!";
        for arguments in [
            json!({"a": "The office is closed on Fridays"}),
            json!({"a": "closed Fridays", "kind": "fact", "n": 3}),
            json!({"a": "notes/office.md", "n": 1200}),
            json!({"a": ["office", true, null]}),
        ] {
            assert!(own(arguments.clone(), said), "{arguments}");
        }
        for arguments in [
            json!({"a": "The office is open"}),
            json!({"a": "office 4711"}),
            json!({"n": 4711}),
            json!({"n": 12.75}),
            json!({"kind": "other"}),
            json!({"b": "office"}),
            json!({"a": {"secret": "office"}}),
            json!({"a": "office🔒"}),
            json!({"a": "office\u{200b}x"}),
            json!({"a": "office".repeat(2)}),
            json!({"a": vec!["office"; 3000]}),
            json!({}),
        ] {
            assert!(!own(arguments.clone(), said), "{arguments}");
        }
        assert!(!own(json!({"a": "office"}), ""));
        assert!(!own(json!({"a": "first"}), &format!("first {}", "word ".repeat(20_000))), "it has a bound");
    }
}
