//! Whether the arguments of a call are the person's own words, and so carry nothing else.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// So much of what the person has said is compared, the last of it, in bytes.
const MAX_SAID: usize = 64 << 10;
/// So many texts may a call have that are the person's own.
const MAX_TEXTS: usize = 4;
/// So many choices may a call make beside them: small numbers, true and false, values that the schema lists, words left out.
const MAX_CHOICES: usize = 4;
/// So many words of a longer text are not compared one by one.
const MAX_WORDS: usize = 2000;
/// The words of a text of which some may have been left out, as in a search.
const MAX_SHORTENED: usize = 16;
/// A number below this says too little to carry anything, and so does one of so many listed values.
const SMALL: u64 = 100;
/// Of more arguments that may be left out, which of them are given says something as well.
const MANY: usize = 32;

/// Whether nothing goes out with the arguments but what the person has written, as it was written, and a few choices.
pub(super) fn are_quoted(arguments: &Map<String, Value>, schema: &Value, said: &str) -> bool {
    let said = last_of(said);
    if said.is_empty() {
        // Nothing bounds how often somebody calls of whom nothing is known, and each choice would tell more.
        return arguments.is_empty();
    }
    let mut given = Given::default();
    let own = |text: &str, given: &mut Given| {
        // White space at its ends would be one more choice.
        let is_bare = text.trim().len() == text.len();
        let shortened = |given: &mut Given| {
            let left_out = left_out(said, text);
            given.choices += left_out.unwrap_or_default();
            left_out.is_some()
        };
        is_bare && (has_run(said, text) || shortened(given))
    };
    given.take_all(arguments, schema, &own)
}

/// Whether all words of the arguments are in what the person has said, in any order, and there is one at least.
pub(super) fn are_own(arguments: &Map<String, Value>, schema: &Value, said: &str) -> bool {
    let said: HashSet<String> = words(last_of(said)).collect();
    let mut given = Given::default();
    let own = |text: &str, _: &mut Given| {
        let mut given = words(text).take(MAX_WORDS + 1).enumerate();
        given.all(|(number, word)| number < MAX_WORDS && said.contains(&word))
    };
    given.take_all(arguments, schema, &own) && given.texts > 0
}

fn last_of(said: &str) -> &str {
    let start = said.ceil_char_boundary(said.len().saturating_sub(MAX_SAID));
    said.get(start..).unwrap_or_default()
}

/// What the arguments have been found to hold.
#[derive(Debug, Default)]
struct Given {
    texts: usize,
    choices: usize,
}

impl Given {
    /// Whether the members of an object are the person's own, and few enough. A name that the schema does not have is the caller's.
    fn take_all(
        &mut self,
        members: &Map<String, Value>,
        schema: &Value,
        own: &impl Fn(&str, &mut Self) -> bool,
    ) -> bool {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let optional = properties.map_or(0, |all| all.keys().filter(|name| !is_required(name)).count());
        members.iter().all(|(name, value)| {
            let property = properties.and_then(|properties| properties.get(name));
            (property.is_some() || self.text(name, own))
                && (optional <= MANY || is_required(name) || self.choice())
                && self.take(value, property.unwrap_or(&Value::Null), own)
        })
    }

    fn take(&mut self, value: &Value, schema: &Value, own: &impl Fn(&str, &mut Self) -> bool) -> bool {
        let listed = schema.get("enum").and_then(Value::as_array);
        let is_few = |listed: &&Vec<Value>| u64::try_from(listed.len()).is_ok_and(|length| length <= SMALL);
        if listed.filter(is_few).is_some_and(|listed| listed.contains(value)) {
            return self.choice();
        }
        match value {
            Value::Null | Value::Bool(_) => self.choice(),
            Value::Number(number) if number.as_u64().is_some_and(|number| number < SMALL) => self.choice(),
            Value::Number(number) => self.text(&number.to_string(), own),
            Value::String(text) if text.is_empty() => self.choice(),
            Value::String(text) => self.text(text, own),
            Value::Array(items) if items.is_empty() => self.choice(),
            // How many there are of anything else, and in which order, can say all.
            Value::Array(items) => {
                items.iter().all(|item| item.as_str().is_some_and(|text| self.text(text, own)))
            }
            Value::Object(members) if members.is_empty() => self.choice(),
            Value::Object(members) => self.take_all(members, schema, own),
        }
    }

    fn choice(&mut self) -> bool {
        self.choices += 1;
        self.choices <= MAX_CHOICES
    }

    /// A text without a word is nobody's.
    fn text(&mut self, text: &str, own: &impl Fn(&str, &mut Self) -> bool) -> bool {
        self.texts += 1;
        self.texts <= MAX_TEXTS
            && text.contains(char::is_alphanumeric)
            && own(text, self)
            && self.choices <= MAX_CHOICES
    }
}

/// Whether an address goes on: the beginning of one may be that of somebody else.
fn goes_on(address: &str, behind: Option<&str>) -> bool {
    let mut behind = behind.unwrap_or_default().chars();
    address.contains("://")
        && behind.next().is_some_and(|sign| sign.is_ascii_punctuation())
        && behind.next().is_some_and(char::is_alphanumeric)
}

/// Whether a text stands in another as it is, with no word or address cut.
fn has_run(said: &str, text: &str) -> bool {
    said.match_indices(text).any(|(start, _)| {
        let (before, behind) = (said.get(..start), said.get(start + text.len()..));
        let cuts = |left: Option<&str>, right: Option<&str>| {
            let left = left.and_then(|left| left.chars().next_back());
            let right = right.and_then(|right| right.chars().next());
            left.is_some_and(is_of_word) && right.is_some_and(is_of_word)
        };
        !cuts(before, Some(text)) && !cuts(Some(text), behind) && !goes_on(text, behind)
    })
}

/// Whether a character belongs to the letters and digits beside it: not in scripts that write no spaces between words.
fn is_of_word(c: char) -> bool {
    let is_unspaced = matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..);
    c.is_alphanumeric() && !is_unspaced
}

/// How many words have to be left out of a run to get a short text, if that is possible with a few.
fn left_out(said: &str, text: &str) -> Option<usize> {
    let wanted: Vec<&str> = text.split(' ').collect();
    let (first, rest) = wanted.split_first()?;
    let (last, inner) = rest.split_last()?;
    if wanted.len() > MAX_SHORTENED {
        return None;
    }
    let is_bare = |rest: Option<&str>| rest.is_some_and(|rest| !rest.contains(char::is_alphanumeric));
    let words: Vec<&str> = said.split_whitespace().collect();
    let from = |start: usize| {
        let (begin, behind) = words.get(start..)?.split_first()?;
        // What clings to the words at both ends may be left off.
        is_bare(begin.strip_suffix(first)).then_some(())?;
        let mut behind = behind.iter().take(rest.len() + MAX_CHOICES);
        let mut passed = 0;
        for word in inner {
            passed += behind.position(|said| said == word)? + 1;
        }
        passed += behind.position(|said| is_bare(said.strip_prefix(last)))? + 1;
        Some(passed - rest.len())
    };
    (0..words.len()).filter_map(from).min()
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

    const SAID: &str =
        "Remember as a fact: the office is closed on Fridays. Write it to notes/office.md, 1200 times!";

    fn schema() -> Value {
        let kind = json!({"enum": ["fact", "rule"]});
        json!({"properties": {"a": {}, "b": {}, "c": {}, "n": {}, "kind": kind, "o": {"properties": {"kind": kind, "a": {}}}}})
    }

    fn own(arguments: &Value, said: &str) -> bool {
        are_own(arguments.as_object().unwrap(), &schema(), said)
    }

    fn quoted(arguments: &Value, said: &str) -> bool {
        are_quoted(arguments.as_object().unwrap(), &schema(), said)
    }

    #[test]
    fn b20_the_persons_own_words_are_told_from_others() {
        for arguments in [
            json!({"a": "The office is closed on Fridays"}),
            json!({"a": "closed Fridays", "kind": "fact", "n": 3}),
            json!({"a": "notes/office.md", "n": 1200}),
            json!({"a": ["office", "Fridays"], "n": true}),
        ] {
            assert!(own(&arguments, SAID), "{arguments}");
        }
        for arguments in [
            json!({"a": "The office is open"}),
            json!({"a": "office 4711"}),
            json!({"n": 4711}),
            json!({"n": 12.75}),
            json!({"kind": "other"}),
            json!({"d": "office"}),
            json!({"a": {"secret": "office"}}),
            json!({"a": "office🔒"}),
            json!({"a": "office\u{200b}x"}),
            json!({"a": "office".repeat(2)}),
            json!({"a": "office ".repeat(3000)}),
            json!({"a": vec!["office"; 5]}),
            json!({"a": "../.."}),
            json!({"a": ["office", 3]}),
            json!({"kind": "fact"}),
            json!({}),
        ] {
            assert!(!own(&arguments, SAID), "{arguments}");
        }
        assert!(!own(&json!({"a": "office"}), ""));
        assert!(!own(&json!({"a": "first"}), &format!("first {}", "word ".repeat(20_000))), "it has a bound");
    }

    #[test]
    fn b20_what_goes_out_stands_in_what_the_person_wrote_as_it_is() {
        for arguments in [
            json!({}),
            json!({"n": 3, "b": true, "c": null, "kind": "rule"}),
            json!({"a": "the office is closed on Fridays", "kind": "fact", "n": 3}),
            json!({"a": "the office is closed on Fridays. Write it to"}),
            json!({"a": "notes/office.md", "n": 1200, "b": ""}),
            json!({"a": ["notes/office.md", "1200 times"]}),
            json!({"o": {"kind": "fact", "a": "Fridays"}}),
            // A word or two may be left out of a run.
            json!({"a": "office closed Fridays"}),
            json!({"a": "closed Fridays"}),
        ] {
            assert!(quoted(&arguments, SAID), "{arguments}");
        }
        for arguments in [
            json!({"a": "The office is closed on Fridays"}),
            json!({"a": "the office  is closed"}),
            json!({"a": "the office is closed on Fridays "}),
            json!({"a": "Fridays office"}),
            json!({"a": "office, closed"}),
            json!({"a": " closed"}),
            json!({"a": "closed "}),
            json!({"a": "offic"}),
            json!({"a": "ridays"}),
            json!({"a": "notes/office.md/office"}),
            json!({"a": "notes/office.md?.-.--"}),
            json!({"a": "."}),
            json!({"a": " "}),
            json!({"n": 4711}),
            json!({"n": 120}),
            json!({"kind": "other"}),
            json!({"d": 3}),
            json!({"o": {"x": 3}}),
            json!({"n": [1, 2]}),
            json!({"n": [true]}),
            json!({"n": [[]]}),
            json!({"n": [{}]}),
            json!({"n": [null]}),
            json!({"a": vec!["office"; 5]}),
            json!({"a": "office closed Fridays", "n": 3, "b": true, "c": null}),
            json!({"n": 3, "b": true, "c": null, "kind": "rule", "a": ""}),
            // Five words are left out.
            json!({"a": "Remember Fridays"}),
            json!({"a": "a office closed Fridays. it"}),
        ] {
            assert!(!quoted(&arguments, SAID), "{arguments}");
        }
        assert!(
            !quoted(&json!({"a": "first"}), &format!("first {}", "word ".repeat(20_000))),
            "it has a bound"
        );
        // Where nothing is known of the person, nobody has made the choices.
        assert!(quoted(&json!({}), "") && !quoted(&json!({"n": 3}), ""));
    }

    #[test]
    fn b20_which_of_many_arguments_are_given_is_a_choice() {
        let of = |count: usize, required: &[&str]| {
            let properties: Map<String, Value> = (0..count).map(|at| (format!("p{at}"), json!({}))).collect();
            json!({"properties": properties, "required": required})
        };
        let given = json!({"p0": "Fridays", "p1": true, "p2": true});
        let quoted = |schema| are_quoted(given.as_object().unwrap(), &schema, SAID);
        assert!(quoted(of(MANY, &[])) && quoted(of(MANY + 3, &["p0", "p1", "p2"])));
        assert!(!quoted(of(MANY + 1, &[])));
        let values = |count: usize| {
            let values: Vec<usize> = (1000..1000 + count).collect();
            let schema = json!({"properties": {"n": {"enum": values}}});
            are_quoted(json!({"n": 1000}).as_object().unwrap(), &schema, SAID)
        };
        assert!(values(100) && !values(101));
    }

    #[test]
    fn b20_an_address_is_taken_as_the_person_wrote_it() {
        for said in [
            "What is on https://a.example/b?",
            "Open (https://a.example/b).",
            "请打开https://a.example/b并总结",
        ] {
            assert!(quoted(&json!({"a": "https://a.example/b"}), said), "{said}");
            for other in [
                "https://A.example/b",
                "https://a.example/b?.-",
                "https://a.example/bb",
                "https://a.example/b\n",
            ] {
                assert!(!quoted(&json!({"a": other}), said), "{other}: {said}");
            }
        }
        for said in [
            "Open https://a.example/b.evil.example.",
            "Open https://a.example/b/c",
            "See https://a.example/b?c=1",
        ] {
            assert!(!quoted(&json!({"a": "https://a.example/b"}), said), "{said}");
        }
    }
}
