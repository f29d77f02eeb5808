//! Strings: where they begin and end, and their escapes.

use memchr::{memchr, memchr2, memchr3};

use super::{LiteralStyle, Literals, Part, Read};
use crate::{
    body::{MAX_BLANK, ahead, cut, rest},
    typing::escape,
};

/// A string that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    quote: Quote,
    /// Backslashes are text.
    pub(super) raw: bool,
    /// It is a key.
    pub(super) key: bool,
    /// A quote was opened in it that was not escaped.
    inner: bool,
}

#[derive(Debug, Clone, Copy)]
enum Quote {
    /// One of the style's own, in which nothing is escaped.
    Own(&'static str),
    One(u8),
    Three(&'static str),
}

impl Quote {
    fn len(self) -> usize {
        match self {
            Self::Own(delimiter) | Self::Three(delimiter) => delimiter.len(),
            Self::One(_) => 1,
        }
    }
}

/// Whether something stands at a place.
#[derive(Debug)]
pub(super) enum Ends<T> {
    Yes(T),
    No,
    /// More text decides.
    More,
}

impl Literals {
    /// The string that begins at the position.
    pub(super) fn opening(&self, text: &str, eof: bool) -> Ends<Text> {
        let rest = cut(text, self.pos..text.len());
        let string = |quote| Ends::Yes(Text { quote, raw: false, key: false, inner: false });
        for own in self.style.quotes {
            if rest.starts_with(own) {
                return string(Quote::Own(own));
            }
            if own.starts_with(rest) && !eof {
                return Ends::More;
            }
        }
        let (one, three) = match rest.bytes().next() {
            Some(b'"') => (b'"', r#"""""#),
            Some(b'\'') => (b'\'', "'''"),
            Some(b'`') if !self.style.is_python() => return string(Quote::One(b'`')),
            _ => return Ends::No,
        };
        if rest.starts_with(three) {
            string(Quote::Three(three))
        } else if three.starts_with(rest) && !eof {
            Ends::More
        } else {
            string(Quote::One(one))
        }
    }

    pub(super) fn begin(&mut self, string: Text, out: &mut String) {
        self.repaired |= !self.style.is_python() && !matches!(string.quote, Quote::Own(_));
        out.push('"');
        self.pos += string.quote.len();
        self.part = Part::Text(string);
    }

    /// Reads on in a string. All of it up to the position has been written.
    pub(super) fn text(&mut self, string: Text, text: &str, eof: bool, out: &mut String) -> Option<Read> {
        let read = match string.quote {
            Quote::Own(delimiter) => self.own(delimiter, string.key, text, out),
            Quote::One(_) | Quote::Three(_) => self.escaped(string, text, eof, out),
        };
        if read == Read::Done {
            out.push('"');
            self.pos += string.quote.len();
            self.part = if string.key { Part::Assign } else { Part::After };
            return None;
        }
        Some(read)
    }

    fn own(&mut self, delimiter: &str, key: bool, text: &str, out: &mut String) -> Read {
        let rest = cut(text, self.pos..text.len());
        let first = delimiter.bytes().next().unwrap_or_default();
        let mut end = 0;
        let mut early = None;
        let (end, read) = loop {
            let after = cut(rest, end..rest.len());
            let Some(at) = memchr(first, after.as_bytes()) else { break (rest.len(), Read::More) };
            let found = cut(after, at..after.len());
            if found.starts_with(delimiter) {
                break (end + at, Read::Done);
            }
            let open = |close: &&str| found.len() < close.len() && close.starts_with(found);
            if delimiter.starts_with(found) || self.closes.iter().any(open) {
                break (end + at, Read::More);
            }
            if !key && early.is_none() && self.closes.iter().any(|close| found.starts_with(close)) {
                early = Some(end + at);
            }
            end += at + found.chars().next().map_or(1, char::len_utf8);
        };
        let early = early.filter(|_| self.early.is_none()).and_then(|at| {
            let inside = cut(rest, 0..at);
            Some(self.before_bracket(inside)).filter(|end| *end < at)
        });
        let end = if read == Read::More { self.before_bracket(cut(rest, 0..end)) } else { end };
        if let Some(early) = early {
            escape(cut(rest, 0..early), out);
            self.early = Some((self.pos + early, out.len()));
            self.depth = self.stack.len();
        }
        escape(cut(rest, early.unwrap_or(0)..end), out);
        self.pos += end;
        read
    }

    /// How much of a string may be written of which more is to come: a bracket at its end may turn out to end it.
    fn before_bracket(&self, text: &str) -> usize {
        let whole = text.trim_end();
        let close = whole.strip_suffix(char::from(self.style.close));
        let near = text.len() - whole.len() <= MAX_BLANK && !self.closes.is_empty();
        close.filter(|_| near).map_or(text.len(), str::len)
    }

    /// The length of one of the style's own delimiters that stands after a value to which it does not belong.
    pub(super) fn stray_quote(&self, text: &str, eof: bool) -> Ends<usize> {
        let behind = rest(text, self.pos);
        for own in self.style.quotes {
            let Some(after) = behind.strip_prefix(own) else {
                if own.starts_with(behind) && !eof {
                    return Ends::More;
                }
                continue;
            };
            let Some(next) = ahead(after, 0, &[]) else { return Ends::No };
            return match after.as_bytes().get(next) {
                None if !eof => Ends::More,
                Some(b',' | b'}' | b']' | b')') => Ends::Yes(own.len()),
                _ => Ends::No,
            };
        }
        Ends::No
    }

    fn escaped(&mut self, mut string: Text, text: &str, eof: bool, out: &mut String) -> Read {
        let quote = match string.quote {
            Quote::One(quote) => quote,
            Quote::Three("'''") => b'\'',
            Quote::Three(_) | Quote::Own(_) => b'"',
        };
        loop {
            let rest = cut(text, self.pos..text.len());
            let stop = match string.quote {
                Quote::One(_) => memchr3(quote, b'\\', b'\n', rest.as_bytes()),
                _ => memchr2(quote, b'\\', rest.as_bytes()),
            };
            let stop = stop.unwrap_or(rest.len());
            escape(cut(rest, 0..stop), out);
            self.pos += stop;
            let rest = cut(rest, stop..rest.len());
            match rest.bytes().next() {
                None => return Read::More,
                Some(b'\n') => {
                    self.repaired = true;
                    out.push_str("\\n");
                    self.pos += 1;
                }
                Some(b'\\') if string.raw => {
                    let Some(next) = rest.chars().nth(1) else { return Read::More };
                    let length = 1 + next.len_utf8();
                    escape(cut(rest, 0..length), out);
                    self.pos += length;
                }
                Some(b'\\') => match unescape(rest, eof) {
                    Escape::More => return Read::More,
                    Escape::Char(char, length) => {
                        escape(char.encode_utf8(&mut [0; 4]), out);
                        self.pos += length;
                    }
                    Escape::Nothing(length) => self.pos += length,
                    Escape::Text => {
                        out.push_str("\\\\");
                        self.pos += 1;
                    }
                },
                Some(_) => {
                    match self.closes(string, rest, eof) {
                        Ends::Yes(()) => return Read::Done,
                        Ends::More => return Read::More,
                        Ends::No => {}
                    }
                    let spaced = cut(text, 0..self.pos).ends_with([' ', '=', '(']);
                    string.inner = spaced && !string.inner;
                    self.part = Part::Text(string);
                    self.repaired |= matches!(string.quote, Quote::One(_));
                    escape(cut(rest, 0..1), out);
                    self.pos += 1;
                }
            }
        }
    }

    /// Whether the quote that `rest` begins with ends the string. One that models forget to escape is recognized by what
    /// nothing in Python has after a string: a letter, a sign that is no operator, or too many closing brackets.
    fn closes(&self, string: Text, rest: &str, eof: bool) -> Ends<()> {
        let quote = string.quote;
        if let Quote::Three(delimiter) = quote {
            return if rest.starts_with(delimiter) {
                Ends::Yes(())
            } else if delimiter.starts_with(rest) && !eof {
                Ends::More
            } else {
                Ends::No
            };
        }
        let after = cut(rest, 1..rest.len());
        if after.starts_with(|next: char| next.is_alphanumeric() || "_\\{$~?;".contains(next)) {
            return Ends::No;
        }
        if string.inner {
            // It closes the one before it, unless the string can end here.
            let Some(next) = ahead(after, 0, &[]) else { return Ends::No };
            match after.as_bytes().get(next) {
                None if !eof => return Ends::More,
                None | Some(b',' | b')' | b']' | b'}' | b':') => {}
                Some(_) => return Ends::No,
            }
        }
        let mut depth = self.stack.len();
        for byte in after.bytes() {
            if depth == 0 {
                let ends = self.around && byte == b')' || !matches!(byte, b')' | b'"' | b'\'');
                return if ends { Ends::Yes(()) } else { Ends::No };
            }
            if byte != self.closer(depth) {
                return Ends::Yes(());
            }
            depth -= 1;
        }
        if eof { Ends::Yes(()) } else { Ends::More }
    }
}

enum Escape {
    Char(char, usize),
    /// A line that goes on.
    Nothing(usize),
    /// The backslash stands for itself.
    Text,
    More,
}

/// The escape that `rest` begins with, as Python reads it.
fn unescape(rest: &str, eof: bool) -> Escape {
    let Some(next) = rest.chars().nth(1) else { return Escape::More };
    match next {
        '\n' => Escape::Nothing(2),
        '\r' => match rest.as_bytes().get(2).copied() {
            None if !eof => Escape::More,
            Some(b'\n') => Escape::Nothing(3),
            _ => Escape::Nothing(2),
        },
        '\\' | '\'' | '"' => Escape::Char(next, 2),
        'n' => Escape::Char('\n', 2),
        't' => Escape::Char('\t', 2),
        'r' => Escape::Char('\r', 2),
        'a' => Escape::Char('\x07', 2),
        'b' => Escape::Char('\x08', 2),
        'f' => Escape::Char('\x0c', 2),
        'v' => Escape::Char('\x0b', 2),
        '0'..='7' => {
            let digits = rest.bytes().skip(1).take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            if digits < 3 && rest.len() == 1 + digits && !eof {
                return Escape::More;
            }
            let code = u32::from_str_radix(cut(rest, 1..1 + digits), 8).unwrap_or_default();
            Escape::Char(char::from_u32(code).unwrap_or_default(), 1 + digits)
        }
        'x' => code(rest, 2, eof),
        'u' => code(rest, 4, eof),
        'U' => code(rest, 8, eof),
        _ => Escape::Text,
    }
}

/// An escape with a number of hexadecimal digits.
fn code(rest: &str, digits: usize, eof: bool) -> Escape {
    let code = match hex(rest, digits) {
        Ends::Yes(code) => code,
        Ends::More if !eof => return Escape::More,
        Ends::More | Ends::No => return Escape::Text,
    };
    if let Some(char) = char::from_u32(code) {
        return Escape::Char(char, 2 + digits);
    }
    if !(0xd800..0xe000).contains(&code) {
        return Escape::Text;
    }
    // Half a pair, as JSON writes characters beyond the first 65536.
    let tail = cut(rest, 2 + digits..rest.len());
    if digits == 4 && code < 0xdc00 {
        let other = if tail.starts_with("\\u") { hex(tail, 4) } else { Ends::No };
        match other {
            Ends::Yes(low @ 0xdc00..0xe000) => {
                let pair = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                return Escape::Char(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
            }
            Ends::More if !eof => return Escape::More,
            Ends::No if "\\u".starts_with(tail) && !eof => return Escape::More,
            _ => {}
        }
    }
    Escape::Char(char::REPLACEMENT_CHARACTER, 2 + digits)
}

/// The digits after a backslash and a letter.
fn hex(rest: &str, digits: usize) -> Ends<u32> {
    let found = rest.bytes().skip(2).take(digits).take_while(u8::is_ascii_hexdigit).count();
    if found == digits {
        return u32::from_str_radix(cut(rest, 2..2 + digits), 16).map_or(Ends::No, Ends::Yes);
    }
    if rest.len() == 2 + found { Ends::More } else { Ends::No }
}

/// Whether a style's own delimiter could not be distinguished from the text before it.
pub(super) fn hides(style: &LiteralStyle, delimiter: &str, text: &str) -> bool {
    style.quotes.iter().any(|own| text.contains(own))
        || format!("{text}{delimiter}").find(delimiter).is_none_or(|at| at < text.len())
}
