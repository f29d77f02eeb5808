//! The scanner: text passes through, candidates for calls are fed to their bodies, thinking is kept apart.

mod call;
mod dropped;
mod line;
mod list;
mod place;
mod word;

use std::{mem, sync::Arc};

use super::{
    Event, Offered, ScanOptions,
    body::{Ready, ahead, cut},
    candidate::Candidate,
    delimiters::{Delimiters, Finder, Found, MESSAGE, Meaning},
};
use dropped::Dropped;
use line::Line;
use list::List;
use place::{Opening, Place};
use word::{Word, Words};

/// How many tokens may end an answer.
const MAX_STOPS: usize = 16;

/// Reads one answer of a model, in pieces of any size. See the module's documentation for what it finds.
#[derive(Debug)]
pub struct Scanner {
    offered: Arc<Offered>,
    options: ScanOptions,
    delimiters: &'static Delimiters,
    /// Text that has come but is not decided yet, from `base` on.
    held: String,
    base: usize,
    state: State,
    place: Place,
    /// The pairs of thinking delimiters that may be open, as a bit set.
    thinking: Option<u64>,
    index: usize,
    /// Tags in values are not looked for any more.
    flat: bool,
    words: Words,
    /// Bytes of the input after which everything is decided.
    offset: usize,
    /// Up to here, tokens without a meaning are text: they stand in what could not be read as a call.
    plain: usize,
    /// Up to here, a call that came to nothing has been reported.
    reported: usize,
    /// Bytes of abandoned bodies that were read again.
    spent: usize,
    /// Pairs of thinking delimiters that are known not to be closed up to the end of the text.
    unclosed: u64,
    /// Up to here, open thinking is known to be closed later.
    closed: usize,
    /// A call has been found.
    called: bool,
    /// Where the open thinking began.
    opening: Opening,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Text,
    Call(Box<Candidate>),
    Pending(Pending),
    Coded(Pending),
    List(List),
    Dropped(Dropped),
}

/// Calls inside open thinking or code: they count only if it is not closed.
#[derive(Debug)]
struct Pending {
    calls: Vec<Ready>,
    dialect: &'static str,
    /// Where their source ends.
    end: usize,
    /// Up to where no closing delimiter has been found.
    seen: usize,
}

enum Act {
    /// Not here: it is text.
    Skip,
    /// It has been dealt with.
    Used,
    /// The state has changed at the delimiter.
    Enter,
}

/// How far a state came, and whether there is more to do.
type Went = (usize, bool);

impl Scanner {
    /// A scanner for one answer.
    pub fn new(offered: Arc<Offered>, options: ScanOptions) -> Self {
        let mut place = Place::start();
        place.framing = options.thinking;
        Self {
            thinking: options.thinking.then_some(u64::MAX),
            offered,
            options,
            delimiters: Delimiters::get(),
            held: String::new(),
            base: 0,
            state: State::Text,
            place,
            index: 0,
            flat: false,
            words: Words::default(),
            offset: 0,
            plain: 0,
            reported: 0,
            spent: 0,
            unclosed: 0,
            closed: 0,
            called: false,
            opening: Opening::START,
        }
    }

    /// Reads the next piece.
    pub fn push(&mut self, chunk: &str, sink: &mut impl FnMut(Event<'_>)) {
        if !self.held.is_empty() {
            self.held.push_str(chunk);
            self.resume(false, sink);
            return;
        }
        let plain = matches!(self.state, State::Text) && !self.place.fresh && !chunk.is_empty();
        if plain && !self.delimiters.anywhere(chunk.as_bytes(), self.in_message()) {
            self.offset += chunk.len();
            self.emit(chunk, sink);
            return;
        }
        let used = self.run(chunk, false, sink);
        self.held.push_str(cut(chunk, used..chunk.len()));
    }

    /// The text is at its end: decides what is still open.
    pub fn finish(&mut self, sink: &mut impl FnMut(Event<'_>)) {
        self.resume(true, sink);
    }

    fn resume(&mut self, eof: bool, sink: &mut dyn FnMut(Event<'_>)) {
        let mut held = mem::take(&mut self.held);
        self.base += self.run(cut(&held, self.base..held.len()), eof, sink);
        if self.base >= held.len() {
            held.clear();
            self.base = 0;
        } else if self.base > held.len() / 2 {
            held.drain(..self.base);
            self.base = 0;
        }
        self.held = held;
    }

    fn run(&mut self, text: &str, eof: bool, sink: &mut dyn FnMut(Event<'_>)) -> usize {
        let mut used = 0;
        loop {
            let rest = cut(text, used..text.len());
            let (went, again) = match mem::take(&mut self.state) {
                State::Text => self.text(rest, eof, sink),
                State::Call(candidate) => self.call(candidate, rest, eof, sink),
                State::Coded(pending) => self.coded(pending, rest, eof, sink),
                State::List(list) => self.list(list, rest, sink),
                State::Dropped(dropped) => self.dropped(dropped, rest, eof, sink),
                State::Pending(pending) => self.pending(pending, rest, eof, sink),
            };
            used += went;
            self.offset += went;
            if !again {
                return used;
            }
        }
    }

    /// Something other than white space stands here.
    fn written(&mut self) {
        self.place.fresh = false;
        self.place.margin = false;
        self.place.blank &= self.thinking.is_some();
        self.place.after_call = false;
        self.place.framing = false;
    }

    /// Text after a call is for nobody.
    fn drops_text(&self) -> bool {
        self.called && self.options.parsing.drop_text_after_call
    }

    fn emit(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) {
        if text.is_empty() {
            return;
        }
        self.place.last = self.place.last.with(text);
        sink(match self.thinking {
            Some(_) => Event::Reasoning(text),
            None if self.drops_text() => Event::Frame(text),
            None => Event::Text(text),
        });
    }

    /// Gives text that is no call, up to its end.
    fn plain_text(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) -> Went {
        self.emit(text, sink);
        self.written();
        (text.len(), true)
    }

    /// Passes text through up to the next thing that may begin.
    fn text(&mut self, text: &str, eof: bool, sink: &mut dyn FnMut(Event<'_>)) -> Went {
        let bytes = text.as_bytes();
        let (mut from, mut at) = (0, 0);
        let mut finder = Finder::default();
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
                        continue;
                    }
                }
            }
            let lead = self.place.fresh;
            let next = finder.next(self.delimiters, bytes, at);
            match self.word(text, at, next.unwrap_or(text.len()), eof) {
                Word::None => {}
                Word::Hold(place) | Word::Enter(place) => {
                    self.emit(cut(text, from..place), sink);
                    self.written();
                    return (place, matches!(self.state, State::Call(_)));
                }
            }
            let Some(found) = next else {
                self.written();
                break;
            };
            if found > at {
                self.written();
            }
            match bytes.get(found) {
                Some(b'\n') => {
                    self.place.next_line();
                    at = found + 1;
                    continue;
                }
                Some(b'`') => {
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
                    if delimiter.stops && !self.place.quoted() {
                        match self.is_end(rest, eof) {
                            Some(true) => {
                                sink(Event::Frame(rest));
                                return (text.len(), false);
                            }
                            Some(false) => {}
                            None => return (found, false),
                        }
                    }
                    from = found;
                    let act = self.delimiter(delimiter, len, found, lead && found == at, sink, rest);
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
                Act::Used => at = from,
                Act::Enter => return (found, true),
            }
        }
        self.emit(cut(text, from..text.len()), sink);
        (text.len(), false)
    }

    /// Whether nothing but tokens that end answers is left; nothing while more text decides.
    pub(super) fn is_end(&self, text: &str, eof: bool) -> Option<bool> {
        if self.place.code || self.place.fence > 0 {
            return Some(false);
        }
        let mut rest = text;
        for _ in 0..MAX_STOPS {
            match if eof { self.delimiters.at_end(rest) } else { self.delimiters.at(rest) } {
                Found::Delimiter(token, length) if token.stops || token.noise || token.unthink != 0 => {
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
        let quoted = self.place.quoted();
        let outside_code = !self.place.code && !quoted;
        // The end of thinking that the prompt has begun without saying so, or an end that is written twice.
        let unread = lead || self.offset + at >= self.plain;
        if delimiter.unthink & !MESSAGE != 0 && self.thinking.is_none() && outside_code && unread {
            self.place = self.place.after_thinking(&Opening::START);
            sink(Event::Frame(source));
            return Act::Used;
        }
        if delimiter.closes && self.place.after_call && lead {
            sink(Event::Frame(source));
            return Act::Used;
        }
        if let Some(row) = delimiter.think
            && outside_code
        {
            // The prompt has opened it, and the model does so again.
            let again = self.thinking == Some(u64::MAX) && self.place.framing && lead;
            if self.thinking.is_none() || again {
                let spaced = self.place.last.byte().is_ascii_whitespace();
                self.opening =
                    if again { Opening::START } else { Opening { margin: self.place.margin, spaced } };
                self.thinking = Some(1 << row);
                self.place.framing = true;
                self.place.fresh = true;
                sink(Event::Frame(source));
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
        let rows = delimiter.rows(self.options.only, self.thinking.is_some() && !header);
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
        let special = delimiter.text.starts_with("<|")
            || delimiter.text.starts_with("<｜")
            || delimiter.text.ends_with("|>");
        let at_edge = lead && (self.place.blank || self.place.framing || self.place.after_call);
        delimiter.noise && !self.place.code && (special || at_edge)
    }
}
