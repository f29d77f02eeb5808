//! Words as they are looked up: small letters without accents, and nothing else, so that PostgreSQL has nothing of its own to find in them.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::{query::TextQuery, unspaced::spaced};

/// The words of a text, a space between two of them.
pub(super) fn words(text: &str) -> String {
    let text = folded(&spaced(text));
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn folded(text: &str) -> String {
    // Korean letters are put together again.
    text.nfd().filter(|c| !is_combining_mark(*c)).nfc().flat_map(char::to_lowercase).collect()
}

/// Any of the words of a question, in the language of PostgreSQL. A word of parts is a phrase of them.
pub(super) fn query(query: &TextQuery, beginning: bool) -> String {
    let phrase = |(word, beginning): (&str, bool)| {
        let words = words(word);
        let end = if beginning { ":*" } else { "" };
        (!words.is_empty()).then(|| format!("({}{end})", words.replace(' ', " <-> ")))
    };
    query.words(beginning).filter_map(phrase).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_words_are_small_letters_and_digits() {
        for (text, expected) in [
            ("The Café, steèped!", "the cafe steeped"),
            ("registry_core::documents/mod.rs", "registry core documents mod rs"),
            (" '; DROP TABLE x; -- & | ! <-> :* ", "drop table x"),
            ("ÜBER Straße 75°", "uber straße 75"),
            ("…\u{0}\u{300}", ""),
            ("緑茶は75度。", "緑 茶 は 75 度"),
            ("휴가를 ปีนี้", "휴 가 를 ป น"),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn p6_a_question_asks_for_any_of_its_words() {
        let asked = TextQuery::of("How does max_rounds work, the Café & (:*)?").unwrap();
        assert_eq!(query(&asked, false), "(max <-> rounds) | (work) | (cafe)");
        assert_eq!(query(&asked, true), "(max <-> rounds:*) | (work:*) | (cafe:*)");
    }
}
