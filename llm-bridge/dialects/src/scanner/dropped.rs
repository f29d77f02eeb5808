//! What began as a call and could not be read, where the options has it dropped: up to its end it is for nobody.

use super::{Place, Scanner, State, Went};
use crate::{
    Event,
    body::{cut, rest},
    delimiters::Found,
};

/// What ends it, beside another delimiter that opens calls.
#[derive(Debug)]
pub(super) struct Dropped {
    ends: Vec<&'static str>,
}

impl Dropped {
    pub(super) fn new(ends: Vec<&'static str>) -> Self {
        Self { ends }
    }

    /// The length of the end that is here, the longest there is; nothing while more text may tell.
    fn end(&self, text: &str, eof: bool) -> Option<usize> {
        let open = |end: &&str| end.len() > text.len() && end.starts_with(text);
        if !eof && self.ends.iter().any(open) {
            return None;
        }
        Some(self.ends.iter().filter(|end| text.starts_with(**end)).map(|end| end.len()).max().unwrap_or(0))
    }
}

impl Scanner {
    /// Passes over the text up to its end.
    pub(super) fn dropped(
        &mut self,
        dropped: Dropped,
        text: &str,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        let mut stop = None;
        let mut at = 0;
        for (here, _) in text.char_indices() {
            at = here;
            let behind = rest(text, here);
            let Some(end) = dropped.end(behind, eof) else { break };
            let delimiter = if eof { self.delimiters.at_end(behind) } else { self.delimiters.at(behind) };
            match delimiter {
                _ if end > 0 && self.offset + here >= self.inside => stop = Some(here + end),
                Found::Delimiter(delimiter, _)
                    if self.offset + here >= self.inside
                        && !delimiter.rows(self.options.only, false).is_empty() =>
                {
                    stop = Some(here)
                }
                Found::Partial => break,
                Found::Delimiter(..) | Found::Nothing => {
                    at = text.ceil_char_boundary(here + 1);
                    continue;
                }
            }
            break;
        }
        let to = stop.unwrap_or(at);
        sink(Event::Frame(cut(text, 0..to)));
        if stop.is_some() {
            self.dropped_all();
        } else {
            self.state = State::Dropped(dropped);
        }
        (to, stop.is_some())
    }

    /// After what was dropped it is as after a call: delimiters that are left over are framing.
    pub(super) fn dropped_all(&mut self) {
        self.place = Place { blank: self.place.blank, after_call: true, margin: false, ..Place::start() };
    }
}
