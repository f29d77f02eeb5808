//! Words within a line that open calls.

use super::{Scanner, State};
use crate::{
    candidate::Candidate,
    delimiters::MESSAGE,
    table::{DelimiterKind, Dialect},
};

/// How far ahead is looked at once.
const WINDOW: usize = 2048;

/// How far the input has been searched, counted from its beginning.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// No word begins before that.
    searched: usize,
    /// The one that does.
    next: Option<(&'static str, &'static Dialect)>,
    /// Headers were looked for as well.
    headers: bool,
}

/// What there is at a word.
pub(super) enum Word {
    /// No word stands before that place.
    None,
    /// It may begin here: more text is needed.
    Hold(usize),
    /// A call may begin here.
    Enter(usize),
}

impl Scanner {
    /// Within a line a header counts only in the thinking of a message, which it ends.
    pub(super) fn in_message(&self) -> bool {
        self.thinking.is_some_and(|open| open & MESSAGE != 0)
    }

    /// Looks for a word between `at` and `end`, where nothing else begins.
    pub(super) fn word(&mut self, text: &str, at: usize, end: usize, eof: bool) -> Word {
        let headers = self.in_message();
        let silent = self.place.code || self.place.fence > 0 || self.place.quote_line;
        if self.offered.is_empty() || silent || self.thinking.is_some() != headers {
            return Word::None;
        }
        if self.words.headers != headers {
            self.words = super::Words { headers, ..Default::default() };
        }
        let bytes = text.as_bytes();
        let mut from = at;
        loop {
            let place = self.words.searched.saturating_sub(self.offset).max(from);
            if place >= end {
                return Word::None;
            }
            if self.words.next.is_none() || self.words.searched < self.offset + place {
                let window = bytes.len().min(place + WINDOW);
                let found = self.delimiters.inline(bytes.get(place..window).unwrap_or_default(), headers);
                let (here, word) = found.map_or((window, None), |(ahead, word)| (place + ahead, word));
                self.words.searched = self.offset + here;
                self.words.next = word;
                if word.is_none() && window == bytes.len() {
                    return if here < end && !eof { Word::Hold(here) } else { Word::None };
                }
                continue;
            }
            from = place + 1;
            let Some((word, row)) = self.words.next.take() else { continue };
            let before = place.checked_sub(1).and_then(|before| bytes.get(before)).copied();
            let before = before.unwrap_or(self.place.last.byte());
            let apart = headers || !(before.is_ascii_alphanumeric() || b"_.`\"'".contains(&before));
            if apart && self.options.only.is_none_or(|only| only == row.name) {
                let kind = if headers { DelimiterKind::Header } else { DelimiterKind::Word };
                let candidate = Candidate::marked(vec![(row, kind)], word.len()).unproven(!headers);
                self.state = State::Call(Box::new(candidate));
                return Word::Enter(place);
            }
        }
    }
}
