//! Which words are names.

use super::{relations::PHRASES, words::Word};

/// A name in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) kind: &'static str,
    /// Its first word, and the one behind its last.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Words that join capitalised ones to one name.
const JOINTS: [&str; 6] = ["of", "de", "der", "van", "von", "la"];
/// A name has no more words.
const MAX_WORDS: usize = 6;
/// Words that are written with a capital for other reasons.
pub(super) const NO_NAMES: [&str; 94] = [
    "a",
    "after",
    "all",
    "also",
    "an",
    "and",
    "another",
    "any",
    "anything",
    "are",
    "as",
    "at",
    "be",
    "because",
    "before",
    "both",
    "but",
    "by",
    "can",
    "do",
    "each",
    "either",
    "every",
    "everybody",
    "everything",
    "few",
    "for",
    "from",
    "he",
    "here",
    "how",
    "i",
    "if",
    "in",
    "is",
    "it",
    "its",
    "let",
    "many",
    "more",
    "most",
    "neither",
    "no",
    "nobody",
    "none",
    "not",
    "note",
    "nothing",
    "now",
    "of",
    "on",
    "once",
    "one",
    "only",
    "or",
    "other",
    "see",
    "she",
    "since",
    "so",
    "some",
    "somebody",
    "something",
    "such",
    "that",
    "the",
    "their",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "though",
    "to",
    "try",
    "two",
    "until",
    "use",
    "we",
    "what",
    "whatever",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whoever",
    "why",
    "with",
    "without",
    "you",
    "your",
];

/// The names, in their order, none inside another.
pub(super) fn names(words: &[Word<'_>]) -> Vec<Name> {
    let mut names = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let name = if is_code(word) { Some(code(word, at)) } else { capitalised(words, at) };
        at = name.as_ref().map_or(at + 1, |name| name.end);
        names.extend(name);
    }
    names
}

/// An identifier: quoted as code, or joined as no word of a language is.
fn is_code(word: &Word<'_>) -> bool {
    let text = word.text;
    let is_identifier = || {
        text.chars().all(|c| c.is_alphanumeric() || "_:.-/$@".contains(c))
            && text.contains(|c: char| c.is_alphabetic())
    };
    let is_joined = || {
        let inside = text.trim_matches('_');
        inside.contains('_') || inside.contains("::")
    };
    (2..=80).contains(&text.len()) && is_identifier() && (word.quoted || is_joined() || is_camel_case(text))
}

/// `ToolContext`, but neither `SQLite` nor `JSON`, which are written like names.
fn is_camel_case(text: &str) -> bool {
    let mut humps = 0;
    let mut before = ' ';
    for c in text.chars() {
        if !c.is_alphanumeric() {
            return false;
        }
        humps += u32::from(before.is_lowercase() && c.is_uppercase());
        before = c;
    }
    humps > 0 && before.is_lowercase() && text.chars().nth(1).is_some_and(char::is_lowercase)
}

fn code(word: &Word<'_>, at: usize) -> Name {
    let text = word.text.trim_matches(|c| "-./:".contains(c));
    Name { text: text.to_owned(), kind: "code", start: at, end: at + 1 }
}

/// The capitalised words from here on.
fn capitalised(words: &[Word<'_>], at: usize) -> Option<Name> {
    let first = words.get(at)?;
    if !is_capitalised(first) {
        return None;
    }
    let mut end = at + 1;
    let mut last = first;
    while !last.ends_phrase && end - at < MAX_WORDS {
        let Some(next) = words.get(end) else { break };
        let joined = words.get(end + 1).filter(|_| JOINTS.contains(&next.text) && !next.ends_phrase);
        match joined.filter(|word| is_capitalised(word)) {
            Some(word) => (last, end) = (word, end + 2),
            None if is_capitalised(next) && !is_code(next) => (last, end) = (next, end + 1),
            None => break,
        }
    }
    // The first word of a sentence is written with a capital whatever it is.
    let is_name = end - at > 1
        || !first.begins_sentence
        || is_written_unlike_a_word(first.text)
        || is_subject(first, words.get(end..).unwrap_or_default());
    let text = words.get(at..end)?.iter().map(|word| word.text).collect::<Vec<_>>().join(" ");
    is_name.then_some(Name { text, kind: "name", start: at, end })
}

fn is_capitalised(word: &Word<'_>) -> bool {
    let text = word.text;
    text.starts_with(char::is_uppercase)
        && (2..=40).contains(&text.len())
        && text.chars().all(|c| c.is_alphanumeric() || "-.'’+#".contains(c))
        && !NO_NAMES.contains(&text.to_lowercase().as_str())
}

/// Whether it is said of a word what it is or does: `Toolrack is a`, `Toolrack uses`.
fn is_subject(word: &Word<'_>, behind: &[Word<'_>]) -> bool {
    let mut behind = behind.iter().map(|word| word.text);
    let is_said = match behind.next() {
        Some("is") => matches!(behind.next(), Some("a" | "an" | "the" | "part" | "written" | "based")),
        Some(verb) => {
            verb.ends_with('s') && PHRASES.iter().any(|(phrase, _)| phrase.split(' ').next() == Some(verb))
        }
        None => false,
    };
    is_said && !word.ends_phrase && !word.text.ends_with("ing")
}

/// With a second capital or a digit: `JSON`, `SQLite`, `FTS5`.
fn is_written_unlike_a_word(text: &str) -> bool {
    text.chars().skip(1).any(|c| c.is_uppercase() || c.is_ascii_digit())
}
