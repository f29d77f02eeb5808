//! Makes a full-text query of what somebody asks in plain words.

use super::{Passage, unspaced};
use registry_core::ToolError;

/// More words than this are not looked for: a question has fewer.
const MAX_WORDS: usize = 32;
/// Shorter words stand for themselves only and not for those that begin so.
const MIN_PREFIX: usize = 4;

/// Words that say nothing of what is asked.
const STOP_WORDS: [&str; 86] = [
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "before",
    "but", "by", "can", "could", "did", "do", "does", "each", "for", "from", "get", "had", "has", "have",
    "how", "i", "if", "in", "into", "is", "it", "its", "many", "may", "me", "more", "most", "much", "must",
    "my", "no", "not", "of", "on", "one", "or", "our", "out", "shall", "should", "so", "some", "such",
    "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "us",
    "was", "we", "were", "what", "when", "where", "which", "who", "whose", "why", "will", "with", "would",
    "you", "your", "happens",
];

/// The words of a question.
#[derive(Debug, PartialEq)]
pub(crate) struct TextQuery {
    words: Vec<String>,
}

impl TextQuery {
    /// The words of a question.
    ///
    /// # Errors
    /// When it has none, for whoever asks.
    pub(crate) fn of(question: &str) -> Result<Self, ToolError> {
        let fault = || ToolError::invalid("there is no word to look for; say what the passages are about");
        Self::new(question).ok_or_else(fault)
    }

    /// `None` where there is no word to look for.
    fn new(question: &str) -> Option<Self> {
        let all: Vec<String> = question
            .split(|c: char| c.is_whitespace() || is_control(c))
            .filter_map(word)
            .flat_map(|word| unspaced::parts(&word))
            .filter_map(|part| word(&part))
            .collect();
        let telling: Vec<String> =
            all.iter().filter(|word| !STOP_WORDS.contains(&word.as_str())).cloned().collect();
        let mut words = if telling.is_empty() { all } else { telling };
        let mut seen = Vec::new();
        words.retain(|word| {
            let is_new = !seen.contains(word);
            seen.push(word.clone());
            is_new
        });
        words.truncate(MAX_WORDS);
        (!words.is_empty()).then_some(Self { words })
    }

    /// Any of the words, in the language of FTS5. Every word is quoted, so nothing in it is an operator.
    pub(crate) fn any(&self) -> String {
        self.joined(quoted)
    }

    /// Any word that begins like one of these, in the language of FTS5.
    pub(crate) fn beginning(&self) -> String {
        self.joined(|word| format!("{}{}", quoted(word), if has_beginning(word) { "*" } else { "" }))
    }

    /// The words, and of each whether others that begin so are meant too where `beginning` is asked for.
    #[cfg(feature = "postgres")]
    pub(crate) fn words(&self, beginning: bool) -> impl Iterator<Item = (&str, bool)> {
        self.words.iter().map(move |word| (word.as_str(), beginning && has_beginning(word)))
    }

    fn joined(&self, form: impl Fn(&str) -> String) -> String {
        self.words.iter().map(|word| form(word)).collect::<Vec<_>>().join(" OR ")
    }
}

fn has_beginning(word: &str) -> bool {
    word.chars().count() >= MIN_PREFIX
}

/// Adds what is not there yet behind what is, up to the limit.
pub(crate) fn fill_up(passages: &mut Vec<Passage>, others: Vec<Passage>, limit: usize) {
    for passage in others {
        // A long line and a page of a PDF are several passages with one place.
        let is = |known: &Passage| known.first == passage.first && known.text == passage.text;
        let is_known = passages.iter().any(|known| known.path == passage.path && is(known));
        if passages.len() < limit && !is_known {
            passages.push(passage);
        }
    }
}

/// FTS5 ends a query at a NUL.
fn is_control(c: char) -> bool {
    c.is_control()
}

/// A word without what stands around it; what stands inside, as in `tool-calls` or `a::b`, makes a phrase of its parts.
fn word(text: &str) -> Option<String> {
    let word = text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(&word);
    (!word.is_empty()).then(|| word.to_owned())
}

fn quoted(word: &str) -> String {
    format!("\"{}\"", unspaced::spaced(word).trim().replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_a_question_is_its_telling_words() {
        let query = TextQuery::new("How does the tool's `max_rounds` limit work? The limit!").unwrap();
        assert_eq!(query.any(), r#""tool" OR "max_rounds" OR "limit" OR "work""#);
        assert_eq!(query.beginning(), r#""tool"* OR "max_rounds"* OR "limit"* OR "work"*"#);
        assert_eq!(TextQuery::new("who is it").unwrap().any(), r#""who" OR "is" OR "it""#);
        assert_eq!(TextQuery::new(" ?! \u{0}… "), None);
        assert_eq!(TextQuery::new(""), None);
    }

    #[test]
    fn p6_no_word_is_an_operator() {
        for (question, any) in [
            ("title:secret", r#""title:secret""#),
            ("a\" OR \"b", r#""b""#),
            ("NEAR(x y)", r#""near(x" OR "y""#),
            ("x\"y*", r#""x""y""#),
            ("-not ^start +both {col}", r#""start" OR "both" OR "col""#),
            ("x\u{0}y", r#""x" OR "y""#),
        ] {
            assert_eq!(TextQuery::new(question).unwrap().any(), any, "{question}");
        }
    }

    #[test]
    fn p6_what_has_no_spaces_is_asked_for_by_two_characters() {
        let query = TextQuery::new("緑茶は何度？ green-tea").unwrap();
        assert_eq!(query.any(), r#""緑  茶" OR "茶  は" OR "は  何" OR "何  度" OR "green-tea""#);
        assert!(!query.beginning().contains("度\"*"));
    }

    #[test]
    fn p6_a_long_question_is_cut() {
        let question: String = (0..1000).map(|number| format!("word{number} ")).collect();
        assert_eq!(TextQuery::new(&question).unwrap().words.len(), MAX_WORDS);
    }
}
