//! An answer as the model wrote it. The conversation goes on from these words where it can: the prompt is then what the model server has in
//! its cache, and the model sees what it said as it said it.

use std::ops::Range;

use toolrack_apis::{Content, Message};
use toolrack_dialects::thinking_ends;

use crate::append::append;

/// Up to how many bytes of an answer are kept as they are. What is longer is written anew from its calls.
const MAX_WRITTEN: usize = 64 << 10;
/// How many bytes of a prompt are looked through at most for the words of its answers, all searches together.
const MAX_SEARCHED: usize = 64 << 20;

/// What the model has written of an answer, unless it is too long or has a call that the conversation does not go on from.
#[derive(Debug)]
pub(crate) struct Written(Option<Words>);

#[derive(Debug, Default)]
struct Words {
    /// How many bytes are those of the text that is shown, where they are not kept once more.
    shown: usize,
    rest: String,
}

impl Default for Written {
    fn default() -> Self {
        Self(Some(Words::default()))
    }
}

impl Written {
    pub(crate) fn push(&mut self, text: &str) {
        match &mut self.0 {
            Some(words) if words.shown + words.rest.len() + text.len() <= MAX_WRITTEN => {
                append(&mut words.rest, text);
            }
            words => *words = None,
        }
    }

    /// Takes note of all that is shown so far.
    pub(crate) fn compare(&mut self, shown: &str) {
        if let Some(words) = &mut self.0
            && words.shown + words.rest.len() == shown.len()
            && shown.ends_with(&words.rest)
        {
            words.shown = shown.len();
            words.rest.clear();
        }
    }

    /// A call in it is left out of the conversation.
    pub(crate) fn leave_out(&mut self) {
        self.0 = None;
    }

    /// The text; `shown` is what is shown of it.
    pub(crate) fn text(&self, shown: &str) -> Option<String> {
        let Words { shown: same, rest } = self.0.as_ref()?;
        let text = [shown.get(..*same)?, rest].concat();
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}

/// What a message says in the model's own words, without the thinking before it.
pub(crate) fn answer_of(message: &Message) -> Option<&str> {
    let written = message.written.as_deref()?;
    let has_thought = message.parts.iter().any(|part| matches!(part.content, Content::Reasoning(_)));
    let ends = thinking_ends().filter(|_| has_thought);
    let behind = ends.filter_map(|end| written.rsplit_once(end)).map(|(_, behind)| behind);
    Some(behind.min_by_key(|behind| behind.len()).unwrap_or(written).trim())
}

/// Puts the model's own words into a prompt, in the place of what its template has made of them, where that differs in white space only.
pub(crate) fn in_own_words(prompt: String, messages: &[Message]) -> String {
    let mut answers = messages.iter().filter(|message| message.written.is_some()).peekable();
    if answers.peek().is_none() {
        return prompt;
    }
    let letters = without_spaces(&prompt);
    let (mut places, mut from, mut searched) = (Vec::new(), 0, 0);
    for message in answers {
        // Templates leave out what was thought, or write it in their own way.
        for written in message.written.as_deref().into_iter().chain(answer_of(message)) {
            let (rest, words) = (letters.get(from..).unwrap_or_default(), without_spaces(written));
            if words.is_empty() || searched > MAX_SEARCHED {
                continue;
            }
            let found = rest.find(&words);
            searched += found.unwrap_or(rest.len());
            if let Some(at) = found {
                let begin = from + at;
                from = begin + words.len();
                places.push((begin..from, written));
                break;
            }
        }
    }
    replaced(&prompt, &places)
}

fn without_spaces(text: &str) -> String {
    text.split_whitespace().collect()
}

/// A text with others in these places, in order, which are counted without white space.
fn replaced(text: &str, places: &[(Range<usize>, &str)]) -> String {
    let mut places = places.iter().peekable();
    let (mut new, mut passed) = (String::with_capacity(text.len()), 0);
    for letter in text.chars() {
        let before = passed;
        if !letter.is_whitespace() {
            passed += letter.len_utf8();
        }
        let Some((place, written)) = places.peek() else {
            new.push(letter);
            continue;
        };
        if passed <= place.start {
            new.push(letter);
        } else if before == place.start {
            new.push_str(written);
        }
        if passed == place.end {
            places.next();
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use std::slice;

    use toolrack_apis::{Reasoning, Role};

    use super::*;

    fn answer(written: &str, has_thought: bool) -> Message {
        let reasoning = Content::Reasoning(Reasoning { text: "Hm.".into(), seal: None });
        let parts = has_thought.then(|| reasoning.into()).into_iter().collect();
        Message { written: Some(written.to_owned()), ..Message::new(Role::Assistant, parts) }
    }

    #[test]
    fn b15_an_answer_of_such_a_length_is_kept_as_it_is_and_no_longer_one() {
        let (mut written, shown) = (Written::default(), "x".repeat(MAX_WRITTEN));
        written.push(&shown);
        written.compare(&shown);
        assert_eq!(written.text(&shown), Some(shown.clone()));
        written.push("x");
        assert_eq!(written.text(&shown), None);
    }

    #[test]
    fn b15_an_answer_is_kept_once_more_only_from_where_it_is_shown_otherwise() {
        let (mut written, mut shown) = (Written::default(), String::new());
        for (said, seen) in [("Well. ", "Well."), ("I ", " I "), ("look. ", "look. "), ("<call>f()", "")] {
            written.push(said);
            shown.push_str(seen);
            written.compare(&shown);
        }
        let kept = written.0.as_ref().unwrap();
        assert_eq!((kept.shown, kept.rest.as_str()), ("Well. I look. ".len(), "<call>f()"));
        written.push("</call>");
        shown.push_str("As long as that.");
        written.compare(&shown);
        assert_eq!(written.text(&shown).unwrap(), "Well. I look. <call>f()</call>");
    }

    #[test]
    fn b15_thinking_is_cut_off_where_there_was_some() {
        let words = "Hm.</think>\n\nWell. f()";
        assert_eq!(answer_of(&answer(words, true)), Some("Well. f()"));
        assert_eq!(answer_of(&answer(words, false)), Some(words), "it speaks of the tag");
    }

    #[test]
    fn b15_a_prompt_has_the_models_own_white_space() {
        let own = |prompt: &str, messages: &[Message]| in_own_words(prompt.to_owned(), messages);
        let call = answer("Ich schaue.\n\n<call>{\"city\":\"Tromsø\"}</call>", false);
        let template = |call: &str| format!("<user> f ( ) é\n<model>\n{call}\n<result> 1 \n<model>\n");
        let rendered = template("Ich schaue.\n<call>\n{\"city\": \"Tromsø\"}\n</call>");
        assert_eq!(own(&rendered, &[]), rendered);
        assert_eq!(own(&rendered, slice::from_ref(&call)), template(call.written.as_deref().unwrap()));
        // The same call twice, and one that the template has written in other letters.
        let other = answer("<call>{\"city\": \"\\u00e9\"}</call>", false);
        let rendered = ["<call>{\"city\": \"é\"}</call>", "Ich schaue. <call>{\"city\": \"Tromsø\"}</call> "];
        let rendered = [rendered[1], rendered[0], rendered[1]].concat();
        let expected = [call.written.as_deref().unwrap(), " <call>{\"city\": \"é\"}</call>"].concat();
        let expected = [&expected, call.written.as_deref().unwrap(), " "].concat();
        assert_eq!(own(&rendered, &[call.clone(), other, call]), expected);
    }

    #[test]
    fn b15_thoughts_are_put_back_where_the_template_has_them() {
        let messages = [answer("Hm.\n</think>\nf( )", true)];
        for (rendered, expected) in [
            ("<think>Hm.</think>f()<end>", "<think>Hm.\n</think>\nf( )<end>"),
            ("<model>f()<end>", "<model>f( )<end>"),
            ("<model>g()<end>", "<model>g()<end>"),
        ] {
            assert_eq!(in_own_words(rendered.to_owned(), &messages), expected);
        }
    }

    #[test]
    fn b15_so_much_of_a_prompt_is_looked_through() {
        let mut messages = vec![answer("is not there", false); MAX_SEARCHED / (1 << 20) + 2];
        let prompt = format!("{}f()", "x".repeat(1 << 20));
        messages.push(answer("f( )", false));
        assert_eq!(in_own_words(prompt.clone(), &messages), prompt);
        let last = messages.split_off(messages.len() - 1);
        assert!(in_own_words(prompt, &last).ends_with("f( )"));
    }
}
