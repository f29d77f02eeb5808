//! Calls and arguments that are written in a value: what opens there and is closed there belongs to it.

use super::{
    NamedBody,
    stop::{Begins, Stop},
};
use crate::body::{Cx, Is, Tail, cut, is, rest, tail};

/// The tags of the dialect that are open in a value.
#[derive(Debug, Default)]
pub(super) struct Nested {
    open: Vec<Inner>,
    /// How many of them are calls.
    calls: usize,
    /// The first place at which the value ends if it is taken that none is meant.
    first: Option<usize>,
    /// Where a whole call ends, if nothing is open since.
    whole: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inner {
    Argument,
    Call { wrapped: bool },
}

/// What a tag in a value is, with what is open there.
#[derive(Debug)]
pub(super) enum Tag {
    /// As it would be if nothing were open.
    Plain(Option<Stop>),
    /// It belongs to the value, and has been passed over.
    Passed,
    /// More text decides.
    More,
}

/// Tags of one name in a value.
#[derive(Debug, Default)]
pub(super) struct Balance {
    /// Up to here they are counted.
    counted: usize,
    /// How many more of them open than close.
    open: isize,
    /// Whether one opens otherwise than the calls of the dialect.
    foreign: bool,
}

impl Balance {
    /// None yet in a value that begins here.
    pub(super) fn from(at: usize) -> Self {
        Self { counted: at, open: 0, foreign: false }
    }

    /// How many more of the tags with the name of this `end` open than close, up to this place.
    pub(super) fn open(&mut self, text: &str, to: usize, end: &str) -> isize {
        self.count(text, to, end, |_| true)
    }

    fn count(&mut self, text: &str, to: usize, end: &str, is_own: impl Fn(usize) -> bool) -> isize {
        let Some(name) = end.strip_prefix("</").and_then(|name| name.strip_suffix('>')) else { return -1 };
        let area = cut(text, self.counted..to);
        for (at, _) in area.match_indices(name) {
            let before = cut(area, 0..at);
            if before.ends_with("</") {
                self.open -= 1;
            } else if before.ends_with('<') && rest(area, at + name.len()).starts_with([' ', '=', '>']) {
                self.open += 1;
                self.foreign |= !is_own(self.counted + at - 1);
            }
        }
        self.counted = to.max(self.counted);
        self.open
    }

    /// Whether a call of another dialect is open up to this place, which ends as one of this dialect does. `is_own` says whether one of this
    /// dialect begins at a place.
    pub(super) fn is_foreign(
        &mut self,
        text: &str,
        to: usize,
        end: &str,
        is_own: impl Fn(usize) -> bool,
    ) -> bool {
        self.count(text, to, end, is_own) > 0 && self.foreign
    }
}

impl Nested {
    /// Up to where the value certainly goes.
    pub(super) fn first(&self) -> Option<usize> {
        self.first
    }

    fn push(&mut self, inner: Inner) {
        self.whole = None;
        self.calls += usize::from(inner != Inner::Argument);
        self.open.push(inner);
    }

    /// Leaves the innermost call, with what is open in it; whether it stands in a wrapper.
    fn leave_call(&mut self) -> bool {
        while let Some(inner) = self.open.pop() {
            if let Inner::Call { wrapped } = inner {
                self.calls -= 1;
                return wrapped;
            }
        }
        false
    }
}

impl NamedBody {
    /// Looks at the tag at the current position, which would be `stop` if nothing were open.
    pub(super) fn nested(&mut self, stop: Option<Stop>, text: &str, eof: bool, cx: &mut Cx<'_>) -> Tag {
        let inside = !self.nested.open.is_empty();
        if let Some(Stop::Value(length)) = stop {
            if !inside {
                return Tag::Plain(stop);
            }
            self.note_first();
            if self.nested.open.last() == Some(&Inner::Argument) {
                self.nested.open.pop();
            }
            self.pos += length;
            return Tag::Passed;
        }
        if self.nested.calls > 0
            && let Some(length) = self.call_end(text)
        {
            if stop.is_some() {
                self.note_first();
            }
            let after = self.pos + length;
            let wrapper = tail(text, after, self.row.close, &[], eof);
            if wrapper == Tail::Open && !eof {
                return Tag::More;
            }
            self.pos = match (self.nested.leave_call(), wrapper) {
                (true, Tail::Closed(end)) => end,
                _ => after,
            };
            self.nested.whole = self.nested.open.is_empty().then_some(self.pos);
            return Tag::Passed;
        }
        match self.opening(text, eof, cx) {
            Ok(Some((inner, after))) if stop.is_none() || self.nested.calls > 0 => {
                if stop.is_some() {
                    self.note_first();
                }
                self.nested.push(inner);
                self.pos = after;
                Tag::Passed
            }
            Err(()) if !eof => Tag::More,
            _ if stop == Some(Stop::Next) && self.nested.whole.is_none() && self.flatten(cx) => Tag::Passed,
            _ => Tag::Plain(stop),
        }
    }

    /// Whether the value quotes whole calls and goes on after them: where the text ends, it is the value that is cut off.
    pub(super) fn quotes_calls(&self, text: &str) -> bool {
        let Some(mut behind) = self.nested.whole.map(|at| rest(text, at).trim_start()) else { return false };
        let own = self.ends().chain(self.row.noise.iter().copied());
        let ends = || own.clone().map(|end: &str| end).chain([self.value_end()]);
        while let Some(after) = ends().find_map(|end| behind.strip_prefix(end)) {
            behind = after.trim_start();
        }
        !behind.is_empty()
    }

    /// Goes back to where the value ends if nothing in it is meant as a tag; false if there is no such place. Later
    /// values are read so from the beginning: no text is gone back over again and again.
    pub(super) fn flatten(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(first) = self.nested.first.take() else { return false };
        *cx.flat = true;
        self.pos = first;
        true
    }

    fn note_first(&mut self) {
        self.nested.first.get_or_insert(self.pos);
    }

    /// The length of the end of a call that stands here.
    fn call_end(&self, text: &str) -> Option<usize> {
        let behind = cut(text, self.pos..text.len());
        self.style.end.iter().filter(|end| behind.starts_with(**end)).map(|end| end.len()).max()
    }

    /// What opens at the current position, and where its name ends; an error while more text decides.
    fn opening(&self, text: &str, eof: bool, cx: &Cx<'_>) -> Result<Option<(Inner, usize)>, ()> {
        match self.call_at(text, self.pos, eof, cx) {
            Begins::Yes { after, wrapped, .. } => return Ok(Some((Inner::Call { wrapped }, after))),
            Begins::More => return Err(()),
            Begins::No => {}
        }
        match self.tags().filter(|tags| !tags.known).map(|tags| is(self.rest(text), tags.key.open())) {
            Some(Is::Yes) => Ok(self.key_at(text, self.pos, eof)?.map(|(_, after)| (Inner::Argument, after))),
            _ => Ok(None),
        }
    }
}
