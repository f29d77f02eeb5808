//! The value of one argument: where it ends, what frames it, and how it becomes JSON.

use memchr::memchr;

use super::{MAX_NAME, NamedBody, Part, head};
use crate::{
    body::{Cx, Is, MAX_BLANK, Step, Tail, ahead, cut, is, is_any, rest, tail},
    elements,
    table::DelimiterKind,
    typing::escape,
};

/// What the first byte of a tag in a value is.
enum Stop {
    /// The value's end.
    Value,
    /// Another tag, which ends the value although its own end is missing.
    Next,
    /// More text decides.
    More,
}

impl NamedBody {
    pub(super) fn value(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        if let (Some(end), Some(tags)) = (&mut self.element, self.style.tags()) {
            let Some(at) = end.feed(text, tags.key.open(), tags.end, &self.key) else {
                return Some(if eof { Step::Reject(text.len()) } else { Step::More });
            };
            if !self.finish_value(text, at, cx) {
                return Some(Step::Reject(at));
            }
            self.pos = at + self.value_end().len();
            self.part = Part::Between;
            return None;
        }
        let first = self.tag_byte();
        loop {
            let Some(at) = memchr(first, self.rest(text).as_bytes()) else {
                self.pos = text.len();
                break;
            };
            self.pos += at;
            match self.stop(text, eof, cx) {
                Some(Stop::Value) => {
                    let end = self.pos;
                    if !self.finish_value(text, end, cx) {
                        return Some(Step::Reject(end));
                    }
                    self.pos += self.value_end().len();
                    self.part = Part::Between;
                    return None;
                }
                // The value's own end is missing: whatever comes next ends it.
                Some(Stop::Next) => {
                    let end = self.pos;
                    if !self.finish_value(text, end, cx) {
                        return Some(Step::Reject(end));
                    }
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
        // Only the end of the call or of its wrapper came: it ends the value too.
        let whole = cut(text, self.start..text.len()).trim_end();
        if text.len() - self.start - whole.len() > MAX_BLANK {
            return Some(Step::Reject(text.len()));
        }
        let closes = self.row.close.iter().chain(self.style.end);
        let delimiters = self.row.delimiters.iter().map(|delimiter| delimiter.text);
        let plain = |value: &&str| {
            !closes.clone().copied().chain(delimiters.clone()).any(|delimiter| value.contains(delimiter))
        };
        if let Some(value) = closes.clone().find_map(|close| whole.strip_suffix(close)).filter(plain) {
            self.pos = self.start + value.len();
            let end = self.pos;
            if self.finish_value(text, end, cx) {
                self.repaired = true;
                self.part = Part::Between;
                return None;
            }
        }
        Some(Step::Reject(text.len()))
    }

    fn value_end(&self) -> &str {
        let end = self.tags().map_or("", |tags| tags.end);
        self.value_end.as_deref().unwrap_or(end)
    }

    /// Whether the tag at the current position ends the value.
    fn stop(&self, text: &str, eof: bool, cx: &Cx<'_>) -> Option<Stop> {
        let behind = self.rest(text);
        if !self.begins_tag(behind.as_bytes().get(1).copied()) {
            return None;
        }
        let mut more = false;
        match is(behind, self.value_end()) {
            Is::Yes => return Some(Stop::Value),
            Is::Open => more = true,
            Is::No => {}
        }
        let tags = self.tags()?;
        let before = cut(text, self.start..self.pos);
        let line = before.trim_end_matches([' ', '\t']).ends_with('\n');
        // Elements hold elements: none of them ends the value.
        let key = if tags.elements { Is::No } else { is(behind, tags.key.open()) };
        match key {
            Is::Yes if line => return Some(Stop::Next),
            Is::Yes => {
                let after = rest(behind, tags.key.open().len());
                match head::name(&tags.key, after, eof) {
                    head::Found::Name(named) if self.knows(&named.name, cx) => return Some(Stop::Next),
                    head::Found::More => more |= after.len() <= MAX_NAME,
                    _ => {}
                }
            }
            Is::Open => more = true,
            Is::No => {}
        }
        match is_any(behind, self.style.end.iter().copied()) {
            Is::Yes => {
                let end =
                    self.style.end.iter().find(|end| behind.starts_with(**end)).map_or(0, |end| end.len());
                let after = self.pos + end;
                let tail = tail(text, after, self.row.close, &[], eof);
                let next = if self.wrapped { Is::No } else { self.next_call(text, after, eof) };
                let closed = matches!(tail, Tail::Closed(_)) || next == Is::Yes;
                let ended = || rest(text, after).trim_start().is_empty();
                if closed || (line && !self.wrapped) || (eof && ended()) {
                    return Some(Stop::Next);
                }
                more |= tail == Tail::Open || next == Is::Open;
            }
            Is::Open => more = true,
            Is::No => {}
        }
        // At the end of the text the wrapper's end would end the value: until more has come, it may be that.
        let close = self.row.close.iter().find(|close| is(behind, close) != Is::No);
        more |= close.is_some_and(|close| {
            let after = (self.pos + close.len()).min(text.len());
            ahead(text, after, &[]) == Some(text.len())
        });
        (more && !eof).then_some(Stop::More)
    }

    /// Whether this can be the second byte of a tag that ends a value; most angle brackets are none.
    fn begins_tag(&self, second: Option<u8>) -> bool {
        let Some(second) = second else { return true };
        let is_second = |delimiter: &str| delimiter.as_bytes().get(1) == Some(&second);
        self.tags().is_some_and(|tags| is_second(tags.end) || is_second(tags.key.open()))
            || self.style.end.iter().chain(self.row.close).any(|delimiter| is_second(delimiter))
    }

    /// Whether another call with arguments begins here, where each begins with its own delimiter: then this one has ended.
    fn next_call(&self, text: &str, at: usize, eof: bool) -> Is {
        let Some(at) = ahead(text, at, &[]).filter(|at| *at < text.len()) else { return Is::No };
        let open = self.style.head.open();
        let marked = self
            .row
            .delimiters
            .iter()
            .any(|delimiter| delimiter.kind == DelimiterKind::Call && delimiter.text == open);
        let (true, Some(tags)) = (marked, self.tags()) else { return Is::No };
        match is(rest(text, at), open) {
            Is::Yes => {}
            other => return other,
        }
        let named = at + open.len();
        match head::name(&self.style.head, rest(text, named), eof) {
            head::Found::Name(found) => {
                let behind = rest(text, named + found.end).trim_start();
                if behind.is_empty() && eof { Is::No } else { is(behind, tags.key.open()) }
            }
            head::Found::More => Is::Open,
            head::Found::No(_) => Is::No,
        }
    }

    /// The tool has an argument of this name.
    fn knows(&self, key: &str, cx: &Cx<'_>) -> bool {
        let schema = self.name.as_deref().and_then(|name| cx.offered.schema(name));
        schema.and_then(|schema| schema.get("properties")?.get(key.trim())).is_some()
    }

    /// The offset after the framing newline with which a value may begin; nothing while that is not known.
    fn framed(&self, text: &str) -> Option<usize> {
        if !self.tags().is_some_and(|tags| tags.framed) {
            return Some(0);
        }
        let value = rest(text, self.start);
        match (value.as_bytes().first(), value.as_bytes().get(1)) {
            (None, _) | (Some(b'\r'), None) => None,
            (Some(b'\n'), _) => Some(1),
            (Some(b'\r'), Some(b'\n')) => Some(2),
            _ => Some(0),
        }
    }

    /// The length of the value without the framing newline at its end.
    fn unframed(&self, value: &str) -> usize {
        if !self.tags().is_some_and(|tags| tags.framed) {
            return value.len();
        }
        value.strip_suffix("\r\n").or_else(|| value.strip_suffix('\n')).map_or(value.len(), str::len)
    }

    /// Writes the value that ends here; false if it cannot be read.
    fn finish_value(&mut self, text: &str, end: usize, cx: &Cx<'_>) -> bool {
        let value = cut(text, self.start..end);
        let from = self.framed(cut(text, 0..end)).unwrap_or(0);
        let stop = self.unframed(value);
        let whole = cut(value, from..stop.max(from));
        let tags = self.tags().filter(|tags| tags.elements && self.element.is_none());
        if tags.is_some_and(|tags| whole.contains(tags.key.open())) {
            // What the schema says is text holds elements.
            return false;
        }
        if let Some(taken) = self.taken.take() {
            escape(cut(value, taken..stop.max(taken)), &mut self.arguments);
            self.arguments.push('"');
        } else if let (Some(_), Some(tags)) = (self.element.take(), self.tags()) {
            let root = self.name.as_deref().and_then(|name| cx.offered.schema(name));
            match elements::write_argument(
                whole,
                tags.key.open(),
                tags.end,
                root,
                &self.key,
                cx.parsing,
                &mut self.arguments,
            ) {
                Some(repaired) => self.repaired |= repaired,
                None => return false,
            }
        } else {
            self.repaired |= self.types.write(&cx.parsing.value(whole), &mut self.arguments);
        }
        true
    }

    /// Hands on what has come of the value, where it is text.
    fn stream(&mut self, text: &str, cx: &mut Cx<'_>) {
        if self.begun.is_none() {
            return;
        }
        if self.types.is_text() && self.element.is_none() && cx.parsing.is_verbatim() {
            let value = cut(text, self.start..self.pos);
            let safe = match self.tags() {
                Some(tags) if tags.framed => {
                    let safe = value.strip_suffix('\n').unwrap_or(value);
                    safe.strip_suffix('\r').unwrap_or(safe).len()
                }
                _ => value.len(),
            };
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
        self.send(cx);
    }
}
