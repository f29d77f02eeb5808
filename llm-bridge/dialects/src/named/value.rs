//! The value of one argument: what frames it, and how it becomes JSON.

use memchr::memchr;

use super::{NamedBody, Part, nested::Tag, stop::Stop, tags::CDATA_END};
use crate::{
    ParseOptions,
    body::{Cx, Is, MAX_BLANK, Step, cut, is, rest},
    elements,
    typing::{Shape, escape},
};

/// A value that has ended and is not written yet, in case it turns out that its end belonged to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unwritten {
    /// Where it begins and ends, in the text.
    start: usize,
    end: usize,
    /// With an end of its own.
    own: bool,
}

impl NamedBody {
    pub(super) fn value(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        if let (Some(end), Some(tags)) = (&mut self.element, self.style.tags()) {
            let Some(at) = end.feed(text, tags.key.open(), tags.end, &self.key) else {
                return Some(if eof { Step::Reject(text.len()) } else { Step::More });
            };
            return self.end_value(text, at, Some(self.value_end().len()), cx);
        }
        let first = self.tag_byte();
        loop {
            let Some(at) = memchr(first, self.rest(text).as_bytes()) else {
                self.pos = text.len();
                if eof && !self.quotes_calls(text) && self.flatten(cx) {
                    continue;
                }
                break;
            };
            self.pos += at;
            if self.cdata {
                match is(self.rest(text), self.value_end()) {
                    Is::Yes if self.cdata_end(text).is_some() => {
                        return self.end_value(text, self.pos, Some(self.value_end().len()), cx);
                    }
                    Is::Open if !eof => return Some(Step::More),
                    _ => self.pos += 1,
                }
                continue;
            }
            if !self.begins_tag(text.as_bytes().get(self.pos + 1).copied()) {
                self.pos += 1;
                continue;
            }
            let stop = match self.stop(text, eof, cx) {
                Some(Stop::More) => Tag::More,
                stop if *cx.flat => Tag::Plain(stop),
                stop => self.nested(stop, text, eof, cx),
            };
            match stop {
                Tag::Plain(Some(Stop::Value(length))) => {
                    self.repaired |= length != self.value_end().len();
                    return self.end_value(text, self.pos, Some(length), cx);
                }
                // The value's own end is missing: whatever comes next ends it.
                Tag::Plain(Some(Stop::Next)) => return self.end_value(text, self.pos, None, cx),
                Tag::More | Tag::Plain(Some(Stop::More)) => {
                    self.stream(text, cx);
                    return Some(Step::More);
                }
                Tag::Plain(None) => self.pos += 1,
                Tag::Passed => {}
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
        match closes.clone().find_map(|close| whole.strip_suffix(close)).filter(plain) {
            Some(value) => self.end_value(text, self.start + value.len(), None, cx),
            None => Some(Step::Reject(text.len())),
        }
    }

    /// The value in a section of character data, if that ends at the position.
    fn cdata_end<'t>(&self, text: &'t str) -> Option<&'t str> {
        let value = cut(text, self.start..self.pos);
        let end = value.len().saturating_sub(MAX_BLANK);
        let blank = rest(value, value.ceil_char_boundary(end));
        let value = cut(value, 0..value.len() - (blank.len() - blank.trim_end().len()));
        value.strip_suffix(CDATA_END)
    }

    /// The value ends at `end`, and after it its own end of `length` bytes, if there is one.
    fn end_value(&mut self, text: &str, end: usize, length: Option<usize>, cx: &mut Cx<'_>) -> Option<Step> {
        if let Some(before) = self.unopened.take()
            && length.is_none()
        {
            self.drop_argument(before);
            self.pos = end;
            return None;
        }
        if !self.finish_value(text, end, length.is_some(), cx) {
            return Some(Step::Reject(end));
        }
        self.repaired |= length.is_none();
        self.pos = end + length.unwrap_or(0);
        self.part = Part::Between;
        None
    }

    /// Whether the value that has ended holds an opening tag of the name of its end, to which that end belongs.
    pub(super) fn opens_own_tag(&mut self, text: &str) -> bool {
        let end = self.tags().map_or("", |tags| tags.end);
        self.own_tags.open(text, self.pos, end) >= 0
    }

    /// Takes back the end of the last value: the text after it, and another end here, belong to it.
    pub(super) fn reopen(&mut self) -> bool {
        let Some(Unwritten { start, .. }) = self.unwritten.take() else { return false };
        self.start = start;
        self.part = Part::Value;
        self.repaired = true;
        true
    }

    /// Writes the last value, if that has waited: nothing takes back its end any more.
    pub(super) fn settle_value(&mut self, text: &str, cx: &Cx<'_>) {
        if let Some(Unwritten { start, end, own }) = self.unwritten.take() {
            self.start = start;
            self.write_value(text, end, own, cx);
        }
    }

    pub(super) fn value_end(&self) -> &str {
        let end = self.tags().map_or("", |tags| tags.end);
        self.value_end.as_deref().unwrap_or(end)
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

    /// Ends the value here, by an end of its own or because that is missing; false if it cannot be read. A text waits: it is
    /// written once, however often its end is taken back.
    fn finish_value(&mut self, text: &str, end: usize, own: bool, cx: &Cx<'_>) -> bool {
        self.unwritten = None;
        let elements = self.tags().is_some_and(|tags| tags.elements);
        if self.types.has_text() && !self.cdata && !elements {
            self.unwritten = Some(Unwritten { start: self.start, end, own });
            return true;
        }
        self.write_value(text, end, own, cx)
    }

    /// Writes the value; false if it cannot be read.
    fn write_value(&mut self, text: &str, end: usize, own: bool, cx: &Cx<'_>) -> bool {
        if let Some(value) = self.cdata_end(text).filter(|_| self.cdata) {
            self.repaired |= self.types.write(value, &mut self.arguments);
            return true;
        }
        let value = cut(text, self.start..end);
        let from = self.framed(cut(text, 0..end)).unwrap_or(0);
        // A line end before the value's own end frames it only together with one at its beginning.
        let stop = if own && from == 0 { value.len() } else { self.unframed(value) };
        let whole = cut(value, from..stop.max(from));
        let tags = self.tags().filter(|tags| tags.elements && !tags.known && self.element.is_none());
        if tags.is_some_and(|tags| whole.contains(tags.key.open())) {
            // What the schema says is text holds elements.
            return false;
        }
        let parsing = self.parsing(cx);
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
                parsing,
                &mut self.arguments,
            ) {
                Some(repaired) => self.repaired |= repaired,
                None => return false,
            }
        } else {
            self.write_typed(&cx.parsing.value(whole), parsing, cx);
        }
        true
    }

    /// Writes a value of one of its types.
    fn write_typed(&mut self, value: &str, parsing: ParseOptions, cx: &Cx<'_>) {
        let string = self.is_json.then(|| serde_json::from_str::<String>(value.trim()).ok()).flatten();
        let value = string.as_deref().unwrap_or(value);
        let root = self.name.as_deref().and_then(|name| cx.offered.schema(name));
        if self.types.is_mixed()
            && let Some(choice) = Shape::of(root, root).property(&self.key).choice(value.trim())
        {
            self.arguments.push_str(&choice);
            return;
        }
        // Where no text fits, tags are those of a tree.
        let tree = value.trim();
        if !self.types.has_text()
            && (self.types.has_object() || self.types.has_array())
            && tree.starts_with('<')
        {
            let before = self.arguments.len();
            let out = &mut self.arguments;
            if elements::write_argument(tree, "<", "</", root, &self.key, parsing, out).is_some() {
                self.repaired = true;
                return;
            }
            self.arguments.truncate(before);
        }
        self.repaired |= self.types.write(value, &mut self.arguments);
    }

    /// Hands on what has come of the value, where it is text.
    pub(super) fn stream(&mut self, text: &str, cx: &mut Cx<'_>) {
        if self.begun.is_none() || self.unopened.is_some() {
            return;
        }
        let verbatim = self.types.is_text() && !self.is_json && cx.parsing.is_verbatim();
        if verbatim && self.element.is_none() && !self.cdata {
            let value = cut(text, self.start..self.nested.first().unwrap_or(self.pos));
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
