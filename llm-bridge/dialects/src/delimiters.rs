//! All delimiters of all dialects in one sorted table that is walked byte by byte, as a trie would be.

use std::sync::LazyLock;

use memchr::{memchr, memchr3, memmem};

use super::{
    body::rest,
    rows::ROWS,
    suffix,
    table::{DIALECTS, DelimiterKind, Dialect},
};

/// What a delimiter can open or close; several rows may share one.
#[derive(Debug, Default)]
pub(super) struct Meaning {
    pub(super) text: &'static str,
    /// Dialects it opens, with what it is to them.
    pub(super) calls: Vec<(&'static Dialect, DelimiterKind)>,
    /// The pair of thinking delimiters it opens.
    pub(super) think: Option<usize>,
    /// The pairs of thinking delimiters it closes, as a bit set.
    pub(super) unthink: u64,
    /// It closes calls.
    pub(super) closes: bool,
    /// It means nothing to the reader.
    pub(super) noise: bool,
    /// It means nothing to the reader at the end of an answer.
    pub(super) stops: bool,
    /// A suffix may stand before its last bracket.
    suffixed: bool,
}

/// How many pairs of thinking delimiters are distinguished.
const MAX_THINKING: usize = 63;
/// The bit of thinking that a header has opened; what ends a message closes it.
pub(super) const MESSAGE: u64 = 1 << 63;

/// The compiled table.
#[derive(Debug)]
pub(super) struct Delimiters {
    sorted: Vec<Meaning>,
    bare: Vec<&'static Dialect>,
    /// Words that open calls where a line starts.
    words: Vec<(&'static str, &'static Dialect)>,
    /// Words that open calls anywhere in a line.
    inline: Vec<(Finding, &'static Dialect)>,
    /// What stands after names that open calls where a line starts.
    names: Vec<(&'static str, &'static Dialect)>,
    /// The bytes that may begin what only a line's start can hold.
    starts: [bool; 256],
    thinking: Vec<(&'static str, &'static str)>,
    /// What stands before a recipient, for each dialect that speaks in messages.
    headers: Vec<(&'static str, &'static Dialect)>,
    interest: [bool; 256],
    /// The bytes of `interest`, in groups of what is looked for at once.
    needles: Vec<[u8; NEEDLES]>,
}

/// How many bytes are looked for at once.
const NEEDLES: usize = 3;
/// Groups of needles whose places are remembered; with more of them every byte is looked at.
const MAX_GROUPS: usize = 8;
/// How far ahead is looked at once: whoever stops before has looked at that much for nothing.
const WINDOW: usize = 2048;
/// A text that is no longer is looked at byte by byte; most chunks are.
const SHORT: usize = 16;

/// A word that is looked for in text.
#[derive(Debug)]
struct Finding {
    text: &'static str,
    finder: memmem::Finder<'static>,
    /// Without that byte it is not there: most texts have none, and one byte is found sooner than a word.
    sign: u8,
}

impl Finding {
    /// `header`: it begins a message's header; others stand before a list of calls.
    fn new(text: &'static str, header: bool) -> Self {
        let sign = text.bytes().last().filter(|_| header).unwrap_or(b'[');
        Self { text, finder: memmem::Finder::new(text), sign }
    }

    /// Where it stands first, and whether all of it does, or the end of the text is its beginning.
    fn find(&self, bytes: &[u8]) -> Option<(usize, bool)> {
        let word = self.text.as_bytes();
        if bytes.len() >= word.len()
            && memchr(self.sign, bytes).is_some()
            && let Some(at) = self.finder.find(bytes)
        {
            return Some((at, true));
        }
        let from = bytes.len().saturating_sub(word.len());
        let end = bytes.get(from..)?;
        let begins = |at: &usize| {
            end.get(*at) == word.first() && end.get(*at..).is_some_and(|end| word.starts_with(end))
        };
        (0..end.len()).find(begins).map(|at| (from + at, false))
    }
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
        let mut rows: Vec<&'static Dialect> = DIALECTS.iter().collect();
        // Link order is arbitrary; the order rows are asked in must not be.
        rows.sort_by_key(|row| row.name);
        let rows: Vec<&'static Dialect> = ROWS.iter().copied().flatten().chain(rows).collect();
        let mut sorted: Vec<Meaning> = Vec::new();
        let (mut words, mut inline, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let mut thinking: Vec<(&'static str, &'static str)> = Vec::new();
        for row in &rows {
            for delimiter in row.delimiters {
                match delimiter.kind {
                    DelimiterKind::Section => {}
                    DelimiterKind::Line => words.push((delimiter.text.trim_start(), *row)),
                    DelimiterKind::Word => {
                        let word = Finding::new(delimiter.text, row.header.is_some());
                        inline.push((word, *row));
                    }
                    DelimiterKind::Name => names.push((delimiter.text, *row)),
                    kind => entry(&mut sorted, delimiter.text).calls.push((row, kind)),
                }
            }
            for close in row.close {
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
            entry(&mut sorted, open).think = Some(index);
            entry(&mut sorted, close).unthink |= 1 << index;
        }
        sorted.retain(|delimiter| !delimiter.text.is_empty());
        sorted.sort_by_key(|delimiter| delimiter.text);
        let mut firsts: Vec<u8> = sorted
            .iter()
            .filter_map(|delimiter| delimiter.text.bytes().next())
            .chain([b'\n', b'`'])
            .collect();
        // What is in nearly every text is looked for together, so that the other groups are looked through at once.
        firsts.sort_unstable_by_key(|byte| (!matches!(byte, b'\n' | b'`' | b'<'), *byte));
        firsts.dedup();
        // The longest word is asked first.
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        let headers: Vec<_> = rows.iter().filter_map(|row| Some((row.header?.address, *row))).collect();
        let bare = rows.into_iter().filter(|row| row.delimiters.is_empty()).collect();
        let lines = words.iter().filter_map(|(word, _)| word.bytes().next());
        let addresses = headers.iter().filter_map(|(address, _)| address.bytes().next());
        let starts = table(lines.chain(addresses).chain([b'`', b'~', b'{', b'[']));
        Self { sorted, bare, words, inline, names, starts, thinking, headers, ..Self::looking_for(&firsts) }
    }

    /// A table without delimiters, whose text is looked through for these bytes.
    fn looking_for(firsts: &[u8]) -> Self {
        let group = |group: &[u8]| {
            let mut needles = [group.first().copied().unwrap_or_default(); NEEDLES];
            needles.iter_mut().zip(group).for_each(|(slot, first)| *slot = *first);
            needles
        };
        let needles = firsts.chunks(NEEDLES).map(group).collect();
        let (sorted, bare, words, inline, names, thinking, headers) = Default::default();
        let interest = table(firsts.iter().copied());
        Self {
            sorted,
            bare,
            words,
            inline,
            names,
            starts: [false; 256],
            thinking,
            headers,
            interest,
            needles,
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

    /// The first word in `bytes` that opens calls anywhere in a line, or the beginning of one at the end: its place, and
    /// the word if it is whole. `headers`: those that begin headers of messages, instead of the others.
    pub(super) fn inline(
        &self,
        bytes: &[u8],
        headers: bool,
    ) -> Option<(usize, Option<(&'static str, &'static Dialect)>)> {
        let wanted = self.inline.iter().filter(|(_, row)| row.header.is_some() == headers);
        let found = wanted.filter_map(|(word, row)| {
            let (at, whole) = word.find(bytes)?;
            Some((at, whole.then_some((word.text, *row))))
        });
        found.min_by_key(|(at, _)| *at)
    }

    /// What stands after names that open calls where a line starts.
    pub(super) fn names(&self) -> &[(&'static str, &'static Dialect)] {
        &self.names
    }

    /// The dialects that speak in messages, with what stands before a recipient.
    pub(super) fn headers(&self) -> &[(&'static str, &'static Dialect)] {
        &self.headers
    }

    /// The pairs of thinking delimiters, by their index.
    pub(super) fn thinking(&self) -> &[(&'static str, &'static str)] {
        &self.thinking
    }

    fn is_interesting(&self, byte: u8) -> bool {
        self.interest.get(usize::from(byte)).copied().unwrap_or(false)
    }

    /// Whether a delimiter, a line end, a backtick or a word could be anywhere in the text.
    pub(super) fn anywhere(&self, bytes: &[u8], headers: bool) -> bool {
        Finder::default().next(self, bytes, 0).is_some() || self.inline(bytes, headers).is_some()
    }

    /// Whether something that only a line's start can hold could begin with this byte.
    pub(super) fn starts_line(&self, byte: u8) -> bool {
        self.starts.get(usize::from(byte)).copied().unwrap_or(false)
    }

    /// The longest delimiter with which `text` begins.
    pub(super) fn at(&self, text: &str) -> Found<'_> {
        let mut range = self.sorted.as_slice();
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
            let low = range.partition_point(|delimiter| delimiter.text.as_bytes().get(depth) < Some(&byte));
            let high = range.partition_point(|delimiter| delimiter.text.as_bytes().get(depth) <= Some(&byte));
            range = range.get(low..high).unwrap_or(&[]);
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
        let best = self.sorted.iter().filter_map(|tag| Some((tag, tag.at_end(text)?)));
        let best = best.max_by_key(|(_, length)| *length);
        best.map_or(Found::Nothing, |(delimiter, length)| Found::Delimiter(delimiter, length))
    }
}

/// The bytes as a table.
fn table(bytes: impl Iterator<Item = u8>) -> [bool; 256] {
    let mut table = [false; 256];
    for byte in bytes {
        if let Some(slot) = table.get_mut(usize::from(byte)) {
            *slot = true;
        }
    }
    table
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

/// The delimiters that end thinking.
pub fn thinking_ends() -> impl Iterator<Item = &'static str> {
    Delimiters::get().thinking.iter().map(|(_, close)| *close)
}

/// Finds, one after the other, the places in one text at which a delimiter, a line end or a backtick could be.
#[derive(Debug, Default)]
pub(super) struct Finder {
    /// For each group of needles, the next place of one of them, or up to where there is none.
    seen: [Option<usize>; MAX_GROUPS],
}

impl Finder {
    /// The first such place at or after `from`, which must not become less.
    pub(super) fn next(&mut self, delimiters: &Delimiters, bytes: &[u8], from: usize) -> Option<usize> {
        let rest = bytes.get(from..)?;
        if rest.len() <= SHORT || delimiters.needles.len() > MAX_GROUPS {
            return rest.iter().position(|byte| delimiters.is_interesting(*byte)).map(|found| from + found);
        }
        let mut from = from;
        loop {
            let window = bytes.get(from..bytes.len().min(from + WINDOW)).unwrap_or_default();
            let here = bytes.get(from).is_some_and(|byte| delimiters.is_interesting(*byte));
            let mut first = bytes.len();
            for (seen, [one, two, three]) in self.seen.iter_mut().zip(&delimiters.needles) {
                if seen.is_none_or(|seen| seen < from || seen == from && !here) {
                    *seen = Some(from + memchr3(*one, *two, *three, window).unwrap_or(window.len()));
                }
                first = first.min(seen.unwrap_or(first));
            }
            match bytes.get(first) {
                Some(byte) if delimiters.is_interesting(*byte) => return Some(first),
                // All have been looked for up to here.
                Some(_) => from = first,
                None => return None,
            }
        }
    }
}

impl Meaning {
    /// Its length where the text, which is at its end, begins with it.
    fn at_end(&self, text: &str) -> Option<usize> {
        if text.starts_with(self.text) {
            return Some(self.text.len());
        }
        let behind =
            self.text.strip_suffix('>').filter(|_| self.suffixed).and_then(|stem| text.strip_prefix(stem))?;
        suffix::length(behind).ok().flatten().map(|length| text.len() - behind.len() + length)
    }

    /// The dialects it can open: the pinned one only, and none by a weak delimiter if `strong` is asked for.
    pub(super) fn rows(&self, only: Option<&str>, strong: bool) -> Vec<(&'static Dialect, DelimiterKind)> {
        let fits = |row: &&(&'static Dialect, DelimiterKind)| {
            only.is_none_or(|only| only == row.0.name) && !(strong && row.1 == DelimiterKind::Inner)
        };
        self.calls.iter().filter(fits).copied().collect()
    }

    /// It begins the header of a message.
    pub(super) fn is_header(&self) -> bool {
        self.calls.iter().any(|(_, kind)| *kind == DelimiterKind::Header)
    }
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
            matches!(delimiters.at("<thinking>"), Found::Delimiter(delimiter, 10) if delimiter.think.is_some())
        );
        assert!(matches!(delimiters.at("<thin air"), Found::Nothing));
        assert!(matches!(delimiters.at_end("<think"), Found::Nothing));
    }

    #[test]
    fn passes_over_what_cannot_begin_a_mark() {
        let delimiters = Delimiters::get();
        let next = |text: &str, from| Finder::default().next(delimiters, text.as_bytes(), from);
        for length in [0, 1, 15, 16, 17, 64, 200, WINDOW - 1, WINDOW, WINDOW + 1, 5 * WINDOW] {
            let text = "x".repeat(length);
            assert_eq!(next(&text, 0), None);
            assert!(!delimiters.anywhere(text.as_bytes(), false));
            assert_eq!(next(&format!("{text}<x"), 0), Some(length));
            assert_eq!(next(&format!("<{text}`"), 1), Some(length + 1));
        }
    }

    #[test]
    fn finds_any_number_of_first_bytes_one_after_the_other() {
        for count in [1, NEEDLES, NEEDLES + 1, 3 * NEEDLES + 1, MAX_GROUPS * NEEDLES, 40] {
            let firsts: Vec<u8> = (b'!'..).take(count).collect();
            let delimiters = Delimiters::looking_for(&firsts);
            let mut text = [b'x'; 3 * WINDOW];
            assert_eq!(Finder::default().next(&delimiters, &text, 0), None);
            let mut places = Vec::new();
            for (index, first) in firsts.iter().rev().chain(&firsts).enumerate() {
                let place = index * 73;
                text[place] = *first;
                places.push(place);
            }
            let mut finder = Finder::default();
            let mut found = Vec::new();
            let mut from = 0;
            while let Some(place) = finder.next(&delimiters, &text, from) {
                found.push(place);
                from = place + 1;
            }
            assert_eq!(found, places, "{count} bytes");
        }
    }
}
