//! Where a JSON body is, or is not, a call: announcing it, completing it, and what ends it.

use std::ops::Range;

use super::{Expect, JsonBody, JsonStyle};
use crate::{
    body::{Cx, Ready, Step, Tail, ahead, cut, done_on_line, tail},
    envelope::{Envelope, envelope, fits, is_schema, members, unwrapped, written_arguments},
    repair,
};

impl JsonBody {
    /// Up to where the arguments may be handed on before the call is complete, if they may be.
    fn limit(&self, text: &str) -> Option<Range<usize>> {
        let start = self.arguments.filter(|start| text.as_bytes().get(*start) == Some(&b'{'))?;
        let end = self.arguments_end.unwrap_or(usize::MAX).min(self.broken.unwrap_or_else(|| self.safe()));
        Some(start..end.max(start))
    }

    pub(super) fn begin(&mut self, cx: &mut Cx<'_>) {
        // Without a delimiter a name proves little: the call begins when its arguments do.
        let proven = (!self.bare || self.arguments.is_some()) && !self.unusual;
        if let Some(name) = self.name.as_deref().filter(|_| proven && self.begun.is_none()) {
            self.begun = cx.begin(name, self.row.name);
        }
    }

    /// Reads the whole object and notes the call; false if it is none.
    pub(super) fn complete(&mut self, object: &str, text: &str, cx: &mut Cx<'_>) -> bool {
        let call = self.strict(object, text).or_else(|| self.read(object));
        let call = call.or_else(|| self.keyed(object, cx));
        call.is_some_and(|call| self.note(call, text, self.pos, cx))
    }

    /// The call whose only member has the name of an offered tool, after a delimiter.
    fn keyed(&self, object: &str, cx: &Cx<'_>) -> Option<Envelope> {
        let sure = !self.bare && self.ends.is_none() && cx.offered.is_named();
        let call = sure.then(|| envelope(object, JsonStyle::KEYED)).flatten()?;
        cx.offered.contains(&call.name).then_some(Envelope { repaired: true, ..call })
    }

    fn note(&mut self, mut call: Envelope, text: &str, end: usize, cx: &mut Cx<'_>) -> bool {
        call.name = cx.offered.resolve(call.name);
        let schema = cx.offered.schema(&call.name);
        if is_schema(&call.arguments, schema) || call.unusual && !cx.offered.contains(&call.name) {
            return false;
        }
        if self.begun.is_none()
            && let Some(inner) = unwrapped(&call.arguments, schema)
        {
            (call.arguments, call.repaired) = (inner, true);
        }
        let names = || members(&call.arguments);
        if call.flat && !schema.is_some_and(|schema| names().is_some_and(|names| fits(&names, schema))) {
            return false;
        }
        if self.bare {
            let alone = self.alone
                && !call.unusual
                && !self.array
                && cx.offered.is_named()
                && !cx.offered.requires(&call.name);
            if !(call.has_arguments || alone) || !cx.offered.contains(&call.name) {
                return false;
            }
        }
        if self.word && !call.has_arguments && cx.offered.requires(&call.name) {
            return false;
        }
        if let Some(index) = self.begun {
            // What may have been handed on must be how the arguments begin, or the call has to be taken back.
            let given = self.limit(text).map_or("", |range| cut(text, range));
            if !call.arguments.starts_with(given) {
                return false;
            }
            cx.delta(index, cut(&call.arguments, self.sent..call.arguments.len()));
        }
        let index = self.begun.take();
        self.ready.push(Ready {
            name: call.name,
            arguments: call.arguments,
            repaired: call.repaired,
            end,
            index,
            bare_name: !call.has_arguments && self.bare,
            closed: self.bare || self.row.is_open_ended(),
        });
        self.name = None;
        true
    }

    /// The call as it was found on the way through the object, where that was strict JSON throughout.
    fn strict(&mut self, object: &str, text: &str) -> Option<Envelope> {
        // In strings these are not JSON; between tokens some are, which is left to the other way.
        let clean = || object.bytes().fold(true, |clean, byte| clean & (byte >= b' '));
        let range = match self.ends {
            Some(_) => self.object..self.pos,
            None => self.arguments?..self.arguments_end?,
        };
        let arguments = cut(text, range);
        if !self.plain || self.broken.is_some() || !arguments.starts_with('{') || !clean() {
            return None;
        }
        let (name, arguments) = (self.name.clone()?, arguments.to_owned());
        Some(Envelope::of(name, arguments, false))
    }

    fn read(&mut self, object: &str) -> Option<Envelope> {
        if self.ends.is_none() {
            return envelope(object, self.style);
        }
        if object.starts_with('"') {
            let (arguments, repaired) = written_arguments(object)?;
            return Some(Envelope::of(self.name.take()?, arguments, repaired));
        }
        let fixed = if repair::is_json(object) { None } else { Some(repair::value(object)?) };
        let name = self.name.take()?;
        let repaired = fixed.is_some();
        let arguments = fixed.unwrap_or_else(|| object.to_owned());
        Some(Envelope::of(name, arguments, repaired))
    }

    /// The delimiters after the body.
    fn closes(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.ends.unwrap_or_default().iter().chain(self.row.close).copied()
    }

    /// What follows the value: closing delimiters, another object, or other text.
    pub(super) fn after(&mut self, text: &str, eof: bool) -> Option<Step> {
        if self.ends.is_some() {
            return Some(Step::Done(self.pos));
        }
        let plain = tail(text, self.pos, self.row.close, &[], eof);
        let strays = || tail(text, self.pos, self.row.close, b"}],;`", eof);
        let found = if plain == Tail::None { strays() } else { plain };
        if plain == Tail::None && matches!(found, Tail::Closed(_)) {
            self.ready.iter_mut().for_each(|ready| ready.repaired = true);
        }
        match found {
            Tail::Closed(end) => {
                self.ready.iter_mut().for_each(|ready| ready.closed = true);
                return Some(Step::Done(end));
            }
            Tail::Cut(end) => return Some(Step::Done(end)),
            Tail::Open if !eof => return Some(Step::More),
            Tail::Open | Tail::None => {}
        }
        let alone = self.ready.last().is_some_and(|ready| ready.bare_name);
        let next = ahead(text, self.pos, b",;");
        if alone && next != Some(text.len()) {
            return Some(Step::Reject(self.pos));
        }
        if next == Some(text.len()) && !eof {
            return Some(Step::More);
        }
        // Without a delimiter more calls may stand on the line, and something between them: all of them are calls, or none is.
        let separated = |to: usize| {
            let between = cut(text, self.pos..to);
            between.contains([',', ';']) && !between.contains('\n')
        };
        if let Some(next) = next
            && text.as_bytes().get(next) == Some(&b'{')
            && !self.array
            && (!self.bare || separated(next))
        {
            self.alone &= !self.bare;
            self.pos = next;
            self.expect = Expect::Start;
            return None;
        }
        Some(if self.bare { done_on_line(text, self.pos, eof) } else { Step::Done(self.pos) })
    }

    /// A `<` outside a string: the closing delimiter came too early, or another call begins.
    pub(super) fn angle(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        if self.bare {
            return Some(Step::Reject(self.pos));
        }
        let rest = cut(text, self.pos..text.len());
        let row = self.row;
        let delimiters = self.closes().chain(row.delimiters.iter().map(|delimiter| delimiter.text));
        if !eof
            && delimiters.clone().any(|delimiter| rest.len() < delimiter.len() && delimiter.starts_with(rest))
        {
            return Some(Step::More);
        }
        if let Some(close) = self.closes().find(|close| rest.starts_with(close)) {
            // The delimiters that end a call are for whoever has read its name.
            let end = self.pos + if self.ends.is_some() { 0 } else { close.len() };
            if self.between() && !self.ready.is_empty() || self.outside() {
                // Only the end of what stands around the calls is missing.
                for ready in &mut self.ready {
                    (ready.repaired, ready.closed) = (true, true);
                }
                return Some(Step::Done(end));
            }
            let fixed = repair::closed(cut(text, self.object..self.pos));
            if fixed.is_some_and(|fixed| self.complete_fixed(&fixed, text, end, cx)) {
                self.ready.iter_mut().for_each(|ready| ready.closed = true);
                return Some(Step::Done(end));
            }
            return Some(Step::Reject(self.pos));
        }
        if delimiters.into_iter().any(|delimiter| rest.starts_with(delimiter)) {
            return Some(Step::Reject(self.pos));
        }
        self.expects(false);
        self.pos += 1;
        None
    }

    fn complete_fixed(&mut self, fixed: &str, text: &str, end: usize, cx: &mut Cx<'_>) -> bool {
        let call = self.read(fixed);
        let done = call.is_some_and(|call| self.note(call, text, end, cx));
        if done && let Some(ready) = self.ready.last_mut() {
            ready.repaired = true;
        }
        done
    }

    /// The text is at its end in the middle of the body.
    pub(super) fn ended(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        if !eof {
            return Step::More;
        }
        let end = text.len();
        let whole = self.at_member() && self.expect == Expect::Comma && self.arguments_end.is_some();
        if whole {
            // Only the outer brackets are missing.
            let fixed = repair::closed(cut(text, self.object..end));
            if fixed.is_some_and(|fixed| self.complete_fixed(&fixed, text, end, cx)) {
                self.ready.iter_mut().for_each(|ready| ready.closed = false);
                return Step::Done(end);
            }
        }
        if self.bare {
            return Step::Reject(end);
        }
        if self.quote.is_some() {
            // A quote that was not escaped may have swallowed the closing delimiter: read up to the first one.
            let body = cut(text, self.object..end);
            let found = self.closes().filter_map(|close| Some((body.find(close)?, close.len()))).min();
            let close = found.map(|(at, len)| (at, if self.ends.is_some() { 0 } else { len }));
            if let Some((at, len)) = close {
                let stop = self.object + at + len;
                let fixed = repair::closed(cut(body, 0..at));
                if fixed.is_some_and(|fixed| self.complete_fixed(&fixed, text, stop, cx)) {
                    return Step::Done(stop);
                }
            }
        }
        Step::Reject(end)
    }

    /// Hands on what has come of the arguments, as far as it is strict.
    pub(super) fn send(&mut self, text: &str, cx: &mut Cx<'_>) {
        if let (Some(index), Some(range)) = (self.begun, self.limit(text)) {
            let from = range.start + self.sent;
            if from < range.end {
                cx.delta(index, cut(text, from..range.end));
                self.sent = range.len();
            }
        }
    }
}
