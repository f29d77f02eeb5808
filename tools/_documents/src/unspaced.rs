//! Scripts that put no spaces between words: Chinese, Japanese, Thai, Lao, Burmese, Khmer; and Korean, whose words have endings that no
//! question has.
//!
//! Nothing here knows where their words end. So each character is looked up by itself, and a question asks for each two that stand
//! together, which are most words of these scripts. Marks above and below letters are not looked up.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;

/// The text with a space around each character of such a script.
pub(super) fn spaced(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unspaced) {
        return Cow::Borrowed(text);
    }
    let mut spaced = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        match is_unspaced(c) {
            true => spaced.extend([' ', c, ' ']),
            false => spaced.push(c),
        }
    }
    Cow::Owned(spaced)
}

/// What a word of a question asks for: itself, or where it is of such a script each two characters that stand together.
pub(super) fn parts(word: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let is_looked_up = |c: &char| !(is_unspaced(*c) && is_combining_mark(*c));
    let letters: Vec<char> = word.chars().filter(is_looked_up).collect();
    for run in letters.chunk_by(|one, next| is_unspaced(*one) == is_unspaced(*next)) {
        match run {
            [first, ..] if !is_unspaced(*first) => parts.push(run.iter().collect()),
            [alone] => parts.push(alone.to_string()),
            run => parts.extend(run.windows(2).map(|two| two.iter().collect())),
        }
    }
    parts
}

/// Thai, Lao, Burmese, Khmer, Korean; Han, Hiragana and Katakana, and the marks that stand for one of them.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e01}'..='\u{e5b}' | '\u{e81}'..='\u{edf}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17e9}'
        | '\u{ac00}'..='\u{d7a3}' |
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_each_character_of_an_unspaced_script_is_looked_up_by_itself() {
        assert_eq!(spaced("Tea is 75°C. Über чай"), "Tea is 75°C. Über чай");
        assert_eq!(
            spaced("緑茶は75度").split_whitespace().collect::<Vec<_>>(),
            ["緑", "茶", "は", "75", "度"]
        );
    }

    #[test]
    fn p6_a_question_asks_for_each_two_characters() {
        for (word, expected) in [
            ("tool", &["tool"][..]),
            ("茶", &["茶"]),
            ("緑茶", &["緑茶"]),
            ("お茶を75度", &["お茶", "茶を", "75", "度"]),
            ("rust言語", &["rust", "言語"]),
            ("휴가를", &["휴가", "가를"]),
            ("ปีนี้", &["ปน"]),
            ("", &[]),
        ] {
            assert_eq!(parts(word), expected, "{word}");
        }
    }
}
