//! The words of a text, with what their marks say of them.

/// A word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    /// Between backticks.
    pub(super) quoted: bool,
    /// The first of its sentence.
    pub(super) begins_sentence: bool,
    /// What is behind it is of another phrase.
    pub(super) ends_phrase: bool,
}

/// What stands before a colon at the beginning of a line has no more words where it is a label.
const LABEL: usize = 4;

/// The words, without punctuation and the targets of links.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    for paragraph in text.split("\n\n") {
        let mut begins_sentence = true;
        for (raw, is_label) in paragraph.lines().flat_map(labelled) {
            // `Author: Ada` goes on with nothing of the line above it.
            if is_label {
                end_phrase(&mut words);
            }
            // `[text](target)` is its text.
            let shown = raw.split_once("](").map_or(raw, |(shown, _)| shown);
            let core = shown.trim_matches(is_mark);
            if core.is_empty() {
                // A mark by itself, such as a dash or that of a list, stands between phrases.
                end_phrase(&mut words);
                begins_sentence |= matches!(shown, "-" | "*" | "#" | "|" | ">");
                continue;
            }
            if shown.starts_with(['(', '"']) {
                end_phrase(&mut words);
            }
            let behind = raw.rsplit_once(core).map_or("", |(_, behind)| behind);
            let behind = behind.rsplit_once(')').map_or(behind, |(_, behind)| behind);
            let ends_sentence = behind.contains(['.', '!', '?', ':']);
            let quoted = raw.contains('`');
            let ends_phrase = ends_sentence || behind.contains([',', ';', '"', '|']) || raw.ends_with(')');
            words.push(Word { text: core, quoted, begins_sentence, ends_phrase });
            begins_sentence = ends_sentence;
        }
        end_phrase(&mut words);
    }
    words
}

/// The words of a line, and of the first whether it begins a label.
fn labelled(line: &str) -> impl Iterator<Item = (&str, bool)> {
    let label = line.split_once(": ").map_or("", |(label, _)| label);
    let words = label.split_whitespace().count();
    let has_label = (1..=LABEL).contains(&words) && !label.contains(['.', ',', ';', '!', '?']);
    line.split_whitespace().enumerate().map(move |(at, word)| (word, at == 0 && has_label))
}

fn end_phrase(words: &mut [Word<'_>]) {
    if let Some(last) = words.last_mut() {
        last.ends_phrase = true;
    }
}

/// What may stand around a word and is not of it.
fn is_mark(c: char) -> bool {
    !c.is_alphanumeric() && !matches!(c, '_' | '$' | '@' | '/')
}

/// The targets of the links in Markdown, without the place in them.
pub(super) fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let (target, _) = rest.split_once(')')?;
        let target = target.split(['#', ' ']).next()?;
        let is_target = (3..200).contains(&target.len()) && target.contains(['.', '/']);
        is_target.then_some(target)
    })
}
