//! Calls that the model server reads itself, put together from their pieces.

use registry_core::text::cut;
use serde::de::IgnoredAny;
use toolrack_apis::{CallInput, CallPiece, Passing};

/// The longest id of a call that is taken from a model server, in bytes: the audit has it with each record. One that is longer counts as left out.
const MAX_ID: usize = 256;
/// So much is read of a call's name, in bytes; no tool has as long a one.
const MAX_NAME: usize = 256;

/// A call, put together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NativeCall {
    index: Option<u64>,
    pub(super) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(super) input: CallInput,
    pub(super) passing: Passing,
    /// How many bytes of the arguments have been reported.
    reported: usize,
    brackets: Brackets,
    /// Whether the arguments are a whole object.
    is_whole: bool,
}

/// The brackets of a call's arguments so far. Each byte is looked at once, however many pieces there are: only where all brackets are closed
/// for the first time can the arguments be whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Brackets {
    open: usize,
    is_text: bool,
    is_escaped: bool,
    are_closed: bool,
}

impl Brackets {
    /// Takes the next part of the arguments, which is not empty; whether all brackets are closed for the first time with its last byte.
    fn are_closed_at_the_end_of(&mut self, part: &str) -> bool {
        let mut bytes = part.bytes();
        while !self.are_closed
            && let Some(byte) = bytes.next()
        {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_text => self.is_escaped = true,
                b'"' => self.is_text = !self.is_text,
                b'{' | b'[' if !self.is_text => self.open = self.open.saturating_add(1),
                b'}' | b']' if !self.is_text => {
                    self.open = self.open.saturating_sub(1);
                    self.are_closed = self.open == 0;
                    if self.are_closed {
                        return byte == b'}' && bytes.len() == 0;
                    }
                }
                _ => {}
            }
        }
        false
    }
}

impl NativeCall {
    /// The arguments that have not been reported yet.
    pub(super) fn unreported(&mut self) -> &str {
        let from = std::mem::replace(&mut self.reported, self.arguments.len());
        self.arguments.get(from..).unwrap_or_default()
    }

    /// Takes more of the arguments.
    fn push(&mut self, arguments: &str) {
        if arguments.is_empty() {
            return;
        }
        self.arguments.push_str(arguments);
        self.is_whole = self.brackets.are_closed_at_the_end_of(arguments)
            && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok();
    }

    /// Whether a piece only says again whose it is.
    fn is_repeated_by(&self, piece: &CallPiece) -> bool {
        piece.arguments.is_empty() && piece.id.is_some() && piece.id == self.id && piece.index == self.index
    }
}

/// The calls of one answer so far. Servers leave out ids and indices or give one index to several calls, and none of
/// that may lose or mix calls.
#[derive(Debug, Default)]
pub(crate) struct NativeCalls(Vec<NativeCall>);

impl NativeCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a piece; which call it belongs to.
    pub(crate) fn push(&mut self, mut piece: CallPiece) -> usize {
        piece.id = piece.id.filter(|id| id.len() <= MAX_ID);
        piece.name = piece.name.map(|name| cut(name, MAX_NAME));
        let at = self.continued_by(&piece).unwrap_or(self.0.len());
        match self.0.get_mut(at) {
            Some(call) => {
                call.push(&piece.arguments);
                call.id = call.id.take().or(piece.id);
                if let Some(name) = piece.name
                    && call.name.is_empty()
                {
                    call.name = name;
                }
            }
            None => {
                let mut call = NativeCall {
                    index: piece.index,
                    id: piece.id,
                    name: piece.name.unwrap_or_default(),
                    input: piece.input,
                    passing: piece.passing,
                    ..NativeCall::default()
                };
                call.push(&piece.arguments);
                self.0.push(call);
            }
        }
        at
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[cfg(feature = "cli")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &NativeCall> {
        self.0.iter()
    }

    /// The names of the tools.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|call| call.name.as_str())
    }

    /// The call of an index.
    pub(crate) fn get(&self, at: usize) -> Option<&NativeCall> {
        self.0.get(at)
    }

    /// The same, to go on with.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut NativeCall> {
        self.0.get_mut(at)
    }

    /// The call that a piece goes on with. A piece with a name is a new call when it has another id than the call of its index,
    /// or when that call is whole already.
    fn continued_by(&self, piece: &CallPiece) -> Option<usize> {
        let begins = piece.name.is_some();
        let found = self.0.iter().rposition(|call| match (&piece.id, &call.id) {
            _ if begins && call.is_whole && !call.is_repeated_by(piece) => false,
            (Some(new), Some(known)) if new == known => true,
            (Some(_), Some(_)) if begins => false,
            _ if begins && !call.name.is_empty() && piece.id.is_none() && piece.index.is_none() => false,
            _ => piece.index == call.index,
        });
        match found {
            Some(at) => Some(at),
            // A piece of arguments without any mark of its own belongs to the last call.
            None if !begins && piece.index.is_none() => self.0.len().checked_sub(1),
            None => None,
        }
    }

    pub(super) fn into_calls(self) -> Vec<NativeCall> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(index: Option<u64>, id: &str, name: &str, arguments: &str) -> CallPiece {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        CallPiece {
            index,
            id: some(id),
            name: some(name),
            arguments: arguments.into(),
            ..CallPiece::default()
        }
    }

    fn calls(pieces: impl IntoIterator<Item = CallPiece>) -> Vec<(String, String)> {
        let mut calls = NativeCalls::default();
        for piece in pieces {
            calls.push(piece);
        }
        calls.into_calls().into_iter().map(|call| (call.name, call.arguments)).collect()
    }

    fn expect(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, arguments)| ((*name).to_owned(), (*arguments).to_owned())).collect()
    }

    #[test]
    fn a45_ids_and_names_have_so_many_bytes_and_no_more() {
        let mut calls = NativeCalls::default();
        for extra in [0, 1] {
            let (id, name) = ("i".repeat(MAX_ID + extra), "n".repeat(MAX_NAME + extra));
            calls.push(piece(Some(extra as u64), &id, &name, "{}"));
        }
        let lengths =
            calls.into_calls().into_iter().map(|call| (call.id.map(|id| id.len()), call.name.len()));
        let cut = MAX_NAME + "…".len();
        assert_eq!(lengths.collect::<Vec<_>>(), [(Some(MAX_ID), MAX_NAME), (None, cut)]);
    }

    #[test]
    fn pieces_are_put_together_by_index() {
        let pieces = [
            piece(Some(0), "a", "f", ""),
            piece(Some(1), "b", "g", "{"),
            piece(Some(0), "", "", "{}"),
            piece(Some(1), "", "", "}"),
        ];
        assert_eq!(calls(pieces), expect(&[("f", "{}"), ("g", "{}")]));
    }

    #[test]
    fn one_index_for_two_calls_does_not_mix_them() {
        let pieces = [
            piece(Some(0), "a", "f", "{\"x\":"),
            piece(Some(0), "", "", "1}"),
            piece(Some(0), "b", "g", "{}"),
        ];
        assert_eq!(calls(pieces), expect(&[("f", "{\"x\":1}"), ("g", "{}")]));
    }

    #[test]
    fn a_whole_call_is_not_gone_on_with() {
        let pieces = [
            piece(Some(0), "", "f", "{}"),
            piece(Some(0), "", "f", "{}"),
            piece(Some(1), "a", "g", "{}"),
            piece(Some(1), "a", "g", ""),
            piece(Some(2), "a", "g", "{}"),
        ];
        assert_eq!(calls(pieces), expect(&[("f", "{}"), ("f", "{}"), ("g", "{}"), ("g", "{}")]));
    }

    #[test]
    fn a32_arguments_are_looked_at_once_however_often_a_piece_asks() {
        let large = format!("{{\"a\":\"{}\"", "x".repeat(4 << 20));
        let whole = format!("{large}}}");
        let began = std::time::Instant::now();
        for (first, more, calls) in [(&whole, "", 1), (&large, "x}", 1), (&format!("{whole}x"), "{}", 1)] {
            let mut native = NativeCalls::default();
            native.push(piece(Some(0), "a", "f", first));
            for _ in 0..10_000 {
                native.push(piece(Some(0), "a", "f", more));
            }
            assert_eq!(native.len(), calls, "{more}");
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    }

    #[test]
    fn arguments_are_whole_where_they_are_an_object_with_nothing_behind() {
        for (parts, is_whole) in [
            (&["{\"a\": \"}\\\"}\"", "}"][..], true),
            (&["", " {", "\"a\":[{}]", "}"], true),
            (&["{\"a\": \"}"], false),
            (&["{}", " "], false),
            (&["{}", "{}"], false),
            (&["{\"a\" \"b\"}"], false),
            (&["[{}]"], false),
            (&["[}"], false),
            (&["1{}"], false),
            (&["}"], false),
        ] {
            let mut call = NativeCall::default();
            parts.iter().for_each(|part| call.push(part));
            assert_eq!(call.is_whole, is_whole, "{parts:?}");
        }
    }

    #[test]
    fn missing_ids_and_indices_do_not_lose_calls() {
        let pieces = [
            piece(None, "", "f", "{"),
            piece(None, "", "", "}"),
            piece(None, "", "g", "{}"),
            piece(None, "", "g", "{}"),
        ];
        assert_eq!(calls(pieces), expect(&[("f", "{}"), ("g", "{}"), ("g", "{}")]));
    }

    #[test]
    fn an_id_repeated_in_every_piece_is_one_call() {
        let pieces = [piece(Some(0), "a", "f", "{"), piece(Some(0), "a", "f", "}")];
        assert_eq!(calls(pieces), expect(&[("f", "{}")]));
    }
}
