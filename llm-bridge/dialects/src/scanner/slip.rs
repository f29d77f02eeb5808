//! Thinking that is closed by the end of another of the delimiters that are words of prose: `<think>…</thinking>`.

use super::{Scanner, State, Went};
use crate::{Event, body::cut, delimiters::Meaning};

/// Such an end.
#[derive(Debug)]
pub(super) struct Slip {
    length: usize,
    /// Up to where the right end has not been found.
    seen: usize,
}

impl Scanner {
    /// Whether the delimiter may end the thinking that is open though it is not its own.
    pub(super) fn may_slip(&self, delimiter: &Meaning) -> bool {
        let generic = self.delimiters.generic();
        let open = self.thinking.filter(|open| open & !generic == 0);
        let other = open.is_some_and(|open| delimiter.unthink & generic & !open != 0);
        other && !self.place.quoted() && !self.place.code && !self.place.last.is_in_sentence()
    }

    /// The end that stands here, where the right one does not follow; else it is thought about.
    pub(super) fn slipped(&mut self, length: usize) {
        self.state = State::Slip(Slip { length, seen: length });
    }

    /// Waits for the right end, or that of the text.
    pub(super) fn slip(
        &mut self,
        slip: Slip,
        text: &str,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        let open = self.thinking.unwrap_or(0);
        let cap = text.floor_char_boundary(self.options.max_call_bytes.max(slip.length));
        let known = self.thought > self.offset;
        let (close, seen) = match open & !self.unclosed {
            _ if known => (Some(0), 0),
            0 => (None, text.len()),
            _ => self.closing(open, cut(text, 0..cap), slip.seen),
        };
        if let Some(close) = close.or((cap < text.len()).then_some(0)) {
            // What is known is not looked for again.
            self.thought = self.thought.max(self.offset + close);
            return self.plain_text(cut(text, 0..slip.length), sink);
        }
        if !eof {
            self.state = State::Slip(Slip { seen: seen.max(slip.length), ..slip });
            return (0, false);
        }
        self.unclosed |= open;
        self.thinking = None;
        self.place = self.place.after_thinking(&self.opening);
        sink(Event::Frame(cut(text, 0..slip.length)));
        (slip.length, true)
    }
}
