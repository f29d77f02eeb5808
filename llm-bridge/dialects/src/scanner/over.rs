//! Where an answer ends: with the tokens that end it, or, after a call, where the model begins to speak for others.

use super::{Scanner, State, Went};
use crate::{
    Event,
    body::{ahead, cut, rest},
    delimiters::{Found, Meaning},
};

/// How many tokens may end an answer.
const MAX_STOPS: usize = 16;

impl Scanner {
    /// Whether the answer ends with the delimiter with which the text begins; nothing while more text decides.
    pub(super) fn ends_answer(&self, delimiter: &Meaning, text: &str, lead: bool, eof: bool) -> Option<bool> {
        if self.place.quoted() {
            return Some(false);
        }
        if self.is_foreign(delimiter, lead) {
            return Some(true);
        }
        let stops = delimiter.stops || delimiter.around.is_some() && delimiter.around == self.options.only;
        if stops { self.is_end(text, eof) } else { Some(false) }
    }

    /// Whether somebody else's words begin here. A model makes them up that goes on after a call.
    fn is_foreign(&self, delimiter: &Meaning, lead: bool) -> bool {
        let outside = self.thinking.is_none() && !self.place.code && self.place.fence == 0;
        // A token is not mentioned between the words of a sentence where it is meant.
        let meant = lead || delimiter.is_special() && !self.place.last.is_in_sentence();
        delimiter.foreign && self.called && outside && meant
    }

    /// Whether nothing but tokens that end answers is left; nothing while more text decides.
    pub(super) fn is_end(&self, text: &str, eof: bool) -> Option<bool> {
        if self.place.code || self.place.fence > 0 {
            return Some(false);
        }
        let mut rest = text;
        for count in 0..MAX_STOPS {
            match if eof { self.delimiters.at_end(rest) } else { self.delimiters.at(rest) } {
                Found::Delimiter(token, _) if count > 0 && self.is_foreign(token, true) => return Some(true),
                Found::Delimiter(token, length)
                    if token.stops || token.noise || token.around.is_some() || token.unthink != 0 =>
                {
                    let Some(next) = ahead(rest, length, &[]) else { return Some(false) };
                    rest = cut(rest, next..rest.len());
                }
                Found::Partial => return None,
                Found::Nothing if rest.is_empty() => return eof.then_some(true),
                Found::Delimiter(..) | Found::Nothing => break,
            }
        }
        Some(false)
    }

    /// Whether this is one of the tags that a model writes around an answer: it is pinned, or calls stand in them.
    /// Nothing while more text decides.
    pub(super) fn is_around(
        &self,
        delimiter: &Meaning,
        length: usize,
        lead: bool,
        text: &str,
        eof: bool,
    ) -> Option<bool> {
        let outside = self.thinking.is_none() && !self.place.code && self.place.fence == 0;
        if delimiter.around.is_none() || !lead || !outside || self.place.quoted() {
            return Some(false);
        }
        if self.place.after_call {
            return Some(true);
        }
        if !self.place.blank && !self.place.framing || delimiter.text.starts_with("</") {
            return Some(false);
        }
        if delimiter.around == self.options.only {
            return Some(true);
        }
        let Some(at) = ahead(text, length, &[]) else { return Some(false) };
        match self.delimiters.at(rest(text, at)) {
            Found::Delimiter(inner, _) => Some(!inner.rows(self.options.only, false).is_empty()),
            Found::Partial if !eof => None,
            Found::Partial | Found::Nothing => Some(false),
        }
    }

    /// After its end nothing of an answer is shown, or a call.
    pub(super) fn over(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) -> Went {
        if !text.is_empty() {
            sink(Event::Frame(text));
        }
        self.state = State::Over;
        (text.len(), false)
    }
}
