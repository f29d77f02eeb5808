//! The scanner: text passes through, candidates for calls are fed to their bodies, thinking is kept apart.

mod aside;
mod call;
mod dropped;
mod leading;
mod line;
mod list;
mod over;
mod place;
mod slip;
mod stripped;
mod text;
mod word;

use std::{mem, sync::Arc};

use super::{
    Event, Offered, ScanOptions,
    body::{Ready, cut},
    candidate::Candidate,
    delimiters::Delimiters,
};
use aside::Aside;
use dropped::Dropped;
use leading::Spoken;
use list::List;
use place::{Opening, Place};
use slip::Slip;
pub(super) use stripped::{FIRST, SPEAKER};

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
    /// Bytes of the input after which everything is decided.
    offset: usize,
    /// Up to here, tokens without a meaning are text: they stand in what could not be read as a call.
    plain: usize,
    /// Up to here, a call that came to nothing has been reported.
    reported: usize,
    /// Up to here, all stands in the arguments of a call that was cut off: nothing in it is a call.
    inside: usize,
    /// Bytes of abandoned bodies that were read again.
    spent: usize,
    /// Pairs of thinking delimiters that are known not to be closed up to the end of the text.
    unclosed: u64,
    /// Pairs of thinking delimiters of which the text speaks.
    mentioned: u64,
    /// Up to here, open thinking is known to be closed later.
    closed: usize,
    /// Up to here, all is thinking whatever it is ended by.
    thought: usize,
    /// A call has been found.
    called: bool,
    /// Nothing but calls is left of the text.
    ending: bool,
    /// The dialect with a line of which the answer has begun.
    begun: Option<&'static str>,
    /// The answer is one in messages whose special tokens have been taken out.
    stripped: bool,
    /// Up to here it has been looked for what shows that.
    sought: usize,
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
    Aside(Aside),
    Spoken(Spoken),
    Slip(Slip),
    /// The answer has ended.
    Over,
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
            offset: 0,
            plain: 0,
            reported: 0,
            inside: 0,
            spent: 0,
            unclosed: 0,
            mentioned: 0,
            closed: 0,
            thought: 0,
            called: false,
            ending: false,
            begun: None,
            stripped: false,
            sought: 0,
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
        let plain =
            matches!(self.state, State::Text) && !self.place.fresh && !self.stripped && !chunk.is_empty();
        if plain
            && !self.lookout().needles.anywhere(chunk.as_bytes())
            && self.open_word(chunk.as_bytes(), 0).is_none()
        {
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
                State::Text if self.stripped => self.stripped(rest, eof, sink),
                State::Text => self.text(rest, eof, sink),
                State::Call(candidate) => self.call(candidate, rest, eof, sink),
                State::Coded(pending) => self.coded(pending, rest, eof, sink),
                State::List(list) => self.list(list, rest, sink),
                State::Dropped(dropped) => self.dropped(dropped, rest, eof, sink),
                State::Aside(aside) => self.aside(aside, rest, eof, sink),
                State::Spoken(spoken) => self.spoken(spoken, rest, eof, sink),
                State::Slip(slip) => self.slip(slip, rest, eof, sink),
                State::Over => self.over(rest, sink),
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
}
