//! What a delimiter means.

use crate::{
    suffix,
    table::{DelimiterKind, Dialect},
};

/// What a delimiter can open or close; several rows may share one.
#[derive(Debug, Default)]
pub(crate) struct Meaning {
    pub(crate) text: &'static str,
    /// Dialects it opens, with what it is to them.
    pub(crate) calls: Vec<(&'static Dialect, DelimiterKind)>,
    /// The pairs of thinking delimiters it opens, as a bit set.
    pub(crate) think: u64,
    /// The pairs of thinking delimiters it closes, as a bit set.
    pub(crate) unthink: u64,
    /// It closes calls.
    pub(crate) closes: bool,
    /// It means nothing to the reader.
    pub(crate) noise: bool,
    /// It means nothing to the reader at the end of an answer.
    pub(crate) stops: bool,
    /// The dialect whose models write it around an answer.
    pub(crate) around: Option<&'static str>,
    /// It opens thinking, and is a word of prose, too.
    pub(crate) generic: bool,
    /// What follows is said by somebody else: the user, or a tool.
    pub(crate) foreign: bool,
    /// A suffix may stand before its last bracket.
    pub(super) suffixed: bool,
}

impl Meaning {
    /// Whether it is a token that nothing else is written as.
    pub(crate) fn is_special(&self) -> bool {
        self.text.starts_with("<|") || self.text.starts_with("<｜") || self.text.ends_with("|>")
    }

    /// Its length where the text, which is at its end, begins with it.
    pub(super) fn at_end(&self, text: &str) -> Option<usize> {
        if text.starts_with(self.text) {
            return Some(self.text.len());
        }
        let behind =
            self.text.strip_suffix('>').filter(|_| self.suffixed).and_then(|stem| text.strip_prefix(stem))?;
        suffix::length(behind).ok().flatten().map(|length| text.len() - behind.len() + length)
    }

    /// The dialects it can open: the pinned one only, and none by a weak delimiter if `strong` is asked for.
    pub(crate) fn rows(&self, only: Option<&str>, strong: bool) -> Vec<(&'static Dialect, DelimiterKind)> {
        let fits = |row: &&(&'static Dialect, DelimiterKind)| {
            only.is_none_or(|only| only == row.0.name) && !(strong && row.1 == DelimiterKind::Inner)
        };
        self.calls.iter().filter(fits).copied().collect()
    }

    /// It opens calls where a line starts, and within a line only in an answer that has begun as those of its dialect do.
    pub(super) fn is_sign(&self) -> bool {
        self.calls.iter().any(|(_, kind)| *kind == DelimiterKind::Line)
    }

    /// It begins the header of a message.
    pub(crate) fn is_header(&self) -> bool {
        self.calls.iter().any(|(_, kind)| *kind == DelimiterKind::Header)
    }
}
