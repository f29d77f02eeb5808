//! Strings in a JSON body.

use memchr::memchr2;

use super::{Expect, JsonBody, Key};
use crate::body::{Cx, Step, cut};

impl JsonBody {
    /// Goes on in a string; true when its end was reached.
    pub(super) fn in_string(&mut self, bytes: &[u8], quote: u8, check: bool) -> bool {
        let from = self.pos;
        let (mut ended, mut wrong) = (false, None);
        while let Some(rest) = bytes.get(self.pos..) {
            if self.escaped {
                // Whether it is one has to be known before it is handed on.
                if rest.is_empty() || check && may_be_escape(rest) {
                    break;
                }
                self.escaped = false;
                if !is_escape(rest) {
                    self.plain = false;
                    wrong = wrong.or(Some(self.pos - 1));
                }
                self.pos += 1;
                continue;
            }
            let Some(hit) = memchr2(quote, b'\\', rest) else {
                self.pos = bytes.len();
                break;
            };
            let behind = rest.get(hit..).unwrap_or_default();
            if behind.first() == Some(&b'\\') {
                self.escaped = true;
            } else if quote == CURLY
                && !bytes.get(..=self.pos + hit).is_some_and(|seen| seen.ends_with(CURLY_CLOSE))
            {
                // Another character ends with this byte.
                self.pos += hit + 1;
                continue;
            } else if !self.tripled || behind.starts_with(&[quote; 3]) {
                self.pos += hit + if self.tripled { 3 } else { 1 };
                self.tripled = false;
                ended = true;
                break;
            } else if behind.len() < 3 && behind.iter().all(|byte| *byte == quote) {
                // More of the three may come.
                self.pos += hit;
                break;
            }
            self.pos += hit + 1;
        }
        // Deltas must not hand on a string that strict JSON forbids; without them the whole is checked at the end.
        if check && self.broken.is_none() {
            let part = bytes.get(from..self.pos).unwrap_or_default();
            let control = part.iter().position(|byte| *byte < b' ').map(|at| from + at);
            self.broken = control.into_iter().chain(wrong).min();
        }
        ended
    }

    pub(super) fn string_end(&mut self, text: &str, cx: &mut Cx<'_>) -> Option<Step> {
        let width = if self.quote.take() == Some(CURLY) { CURLY_CLOSE.len() } else { 1 };
        let inner = self.string + 1..self.pos - width;
        match self.expect {
            Expect::Colon => {
                if self.at_member() {
                    self.key = inner;
                    return self.key_end(text);
                }
                None
            }
            _ => {
                self.closing = Some(self.pos - 1);
                let name = self.at_member() && self.key_is == Key::Name;
                if name {
                    let quoted = cut(text, self.string..self.pos);
                    let name = serde_json::from_str(quoted).unwrap_or_else(|_| cut(text, inner).to_owned());
                    if let Some(step) = self.named(name, cx) {
                        return Some(step);
                    }
                }
                self.value_end();
                if self.ends.is_some() && self.stack.is_empty() {
                    // The arguments are written as a string.
                    self.object = self.string;
                    let done = self.complete(cut(text, self.string..self.pos), text, cx);
                    self.expect = Expect::Tail;
                    return (!done).then_some(Step::Reject(self.pos));
                }
                None
            }
        }
    }
}

/// The quotes of a word processor; each has three bytes.
pub(super) const CURLY_OPEN: char = '“';
const CURLY_CLOSE: &[u8] = "”".as_bytes();
/// Stands for them in the place of a quote: the last byte of the one that closes.
pub(super) const CURLY: u8 = 0x9d;

/// Whether more digits may make an escape of this.
fn may_be_escape(rest: &[u8]) -> bool {
    let Some((b'u', digits)) = rest.split_first() else { return false };
    digits.len() < 4 && digits.iter().all(u8::is_ascii_hexdigit)
}

/// Whether this, after a backslash, is an escape of JSON. Digits that have not come are none.
fn is_escape(rest: &[u8]) -> bool {
    match rest.first() {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
        Some(b'u') => rest.get(1..5).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
        _ => false,
    }
}
