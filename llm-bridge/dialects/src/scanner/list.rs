//! A JSON array that is none of calls: its elements are text even where one of them looks like a call.

use super::{Scanner, State, Went};
use crate::{Event, body::cut};

/// How far the array has been read. What is no JSON ends it as its last bracket does.
#[derive(Debug, Default)]
pub(super) struct List {
    depth: usize,
    string: bool,
    escaped: bool,
}

impl List {
    /// Takes the next byte of the array, or leaves it to the text after it.
    fn takes(&mut self, byte: u8) -> bool {
        if self.string {
            self.string = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return byte >= b' ';
        }
        match byte {
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            b'"' => self.string = true,
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'-' | b'+' | b'.' | b'0'..=b'9' => {}
            // The letters of the literals and of exponents.
            b't' | b'r' | b'u' | b'e' | b'f' | b'a' | b'l' | b's' | b'n' | b'E' => {}
            _ => return false,
        }
        true
    }
}

impl Scanner {
    /// Passes the array through as text.
    pub(super) fn list(&mut self, mut list: List, text: &str, sink: &mut dyn FnMut(Event<'_>)) -> Went {
        let bytes = text.as_bytes();
        let mut at = 0;
        let mut open = true;
        while open && let Some(byte) = bytes.get(at) {
            if !list.takes(*byte) {
                open = false;
                break;
            }
            at += 1;
            open = list.depth > 0;
            match byte {
                b'\n' => {
                    self.place.next_line();
                }
                b' ' | b'\t' | b'\r' => {}
                _ => self.written(),
            }
        }
        // A byte that is left to the text after is never within a character: those inside one are not looked at.
        let at = text.floor_char_boundary(at);
        self.emit(cut(text, 0..at), sink);
        if open {
            self.state = State::List(list);
        }
        (at, !open)
    }
}
