//! The entries of a bracket: keys, and values that are no strings.

use memchr::memchr3;

use super::{Kind, Literals, Part, Read, string::Ends, word};
use crate::{
    body::{Is, MAX_BLANK, cut, is_any, rest},
    repair::MAX_DEPTH,
    typing::quoted,
};

impl Literals {
    /// Begins an entry of the innermost bracket.
    fn entry(&mut self, out: &mut String) {
        if let Some(frame) = self.stack.last_mut() {
            if frame.filled {
                out.push(',');
            }
            frame.filled = true;
        }
    }

    pub(super) fn key(&mut self, byte: u8, text: &str, eof: bool, out: &mut String) -> Option<Read> {
        if byte == self.closer(self.stack.len()) {
            return self.close_early(out);
        }
        let python = self.style.is_python();
        if !python || self.stack.len() > 1 {
            match self.opening(text, eof) {
                Ends::More => return Some(Read::More),
                Ends::Yes(mut string) => {
                    self.entry(out);
                    string.key = true;
                    self.bare = false;
                    self.repaired |= !python;
                    self.begin(string, out);
                    return None;
                }
                Ends::No => {}
            }
        }
        let unnamed = matches!(byte, b'"' | b'\'' | b'[' | b'{' | b'-' | b'0'..=b'9');
        if unnamed && self.position(out) {
            self.whole |= byte == b'{' && self.unnamed == 1;
            self.part = Part::Value;
            return None;
        }
        self.part = Part::BareKey(self.pos);
        None
    }

    /// Writes the name of a value that stands without one, if the arguments' order is known.
    fn position(&mut self, out: &mut String) -> bool {
        let python = self.style.is_python() && self.stack.len() == 1;
        let Some(name) = self.positions.get(self.unnamed).filter(|_| python).cloned() else { return false };
        self.unnamed += 1;
        self.repaired = true;
        self.entry(out);
        quoted(&name, out);
        out.push(':');
        true
    }

    pub(super) fn bare_key(&mut self, start: usize, text: &str, out: &mut String) -> Option<Read> {
        let rest = cut(text, self.pos..text.len());
        let python = self.style.is_python();
        let ends = |char: char| {
            if python {
                !(char.is_alphanumeric() || char == '_')
            } else {
                matches!(char, ':' | ',' | '"' | '\'' | '{' | '}' | '[' | ']')
                    || u8::try_from(char).is_ok_and(|byte| self.assigns(byte))
            }
        };
        let Some(length) = rest.find(ends) else {
            self.pos = text.len();
            return Some(Read::More);
        };
        self.pos += length;
        let key = cut(text, start..self.pos).trim_end();
        let good = if !python {
            let next = text.as_bytes().get(self.pos);
            !key.is_empty() && next.is_some_and(|next| *next == self.assign() || self.assigns(*next))
        } else if self.stack.len() == 1 {
            word::is_identifier(key)
        } else {
            // The only other keys a JSON writer of Python takes and models use.
            word::is_plain_integer(key)
        };
        let arguments = self.stack.len() == 1;
        let unnamed = arguments && matches!(key, "True" | "False" | "None");
        if unnamed && matches!(text.as_bytes().get(self.pos), Some(b',' | b')')) && self.position(out) {
            word::literal(key, python, out);
            self.part = Part::After;
            return None;
        }
        if !good || arguments && self.positions.iter().take(self.unnamed).any(|name| name == key) {
            return Some(Read::Fail);
        }
        if arguments {
            // No value without a name comes after one that has it.
            self.positions.truncate(self.unnamed);
        }
        self.entry(out);
        quoted(key, out);
        self.bare = true;
        self.part = Part::Assign;
        None
    }

    pub(super) fn value(&mut self, byte: u8, text: &str, eof: bool, out: &mut String) -> Option<Read> {
        if !self.keyed() && byte == self.closer(self.stack.len()) {
            return self.close_early(out);
        }
        let opening = self.opening(text, eof);
        if matches!(opening, Ends::More) {
            return Some(Read::More);
        }
        if !self.keyed() {
            self.entry(out);
        }
        let kind = match byte {
            b'{' => {
                self.doubt = self.style.is_python().then_some(out.len());
                Kind::Dict
            }
            b'[' => Kind::List,
            b'(' if self.style.is_python() => Kind::Tuple,
            _ => {
                if let Ends::Yes(string) = opening {
                    self.begin(string, out);
                } else {
                    self.part = Part::Word(self.pos);
                }
                return None;
            }
        };
        if self.stack.len() == MAX_DEPTH {
            return Some(Read::Fail);
        }
        out.push(if kind == Kind::Dict { '{' } else { '[' });
        self.pos += 1;
        self.open(kind);
        None
    }

    /// Whether the comma at the position belongs to a string without its opening delimiter: the closing one comes before
    /// anything that could be a key.
    fn has_comma(&self, text: &str, eof: bool) -> Is {
        let behind = rest(text, self.pos + 1);
        let area = cut(behind, 0..behind.floor_char_boundary(MAX_BLANK));
        let quote = |at: &usize| {
            self.style.quotes.iter().any(|quote| rest(area, *at).starts_with(quote.get(..1).unwrap_or(quote)))
        };
        let stop = |(_, char): &(usize, char)| matches!(char, ':' | '=' | '{' | '}' | '[' | ']');
        let Some((at, _)) = area.char_indices().find(|place| stop(place) || quote(&place.0)) else {
            return if area.len() == behind.len() && !eof { Is::Open } else { Is::No };
        };
        match is_any(rest(area, at), self.style.quotes.iter().copied()) {
            _ if cut(area, 0..at).trim().is_empty() => Is::No,
            Is::Open if eof => Is::No,
            found => found,
        }
    }

    pub(super) fn word(&mut self, start: usize, text: &str, eof: bool, out: &mut String) -> Option<Read> {
        let rest = cut(text, self.pos..text.len()).as_bytes();
        let python = self.style.is_python();
        let length = if python {
            rest.iter().position(|byte| !word::holds(*byte))
        } else {
            memchr3(b',', b'}', b']', rest)
        };
        let Some(length) = length else {
            self.pos = text.len();
            return Some(Read::More);
        };
        self.pos += length;
        if !python && self.keyed() && rest.get(length) == Some(&b',') {
            match self.has_comma(text, eof) {
                Is::Yes => {
                    self.pos += 1;
                    return None;
                }
                Is::Open => return Some(Read::More),
                Is::No => {}
            }
        }
        let word = cut(text, start..self.pos).trim_end();
        if python && matches!(word, "r" | "R" | "u" | "U") {
            match self.opening(text, eof) {
                Ends::More => return Some(Read::More),
                Ends::Yes(mut string) => {
                    string.raw = word.eq_ignore_ascii_case("r");
                    self.begin(string, out);
                    return None;
                }
                Ends::No => {}
            }
        }
        let unopened = self.style.quotes.iter().find_map(|quote| word.strip_suffix(quote));
        if let Some(value) = unopened.map(str::trim_end).filter(|value| !value.is_empty())
            && !self.style.quotes.iter().any(|quote| value.contains(quote))
        {
            quoted(value, out);
            self.repaired = true;
            self.part = Part::After;
            return None;
        }
        if let Some(strict) = word::literal(word, python, out) {
            self.repaired |= !strict;
        } else if python || word.is_empty() || self.style.quotes.iter().any(|quote| word.contains(quote)) {
            self.pos = start;
            return Some(Read::Fail);
        } else {
            quoted(word, out);
            self.repaired = true;
        }
        self.part = Part::After;
        None
    }
}
