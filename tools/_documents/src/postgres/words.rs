//! Words as they are looked up: small letters without accents, and nothing else, so that PostgreSQL has nothing of its own to find in them.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::{query::TextQuery, unspaced::spaced};

/// The words of a text, a space between two of them, and how many there are.
pub(super) fn words(text: &str) -> (String, usize) {
    let mut words = String::with_capacity(text.len());
    let mut count = 0;
    for word in folded(&spaced(text)).split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if count > 0 {
            words.push(' ');
        }
        words.push_str(word);
        count += 1;
    }
    (words, count)
}

fn folded(text: &str) -> String {
    text.nfd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect()
}

/// What PostgreSQL is asked for each word of a question. A word of parts is a phrase of them.
pub(super) fn queries(query: &TextQuery, beginning: bool) -> Vec<String> {
    let phrase = |(word, beginning): (&str, bool)| {
        let (words, count) = words(word);
        let end = if beginning { ":*" } else { "" };
        (count > 0).then(|| words.replace(' ', " <-> ") + end)
    };
    query.words(beginning).filter_map(phrase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_words_are_small_letters_and_digits() {
        for (text, expected, count) in [
            ("The Café, steèped!", "the cafe steeped", 3),
            ("registry_core::documents/mod.rs", "registry core documents mod rs", 5),
            (" '; DROP TABLE x; -- & | ! <-> :* ", "drop table x", 3),
            ("ÜBER Straße 75°", "uber straße 75", 3),
            ("…\u{0}\u{300}", "", 0),
            ("緑茶は75度。", "緑 茶 は 75 度", 5),
        ] {
            assert_eq!(words(text), (expected.to_owned(), count), "{text}");
        }
    }

    #[test]
    fn p6_a_question_is_a_query_for_each_word() {
        let query = TextQuery::of("How does max_rounds work, the Café & (:*)?").unwrap();
        assert_eq!(queries(&query, false), ["max <-> rounds", "work", "cafe"]);
        assert_eq!(queries(&query, true), ["max <-> rounds:*", "work:*", "cafe:*"]);
    }
}
