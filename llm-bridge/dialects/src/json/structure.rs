//! The structure of a JSON body: brackets, commas, colons, and what may stand in their place.

use super::{
    Expect, JsonBody, Key,
    string::{CURLY, CURLY_OPEN},
};
use crate::{
    body::{Cx, Step, cut, rest},
    repair,
};

impl JsonBody {
    /// Takes the byte at the position, which is neither white space nor in a string.
    pub(super) fn structural(&mut self, text: &str, byte: u8, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        use Expect::{Colon, Comma, Comment, Key as WantKey, KeyOrEnd, Scalar, Start, Value, ValueOrEnd};
        if self.expect == Scalar {
            if !matches!(byte, b',' | b'}' | b']' | b'"' | b'\'' | b'{' | b'[' | b'<' | b'#' | b':') {
                self.pos += 1;
                return None;
            }
            self.scalar_end(text);
        }
        let proven = match byte {
            b'}' | b']' => true,
            b',' => self.stack.last() == Some(&b'['),
            b'"' => self.expect == WantKey,
            _ => false,
        };
        if proven {
            self.closing = None;
        }
        if self.around > 0 && self.depth() == 0 {
            // Only the array of calls, or the call, stands in the object.
            let fits = match self.expect {
                Comma => matches!(byte, b'}' | b'<'),
                Value => byte == b'[',
                _ => byte == b':',
            };
            if !fits {
                return Some(self.refuse());
            }
        }
        if self.between() {
            let strict = match byte {
                b'{' => matches!(self.expect, Value | ValueOrEnd),
                b',' => self.expect == Comma,
                b']' => matches!(self.expect, Comma | ValueOrEnd),
                b'<' => true,
                b'/' | b'#' if !self.bare => false,
                // Text, or a value that is no call, would be lost between calls.
                _ => return Some(self.refuse()),
            };
            self.mended |= !strict;
        }
        match (byte, self.expect) {
            (b'{' | b'[', expect) => return self.open(byte, expect, cx),
            (b'}' | b']', expect) => {
                self.expects(matches!(expect, Comma | KeyOrEnd | ValueOrEnd));
                let fits = self.stack.last() == Some(&if byte == b'}' { b'{' } else { b'[' });
                if !fits {
                    return Some(self.refuse());
                }
                return self.close(text, cx);
            }
            (b'"' | b'\'', Comma)
                if self.pos == self.string + 2 && text.as_bytes().get(self.string) == Some(&byte) =>
            {
                self.expects(false);
                (self.quote, self.tripled) = (Some(byte), true);
            }
            (b'"' | b'\'', expect) => {
                self.expects(byte == b'"' && matches!(expect, Value | ValueOrEnd | KeyOrEnd | WantKey));
                self.quote = Some(byte);
                self.string = self.pos;
                let key = matches!(expect, KeyOrEnd | WantKey)
                    || (expect == Comma && self.stack.last() == Some(&b'{'));
                if !key && self.arguments.is_none() && self.at_member() && self.key_is == Key::Arguments {
                    self.arguments = Some(self.pos);
                }
                self.expect = if key { Colon } else { Comma };
            }
            (_, Value | ValueOrEnd | KeyOrEnd | WantKey) if rest(text, self.pos).starts_with(CURLY_OPEN) => {
                self.expects(false);
                self.quote = Some(CURLY);
                let key = matches!(self.expect, KeyOrEnd | WantKey);
                if !key && self.arguments.is_none() && self.at_member() && self.key_is == Key::Arguments {
                    self.arguments = Some(self.pos);
                }
                // The last byte of the quote is what stands before the string.
                self.pos += CURLY_OPEN.len_utf8() - 1;
                self.string = self.pos;
                self.expect = if key { Colon } else { Comma };
            }
            (b':', expect) => {
                self.expects(expect == Colon);
                self.expect = Value;
            }
            (b',', expect) => {
                self.expects(expect == Comma);
                self.comma = self.pos;
                self.expect = if self.stack.last() == Some(&b'{') { WantKey } else { Value };
            }
            (b'<', _) => return self.angle(text, eof, cx),
            (b'/' | b'#', _) if !self.bare => {
                self.expects(false);
                self.expect = Comment(if byte == b'#' { b'\n' } else { b'*' });
            }
            // A name is a string: one without quotes would be a guess.
            (_, Value) if self.at_member() && self.key_is == Key::Name => return Some(self.refuse()),
            (_, Value | ValueOrEnd) => {
                self.scalar = self.pos;
                self.expect = Scalar;
            }
            (_, Start) => return Some(Step::Reject(self.pos)),
            // Loose: an unquoted key, or text after a quote that was not escaped. ParseOptions it is the repair's job.
            _ if self.bare => return Some(self.refuse()),
            (_, KeyOrEnd | WantKey) => {
                self.expects(false);
                self.expect = Colon;
            }
            _ => self.expects(false),
        }
        self.pos += 1;
        None
    }

    fn open(&mut self, byte: u8, expect: Expect, cx: &mut Cx<'_>) -> Option<Step> {
        let object = byte == b'{';
        // The call stands in a bracket that is one too many.
        let doubled =
            object && expect == Expect::KeyOrEnd && self.depth() == 1 && !self.array && self.around == 0;
        if doubled && self.ends.is_none() && !self.bare {
            self.around = 1;
            self.mended = true;
        }
        let place = match self.depth() {
            0 if self.ends.is_some() => {
                self.object = self.pos;
                self.arguments = Some(self.pos);
                false
            }
            0 => {
                self.array = !object;
                object
            }
            1 => self.array,
            _ => false,
        };
        if place && !object || self.stack.len() >= repair::MAX_DEPTH {
            return Some(self.refuse());
        }
        if place {
            self.object = self.pos;
            self.key_is = Key::Other;
            self.plain = true;
            self.unusual = false;
            (self.name, self.arguments, self.arguments_end) = (None, None, None);
            self.sent = 0;
        } else if self.at_member() && self.key_is == Key::Arguments && self.arguments.is_none() {
            self.arguments = Some(self.pos);
            if object {
                self.begin(cx);
            }
        }
        self.expects(matches!(expect, Expect::Start | Expect::Value | Expect::ValueOrEnd));
        self.stack.push(byte);
        self.expect = if object { Expect::KeyOrEnd } else { Expect::ValueOrEnd };
        self.pos += 1;
        None
    }

    fn close(&mut self, text: &str, cx: &mut Cx<'_>) -> Option<Step> {
        let member = self.at_member() || self.stack.len() == 1 && self.ends.is_some();
        self.stack.pop();
        self.pos += 1;
        if member {
            let range = self.object..self.pos;
            if !self.complete(cut(text, range), text, cx) {
                return Some(self.refuse());
            }
            self.expect = Expect::Comma;
        } else {
            self.value_end();
        }
        if self.stack.is_empty() {
            if self.ready.is_empty() {
                return Some(self.refuse());
            }
            // Only those that have come since: there may be very many.
            let unmarked = self.ready.iter_mut().skip(self.marked);
            unmarked.for_each(|ready| ready.repaired |= self.mended);
            self.marked = self.ready.len();
            self.expect = Expect::Tail;
        }
        None
    }
}
