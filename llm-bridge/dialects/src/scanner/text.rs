//! Text: it passes through up to the next delimiter, or what else may begin.

use std::ptr;

use super::{Scanner, State, Went, aside::Aside, line::Line, place::Opening};
use crate::{
    Event,
    body::cut,
    candidate::Candidate,
    delimiters::{Finder, Found, MESSAGE, Meaning},
    table::DelimiterKind,
};

/// What has become of a delimiter.
enum Act {
    /// Not here: it is text.
    Skip,
    /// It has been dealt with.
    Used,
    /// The state has changed at the delimiter.
    Enter,
}

impl Scanner {
    /// Passes text through up to the next thing that may begin.
    pub(super) fn text(&mut self, text: &str, eof: bool, sink: &mut dyn FnMut(Event<'_>)) -> Went {
        let bytes = text.as_bytes();
        let (mut from, mut at) = (0, 0);
        let (mut finder, mut lookout) = (Finder::default(), self.lookout());
        loop {
            if self.place.fresh {
                let joint = self.place.after_call;
                let blank = |byte: &&u8| byte.is_ascii_whitespace() || joint && matches!(byte, b',' | b';');
                let space = bytes.get(at..).unwrap_or_default().iter().take_while(blank).count();
                at += space;
                if space > 0 {
                    self.place.margin = bytes.get(at - 1) == Some(&b'\n');
                }
                if self.place.framing && at > from {
                    sink(Event::Frame(cut(text, from..at)));
                    from = at;
                }
                if at == text.len() {
                    break;
                }
                match self.line(text, from, at, eof, sink) {
                    Line::Other => {}
                    Line::Hold => return (at, false),
                    Line::Enter => return (at, true),
                    Line::Past(next) => {
                        at = next;
                        continue;
                    }
                    Line::Called(next) => {
                        (from, at) = (next, next);
                        if !ptr::eq(lookout, self.lookout()) {
                            (finder, lookout) = (Finder::default(), self.lookout());
                        }
                        continue;
                    }
                }
            }
            let lead = self.place.fresh;
            let next = finder.next(&lookout.needles, bytes, at);
            let Some(found) = next else {
                if !eof && let Some(place) = self.open_word(bytes, at) {
                    self.emit(cut(text, from..place), sink);
                    if place > at {
                        self.written();
                    }
                    return (place, false);
                }
                self.written();
                break;
            };
            let first = bytes.get(found).copied().unwrap_or_default();
            if lookout.words.is_sign(first)
                && let Some(place) = self.word(bytes, at, found)
            {
                self.emit(cut(text, from..place), sink);
                self.written();
                return (place, true);
            }
            if found > at {
                self.written();
            }
            match first {
                b'\n' => {
                    self.place.next_line();
                    at = found + 1;
                    continue;
                }
                b'`' => {
                    self.written();
                    // Several in a row are one.
                    let before = found.checked_sub(1).and_then(|before| bytes.get(before));
                    let first = before.copied().unwrap_or(self.place.last.byte()) != b'`';
                    self.place.code ^= self.place.fence == 0 && first;
                    at = found + 1;
                    continue;
                }
                _ => {}
            }
            let rest = cut(text, found..text.len());
            let delimiter = match if eof { self.delimiters.at_end(rest) } else { self.delimiters.at(rest) } {
                Found::Nothing => Act::Skip,
                Found::Partial => {
                    self.emit(cut(text, from..found), sink);
                    return (found, false);
                }
                Found::Delimiter(delimiter, len) => {
                    self.emit(cut(text, from..found), sink);
                    let lead = lead && found == at;
                    match self.ends_answer(delimiter, rest, lead, eof) {
                        Some(true) => {
                            self.state = State::Over;
                            return (found, true);
                        }
                        Some(false) => {}
                        None => return (found, false),
                    }
                    from = found;
                    let act = match self.is_around(delimiter, len, lead, rest, eof) {
                        Some(false) => self.delimiter(delimiter, len, found, lead, sink, rest),
                        Some(true) => {
                            self.place.last = self.place.last.with(cut(rest, 0..len));
                            sink(Event::Frame(cut(rest, 0..len)));
                            Act::Used
                        }
                        None => return (found, false),
                    };
                    if matches!(act, Act::Used) {
                        from = found + len;
                    }
                    act
                }
            };
            match delimiter {
                Act::Skip => {
                    self.written();
                    at = found + rest.chars().next().map_or(1, char::len_utf8);
                }
                Act::Used => {
                    at = from;
                    if !ptr::eq(lookout, self.lookout()) {
                        (finder, lookout) = (Finder::default(), self.lookout());
                    }
                }
                Act::Enter => return (found, true),
            }
        }
        self.emit(cut(text, from..text.len()), sink);
        (text.len(), false)
    }

    fn delimiter(
        &mut self,
        delimiter: &'static Meaning,
        len: usize,
        at: usize,
        lead: bool,
        sink: &mut dyn FnMut(Event<'_>),
        rest: &str,
    ) -> Act {
        let source = cut(rest, 0..len);
        if self.thinking.is_some_and(|open| delimiter.unthink & open != 0) {
            self.thinking = None;
            self.place = self.place.after_thinking(&self.opening);
            sink(Event::Frame(source));
            return Act::Used;
        }
        if self.place.fence > 0 {
            return Act::Skip;
        }
        if self.may_slip(delimiter) {
            self.slipped(len);
            return Act::Enter;
        }
        let quoted = self.place.quoted();
        let outside_code = !self.place.code && !quoted;
        // The end of thinking that the prompt has begun without saying so, or an end that is written twice.
        let unread = lead || self.offset + at >= self.plain && delimiter.unthink & self.mentioned == 0;
        let unthinks = delimiter.unthink & !MESSAGE != 0 && !delimiter.noise;
        if unthinks && self.thinking.is_none() && outside_code && unread {
            self.place = self.place.after_thinking(&Opening::START);
            sink(Event::Frame(source));
            return Act::Used;
        }
        if delimiter.closes && self.place.after_call && lead {
            sink(Event::Frame(source));
            return Act::Used;
        }
        if delimiter.think != 0 && outside_code {
            // The prompt has opened it, and the model does so again.
            let again = self.thinking == Some(u64::MAX) && self.place.framing && lead;
            let first = lead && (self.place.blank || self.place.framing || self.place.after_call);
            if self.thinking.is_none() && delimiter.generic && !first {
                self.state = State::Aside(Aside::new(delimiter.think, len, lead));
                return Act::Enter;
            }
            if self.thinking.is_none() || again {
                self.think(delimiter.think, source, sink);
                if again {
                    self.opening = Opening::START;
                }
                return Act::Used;
            }
        }
        let message = self.thinking.is_none_or(|open| open & MESSAGE != 0);
        let header = delimiter.is_header() && message && !self.place.code;
        if !quoted && !header && self.offset + at >= self.plain && self.is_noise(delimiter, lead) {
            self.place.last = self.place.last.with(source);
            sink(Event::Frame(source));
            return Act::Used;
        }
        if self.offered.is_empty() && (quoted || !header) {
            return Act::Skip;
        }
        let mut rows = delimiter.rows(self.options.only, self.thinking.is_some() && !header);
        rows.retain(|(row, kind)| *kind != DelimiterKind::Line || self.begun == Some(row.name));
        if rows.is_empty() {
            return Act::Skip;
        }
        let edge = lead && (self.place.blank || self.place.framing || self.place.after_call);
        let candidate = Candidate::marked(rows, delimiter.text.len()).after(source);
        let candidate = candidate.at_edge(edge).quoted(quoted).shared(self.options.only.is_none());
        self.state = State::Call(Box::new(candidate));
        Act::Enter
    }

    /// Whether a token without a meaning is that here: one that is no special token may be meant as text, unless
    /// it stands where nothing has been written yet.
    fn is_noise(&self, delimiter: &Meaning, lead: bool) -> bool {
        let at_edge = lead && (self.place.blank || self.place.framing || self.place.after_call);
        delimiter.noise && !self.place.code && (delimiter.is_special() || at_edge)
    }
}
