//! All delimiters of all dialects in one sorted table that is walked byte by byte, as a trie would be.

mod finder;
mod meaning;
mod words;

use std::{ops::Range, sync::LazyLock};

use super::{
    body::rest,
    byte_set::ByteSet,
    named::{Head, NamedStyle, is_tag},
    rows::{ROWS, THINK, TURNS},
    scanner::{FIRST, SPEAKER},
    suffix,
    table::{DelimiterKind, Dialect, Form, others},
};
pub(super) use finder::{Finder, Needles};
pub(super) use meaning::Meaning;
use words::{Word, Words};

/// How many pairs of thinking delimiters are distinguished.
const MAX_THINKING: usize = 63;
/// The bit of thinking that a header has opened; what ends a message closes it.
pub(super) const MESSAGE: u64 = 1 << 63;

/// The compiled table.
#[derive(Debug)]
pub(super) struct Delimiters {
    sorted: Vec<Meaning>,
    /// For each byte, the place in `sorted` of the delimiters that begin with it.
    ranges: Vec<Range<usize>>,
    bare: Vec<&'static Dialect>,
    /// Words that open calls where a line starts.
    words: Vec<(&'static str, &'static Dialect)>,
    in_text: Lookout,
    in_message: Lookout,
    in_rare: Lookout,
    in_begun: Lookout,
    /// What stands after names that open calls where a line starts.
    names: Vec<(&'static str, &'static Dialect)>,
    /// What may stand before such names.
    spaces: Vec<&'static str>,
    /// Dialects whose calls may have the tool's name for a tag.
    tool_tags: Vec<&'static Dialect>,
    /// The bytes that may begin what only a line's start can hold.
    starts: ByteSet,
    thinking: Vec<(&'static str, &'static str)>,
    /// Those of them that are words of prose, as a bit set.
    generic: u64,
    /// Those of them that begin with what prose is full of, as a bit set.
    rare: u64,
    /// Sentences around thinking.
    spoken: Vec<(&'static str, &'static str)>,
    /// Lines without a meaning at the beginning of an answer.
    lines: Vec<(&'static str, &'static Dialect)>,
    /// What stands before a recipient, for each dialect that speaks in messages.
    headers: Vec<(&'static str, &'static Dialect)>,
}

/// Where in an answer something is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    Text,
    /// The thinking of a message, in which the next header may stand.
    Message,
    /// Thinking whose end begins with what prose is full of.
    RareThinking,
    /// The text of an answer that has begun with a line of a dialect.
    BegunAnswer,
}

/// What is looked for within a line.
#[derive(Debug)]
pub(super) struct Lookout {
    /// Words that open calls.
    pub(super) words: Words,
    /// What shows them, what begins delimiters, line ends and backticks.
    pub(super) needles: Needles,
}

/// What stands at a place in the text.
pub(super) enum Found<'a> {
    Nothing,
    /// The input ends in what could still become a delimiter.
    Partial,
    Delimiter(&'a Meaning, usize),
}

static DELIMITERS: LazyLock<Delimiters> = LazyLock::new(Delimiters::new);

impl Delimiters {
    pub(super) fn get() -> &'static Self {
        &DELIMITERS
    }

    fn new() -> Self {
        let mut rows: Vec<&'static Dialect> = others().iter().collect();
        // Link order is arbitrary; the order rows are asked in must not be.
        rows.sort_by_key(|row| row.name);
        let rows: Vec<&'static Dialect> = ROWS.iter().copied().flatten().chain(rows).collect();
        let mut sorted: Vec<Meaning> = Vec::new();
        let (mut words, mut names) = (Vec::new(), Vec::new());
        let mut thinking: Vec<(&'static str, &'static str)> = Vec::new();
        for row in &rows {
            for delimiter in row.delimiters {
                match delimiter.kind {
                    DelimiterKind::Section | DelimiterKind::Word => {}
                    DelimiterKind::Line => {
                        words.push((delimiter.text.trim_start(), *row));
                        if !row.starts.is_empty() && !delimiter.text.starts_with(char::is_alphanumeric) {
                            entry(&mut sorted, delimiter.text).calls.push((row, delimiter.kind));
                        }
                    }
                    DelimiterKind::Name => names.push((delimiter.text, *row)),
                    kind => entry(&mut sorted, delimiter.text).calls.push((row, kind)),
                }
            }
            let end = |form: &Form| if let Form::Named(style) = form { style.end } else { &[] };
            let ends = row.forms.iter().flat_map(end).filter(|end| end.starts_with('<'));
            for close in row.close.iter().chain(ends) {
                entry(&mut sorted, close).closes = true;
            }
            for token in row.noise {
                let token = entry(&mut sorted, token);
                token.noise = true;
                // What is written between messages ends the one before it.
                let ends = row.header.is_some_and(|header| !header.is_end(token.text));
                token.unthink |= if ends { MESSAGE } else { 0 };
            }
            for token in row.stops {
                entry(&mut sorted, token).stops = true;
            }
            for tag in row.around {
                entry(&mut sorted, tag).around = Some(row.name);
            }
            // Every text is full of letters: a result that begins with one is not looked for. Headers are read as such.
            let result = row.result_begins();
            if row.header.is_none() && !result.starts_with(char::is_alphanumeric) {
                entry(&mut sorted, result).foreign = true;
            }
            if row.suffixed {
                let opening = row.delimiters.iter().map(|delimiter| delimiter.text);
                let thinking = row.thinking.iter().flat_map(|(open, close)| [*open, *close]);
                for tag in opening.chain(row.close.iter().copied()).chain(thinking) {
                    entry(&mut sorted, tag).suffixed = tag.ends_with('>');
                }
            }
            thinking.extend(row.thinking);
        }
        thinking.sort_unstable();
        thinking.dedup();
        // More than there are bits for are not distinguished; the last bit is that of messages.
        thinking.truncate(MAX_THINKING);
        for (index, (open, close)) in thinking.iter().enumerate() {
            // A sentence begins thinking only in a prompt.
            if !open.starts_with(char::is_alphanumeric) {
                entry(&mut sorted, open).think |= 1 << index;
            }
            entry(&mut sorted, close).unthink |= 1 << index;
        }
        for turn in TURNS {
            entry(&mut sorted, turn).foreign = true;
        }
        for (open, _) in THINK {
            entry(&mut sorted, open).generic = true;
        }
        sorted.retain(|delimiter| !delimiter.text.is_empty());
        sorted.sort_by_key(|delimiter| delimiter.text);
        let range = |byte| {
            let before = |limit| sorted.partition_point(|delimiter| delimiter.text.bytes().next() < limit);
            before(Some(byte))..byte.checked_add(1).map_or(sorted.len(), |next| before(Some(next)))
        };
        let ranges = (0..=u8::MAX).map(range).collect();
        // The longest word is asked first.
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        let lookout = |kind: Within| {
            let headers = matches!(kind, Within::Message | Within::RareThinking);
            let rows = rows.iter().copied().filter(|row| row.header.is_some() == headers);
            let words = Words::new(rows.flat_map(Word::all));
            // What is in nearly every text comes first.
            let is_sought = |delimiter: &&Meaning| match kind {
                Within::Text | Within::Message => !is_rare(delimiter.text) && !delimiter.is_sign(),
                Within::RareThinking => !delimiter.is_sign(),
                Within::BegunAnswer => !is_rare(delimiter.text),
            };
            let delimiters = sorted.iter().filter(is_sought);
            let firsts = delimiters.filter_map(|delimiter| delimiter.text.bytes().next());
            let needles = Needles::new([b'\n', b'`', b'<'].into_iter().chain(firsts).chain(words.signs()));
            Lookout { words, needles }
        };
        let addresses = |row: &'static Dialect| {
            let header = row.header.into_iter();
            header.flat_map(move |header| {
                let begun = header.begun.iter().copied().chain([header.address]);
                begun.map(move |address| (address, row))
            })
        };
        let headers: Vec<_> = rows.iter().copied().flat_map(addresses).collect();
        let lines: Vec<_> = rows.iter().flat_map(|row| row.starts.iter().map(|line| (*line, *row))).collect();
        let tag = |form: &Form| matches!(form, Form::Named(style) if is_tag(&style.head));
        let tool_tags = rows.iter().copied().filter(|row| row.forms.iter().any(tag)).collect();
        let bare = rows.iter().copied().filter(|row| row.delimiters.is_empty()).collect();
        let head = |form: &Form| match form {
            Form::Named(NamedStyle { head: Head::Between { open: "", before, .. }, .. }) => Some(*before),
            _ => None,
        };
        let spaces = names.iter().flat_map(|(_, row)| row.forms.iter().filter_map(head));
        let spaces: Vec<_> = spaces.filter(|space| !space.is_empty()).collect();
        let begins = words.iter().chain(&headers).chain(&lines).map(|(word, _)| *word);
        let begins = begins
            .chain(spaces.iter().copied())
            .chain([FIRST, SPEAKER])
            .filter_map(|word| word.bytes().next());
        let rare = thinking.iter().map(|(open, _)| *open).filter(|open| is_rare(open));
        let spoken: Vec<_> = rows.iter().flat_map(|row| row.spoken.iter().copied()).collect();
        let thoughts =
            rare.chain(spoken.iter().map(|(open, _)| *open)).filter_map(|open| open.bytes().next());
        let starts = begins.chain(thoughts).chain([b'`', b'~', b'{', b'[']).collect();
        Self {
            ranges,
            bare,
            words,
            names,
            spaces,
            tool_tags,
            starts,
            generic: bits(&thinking, |pair| THINK.contains(pair)),
            rare: bits(&thinking, |(open, _)| is_rare(open)),
            spoken,
            lines,
            headers,
            in_text: lookout(Within::Text),
            in_message: lookout(Within::Message),
            in_rare: lookout(Within::RareThinking),
            in_begun: lookout(Within::BegunAnswer),
            thinking,
            sorted,
        }
    }

    /// The dialects that have no delimiter.
    pub(super) fn bare(&self) -> &[&'static Dialect] {
        &self.bare
    }

    /// Words that open calls where a line starts, without white space before them.
    pub(super) fn words(&self) -> &[(&'static str, &'static Dialect)] {
        &self.words
    }

    /// What stands after names that open calls where a line starts.
    pub(super) fn names(&self) -> &[(&'static str, &'static Dialect)] {
        &self.names
    }

    /// The dialects whose calls may have the tool's name for a tag.
    pub(super) fn tool_tags(&self) -> &[&'static Dialect] {
        &self.tool_tags
    }

    /// What may stand before such names and is no part of them.
    pub(super) fn spaces(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.spaces.iter().copied()
    }

    /// Lines without a meaning at the beginning of an answer.
    pub(super) fn lines(&self) -> &[(&'static str, &'static Dialect)] {
        &self.lines
    }

    /// The dialects that speak in messages, with what stands before a recipient.
    pub(super) fn headers(&self) -> &[(&'static str, &'static Dialect)] {
        &self.headers
    }

    /// The pairs of thinking delimiters, by their index.
    pub(super) fn thinking(&self) -> &[(&'static str, &'static str)] {
        &self.thinking
    }

    /// Those of them that are words of prose, as a bit set.
    pub(super) fn generic(&self) -> u64 {
        self.generic
    }

    /// Those of them that begin with what prose is full of, as a bit set: they open only where an answer begins.
    pub(super) fn rare(&self) -> u64 {
        self.rare
    }

    /// Sentences around thinking.
    pub(super) fn spoken(&self) -> &[(&'static str, &'static str)] {
        &self.spoken
    }

    /// What is looked for within a line.
    pub(super) fn lookout(&self, place: Within) -> &Lookout {
        match place {
            Within::Text => &self.in_text,
            Within::Message => &self.in_message,
            Within::RareThinking => &self.in_rare,
            Within::BegunAnswer => &self.in_begun,
        }
    }

    /// Whether something that only a line's start can hold could begin with this byte.
    pub(super) fn starts_line(&self, byte: u8) -> bool {
        self.starts.contains(byte)
    }

    /// The longest delimiter with which `text` begins.
    pub(super) fn at(&self, text: &str) -> Found<'_> {
        let Some(first) = text.bytes().next() else { return Found::Partial };
        let range = self.ranges.get(usize::from(first)).cloned().unwrap_or_default();
        let mut range = self.sorted.get(range).unwrap_or_default();
        let mut best = None;
        for (depth, byte) in text.bytes().enumerate() {
            if byte == b':'
                && let Some(delimiter) = range.iter().find(|tag| tag.suffixed && tag.text.len() == depth + 1)
            {
                return match suffix::length(rest(text, depth)) {
                    Ok(Some(length)) => Found::Delimiter(delimiter, depth + length),
                    Ok(None) => Found::Nothing,
                    Err(()) => Found::Partial,
                };
            }
            // Where all of them have this byte, the first and the last do.
            let has_byte = |delimiter: Option<&Meaning>| {
                delimiter.is_some_and(|delimiter| delimiter.text.as_bytes().get(depth) == Some(&byte))
            };
            if !has_byte(range.first()) || !has_byte(range.last()) {
                let low =
                    range.partition_point(|delimiter| delimiter.text.as_bytes().get(depth) < Some(&byte));
                let high =
                    range.partition_point(|delimiter| delimiter.text.as_bytes().get(depth) <= Some(&byte));
                range = range.get(low..high).unwrap_or_default();
            }
            match range.first() {
                None => {
                    return best.map_or(Found::Nothing, |delimiter| {
                        Found::Delimiter(delimiter, depth_of(delimiter))
                    });
                }
                Some(delimiter) if delimiter.text.len() == depth + 1 => {
                    if range.len() == 1 {
                        return Found::Delimiter(delimiter, depth + 1);
                    }
                    best = Some(delimiter);
                }
                Some(_) => {}
            }
        }
        Found::Partial
    }

    /// The longest whole delimiter at the start of `text` when no more text will come.
    pub(super) fn at_end(&self, text: &str) -> Found<'_> {
        let [first, second] = [0, 1].map(|at| text.as_bytes().get(at));
        let range = first.and_then(|first| self.ranges.get(usize::from(*first))).cloned().unwrap_or_default();
        // Most differ in their first two bytes, and all would be compared with each bracket of an answer.
        let alike = |tag: &&Meaning| tag.text.len() == 1 || tag.text.as_bytes().get(1) == second;
        let alike = self.sorted.get(range).unwrap_or_default().iter().filter(alike);
        let best = alike.filter_map(|tag| Some((tag, tag.at_end(text)?)));
        let best = best.max_by_key(|(_, length)| *length);
        best.map_or(Found::Nothing, |(delimiter, length)| Found::Delimiter(delimiter, length))
    }
}

/// Such pairs, as a bit set.
fn bits(
    thinking: &[(&'static str, &'static str)],
    are_such: impl Fn(&(&'static str, &'static str)) -> bool,
) -> u64 {
    let such = thinking.iter().enumerate().filter(|(_, pair)| are_such(pair));
    such.fold(0, |bits, (index, _)| bits | 1 << index)
}

/// Whether a delimiter of thinking begins with a byte that prose is full of, as that of quotes and dashes.
fn is_rare(delimiter: &str) -> bool {
    !delimiter.is_ascii() && !delimiter.starts_with(|first: char| first.is_ascii())
}

fn depth_of(delimiter: &Meaning) -> usize {
    delimiter.text.len()
}

fn entry<'a>(sorted: &'a mut Vec<Meaning>, text: &'static str) -> &'a mut Meaning {
    let index = sorted.iter().position(|delimiter| delimiter.text == text).unwrap_or_else(|| {
        sorted.push(Meaning { text, ..Meaning::default() });
        sorted.len() - 1
    });
    // The index was found or made on the line above.
    #[allow(clippy::indexing_slicing)]
    &mut sorted[index]
}

/// The delimiters that end thinking, and nothing else.
pub fn thinking_ends() -> impl Iterator<Item = &'static str> {
    let ends = Delimiters::get().sorted.iter().filter(|end| end.unthink & !MESSAGE != 0 && !end.noise);
    ends.map(|end| end.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_whole_marks_and_what_could_become_one() {
        let delimiters = Delimiters::get();
        assert!(
            matches!(delimiters.at("<tool_call>{"), Found::Delimiter(delimiter, 11) if delimiter.calls.len() > 2)
        );
        assert!(matches!(delimiters.at("<think"), Found::Partial));
        assert!(
            matches!(delimiters.at("<thinking>"), Found::Delimiter(delimiter, 10) if delimiter.think != 0)
        );
        assert!(matches!(delimiters.at("<thin air"), Found::Nothing));
        assert!(matches!(delimiters.at_end("<think"), Found::Nothing));
    }

    #[test]
    fn looks_for_nothing_that_prose_is_full_of() {
        for place in [Within::Text, Within::Message, Within::BegunAnswer] {
            let needles = &Delimiters::get().lookout(place).needles;
            let prose = "“It’s — so they say… – not «here»”, ‹there›: 1.5 × 2 • 港口建于十四世纪。";
            for length in [prose.len(), 12] {
                assert!(
                    !needles.anywhere(prose.get(..prose.floor_char_boundary(length)).unwrap().as_bytes())
                );
            }
        }
    }
}
