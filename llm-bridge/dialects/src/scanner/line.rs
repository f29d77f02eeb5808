//! What only the start of a line can hold: a code fence, JSON without a delimiter, a tag line.

use std::sync::Arc;

use memchr::memchr;

use super::{Scanner, State};
use crate::{
    Event, Offered,
    body::{Is, Ready, cut, is, is_any},
    candidate::Candidate,
    delimiters::Found,
    fence::{self, Fence, Opening},
    offered::TagLine,
    table::{DelimiterKind, Dialect, TAG_LINE},
    typing::{Types, quoted},
};

/// A longer line is no tag line.
const MAX_LINE: usize = 16 << 10;

/// What arguments begin with that have no delimiter.
const OBJECT: &str = "{";

/// What the first thing on a line is.
pub(super) enum Line {
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
    let schema = offered.schema(&tag.tool);
    let pattern = tag.pattern(schema)?;
    let groups = pattern.regex.captures(text)?;
    let mut out = String::from("{");
    for (name, group) in &pattern.groups {
        let Some(value) = groups.get(*group) else { continue };
        if out.len() > 1 {
            out.push_str(", ");
        }
        quoted(name, &mut out);
        out.push_str(": ");
        Types::of(schema, name).write(value.as_str(), &mut out);
    }
    out.push('}');
    Some(out)
}

impl Scanner {
    /// Looks at the first thing on a line: a fence, bare JSON, a tag.
    pub(super) fn line(
        &mut self,
        text: &str,
        from: usize,
        at: usize,
        eof: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Line {
        let rest = cut(text, at..text.len());
        let first = rest.bytes().next();
        let inside = self.offset + at < self.inside;
        let calls = self.thinking.is_none() && !self.offered.is_empty() && !inside;
        let begins = |first| self.delimiters.starts_line(first) || self.offered.begins(first);
        if self.offered.tags().is_empty() && first.is_some_and(|first| !begins(first)) {
            return Line::Other;
        }
        if matches!(first, Some(b'`' | b'~')) {
            return self.ticks(text, from, at, eof, calls, sink);
        }
        if self.place.fence > 0 {
            return Line::Other;
        }
        let only = self.options.only;
        let wanted = |name: &str| only.is_none_or(|only| only == name);
        if self.place.blank || self.place.framing || self.place.after_call {
            // A header that the prompt has begun goes on with its recipient.
            let headers = || self.delimiters.headers().iter().filter(|(_, row)| wanted(row.name));
            match is_any(rest, headers().map(|(address, _)| *address)) {
                Is::Open if !eof => {
                    self.emit(cut(text, from..at), sink);
                    return Line::Hold;
                }
                Is::Yes => {
                    let begun = headers().filter(|(address, _)| rest.starts_with(address));
                    let length = begun.clone().map(|(address, _)| address.len()).max().unwrap_or(0);
                    let rows = begun.filter(|(address, _)| address.len() == length);
                    let rows = rows.map(|(_, row)| (*row, DelimiterKind::Header)).collect();
                    self.emit(cut(text, from..at), sink);
                    self.state = State::Call(Box::new(Candidate::marked(rows, length)));
                    return Line::Enter;
                }
                _ => {}
            }
        }
        if self.place.blank && self.thinking.is_none() {
            match self.leading(text, from, at, eof, sink) {
                Line::Other => {}
                line => return line,
            }
        }
        if self.offset + at == 0 && self.thinking.is_none() {
            match self.is_stripped(rest, eof) {
                Ok(true) => {
                    self.stripped = true;
                    return Line::Enter;
                }
                Ok(false) => {}
                Err(()) => return Line::Hold,
            }
            let lines = || self.delimiters.lines().iter().filter(|(_, row)| wanted(row.name));
            match lines().find(|(line, _)| rest.starts_with(line)) {
                Some((line, row)) if rest.len() > line.len() => {
                    sink(Event::Frame(line));
                    self.begun = Some(row.name);
                    return Line::Called(at + line.len());
                }
                None if is_any(rest, lines().map(|(line, _)| *line)) != Is::Open => {}
                _ if eof => {}
                _ => return Line::Hold,
            }
        }
        if !calls {
            return Line::Other;
        }
        let shown = || self.place.last.with(cut(text, from..at)).opens_code();
        if matches!(first, Some(b'{' | b'['))
            && !shown()
            && matches!(self.delimiters.at(rest), Found::Nothing)
        {
            let rows = self.delimiters.bare().iter().copied().filter(|row| wanted(row.name));
            let candidate = Candidate::bare(rows, self.place.blank);
            self.emit(cut(text, from..at), sink);
            self.state = State::Call(Box::new(candidate));
            return Line::Enter;
        }
        let delimiters = self.delimiters;
        for (word, row) in delimiters.words().iter().filter(|(_, row)| wanted(row.name)) {
            match is(rest, word) {
                Is::No => {}
                Is::Open if eof => {}
                Is::Open => {
                    self.emit(cut(text, from..at), sink);
                    return Line::Hold;
                }
                Is::Yes => {
                    self.emit(cut(text, from..at), sink);
                    let candidate = Candidate::marked(vec![(row, DelimiterKind::Line)], word.len());
                    self.state = State::Call(Box::new(candidate));
                    return Line::Enter;
                }
            }
        }
        if first == Some(b'<') && self.place.margin && !shown() {
            let row = self.delimiters.tool_tags().iter().find(|row| wanted(row.name));
            match self.offered.tagged(rest, eof) {
                Ok(true) if matches!(self.delimiters.at(rest), Found::Nothing) => {
                    if let Some(row) = row {
                        self.emit(cut(text, from..at), sink);
                        let candidate = Candidate::marked(vec![(row, DelimiterKind::Name)], 0);
                        self.state = State::Call(Box::new(candidate.unproven(true)));
                        return Line::Enter;
                    }
                }
                Ok(_) => {}
                Err(()) if row.is_some() => {
                    self.emit(cut(text, from..at), sink);
                    return Line::Hold;
                }
                Err(()) => {}
            }
        }
        let begins_name = |first: u8| {
            self.offered.begins(first)
                || self.delimiters.spaces().any(|space| space.as_bytes().first() == Some(&first))
        };
        if self.place.margin && first.is_some_and(begins_name) {
            match self.name(rest, eof) {
                Ok(None) => {}
                Ok(Some(row)) => {
                    self.emit(cut(text, from..at), sink);
                    let candidate = Candidate::marked(vec![(row, DelimiterKind::Name)], 0).unproven(true);
                    self.state = State::Call(Box::new(candidate));
                    return Line::Enter;
                }
                Err(()) => {
                    self.emit(cut(text, from..at), sink);
                    return Line::Hold;
                }
            }
        }
        // What is quoted is shown.
        self.place.quote_line |= first == Some(b'>');
        if self.offered.tags().is_empty() || !self.place.margin {
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
            let shown = !tag.is_stripped() && !self.drops_text();
            if shown {
                self.emit(source, sink);
            }
            let ready = Ready {
                name: tag.tool.clone(),
                arguments,
                repaired: false,
                end: source.len(),
                index: None,
                bare_name: false,
                closed: source.ends_with('\n'),
            };
            self.commit(vec![ready], source.len(), source, TAG_LINE, shown, sink);
            return Line::Called(at + source.len());
        }
        Line::Other
    }

    /// The dialect whose calls begin with a tool's name and what stands after it; an error while more text decides.
    fn name(&self, text: &str, eof: bool) -> Result<Option<&'static Dialect>, ()> {
        if is_any(text, self.delimiters.spaces()) == Is::Open && !eof {
            return Err(());
        }
        let spaces = self.delimiters.spaces().filter(|space| text.starts_with(space));
        let mut named = None;
        for space in spaces.chain([""]) {
            let apart = cut(text, space.len()..text.len());
            if apart.is_empty() && !eof {
                return Err(());
            }
            named = named.or(self.offered.named_by(apart, eof)?.map(|name| (name, apart)));
        }
        let Some((name, named)) = named else { return Ok(None) };
        let behind = cut(named, name.len()..named.len());
        // Where only an object follows, the tool has to say that it takes it.
        let known = self.offered.schema(&self.offered.resolve(name.to_owned())).is_some();
        let wanted = |row: &Dialect| self.options.only.is_none_or(|only| only == row.name);
        let mut open = false;
        let counts = |word: &str| known || word.trim_start() != OBJECT;
        let names = self.delimiters.names().iter().filter(|(word, row)| wanted(row) && counts(word));
        for (word, row) in names {
            match is(behind, word) {
                Is::Yes => return Ok(Some(row)),
                Is::Open => open |= !eof,
                Is::No => {}
            }
        }
        if open { Err(()) } else { Ok(None) }
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
        let Some(delimiter) = rest.bytes().next() else { return Line::Other };
        if self.place.fence > 0 {
            if delimiter != self.place.fence_mark {
                return Line::Other;
            }
            let ticks = rest.bytes().take(self.place.fence).take_while(|byte| *byte == delimiter).count();
            if ticks == rest.len() && ticks < self.place.fence && !eof {
                self.emit(cut(text, from..at), sink);
                return Line::Hold;
            }
            if ticks == self.place.fence {
                self.place.fence = 0;
            }
            self.written();
            return Line::Past(at + ticks);
        }
        match fence::opening(rest, delimiter, eof) {
            Opening::None => Line::Other,
            Opening::More => {
                self.emit(cut(text, from..at), sink);
                Line::Hold
            }
            Opening::Holds(ticks, len, named) if calls => {
                self.emit(cut(text, from..at), sink);
                let fence = Fence::new((ticks, len, named), self.place.blank, self.options.only);
                self.state = State::Call(Box::new(Candidate::fence(fence)));
                Line::Enter
            }
            Opening::Holds(ticks, ..) | Opening::Shows(ticks) => {
                (self.place.fence, self.place.fence_mark) = (ticks, delimiter);
                self.written();
                Line::Past(at + ticks)
            }
        }
    }
}
