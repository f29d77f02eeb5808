//! The value of one argument: where it ends, what frames it, and how it becomes JSON.

use memchr::memchr;

use super::{Is, MAX_NAME, Part, XmlBody, is};
use crate::dialect::{
    body::{Cx, Step, Tail, cut, tail},
    typing::escape,
};

/// What a `<` in a value is.
enum Stop {
    /// The value's end.
    Value,
    /// Another tag, which ends the value although its own end is missing.
    Next,
    /// More text decides.
    More,
}

impl XmlBody {
    pub(super) fn value(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        loop {
            let rest = self.rest(text);
            let Some(at) = memchr(b'<', rest.as_bytes()) else {
                self.pos = text.len();
                break;
            };
            self.pos += at;
            match self.stop(text, eof, cx) {
                Some(Stop::Value) => {
                    let end = self.pos;
                    self.finish_value(text, end);
                    self.pos += self.style.param_end.len();
                    self.part = Part::Between;
                    return None;
                }
                // The value's own end is missing: whatever comes next ends it.
                Some(Stop::Next) => {
                    let end = self.pos;
                    self.finish_value(text, end);
                    self.repaired = true;
                    self.part = Part::Between;
                    return None;
                }
                Some(Stop::More) => {
                    self.stream(text, cx);
                    return Some(Step::More);
                }
                None => self.pos += 1,
            }
        }
        if !eof {
            self.stream(text, cx);
            return Some(Step::More);
        }
        // Only the wrapper's end came: it ends the value too.
        let whole = cut(text, self.start..text.len()).trim_end();
        if let Some(value) = self.row.close.iter().find_map(|close| whole.strip_suffix(close)) {
            self.pos = self.start + value.len();
            let end = self.pos;
            self.finish_value(text, end);
            self.repaired = true;
            self.part = Part::Between;
            return None;
        }
        Some(Step::Reject(text.len()))
    }

    /// Whether the `<` at the current position ends the value.
    fn stop(&self, text: &str, eof: bool, cx: &Cx<'_>) -> Option<Stop> {
        let rest = self.rest(text);
        let mut more = false;
        match is(rest, self.style.param_end) {
            Is::Yes => return Some(Stop::Value),
            Is::Open => more = true,
            Is::No => {}
        }
        let before = cut(text, self.start..self.pos);
        let line = before.trim_end_matches([' ', '\t']).ends_with('\n');
        match is(rest, self.style.param.0) {
            Is::Yes if line => return Some(Stop::Next),
            Is::Yes => {
                let after = cut(rest, self.style.param.0.len()..rest.len());
                match after.find([self.style.param.1.chars().next().unwrap_or('>'), '<', '\n']) {
                    Some(end) if self.knows(cut(after, 0..end), cx) => return Some(Stop::Next),
                    Some(_) => {}
                    None => more |= after.len() <= MAX_NAME,
                }
            }
            Is::Open => more = true,
            Is::No => {}
        }
        match is(rest, self.style.call_end) {
            Is::Yes => {
                let after = self.pos + self.style.call_end.len();
                let tail = tail(text, after, self.row.close, &[]);
                let closed = matches!(tail, Tail::Closed(_));
                let ended = || cut(text, after..text.len()).trim_start().is_empty();
                if closed || (line && !self.wrapped) || (eof && ended()) {
                    return Some(Stop::Next);
                }
                more |= tail == Tail::Open;
            }
            Is::Open => more = true,
            Is::No => {}
        }
        (more && !eof).then_some(Stop::More)
    }

    /// The tool has an argument of this name.
    fn knows(&self, key: &str, cx: &Cx<'_>) -> bool {
        let schema = self.name.as_deref().and_then(|name| cx.offered.schema(name));
        schema.and_then(|schema| schema.get("properties")?.get(key.trim())).is_some()
    }

    /// The offset behind the framing newline with which a value may begin; nothing while that is not known.
    fn framed(&self, text: &str) -> Option<usize> {
        let value = cut(text, self.start..text.len());
        match (value.as_bytes().first(), value.as_bytes().get(1)) {
            (None, _) | (Some(b'\r'), None) => None,
            (Some(b'\n'), _) => Some(1),
            (Some(b'\r'), Some(b'\n')) => Some(2),
            _ => Some(0),
        }
    }

    fn finish_value(&mut self, text: &str, end: usize) {
        let value = cut(text, self.start..end);
        let from = self.framed(cut(text, 0..end)).unwrap_or(0);
        let stop =
            value.strip_suffix("\r\n").or_else(|| value.strip_suffix('\n')).map_or(value.len(), str::len);
        if let Some(taken) = self.taken.take() {
            escape(cut(value, taken..stop.max(taken)), &mut self.arguments);
            self.arguments.push('"');
        } else if self.types.is_text() {
            self.arguments.push('"');
            escape(cut(value, from..stop.max(from)), &mut self.arguments);
            self.arguments.push('"');
        } else {
            self.repaired |= self.types.write(cut(value, from..stop.max(from)), &mut self.arguments);
        }
    }

    /// Hands on what has come of the arguments.
    pub(super) fn stream(&mut self, text: &str, cx: &mut Cx<'_>) {
        let Some(index) = self.begun else { return };
        if self.part == Part::Value && self.types.is_text() {
            let value = cut(text, self.start..self.pos);
            let safe = value.strip_suffix('\n').unwrap_or(value);
            let safe = safe.strip_suffix('\r').unwrap_or(safe).len();
            let from =
                self.taken.or_else(|| self.framed(cut(text, 0..self.pos)).filter(|from| *from <= safe));
            if let Some(from) = from.filter(|from| *from < safe) {
                if self.taken.is_none() {
                    self.arguments.push('"');
                }
                escape(cut(value, from..safe), &mut self.arguments);
                self.taken = Some(safe);
            }
        }
        cx.delta(index, cut(&self.arguments, self.sent..self.arguments.len()));
        self.sent = self.arguments.len();
    }
}
