//! Words that open calls anywhere in a line. Every text has their letters: a word is looked for backwards, from the
//! byte that shows it, so that text without that byte costs nothing.

use crate::{
    byte_set::ByteSet,
    table::{DelimiterKind, Dialect},
};

/// A longer word is never found.
const MAX_WORD: usize = 63;

/// A word that opens calls.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) text: &'static str,
    pub(crate) row: &'static Dialect,
    /// What it is to the calls after it.
    pub(crate) kind: DelimiterKind,
    /// What stands before the byte that shows it.
    stem: &'static str,
    /// That byte: the last one of a header's word, or what stands after the word.
    sign: u8,
}

impl Word {
    fn new(text: &'static str, row: &'static Dialect) -> Option<Self> {
        // A tag has another one after it.
        if text.ends_with('>') {
            Self::shown_by(text, b'<', row, DelimiterKind::Wrapper)
        } else {
            Self::shown_by(text, b'[', row, DelimiterKind::Word)
        }
    }

    fn shown_by(stem: &'static str, sign: u8, row: &'static Dialect, kind: DelimiterKind) -> Option<Self> {
        let text = stem;
        (1..=MAX_WORD).contains(&stem.len()).then_some(Self { text, row, kind, stem, sign })
    }

    /// What stands before the recipient of a message, in a header whose beginning is missing.
    fn address(row: &'static Dialect) -> Option<Self> {
        let text = row.header?.address;
        let (stem, _) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let word = Self::shown_by(stem, *text.as_bytes().last()?, row, DelimiterKind::Header)?;
        Some(Self { text, ..word })
    }

    /// The words of a dialect.
    pub(super) fn all(row: &'static Dialect) -> impl Iterator<Item = Self> {
        let words = row.delimiters.iter().filter(|delimiter| delimiter.kind == DelimiterKind::Word);
        words.filter_map(move |delimiter| Self::new(delimiter.text, row)).chain(Self::address(row))
    }
}

/// Words of which one may stand at a place.
#[derive(Debug)]
pub(crate) struct Words {
    all: Vec<Word>,
    signs: ByteSet,
    /// For each byte, the lengths of the beginnings of words that end with it, as a bit set.
    tails: [u64; 256],
}

impl Words {
    pub(super) fn new(words: impl Iterator<Item = Word>) -> Self {
        let all: Vec<_> = words.collect();
        let mut tails = [0; 256];
        for (at, byte) in all.iter().flat_map(|word| word.stem.bytes().enumerate()) {
            if let Some(lengths) = tails.get_mut(usize::from(byte)) {
                *lengths |= 1 << (at + 1);
            }
        }
        Self { signs: all.iter().map(|word| word.sign).collect(), all, tails }
    }

    /// The bytes that show words.
    pub(super) fn signs(&self) -> impl Iterator<Item = u8> {
        self.all.iter().map(|word| word.sign)
    }

    pub(crate) fn is_sign(&self, byte: u8) -> bool {
        self.signs.contains(byte)
    }

    /// Where the words begin that the byte `sign` shows after this text.
    pub(crate) fn before(&self, bytes: &[u8], sign: u8) -> impl Iterator<Item = (usize, &Word)> + Clone {
        let ends = move |word: &&Word| word.sign == sign && bytes.ends_with(word.stem.as_bytes());
        self.all.iter().filter(ends).map(|word| (bytes.len() - word.stem.len(), word))
    }

    /// Where at the end of the text a word may have begun, of which more is to come: the first such place that is
    /// `apart` from the text before it.
    pub(crate) fn open(&self, bytes: &[u8], apart: impl Fn(usize) -> bool) -> Option<usize> {
        let last = bytes.last()?;
        let fitting = u64::MAX >> (MAX_WORD - bytes.len().min(MAX_WORD));
        let mut lengths = self.tails.get(usize::from(*last)).copied().unwrap_or_default() & fitting;
        while let Some(length) = lengths.checked_ilog2() {
            lengths ^= 1 << length;
            let Some(at) = bytes.len().checked_sub(length as usize) else { continue };
            let tail = bytes.get(at..).unwrap_or_default();
            let begins = |word: &Word| {
                word.stem.as_bytes().first() == tail.first() && word.stem.as_bytes().starts_with(tail)
            };
            if self.all.iter().any(begins) && apart(at) {
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect;

    #[test]
    fn words_are_found_from_their_ends() {
        let (list, header) = (dialect("hermes").unwrap(), dialect("muse").unwrap());
        let words = ["tools", "functools", "‹call>"];
        let words = words.into_iter().filter_map(|text| Word::new(text, list));
        let words = Words::new(words.chain(Word::address(header)));
        let before = |text: &str, sign| {
            words.before(text.as_bytes(), sign).map(|(at, word)| (at, word.text)).collect::<Vec<_>>()
        };
        assert_eq!(before("use functools", b'['), [(8, "tools"), (4, "functools")]);
        assert_eq!(before("use tools", b'['), [(4, "tools")]);
        assert_eq!(before("so to", b'='), [(3, "to=")]);
        assert_eq!(before("so ‹call>", b'<'), [(3, "‹call>")]);
        assert_eq!(
            [before("so to", b'['), before("tools", b'='), before("tool", b'['), before("", b'[')],
            [vec![], vec![], vec![], vec![]]
        );
        assert!(words.is_sign(b'=') && words.is_sign(b'[') && !words.is_sign(b's'));
        let open = |text: &str| words.open(text.as_bytes(), |at| !text[..at].ends_with('_'));
        for (text, place) in [
            ("a f", Some(2)),
            ("a func", Some(2)),
            ("a_func", None),
            ("a functools", Some(2)),
            ("a_functools", Some(6)),
            ("so t", Some(3)),
            ("so to=", None),
            ("so ‹cal", Some(3)),
            ("so ‹call", Some(3)),
            ("so call", None),
            ("fine", None),
            ("functoolsx", None),
            ("", None),
        ] {
            assert_eq!(open(text), place, "{text}");
        }
    }
}
