//! Thinking delimiters within a line that are words of prose, too: `the <thinking> tag`. They open thinking only where
//! it is closed, and not where they stand as words do.

use memchr::memmem;

use super::{Scanner, State, Went};
use crate::{
    Event,
    body::{cut, rest},
};

/// A delimiter that may open thinking.
#[derive(Debug)]
pub(super) struct Aside {
    /// The pair of delimiters.
    pair: u64,
    length: usize,
    /// It begins its line.
    lead: bool,
    /// Up to where no closing delimiter has been found.
    seen: usize,
}

impl Aside {
    pub(super) fn new(pair: u64, length: usize, lead: bool) -> Self {
        Self { pair, length, lead, seen: length }
    }
}

/// What stands after a word in a sentence; thinking begins with a letter, or on the next line.
fn is_after_word(next: char) -> bool {
    matches!(next, ' ' | ',' | '.' | '…' | ';' | ':' | '!' | '?' | ')' | '/')
}

impl Scanner {
    /// Waits for the end of the thinking; without one the delimiter is text.
    pub(super) fn aside(
        &mut self,
        aside: Aside,
        text: &str,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        let source = cut(text, 0..aside.length);
        let next = rest(text, aside.length).chars().next();
        if self.place.last.is_in_sentence() && next.is_some_and(is_after_word) {
            self.mentioned |= aside.pair;
            return self.plain_text(source, sink);
        }
        let cap = text.floor_char_boundary(self.options.max_call_bytes).max(aside.length);
        let over = cap < text.len();
        let (found, searched) = match self.unclosed & aside.pair {
            0 => self.closing(aside.pair, cut(text, 0..cap), aside.seen),
            _ => (None, aside.seen),
        };
        // What is longer than the cap is thinking: nothing says that it is not. Nor does it where it begins a line, but for
        // a space after it.
        let begins = aside.lead && next.map_or(eof, |next| next != ' ');
        if found.is_some() || over || begins {
            self.think(aside.pair, source, sink);
            return (aside.length, true);
        }
        if !eof {
            self.state = State::Aside(Aside { seen: searched.max(aside.seen), ..aside });
            return (0, false);
        }
        self.unclosed |= aside.pair;
        self.plain_text(source, sink)
    }

    /// Where one of these pairs of thinking delimiters is closed at or after `seen`, and up to where none is.
    pub(super) fn closing(&self, pairs: u64, text: &str, seen: usize) -> (Option<usize>, usize) {
        let all = self.delimiters.thinking().iter().enumerate();
        let closes = all.filter(|(row, _)| pairs & (1 << row) != 0).map(|(_, (_, close))| *close);
        let longest = closes.clone().map(str::len).max().unwrap_or(1);
        let area = text.as_bytes().get(seen..).unwrap_or_default();
        let suffixed =
            closes.clone().filter_map(|close| close.strip_suffix('>')).map(|stem| format!("{stem}:"));
        let suffixed = suffixed.filter_map(|close| memmem::find(area, close.as_bytes())).min();
        let close = closes.filter_map(|close| memmem::find(area, close.as_bytes())).chain(suffixed).min();
        // A closing delimiter may have begun at the end of what was searched.
        (close.map(|at| seen + at), text.floor_char_boundary(text.len().saturating_sub(longest)))
    }
}
