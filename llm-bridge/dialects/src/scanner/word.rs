//! Words within a line that open calls.

use super::{Scanner, State};
use crate::{
    candidate::Candidate,
    delimiters::{Lookout, MESSAGE, Within},
    table::DelimiterKind,
};

impl Scanner {
    /// Within a line a header counts only in the thinking of a message, which it ends.
    fn in_message(&self) -> bool {
        self.thinking.is_some_and(|open| open & MESSAGE != 0)
    }

    /// What is looked for here.
    pub(super) fn lookout(&self) -> &'static Lookout {
        self.delimiters.lookout(match self.thinking {
            Some(open) if open & self.delimiters.rare() != 0 => Within::RareThinking,
            Some(_) if self.in_message() => Within::Message,
            None if self.begun.is_some() => Within::BegunAnswer,
            Some(_) | None => Within::Text,
        })
    }

    /// Whether a word opens calls here.
    fn takes_words(&self) -> bool {
        let silent = self.place.code || self.place.fence > 0 || self.place.quote_line;
        !self.offered.is_empty() && !silent && (self.thinking.is_none() || self.in_message())
    }

    /// Whether a word may begin at this place: not in a longer one, or directly after a quote.
    fn is_apart(&self, bytes: &[u8], at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before)).copied();
        let before = before.unwrap_or(self.place.last.byte());
        let letter = bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
        let joined = letter && (before.is_ascii_alphanumeric() || b"_.".contains(&before));
        !joined && !b"`\"'".contains(&before)
    }

    /// Begins a call with the word that the byte at `end` shows, if that stands at or after `from`: the place of it.
    pub(super) fn word(&mut self, bytes: &[u8], from: usize, end: usize) -> Option<usize> {
        let sign = *bytes.get(end)?;
        let wanted = |name: &str| self.options.only.is_none_or(|only| only == name);
        let words = self.lookout().words.before(bytes.get(from..end)?, sign);
        let words = words.filter(|(at, word)| wanted(word.row.name) && self.is_apart(bytes, from + at));
        let (at, first) = words.clone().min_by_key(|(at, _)| *at).filter(|_| self.takes_words())?;
        let same = words.filter(|(_, word)| word.text == first.text).map(|(_, word)| (word.row, word.kind));
        let candidate = Candidate::marked(same.collect(), first.text.len());
        self.state = State::Call(Box::new(candidate.unproven(first.kind == DelimiterKind::Word)));
        Some(from + at)
    }

    /// Where a word may have begun at the end of the text, of which more is to come.
    pub(super) fn open_word(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let area = bytes.get(from..)?;
        let place = self.lookout().words.open(area, |at| self.is_apart(bytes, from + at))?;
        self.takes_words().then_some(from + place)
    }
}
