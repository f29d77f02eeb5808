//! Reads the arguments of a call that are written as literals, `key=value` or `key:value`, and writes them as JSON.
//!
//! Nothing is evaluated: what is no literal is refused. The reader goes over the text once and keeps only its
//! position, so that a text costs the same however it is cut.

mod entry;
mod string;
#[cfg(test)]
mod tests;
mod word;
mod write;

use self::string::{Ends, Text};
pub(super) use self::{
    word::number,
    write::{write, write_argument_key, write_member_key, write_value},
};
use crate::body::{Is, is_any, rest};

/// How the arguments of a call are written as literals.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LiteralStyle {
    /// What stands between a key and its value: `b'='` or `b':'`.
    pub assign: u8,
    /// What ends the arguments: `b')'` or `b'}'`.
    pub close: u8,
    /// Delimiters of strings in which nothing is escaped. Where there are any, keys and strings may stand bare,
    /// and an object is written like the arguments; without them the notation is Python's.
    pub quotes: &'static [&'static str],
}

impl LiteralStyle {
    /// Python's notation, but for what stands between a key and its value and what ends the arguments.
    pub const fn new(assign: u8, close: u8) -> Self {
        Self { assign, close, quotes: &[] }
    }

    /// The style with these delimiters of strings, and its own notation.
    pub const fn quotes(mut self, quotes: &'static [&'static str]) -> Self {
        self.quotes = quotes;
        self
    }

    fn is_python(&self) -> bool {
        self.quotes.is_empty()
    }
}

/// How far a reader has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// It needs more text.
    More,
    /// The closing byte was read; the position is after it.
    Done,
    /// This is not written in this notation, which is known at the position.
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Arguments,
    Dict,
    List,
    Tuple,
    /// Written as a list.
    Set,
}

/// A bracket that is open.
#[derive(Debug)]
struct Frame {
    kind: Kind,
    /// It has an entry.
    filled: bool,
    /// A comma stands in it.
    comma: bool,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Begin,
    /// Before a key, or the end.
    Key,
    /// In a key without quotes that begins here.
    BareKey(usize),
    /// Between a key and its value.
    Assign,
    /// Before a value, or the end of a list.
    Value,
    /// In a value without quotes that begins here.
    Word(usize),
    Text(Text),
    /// After a value.
    After,
    Ended(Read),
}

/// The reader.
#[derive(Debug)]
pub(super) struct Literals {
    style: LiteralStyle,
    pos: usize,
    part: Part,
    stack: Vec<Frame>,
    repaired: bool,
    /// Where the bracket stands in what was written that is one of a dictionary unless its first entry has no value.
    doubt: Option<usize>,
    /// The last key had no quotes.
    bare: bool,
    /// The names of the arguments in their order, for values that have none.
    positions: Vec<String>,
    /// A bracket stands around the call.
    around: bool,
    /// How many values without a name there have been.
    unnamed: usize,
    /// What may close the calls.
    closes: &'static [&'static str],
    /// A delimiter says that it is a call: slips are mended that else would say it is none.
    marked: bool,
    /// Where a string may have ended whose end is missing, and what had been written up to there.
    early: Option<(usize, usize)>,
    /// How many brackets were open there.
    depth: usize,
    /// The first of them is an object, which may hold all arguments: nothing is certain before their end.
    whole: bool,
}

impl Literals {
    /// `at` is the offset after the opening bracket.
    pub(super) fn new(style: LiteralStyle, at: usize) -> Self {
        Self {
            style,
            pos: at,
            part: Part::Begin,
            stack: Vec::new(),
            repaired: false,
            doubt: None,
            bare: false,
            positions: Vec::new(),
            around: false,
            unnamed: 0,
            closes: &[],
            marked: false,
            early: None,
            depth: 0,
            whole: false,
        }
    }

    /// The reader of arguments that have these names in their order, where they are written without.
    pub(super) fn at_positions(self, positions: Vec<String>) -> Self {
        Self { positions, ..self }
    }

    /// The reader of calls that one of these may close. `marked`: a delimiter stands before them.
    pub(super) fn closed_by(self, closes: &'static [&'static str], marked: bool) -> Self {
        let closes = if marked || !self.style.is_python() { closes } else { &[] };
        Self { closes, marked, ..self }
    }

    /// The reader of a call that may stand in another bracket of its own kind.
    pub(super) fn within(self, around: bool) -> Self {
        Self { around, ..self }
    }

    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    /// Something was read that the notation does not strictly have.
    pub(super) fn repaired(&self) -> bool {
        self.repaired
    }

    /// How many values stand there without a name.
    pub(super) fn unnamed(&self) -> usize {
        self.unnamed
    }

    /// How much of what was written is certain.
    pub(super) fn certain(&self, out: &str) -> usize {
        let early = self.early.map_or(out.len(), |(_, written)| written);
        if self.whole { 1 } else { self.doubt.unwrap_or(out.len()).min(early) }
    }

    /// Reads on in `text`, which has grown, and appends to `out` what is certain of the JSON.
    pub(super) fn feed(&mut self, text: &str, eof: bool, out: &mut String) -> Read {
        loop {
            let Some(mut read) = self.step(text, eof, out) else { continue };
            if read == Read::More {
                if !eof {
                    return read;
                }
                self.pos = text.len();
                read = Read::Fail;
            }
            if read == Read::Fail
                && let Some((end, written)) = self.early.take()
            {
                out.truncate(written);
                out.push('"');
                (self.pos, self.part, self.repaired) = (end, Part::After, true);
                self.stack.truncate(self.depth);
                continue;
            }
            self.part = Part::Ended(read);
            return read;
        }
    }

    fn step(&mut self, text: &str, eof: bool, out: &mut String) -> Option<Read> {
        if matches!(self.part, Part::Key | Part::Assign | Part::Value | Part::After) {
            let rest = text.as_bytes().get(self.pos..).unwrap_or_default();
            self.pos += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        }
        if let Part::Text(string) = self.part {
            return self.text(string, text, eof, out);
        }
        let Some(byte) = text.as_bytes().get(self.pos).copied() else {
            return Some(if let Part::Ended(read) = self.part { read } else { Read::More });
        };
        match self.part {
            Part::Begin => {
                out.push('{');
                self.open(Kind::Arguments);
                None
            }
            Part::Key => self.key(byte, text, eof, out),
            Part::BareKey(start) => self.bare_key(start, text, out),
            Part::Assign if self.is_set(byte) => self.make_set(out),
            Part::Assign => {
                self.doubt = None;
                if byte != self.assign() && !self.assigns(byte) {
                    return Some(Read::Fail);
                }
                self.repaired |= byte != self.assign();
                out.push(':');
                self.pos += 1;
                self.part = Part::Value;
                None
            }
            Part::Value => self.value(byte, text, eof, out),
            Part::Word(start) => self.word(start, text, eof, out),
            Part::After => {
                match self.missing(text, eof) {
                    Is::Yes => {
                        self.repaired = true;
                        return self.close_all(out);
                    }
                    Is::Open => return Some(Read::More),
                    Is::No => {}
                }
                match self.stray_quote(text, eof) {
                    Ends::Yes(length) => {
                        self.repaired = true;
                        self.pos += length;
                        return None;
                    }
                    Ends::More => return Some(Read::More),
                    Ends::No => {}
                }
                if byte == b',' || byte == self.closer(self.stack.len()) {
                    self.early = None;
                }
                if byte == b',' {
                    self.pos += 1;
                    if let Some(frame) = self.stack.last_mut() {
                        frame.comma = true;
                    }
                    self.part = if self.keyed() { Part::Key } else { Part::Value };
                    return None;
                }
                if byte == self.closer(self.stack.len()) {
                    return self.close(out);
                }
                match self.forgotten_comma(text, eof) {
                    Is::Yes => {
                        self.repaired = true;
                        self.part = Part::Key;
                        None
                    }
                    Is::Open => Some(Read::More),
                    Is::No => Some(Read::Fail),
                }
            }
            Part::Text(_) | Part::Ended(_) => Some(Read::Fail),
        }
    }

    /// The innermost bracket has entries with keys.
    fn keyed(&self) -> bool {
        self.stack.last().is_some_and(|frame| matches!(frame.kind, Kind::Arguments | Kind::Dict))
    }

    fn filled(&self) -> bool {
        self.stack.last().is_some_and(|frame| frame.filled)
    }

    fn assign(&self) -> u8 {
        if self.stack.len() == 1 { self.style.assign } else { b':' }
    }

    /// Whether this stands for what assigns values: what assigns in an ordinary call, or in an object.
    fn assigns(&self, byte: u8) -> bool {
        let other = if self.style.is_python() { self.marked.then_some(b':') } else { Some(b'=') };
        other == Some(byte) && self.stack.len() == 1
    }

    /// Whether another argument stands here, with its name, before which a comma is missing.
    fn forgotten_comma(&self, text: &str, eof: bool) -> Is {
        if !self.marked || !self.style.is_python() || self.stack.len() != 1 {
            return Is::No;
        }
        let behind = rest(text, self.pos);
        let end = behind.find(|char: char| !(char.is_alphanumeric() || char == '_'));
        let (name, after) = behind.split_at_checked(end.unwrap_or(behind.len())).unwrap_or_default();
        let after = after.trim_start();
        match after.bytes().next() {
            _ if !word::is_identifier(name) => Is::No,
            None if eof => Is::No,
            None => Is::Open,
            Some(byte) if byte == self.assign() && !after.starts_with("==") => Is::Yes,
            Some(_) => Is::No,
        }
    }

    /// What closes the bracket at this depth.
    fn closer(&self, depth: usize) -> u8 {
        match depth.checked_sub(1).and_then(|index| self.stack.get(index)).map(|frame| frame.kind) {
            Some(Kind::Dict | Kind::Set) => b'}',
            Some(Kind::List) => b']',
            Some(Kind::Tuple) => b')',
            Some(Kind::Arguments) | None => self.style.close,
        }
    }

    fn open(&mut self, kind: Kind) {
        self.stack.push(Frame { kind, filled: false, comma: false });
        self.part = if self.keyed() { Part::Key } else { Part::Value };
    }

    fn close(&mut self, out: &mut String) -> Option<Read> {
        let Frame { kind, filled, comma } = self.stack.pop()?;
        // Without a comma these are brackets around an expression.
        if kind == Kind::Tuple && filled && !comma {
            return Some(Read::Fail);
        }
        out.push(if matches!(kind, Kind::Arguments | Kind::Dict) { '}' } else { ']' });
        self.pos += 1;
        self.part = Part::After;
        self.stack.is_empty().then_some(Read::Done)
    }

    /// Whether what closes the calls stands before the brackets are closed.
    fn missing(&self, text: &str, eof: bool) -> Is {
        match is_any(rest(text, self.pos), self.closes.iter().copied()) {
            Is::Open if eof => Is::No,
            found => found,
        }
    }

    /// Closes all brackets; what closes the calls is left where it is.
    fn close_all(&mut self, out: &mut String) -> Option<Read> {
        while let Some(Frame { kind, .. }) = self.stack.pop() {
            out.push(if matches!(kind, Kind::Arguments | Kind::Dict) { '}' } else { ']' });
        }
        Some(Read::Done)
    }

    /// What stands after the first entry in braces says that they are those of a set.
    fn is_set(&self, byte: u8) -> bool {
        self.doubt.is_some() && matches!(byte, b',' | b'}')
    }

    /// Writes what was taken for a dictionary as a list.
    fn make_set(&mut self, out: &mut String) -> Option<Read> {
        let entry = out.split_off(self.doubt.take()?);
        let entry = entry.get(1..)?;
        out.push('[');
        // An integer was taken for a key, which is a string.
        let integer = entry.strip_prefix('"').and_then(|entry| entry.strip_suffix('"'));
        out.push_str(integer.filter(|_| self.bare).unwrap_or(entry));
        if let Some(frame) = self.stack.last_mut() {
            frame.kind = Kind::Set;
        }
        self.part = Part::After;
        None
    }

    /// Closes a bracket where an entry could stand.
    fn close_early(&mut self, out: &mut String) -> Option<Read> {
        self.doubt = None;
        self.repaired |= self.filled() && !self.style.is_python();
        self.close(out)
    }
}
