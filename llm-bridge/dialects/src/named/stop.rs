//! Where the value of an argument ends: at its own end, at one that is garbled, or, where that is missing, at what
//! comes next.

use super::{MAX_NAME, NamedBody, head};
use crate::{
    body::{Cx, Is, Tail, ahead, cut, is, is_any, rest, tail},
    table::DelimiterKind,
};

/// What the first byte of a tag in a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The value's own end, which has so many bytes.
    Value(usize),
    /// Another tag, which ends the value although its own end is missing.
    Next,
    /// More text decides.
    More,
}

/// Whether a call begins at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    No,
    More,
    /// It does, and its name ends here.
    Yes {
        after: usize,
        wrapped: bool,
        empty: bool,
    },
}

/// Ends of values of other dialects, which models write in place of the own one.
pub(super) const OTHER_ENDS: [&str; 2] = ["</param>", "</arg_value>"];
/// A longer rest of a garbled end is none.
const MAX_GARBLED: usize = 32;

/// Whether this is the end of the very tag with which a call begins.
fn end_of(head: &str, end: &str) -> bool {
    head.strip_prefix('<') == end.strip_prefix("</")
}

/// The length of what may stand in a garbled end behind its name.
pub(super) fn slip(text: &str) -> usize {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'=' | b'-');
    text.bytes().take(MAX_GARBLED).take_while(part).count()
}

impl NamedBody {
    /// Whether the tag at the current position ends the value.
    pub(super) fn stop(&mut self, text: &str, eof: bool, cx: &Cx<'_>) -> Option<Stop> {
        let behind = self.rest(text);
        let mut more = false;
        match is(behind, self.value_end()) {
            Is::Yes => return Some(Stop::Value(self.value_end().len())),
            Is::Open => more = true,
            Is::No => {}
        }
        let tags = self.tags()?;
        match self.garbled_end(text, eof, cx) {
            Some(Stop::More) => more = true,
            Some(stop) => return Some(stop),
            None => {}
        }
        let before = cut(text, self.start..self.pos);
        let line = before.trim_end_matches([' ', '\t']).ends_with('\n');
        // Elements hold elements: none of them ends the value.
        let key = if tags.elements { Is::No } else { is(behind, tags.key.open()) };
        match key {
            Is::Yes => match self.key_at(text, self.pos, eof) {
                Ok(Some((name, _))) if self.takes(&name, line, cx) => return Some(Stop::Next),
                Ok(_) => {}
                Err(()) => more = true,
            },
            Is::Open => more = true,
            Is::No => {}
        }
        let longest = |ends: &[&'static str]| {
            ends.iter().filter(|end| behind.starts_with(**end)).map(|end| end.len()).max()
        };
        if let Some(length) = longest(self.style.end)
            && !self.ends_foreign_call(text, length, cx)
        {
            let after = self.pos + length;
            let tail = tail(text, after, self.row.close, &[], eof);
            let next = self.next_call(text, after, eof, cx);
            let closed = matches!(tail, Tail::Closed(_)) || self.ends_before(next, line);
            let ended = || rest(text, after).trim_start().is_empty();
            if closed || (line && !self.wrapped) || (eof && ended()) {
                return Some(Stop::Next);
            }
            more |= tail == Tail::Open || next.0 == Begins::More;
        }
        if let Some(length) = longest(self.row.close) {
            // At the end of the text it would end the value: until more has come, it may be that.
            let next = self.next_call(text, self.pos + length, eof, cx);
            if self.ends_before(next, line) {
                return Some(Stop::Next);
            }
            more |= next.0 == Begins::More;
        }
        let ends = self.style.end.iter().chain(self.row.close).copied();
        more |= is_any(behind, ends.filter(|end| !behind.starts_with(end))) == Is::Open;
        (more && !eof).then_some(Stop::More)
    }

    /// Whether the end of a call at the position, of this length, is that of another dialect's call that is written in the value.
    fn ends_foreign_call(&mut self, text: &str, length: usize, cx: &Cx<'_>) -> bool {
        if *cx.flat {
            return false;
        }
        let end = cut(text, self.pos..self.pos + length);
        let head = self.style.head.open();
        let mut tags = std::mem::take(&mut self.call_tags);
        let is_own = |at: usize| {
            // Other dialects share the tag, and go on otherwise behind it.
            let is_own = || self.head_at(cut(text, 0..self.pos), at, false, true, cx) != Begins::No;
            head.is_empty() || rest(text, at).starts_with(head) && (!end_of(head, end) || is_own())
        };
        let is_foreign = tags.is_foreign(text, self.pos, end, is_own);
        self.call_tags = tags;
        is_foreign
    }

    /// Whether this can be the second byte of a tag that means something in a value; most angle brackets are none.
    pub(super) fn begins_tag(&self, second: Option<u8>) -> bool {
        let Some(second) = second else { return true };
        let is_second = |delimiter: &str| delimiter.as_bytes().get(1) == Some(&second);
        self.tags().is_some_and(|tags| is_second(tags.end) || is_second(tags.key.open()))
            || is_second(self.style.head.open())
            || self.style.end.iter().chain(self.row.close).any(|delimiter| is_second(delimiter))
            || self.row.delimiters.iter().any(|delimiter| is_second(delimiter.text))
    }

    /// The value's end with a slip in it, such as `</parameter1>`, or one that repeats the argument's name. Before
    /// anything but another tag of the call it is text.
    fn garbled_end(&mut self, text: &str, eof: bool, cx: &Cx<'_>) -> Option<Stop> {
        let behind = self.rest(text);
        let stem = self.value_end().strip_suffix('>').filter(|stem| stem.starts_with("</"))?;
        let stem_length = stem.len();
        let named = behind.strip_prefix("</").and_then(|name| name.strip_prefix(self.key.as_str()));
        let length = if let Some(slip) = behind.strip_prefix(stem) {
            let length = self::slip(slip);
            let spaces = rest(slip, length).bytes().take_while(|byte| *byte == b' ').count();
            let ended = rest(slip, length + spaces).starts_with('>');
            stem.len() + length + if ended { spaces + 1 } else { 0 }
        } else if let Some((other, end)) =
            OTHER_ENDS.iter().enumerate().find(|(_, end)| behind.starts_with(**end))
        {
            let tag = end.replacen("</", "<", 1);
            let opened = self.other_tags.get_mut(other);
            let tag = tag.trim_end_matches('>');
            if opened.is_some_and(|search| search.finds(text, self.start, self.pos, tag)) {
                return None;
            }
            end.len()
        } else if named.is_some_and(|end| end.starts_with('>')) {
            // Text of the same tags ends with it as well.
            if self.own_tag.finds(text, self.start, self.pos, &format!("<{}", self.key)) {
                return None;
            }
            self.key.len() + "</>".len()
        } else {
            let open = named.is_some_and(str::is_empty) || "</".starts_with(behind);
            let open = open || behind.strip_prefix("</").is_some_and(|name| self.key.starts_with(name));
            let open = open || OTHER_ENDS.iter().any(|end| end.starts_with(behind));
            return open.then_some(Stop::More);
        };
        match self.is_framed_by_tags(text, self.pos + length, eof, cx) {
            Is::Yes if self.ends_longer_tag(text, stem_length, length) => None,
            Is::Yes => Some(Stop::Value(length)),
            Is::Open => Some(Stop::More),
            Is::No => None,
        }
    }

    /// Whether what begins as the value's end is that of a tag with a longer name that the value opens, as `</parameter>` is where the end is
    /// `</param>`.
    fn ends_longer_tag(&mut self, text: &str, stem: usize, length: usize) -> bool {
        let tag = cut(text, self.pos..self.pos + length).trim_end_matches('>');
        let (name, more) = (cut(tag, "</".len()..stem), rest(tag, stem));
        more.starts_with(|first: char| first.is_ascii_alphabetic())
            && self.longer_tags.closes(text, self.pos, name, more)
    }

    /// Whether another tag of the call stands here, or the text ends.
    fn is_framed_by_tags(&self, text: &str, at: usize, eof: bool, cx: &Cx<'_>) -> Is {
        let Some(at) = ahead(text, at, &[]) else { return Is::No };
        let behind = rest(text, at);
        if behind.is_empty() {
            return if eof { Is::Yes } else { Is::Open };
        }
        let Some(tags) = self.tags() else { return Is::No };
        let ends = match is_any(behind, self.style.end.iter().chain(self.row.close).copied()) {
            Is::No => self.is_garbled_call_end(behind, eof),
            known => known,
        };
        let key = match is(behind, tags.key.open()) {
            Is::Yes => match self.key_at(text, at, eof) {
                Ok(Some((name, _))) if self.takes(&name, true, cx) => Is::Yes,
                Ok(_) => Is::No,
                Err(()) => Is::Open,
            },
            other => other,
        };
        match (ends, key) {
            (Is::Yes, _) | (_, Is::Yes) => Is::Yes,
            (Is::Open, _) | (_, Is::Open) if !eof => Is::Open,
            _ => Is::No,
        }
    }

    /// Whether the end of the call stands here with a slip in it, such as `</function=get_time>`.
    fn is_garbled_call_end(&self, behind: &str, eof: bool) -> Is {
        let stems = self
            .style
            .end
            .iter()
            .filter_map(|end| end.strip_suffix('>'))
            .filter(|stem| stem.starts_with("</"));
        let slips =
            stems.filter_map(|stem| behind.strip_prefix(stem)).map(|slipped| rest(slipped, slip(slipped)));
        let mut found = Is::No;
        for after in slips {
            if after.starts_with('>') {
                return Is::Yes;
            }
            if after.is_empty() && !eof {
                found = Is::Open;
            }
        }
        found
    }

    /// The name of the argument whose tag begins here, and where that ends; an error while more text decides.
    pub(super) fn key_at(&self, text: &str, at: usize, eof: bool) -> Result<Option<(String, usize)>, ()> {
        let Some(tags) = self.tags() else { return Ok(None) };
        let named = at + tags.key.open().len();
        let after = rest(text, named);
        match head::name(&tags.key, after, eof) {
            head::Found::Name(found) => Ok(Some((found.name.into_owned(), named + found.end))),
            head::Found::More if after.len() <= MAX_NAME => Err(()),
            head::Found::More | head::Found::No(_) => Ok(None),
        }
    }

    /// Whether the tag of an argument of this name ends a value. Without a schema it does where a line begins. One that
    /// the call has already is what the value is about: no model opens an argument twice without closing it.
    fn takes(&self, key: &str, line: bool, cx: &Cx<'_>) -> bool {
        let key = key.trim();
        !self.keys.contains(key) && self.properties(cx).map_or(line, |all| all.contains_key(key))
    }

    /// The arguments that the tool has, if its schema says so.
    pub(super) fn properties<'c>(
        &self,
        cx: &'c Cx<'_>,
    ) -> Option<&'c serde_json::Map<String, serde_json::Value>> {
        let schema = self.name.as_deref().and_then(|name| cx.offered.schema(name))?;
        schema.get("properties")?.as_object().filter(|all| !all.is_empty())
    }

    /// Whether another call begins after white space, and whether on another line.
    fn next_call(&self, text: &str, from: usize, eof: bool, cx: &Cx<'_>) -> (Begins, bool) {
        match ahead(text, from, &[]) {
            Some(at) if at < text.len() => {
                (self.call_at(text, at, eof, cx), cut(text, from..at).contains('\n'))
            }
            Some(_) if !eof => (Begins::More, false),
            _ => (Begins::No, false),
        }
    }

    /// Whether what stands before such a call ends the value. Within a line it may be what the value is about; there the
    /// next call needs arguments, and all the delimiters that one has.
    fn ends_before(&self, (next, apart): (Begins, bool), line: bool) -> bool {
        match next {
            Begins::Yes { wrapped, empty, .. } => line || apart || (!empty && (wrapped || !self.wrapped)),
            Begins::No | Begins::More => false,
        }
    }

    /// Whether a call begins here, with its wrapper or its own delimiter.
    pub(super) fn call_at(&self, text: &str, at: usize, eof: bool, cx: &Cx<'_>) -> Begins {
        let behind = rest(text, at);
        let wraps = |kind| match kind {
            DelimiterKind::Wrapper | DelimiterKind::Section => true,
            // Where this call lacks the delimiter with which the next one begins.
            DelimiterKind::Call => self.style.head.open().is_empty(),
            _ => false,
        };
        let wrappers = self.row.delimiters.iter().filter(|delimiter| wraps(delimiter.kind));
        let wrappers = wrappers.map(|delimiter| delimiter.text);
        let length = wrappers.clone().filter(|text| behind.starts_with(text)).map(str::len).max();
        let open = is_any(behind, wrappers.filter(|text| !behind.starts_with(text))) == Is::Open;
        let inner = match length.map(|length| ahead(text, at + length, &[])) {
            Some(Some(inside)) => self.head_at(text, inside, true, eof, cx),
            Some(None) | None => Begins::No,
        };
        let direct = if self.style.head.open().is_empty() {
            Begins::No
        } else {
            self.head_at(text, at, false, eof, cx)
        };
        match (inner, direct) {
            (yes @ Begins::Yes { .. }, _) | (_, yes @ Begins::Yes { .. }) => yes,
            (Begins::More, _) | (_, Begins::More) => Begins::More,
            _ if open && !eof => Begins::More,
            _ => Begins::No,
        }
    }

    /// Whether the head of a call begins here, and its arguments or its end after it.
    fn head_at(&self, text: &str, at: usize, wrapped: bool, eof: bool, cx: &Cx<'_>) -> Begins {
        let more = if eof { Begins::No } else { Begins::More };
        let Some(tags) = self.tags() else { return Begins::No };
        let named = at + self.style.head.open().len();
        match is(rest(text, at), self.style.head.open()) {
            Is::Yes if named < text.len() => {}
            Is::No => return Begins::No,
            Is::Yes | Is::Open => return more,
        }
        match head::name(&self.style.head, rest(text, named), eof) {
            head::Found::Name(found) if !found.name.is_empty() => {
                let after = named + found.end;
                let Some(behind) = ahead(text, after, &[]).map(|at| rest(text, at)) else {
                    return Begins::No;
                };
                let ended = is_any(behind, self.style.end.iter().copied());
                let offered = cx.offered.contains(&found.name);
                match is_any(behind, [tags.key.open(), "{"]) {
                    Is::Yes => Begins::Yes { after, wrapped, empty: false },
                    _ if ended == Is::Yes && offered => Begins::Yes { after, wrapped, empty: true },
                    Is::Open => more,
                    Is::No if ended == Is::Open && offered => more,
                    Is::No => Begins::No,
                }
            }
            head::Found::More => more,
            head::Found::Name(_) | head::Found::No(_) => Begins::No,
        }
    }
}
