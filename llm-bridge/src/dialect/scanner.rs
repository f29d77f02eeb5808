//! The scanner: text passes through, candidates for calls are fed to their bodies, thinking is kept apart.

use std::{mem, sync::Arc};

use memchr::{memchr, memmem};

use super::{
    Abort, Call, Event, Offered, ScanOptions,
    body::{Candidate, Cx, Ready, Step, cut},
    fence::{self, Fence, Opening},
    marks::{Found, Marks, Meaning},
    offered::TagLine,
    table::{TAG_LINE, THINKING},
    typing::{Types, escape},
};

/// A longer line is no tag line.
const MAX_LINE: usize = 16 << 10;
/// How many times the input's length may be spent on reading abandoned bodies again.
const CREDIT: usize = 8;

/// Reads one answer of a model, in pieces of any size. See the module's documentation for what it finds.
#[derive(Debug)]
pub struct Scanner {
    offered: Arc<Offered>,
    options: ScanOptions,
    marks: &'static Marks,
    /// Text that has come but is not decided yet, from `base` on.
    held: String,
    base: usize,
    state: State,
    place: Place,
    /// The thinking rows that may be open, as a bit set.
    thinking: Option<u32>,
    index: usize,
    /// Bytes of the input behind which everything is decided.
    offset: usize,
    /// Bytes of abandoned bodies that were read again.
    spent: usize,
    /// Thinking rows that are known not to be closed up to the end of the text.
    unclosed: u32,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Text,
    Call(Box<Candidate>),
    /// Calls inside open thinking: they count only if it is never closed.
    Pending {
        calls: Vec<Ready>,
        dialect: &'static str,
        end: usize,
        seen: usize,
    },
}

/// Where in the text we are; decides what may begin here.
#[derive(Debug)]
struct Place {
    /// Only white space since the line's start, or since a call or thinking ended.
    fresh: bool,
    /// Only white space since the answer's start.
    blank: bool,
    /// Only white space since a call.
    after_call: bool,
    /// White space here belongs to a thinking mark.
    framing: bool,
    /// Inside inline code, which ends with the line.
    code: bool,
    /// The number of backticks of the code fence we are in, or 0.
    fence: usize,
    /// The last two bytes of text.
    last: [u8; 2],
}

impl Place {
    fn start() -> Self {
        Self {
            fresh: true,
            blank: true,
            after_call: false,
            framing: false,
            code: false,
            fence: 0,
            last: [b'\n'; 2],
        }
    }

    /// Something other than white space stands here.
    fn written(&mut self) {
        self.fresh = false;
        self.blank = false;
        self.after_call = false;
        self.framing = false;
    }

    /// Directly behind an opening quote, or in inline code.
    fn quoted(&self) -> bool {
        let [before, last] = self.last;
        let quote = matches!(last, b'"' | b'\'' | b'`');
        self.code || quote && (before.is_ascii_whitespace() || matches!(before, b'(' | b'[' | b':'))
    }
}

enum Act {
    /// Not here: it is text.
    Skip,
    /// It has been dealt with.
    Used,
    /// The state has changed at the mark.
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
            thinking: options.thinking.then_some(u32::MAX),
            offered,
            options,
            marks: Marks::get(),
            held: String::new(),
            base: 0,
            state: State::Text,
            place,
            index: 0,
            offset: 0,
            spent: 0,
            unclosed: 0,
        }
    }

    /// Reads the next piece.
    pub fn push(&mut self, chunk: &str, sink: &mut impl FnMut(Event<'_>)) {
        if !self.held.is_empty() {
            self.held.push_str(chunk);
            self.resume(false, sink);
            return;
        }
        if !self.place.fresh && !chunk.is_empty() && self.marks.next(chunk.as_bytes(), 0).is_none() {
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
                State::Pending { calls, dialect, end, seen } => {
                    self.pending(calls, dialect, end, seen, rest, eof, sink)
                }
            };
            used += went;
            self.offset += went;
            if !again {
                return used;
            }
        }
    }

    fn emit(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) {
        match text.as_bytes() {
            [] => return,
            [last] => self.place.last = [self.place.last[1], *last],
            [.., before, last] => self.place.last = [*before, *last],
        }
        sink(if self.thinking.is_some() { Event::Reasoning(text) } else { Event::Text(text) });
    }

    /// Passes text through up to the next thing that may begin.
    fn text(&mut self, text: &str, eof: bool, sink: &mut dyn FnMut(Event<'_>)) -> Went {
        let bytes = text.as_bytes();
        let (mut from, mut at) = (0, 0);
        loop {
            if self.place.fresh {
                let joint = self.place.after_call;
                let blank = |byte: &&u8| byte.is_ascii_whitespace() || joint && matches!(byte, b',' | b';');
                at += bytes.get(at..).unwrap_or_default().iter().take_while(blank).count();
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
            let Some(found) = self.marks.next(bytes, at) else {
                self.place.written();
                break;
            };
            if found > at {
                self.place.written();
            }
            match bytes.get(found) {
                Some(b'\n') => {
                    self.place.fresh = true;
                    self.place.code = false;
                    at = found + 1;
                    continue;
                }
                Some(b'`') => {
                    self.place.written();
                    self.place.code ^= self.place.fence == 0;
                    at = found + 1;
                    continue;
                }
                _ => {}
            }
            let rest = cut(text, found..text.len());
            let mark = match if eof { self.marks.at_end(rest) } else { self.marks.at(rest) } {
                Found::Nothing => Act::Skip,
                Found::Partial => {
                    self.emit(cut(text, from..found), sink);
                    return (found, false);
                }
                Found::Mark(mark, len) => {
                    self.emit(cut(text, from..found), sink);
                    from = found;
                    let act = self.mark(mark, len, lead && found == at, sink, rest);
                    if matches!(act, Act::Used) {
                        from = found + len;
                    }
                    act
                }
            };
            match mark {
                Act::Skip => {
                    self.place.written();
                    at = found + 1;
                }
                Act::Used => at = from,
                Act::Enter => return (found, true),
            }
        }
        self.emit(cut(text, from..text.len()), sink);
        (text.len(), false)
    }

    /// Looks at the first thing on a line: a fence, bare JSON, a tag.
    fn line(
        &mut self,
        text: &str,
        from: usize,
        at: usize,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Line {
        let rest = cut(text, at..text.len());
        let first = rest.bytes().next();
        let calls = self.thinking.is_none() && !self.offered.is_empty();
        if first == Some(b'`') {
            return self.ticks(text, from, at, eof, calls, sink);
        }
        if !calls || self.place.fence > 0 {
            return Line::Other;
        }
        if matches!(first, Some(b'{' | b'[')) && matches!(self.marks.at(rest), Found::Nothing) {
            let only = self.options.only;
            let mut rows = self.marks.bare().iter().filter(|row| only.is_none_or(|only| only == row.name));
            let alone = self.place.blank;
            if let Some(candidate) = rows.next().and_then(|row| Candidate::bare(row, alone)) {
                self.emit(cut(text, from..at), sink);
                self.state = State::Call(Box::new(candidate));
                return Line::Enter;
            }
        }
        if self.offered.tags().is_empty() {
            return Line::Other;
        }
        let offered = Arc::clone(&self.offered);
        for tag in offered.tags() {
            if rest.len() < tag.prefix.len() && tag.prefix.starts_with(rest) && !eof {
                self.emit(cut(text, from..at), sink);
                return Line::Hold;
            }
            let Some(argument) = rest.strip_prefix(tag.prefix.as_str()) else { continue };
            let end = match memchr(b'\n', rest.as_bytes()) {
                Some(end) => end,
                None if eof => rest.len(),
                None if rest.len() > MAX_LINE => continue,
                None => {
                    self.emit(cut(text, from..at), sink);
                    return Line::Hold;
                }
            };
            let argument = cut(argument, 0..end - tag.prefix.len());
            let spaced = end <= MAX_LINE && argument.starts_with(char::is_whitespace);
            let Some(arguments) = spaced.then(|| arguments(tag, argument.trim(), &offered)).flatten() else {
                continue;
            };
            self.emit(cut(text, from..at), sink);
            let source = cut(rest, 0..rest.len().min(end + 1));
            if !tag.strip {
                self.emit(source, sink);
            }
            let ready = Ready {
                name: tag.tool.clone(),
                arguments,
                repaired: false,
                end: source.len(),
                index: None,
                bare_name: false,
            };
            self.commit(vec![ready], source.len(), source, TAG_LINE, !tag.strip, sink);
            return Line::Called(at + source.len());
        }
        Line::Other
    }

    fn ticks(
        &mut self,
        text: &str,
        from: usize,
        at: usize,
        eof: bool,
        calls: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Line {
        let rest = cut(text, at..text.len());
        if self.place.fence > 0 {
            let ticks = rest.bytes().take(self.place.fence).take_while(|byte| *byte == b'`').count();
            if ticks == rest.len() && ticks < self.place.fence && !eof {
                self.emit(cut(text, from..at), sink);
                return Line::Hold;
            }
            if ticks == self.place.fence {
                self.place.fence = 0;
            }
            self.place.written();
            return Line::Past(at + ticks);
        }
        match fence::opening(rest, eof) {
            Opening::None => Line::Other,
            Opening::More => {
                self.emit(cut(text, from..at), sink);
                Line::Hold
            }
            Opening::Holds(ticks, len) if calls => {
                self.emit(cut(text, from..at), sink);
                let fence = Fence::new(ticks, len, self.place.blank, self.options.only);
                self.state = State::Call(Box::new(Candidate::fence(fence)));
                Line::Enter
            }
            Opening::Holds(ticks, _) | Opening::Shows(ticks) => {
                self.place.fence = ticks;
                self.place.written();
                Line::Past(at + ticks)
            }
        }
    }

    fn mark(
        &mut self,
        mark: &'static Meaning,
        len: usize,
        lead: bool,
        sink: &mut dyn FnMut(Event<'_>),
        rest: &str,
    ) -> Act {
        let source = cut(rest, 0..len);
        if self.thinking.is_some_and(|open| mark.unthink & open != 0) {
            self.thinking = None;
            let blank = self.place.blank;
            self.place = Place { framing: true, blank, ..Place::start() };
            sink(Event::Frame(source));
            return Act::Used;
        }
        if self.place.fence > 0 {
            return Act::Skip;
        }
        if mark.closes && self.place.after_call && lead {
            sink(Event::Frame(source));
            return Act::Used;
        }
        if let Some(row) = mark.think
            && lead
            && !self.place.code
        {
            // The prompt has opened it, and the model does so again.
            let again = self.thinking == Some(u32::MAX) && self.place.blank;
            if self.thinking.is_none() || again {
                self.thinking = Some(1 << row);
                self.place.framing = true;
                sink(Event::Frame(source));
                return Act::Used;
            }
        }
        if self.offered.is_empty() || self.place.quoted() {
            return Act::Skip;
        }
        let rows = mark.rows(self.options.only, self.thinking.is_some());
        if rows.is_empty() {
            return Act::Skip;
        }
        self.state = State::Call(Box::new(Candidate::marked(rows, len)));
        Act::Enter
    }

    fn call(
        &mut self,
        mut candidate: Box<Candidate>,
        text: &str,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        let cap = text.floor_char_boundary(self.options.max_call_bytes);
        let over = cap < text.len();
        let live = self.options.deltas && self.thinking.is_none() && !candidate.is_fence();
        let mut cx = Cx { offered: &self.offered, live, index: &mut self.index, sink };
        match candidate.feed(cut(text, 0..cap), eof && !over, &mut cx) {
            Step::More if !over => {
                self.state = State::Call(candidate);
                (0, false)
            }
            Step::More => self.reject(candidate, cap, text, Abort::TooLong, sink),
            Step::Reject(at) => {
                let at = text.floor_char_boundary(at);
                let cut_off = eof && at == text.len();
                let reason = if cut_off { Abort::Incomplete } else { Abort::Unreadable };
                self.reject(candidate, at, text, reason, sink)
            }
            Step::Done(end) => {
                let ready = candidate.take_ready();
                self.found(ready, end, text, candidate.dialect(), sink)
            }
        }
    }

    fn found(
        &mut self,
        ready: Vec<Ready>,
        end: usize,
        text: &str,
        dialect: &'static str,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        if self.thinking.is_none() {
            self.commit(ready, end, text, dialect, false, sink);
            return (end, true);
        }
        if ready.iter().all(|call| self.offered.contains(&call.name)) {
            self.state = State::Pending { calls: ready, dialect, end, seen: end };
            return (0, true);
        }
        self.emit(cut(text, 0..end), sink);
        self.place.written();
        (end, true)
    }

    fn reject(
        &mut self,
        mut candidate: Box<Candidate>,
        at: usize,
        text: &str,
        reason: Abort,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        let mut ready = candidate.take_ready();
        if !candidate.keeps_ready() {
            // Without a mark all of it is calls or none is; those that were announced have to be taken back.
            for call in ready.drain(..) {
                if let Some(index) = call.index {
                    sink(Event::Aborted { index, source: cut(text, 0..call.end), reason });
                }
            }
        }
        let kept = ready.last().map(|call| call.end);
        let resume = kept.unwrap_or(candidate.lead).min(at);
        let dialect = candidate.dialect();
        if let Some(end) = kept {
            let went = self.found(ready, end, text, dialect, sink);
            self.abort(&mut candidate, cut(text, end..at), reason, sink);
            self.charge(at, resume);
            return went;
        }
        self.abort(&mut candidate, cut(text, 0..at), reason, sink);
        if !self.charge(at, resume) {
            self.emit(cut(text, 0..at), sink);
            self.place.written();
            return (at, true);
        }
        self.emit(cut(text, 0..resume), sink);
        let fence = candidate.fence_ticks();
        self.place.written();
        if fence > 0 {
            self.place.fence = fence;
            self.place.fresh = true;
        }
        (resume, true)
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
        if let Some((index, loud)) = candidate.unfinished()
            && (index.is_some() || loud && self.thinking.is_none())
        {
            sink(Event::Aborted { index: index.unwrap_or(self.index), source, reason });
        }
    }

    /// Hands out calls; `text` begins with their source, which ends at `end`.
    fn commit(
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
                source: cut(text, from..to).to_owned(),
                dialect,
                repaired: call.repaired,
                shown,
            }));
            from = to;
        }
        self.place = Place { blank: false, after_call: true, ..Place::start() };
    }

    /// Waits for the end of the thinking that holds the calls; if there is none, they end it.
    #[allow(clippy::too_many_arguments)]
    fn pending(
        &mut self,
        calls: Vec<Ready>,
        dialect: &'static str,
        end: usize,
        seen: usize,
        text: &str,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Went {
        let open = self.thinking.unwrap_or(0);
        let cap = text.floor_char_boundary(self.options.max_call_bytes);
        let searched = if open & !self.unclosed == 0 { text.len() } else { seen };
        let closes =
            THINKING.iter().enumerate().filter(|(row, _)| open & (1 << row) != 0).map(|(_, marks)| marks.1);
        let area = text.as_bytes().get(searched..).unwrap_or_default();
        let close = closes.clone().filter_map(|close| memmem::find(area, close.as_bytes())).min();
        if close.is_none() && !eof && text.len() <= cap {
            let longest = closes.map(str::len).max().unwrap_or(1);
            let seen = text.floor_char_boundary(text.len().saturating_sub(longest)).max(end);
            self.state = State::Pending { calls, dialect, end, seen };
            return (0, false);
        }
        if let Some(stop) = close.map(|at| searched + at).or((text.len() > cap).then_some(cap)) {
            self.emit(cut(text, 0..stop), sink);
            self.place.written();
            return (stop, true);
        }
        self.unclosed |= open;
        self.thinking = None;
        self.commit(calls, end, text, dialect, false, sink);
        (end, true)
    }
}

/// What the first thing on a line is.
enum Line {
    /// Nothing that only a line's start can hold.
    Other,
    /// More text is needed.
    Hold,
    /// A call may begin here.
    Enter,
    /// Text up to here, within the line.
    Past(usize),
    /// A tag line that was a call, up to here.
    Called(usize),
}

/// The arguments of a tag line, if it is one.
fn arguments(tag: &TagLine, text: &str, offered: &Offered) -> Option<String> {
    let groups = tag.pattern.captures(text)?;
    let schema = offered.schema(&tag.tool);
    let mut out = String::from("{");
    for (name, group) in &tag.groups {
        let Some(value) = groups.get(*group) else { continue };
        if out.len() > 1 {
            out.push_str(", ");
        }
        out.push('"');
        escape(name, &mut out);
        out.push_str("\": ");
        Types::of(schema, name).write(value.as_str(), &mut out);
    }
    out.push('}');
    Some(out)
}
