//! Thinking that counts only where an answer begins: its delimiters are sentences, or begin with what prose is full of.

use memchr::memmem;

use super::{Scanner, State, Went, line::Line, place::Opening};
use crate::{
    Event,
    body::{Is, cut, is_any, rest},
    delimiters::Found,
};

/// A sentence that may open thinking.
#[derive(Debug)]
pub(super) struct Spoken {
    sentence: &'static str,
    /// Up to where no sentence has been found that ends it.
    seen: usize,
}

impl Scanner {
    /// Opens thinking, with the delimiter that is its `source`.
    pub(super) fn think(&mut self, pairs: u64, source: &str, sink: &mut dyn FnMut(Event<'_>)) {
        let spaced = self.place.last.byte().is_ascii_whitespace();
        self.opening = Opening { margin: self.place.margin, spaced };
        self.thinking = Some(pairs);
        (self.place.framing, self.place.fresh) = (true, true);
        sink(Event::Frame(source));
    }

    /// Whether such thinking may open at this place, at which the answer begins.
    pub(super) fn leading(
        &mut self,
        text: &str,
        from: usize,
        at: usize,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Line {
        let here = rest(text, at);
        if !here.starts_with(|first: char| first.is_ascii()) {
            return match self.delimiters.at(here) {
                Found::Delimiter(delimiter, length) if delimiter.think & self.delimiters.rare() != 0 => {
                    self.emit(cut(text, from..at), sink);
                    self.think(delimiter.think, cut(here, 0..length), sink);
                    Line::Called(at + length)
                }
                Found::Partial if !eof => self.hold(cut(text, from..at), sink),
                Found::Delimiter(..) | Found::Partial | Found::Nothing => Line::Other,
            };
        }
        let sentences = || self.delimiters.spoken().iter().map(|(open, _)| *open);
        match is_any(here, sentences()) {
            Is::Yes => {
                let sentence = sentences().find(|open| here.starts_with(open)).unwrap_or_default();
                self.emit(cut(text, from..at), sink);
                self.state = State::Spoken(Spoken { sentence, seen: sentence.len() });
                Line::Enter
            }
            Is::Open if !eof => self.hold(cut(text, from..at), sink),
            Is::Open | Is::No => Line::Other,
        }
    }

    /// Gives what is certain, and waits for more text.
    fn hold(&mut self, before: &str, sink: &mut dyn FnMut(Event<'_>)) -> Line {
        self.emit(before, sink);
        Line::Hold
    }

    /// Waits for the sentence that ends the thinking; without one the first is text as any.
    pub(super) fn spoken(
        &mut self,
        spoken: Spoken,
        text: &str,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        let Spoken { sentence, seen } = spoken;
        let cap = text.floor_char_boundary(self.options.max_call_bytes.max(sentence.len()));
        let area = cut(text, 0..cap).as_bytes().get(seen..).unwrap_or_default();
        let pairs = self.delimiters.spoken().iter().filter(|(open, _)| *open == sentence);
        let ends = pairs.map(|(_, end)| *end);
        let found = ends.clone().filter_map(|end| Some((seen + memmem::find(area, end.as_bytes())?, end)));
        if let Some((at, end)) = found.min() {
            let thought = cut(text, sentence.len()..at);
            let blank = thought.len() - thought.trim_start().len();
            sink(Event::Frame(cut(text, 0..sentence.len() + blank)));
            if blank < thought.len() {
                sink(Event::Reasoning(rest(thought, blank)));
            }
            sink(Event::Frame(end));
            self.place = self.place.after_thinking(&Opening::START);
            return (at + end.len(), true);
        }
        if eof || cap < text.len() {
            return self.plain_text(cut(text, 0..sentence.len()), sink);
        }
        // The sentence may have begun at the end of what was searched.
        let longest = ends.map(str::len).max().unwrap_or(1);
        let searched = text.floor_char_boundary(text.len().saturating_sub(longest));
        self.state = State::Spoken(Spoken { sentence, seen: seen.max(searched) });
        (0, false)
    }
}
