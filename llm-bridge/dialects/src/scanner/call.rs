//! Candidates for calls: fed until they are calls, which are handed out, or none, which become text again.

use std::{cell::Cell, sync::Arc};

use memchr::{memchr, memchr2};

use super::{Dropped, List, Pending, Place, Scanner, State, Went};
use crate::{
    Abort, Call, Event, ParseOptions, ScanOptions,
    body::{Cx, Ready, Step, Unfinished, cut, rest},
    candidate::Candidate,
    delimiters::MESSAGE,
    table::TAG_LINE,
};

/// How many times the input's length may be spent on reading abandoned bodies again.
const CREDIT: usize = 8;
/// How far after a call the backtick is looked for that makes it inline code.
const MAX_CODE: usize = 1024;
/// How much of what follows a call in thinking is read at first.
const FIRST_PART: usize = 512;

impl Scanner {
    pub(super) fn call(
        &mut self,
        mut candidate: Box<Candidate>,
        text: &str,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        let cap = text.floor_char_boundary(self.options.max_call_bytes);
        let over = cap < text.len();
        let ends = self.ends_thinking(&candidate);
        let quoted = candidate.is_quoted() || self.offset < self.inside;
        let sure = !quoted && (ends || self.thinking.is_none()) && !self.place.code && !candidate.is_fence();
        let parsing = self.options.parsing;
        let live = self.options.deltas && sure && !parsing.decides_late();
        let (index, flat) = (&mut self.index, &mut self.flat);
        let mut cx = Cx { offered: &self.offered, parsing, live, index, flat, sink };
        match candidate.feed(cut(text, 0..cap), eof && !over, &mut cx) {
            Step::More if !over => {
                self.state = State::Call(candidate);
                (0, false)
            }
            Step::More => self.reject(candidate, cap, text, Abort::TooLong, sink),
            // It stands for the delimiter that closes the calls before it.
            Step::Reject(_) if eof && self.closes_calls(&candidate, text) => {
                sink(Event::Frame(cut(text, 0..candidate.lead())));
                (candidate.lead(), true)
            }
            Step::Reject(at) => {
                let at = text.floor_char_boundary(at);
                let cut_off = eof && at == text.len();
                let reason = if cut_off { Abort::Incomplete } else { Abort::Unreadable };
                self.reject(candidate, at, text, reason, sink)
            }
            Step::Message { foreign: true, .. } if self.called => {
                self.state = State::Over;
                (0, true)
            }
            Step::Message { end, thinking, .. } => {
                sink(Event::Frame(cut(text, 0..end)));
                self.thinking = thinking.then_some(MESSAGE);
                self.place = Place { blank: self.place.blank, framing: true, ..Place::start() };
                (end, true)
            }
            Step::Done(end) if quoted => {
                self.plain = self.plain.max(self.offset + end);
                self.plain_text(cut(text, 0..end), sink)
            }
            Step::Done(end) => {
                if ends {
                    self.thinking = None;
                }
                let ready = candidate.take_ready();
                self.found(ready, end, text, candidate.dialect(), sink)
            }
        }
    }

    /// Whether nothing but an opening delimiter is left of the text, after calls.
    fn closes_calls(&self, candidate: &Candidate, text: &str) -> bool {
        self.place.after_call
            && candidate.is_wrapper()
            && self.is_end(rest(text, candidate.lead()).trim_start(), true) == Some(true)
    }

    /// A header ends the thinking of the message before it; only what it is for is not known yet.
    fn ends_thinking(&self, candidate: &Candidate) -> bool {
        candidate.is_header() && self.thinking.is_some_and(|open| open & MESSAGE != 0)
    }

    fn found(
        &mut self,
        ready: Vec<Ready>,
        end: usize,
        text: &str,
        dialect: &'static str,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        if self.thinking.is_none() && !self.place.code {
            self.commit(ready, end, text, dialect, false, sink);
            return (end, true);
        }
        let parsing = self.options.parsing;
        let good = |call: &Ready| {
            self.offered.contains(&call.name) && parsing.refuses(call, &self.offered).is_none()
        };
        if ready.iter().all(good) {
            let pending = Pending { calls: ready, dialect, end, seen: end };
            self.state = if self.place.code { State::Coded(pending) } else { State::Pending(pending) };
            return (0, true);
        }
        self.plain_text(cut(text, 0..end), sink)
    }

    fn reject(
        &mut self,
        mut candidate: Box<Candidate>,
        at: usize,
        text: &str,
        reason: Abort,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        self.plain = self.plain.max(self.offset + at);
        let mut ready = candidate.take_ready();
        if !candidate.keeps_ready() && reason != Abort::Incomplete {
            // Without a delimiter all of it is calls or none is; those that were announced have to be taken back.
            for call in ready.drain(..) {
                if let Some(index) = call.index {
                    sink(Event::Aborted { index, source: cut(text, 0..call.end), reason });
                }
            }
        }
        if self.offset < self.inside {
            ready.clear();
        } else if reason != Abort::Unreadable && candidate.is_in_arguments() {
            let from = ready.last().map_or(candidate.lead(), |call| call.end);
            let end = candidate.end_of_arguments(cut(text, from..at)).map_or(at, |end| from + end);
            self.inside = self.offset + end;
        }
        if self.place.code || candidate.is_quoted() {
            // After an open backtick only what is well formed is a call.
            ready.clear();
        }
        let kept = ready.last().map(|call| call.end);
        let resume = kept.unwrap_or(candidate.lead()).min(at);
        let dialect = candidate.dialect();
        let granted = self.charge(at, resume);
        if let Some(end) = kept {
            if self.ends_thinking(&candidate) {
                self.thinking = None;
            }
            let went = self.found(ready, end, text, dialect, sink);
            self.abort(&mut candidate, cut(text, end..at), reason, sink);
            if let Some(ends) = self.drops(&candidate, reason) {
                let to = if granted { end } else { at };
                sink(Event::Frame(cut(text, end..to)));
                self.state = State::Dropped(Dropped::new(ends));
                return (to, true);
            }
            if granted || self.thinking.is_some() {
                return went;
            }
            self.emit(cut(text, end..at), sink);
            self.written();
            return (at, true);
        }
        self.abort(&mut candidate, cut(text, 0..at), reason, sink);
        if let Some(ends) = self.drops(&candidate, reason) {
            let to = if granted { resume } else { at };
            sink(Event::Frame(cut(text, 0..to)));
            self.state = State::Dropped(Dropped::new(ends));
            return (to, true);
        }
        if !granted {
            return self.plain_text(cut(text, 0..at), sink);
        }
        let list = candidate.list().filter(|_| reason == Abort::Unreadable);
        let resume = list.unwrap_or(resume);
        self.emit(cut(text, 0..resume), sink);
        if list.is_some() {
            self.state = State::List(List::default());
        }
        let fence = candidate.fence_ticks();
        self.written();
        if fence > 0 {
            (self.place.fence, self.place.fence_mark) = (fence, b'`');
            self.place.fresh = true;
        }
        (resume, true)
    }

    /// What ends the text that is dropped with a candidate which is none; nothing if it stays text.
    fn drops(&self, candidate: &Candidate, reason: Abort) -> Option<Vec<&'static str>> {
        let drops = self.options.parsing.drop_unreadable && self.thinking.is_none() && !self.place.code;
        drops.then(|| candidate.ends(reason == Abort::Incomplete)).flatten()
    }

    /// Whether the bytes from `resume` to `at` may be looked at again.
    fn charge(&mut self, at: usize, resume: usize) -> bool {
        let cost = at - resume;
        let allowed = CREDIT * (self.offset + at) + 1024;
        let granted = self.spent + cost <= allowed;
        if granted {
            self.spent += cost;
        }
        granted
    }

    fn abort(
        &mut self,
        candidate: &mut Candidate,
        source: &str,
        reason: Abort,
        sink: &mut dyn FnMut(Event<'_>),
    ) {
        let Some(Unfinished { index, meant }) = candidate.unfinished() else { return };
        let shown =
            self.thinking.is_some() || candidate.is_quoted() || self.place.code && source.contains('`');
        // After a wrapper that came to nothing the same call begins once more, by its own delimiter.
        let again = self.offset < self.reported;
        if index.is_some() || !shown && !again && (meant || reason == Abort::Incomplete) {
            self.reported = self.offset + source.len();
            sink(Event::Aborted { index: index.unwrap_or(self.index), source, reason });
        }
    }

    /// Hands out calls, and what the options refuses as text; `text` begins with their source, which ends at `end`.
    pub(super) fn commit(
        &mut self,
        calls: Vec<Ready>,
        end: usize,
        text: &str,
        dialect: &'static str,
        shown: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) {
        let last = calls.len().saturating_sub(1);
        let mut from = 0;
        for (place, call) in calls.into_iter().enumerate() {
            let to = if place == last { end } else { call.end };
            let source = cut(text, from..to);
            from = to;
            if dialect != TAG_LINE
                && let Some(reason) = self.options.parsing.refuses(&call, &self.offered)
            {
                self.refuse(call.index, source, reason, sink);
                continue;
            }
            let index = call.index.unwrap_or_else(|| {
                let index = self.index;
                self.index += 1;
                if self.options.deltas {
                    sink(Event::CallBegin { index, name: &call.name, dialect });
                    sink(Event::CallDelta { index, arguments: &call.arguments });
                }
                index
            });
            sink(Event::Call(Call {
                index,
                name: call.name,
                arguments: call.arguments,
                source: source.to_owned(),
                dialect,
                repaired: call.repaired,
                closed: call.closed,
                shown,
            }));
            self.called = true;
            let margin = source.ends_with('\n');
            self.place = Place { blank: false, after_call: true, margin, ..Place::start() };
        }
    }

    /// A call that was read, and is none as the options has it.
    fn refuse(&mut self, begun: Option<usize>, source: &str, reason: Abort, sink: &mut dyn FnMut(Event<'_>)) {
        sink(Event::Aborted { index: begun.unwrap_or(self.index), source, reason });
        if self.options.parsing.drop_unreadable {
            sink(Event::Frame(source));
            self.dropped_all();
        } else {
            self.emit(source, sink);
            self.written();
            self.place.fresh = source.trim_end_matches([' ', '\t', '\r']).ends_with('\n');
            self.place.margin = source.ends_with('\n');
        }
    }

    /// Waits for the end of the thinking that holds the calls; if there is none, they end it.
    pub(super) fn pending(
        &mut self,
        pending: Pending,
        text: &str,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        let counts = self.options.parsing.calls_in_thinking;
        if self.offset + pending.end <= self.closed {
            self.commit(pending.calls, pending.end, text, pending.dialect, false, sink);
            return (pending.end, true);
        }
        let open = self.thinking.unwrap_or(0);
        let cap = text.floor_char_boundary(self.options.max_call_bytes);
        let seen = if open & !self.unclosed == 0 { text.len() } else { pending.seen };
        let (close, searched) = self.closing(open, cut(text, 0..cap), seen);
        let searched = searched.max(pending.end);
        let over = text.len() > cap;
        if close.is_none() && !eof && !over {
            self.state = State::Pending(Pending { seen: searched, ..pending });
            return (0, false);
        }
        // What is longer than the cap is thinking too: nothing says yet that it ends.
        if let Some(stop) = close.or(over.then_some(searched)) {
            let alone = self.is_all_there_is(cut(text, stop..text.len()), eof);
            if alone.is_none() && !counts && !over {
                self.state = State::Pending(Pending { seen: stop, ..pending });
                return (0, false);
            }
            let last = || self.goes_on(cut(text, pending.end..stop)).is_none();
            if counts || alone == Some(true) && last() {
                self.closed = self.offset + stop;
                self.state = State::Pending(pending);
                return (0, true);
            }
            return self.plain_text(cut(text, 0..stop), sink);
        }
        self.unclosed |= open;
        if !counts && !self.ending {
            if let Some(at) = self.goes_on(rest(text, pending.end)) {
                return self.plain_text(cut(text, 0..pending.end + at), sink);
            }
            self.ending = true;
        }
        self.thinking = None;
        self.commit(pending.calls, pending.end, text, pending.dialect, false, sink);
        (pending.end, true)
    }

    /// Whether nothing was written before the thinking that is closed here, and nothing stands after it: then the calls
    /// in it are all that there is of the answer. Nothing while more text decides.
    fn is_all_there_is(&self, text: &str, eof: bool) -> Option<bool> {
        if !self.place.blank || self.called {
            return Some(false);
        }
        self.is_end(text, eof)
    }

    /// Where thinking goes on after a call in it: the call was only weighed. More calls may follow, and what ends them.
    fn goes_on(&self, text: &str) -> Option<usize> {
        // Not thinking in which others are weighed again.
        let parsing = ParseOptions { calls_in_thinking: true, ..self.options.parsing };
        let options = ScanOptions { thinking: false, deltas: false, parsing, ..self.options.clone() };
        let mut scanner = Self::new(Arc::clone(&self.offered), options);
        scanner.place = Place { blank: false, after_call: true, ..Place::start() };
        let (mut at, found) = (0, Cell::new(None));
        let mut sink = |event: Event<'_>| {
            let length = match &event {
                Event::Text(text) | Event::Reasoning(text) => {
                    let shown = (!text.trim().is_empty()).then_some(at);
                    found.set(found.get().or(shown));
                    text.len()
                }
                Event::Frame(text) => text.len(),
                Event::Call(call) if !call.shown => call.source.len(),
                _ => 0,
            };
            at += length;
        };
        let mut from = 0;
        // In parts that grow, so that little is read where it goes on at once.
        while from < text.len() && found.get().is_none() {
            let to = text.ceil_char_boundary((2 * from).max(FIRST_PART).min(text.len()));
            scanner.push(cut(text, from..to), &mut sink);
            from = to;
        }
        scanner.finish(&mut sink);
        found.get()
    }

    /// Calls after an open backtick: code if it is closed on the line on which they end.
    pub(super) fn coded(
        &mut self,
        pending: Pending,
        text: &str,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        let bytes = text.as_bytes();
        let from = pending.calls.last().map_or(pending.end, |call| call.end);
        let inside = memchr(b'`', bytes.get(from..pending.end).unwrap_or_default());
        let line = bytes.get(pending.end..).unwrap_or_default();
        let line = line.get(..MAX_CODE).unwrap_or(line);
        let next = memchr2(b'`', b'\n', line);
        if inside.is_none() && next.is_none() && line.len() < MAX_CODE && !eof {
            self.state = State::Coded(pending);
            return (0, false);
        }
        let closed = next.is_some_and(|at| line.get(at) == Some(&b'`'));
        if inside.is_some() || closed {
            let stop = inside.map_or(pending.end, |at| from + at);
            return self.plain_text(cut(text, 0..stop), sink);
        }
        self.place.code = false;
        self.found(pending.calls, pending.end, text, pending.dialect, sink)
    }
}
