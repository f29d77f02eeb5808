//! What the families have in common: how a body is fed and what it finds.

use std::{fmt::Debug, ops::Range};

use super::{
    Event, ParseOptions,
    delimiters::{Delimiters, Found},
    offered::Offered,
};

/// What a body needs from the scanner.
pub(super) struct Cx<'a> {
    pub(super) offered: &'a Offered,
    pub(super) parsing: ParseOptions,
    /// Deltas are wanted, and this body may give them before it is complete.
    pub(super) live: bool,
    pub(super) index: &'a mut usize,
    /// Tags in values are none: they have been taken for calls in a value before, and were not closed.
    pub(super) flat: &'a mut bool,
    pub(super) sink: &'a mut dyn FnMut(Event<'_>),
}

impl Cx<'_> {
    /// Announces a call, if it may be, and returns its index.
    pub(super) fn begin(&mut self, name: &str, dialect: &'static str) -> Option<usize> {
        if !self.live || !self.parsing.takes(name, self.offered) {
            return None;
        }
        let index = *self.index;
        *self.index += 1;
        (self.sink)(Event::CallBegin { index, name, dialect });
        Some(index)
    }

    pub(super) fn delta(&mut self, index: usize, arguments: &str) {
        if !arguments.is_empty() {
            (self.sink)(Event::CallDelta { index, arguments });
        }
    }
}

/// The reader of one body, fed until it is calls or is none.
pub(super) trait Body: Debug + Send + Sync {
    /// Reads on; `text` begins where the candidate begins, and has grown since the last time.
    fn feed(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step;

    /// The calls read so far, in their order.
    fn take_ready(&mut self) -> Vec<Ready>;

    /// The call that had begun when the body was given up.
    fn unfinished(&mut self) -> Option<Unfinished>;

    /// Whether the name of a call has been read whose arguments have not ended.
    fn is_named(&self) -> bool {
        false
    }

    /// Whether a call has begun, so that a delimiter before it is more than mentioned.
    fn is_meant(&self) -> bool;

    /// Whether the calls read so far stand though what followed them could not be read.
    fn keeps_ready(&self) -> bool;

    /// Where the JSON array begins that is none of calls, so that nothing in it is one.
    fn foreign(&self) -> Option<usize> {
        None
    }
}

/// White space around a body is looked through this far, so that its length costs nothing.
pub(super) const MAX_BLANK: usize = 256;

/// A call that has been read but not yet committed.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) repaired: bool,
    /// Where its source ends.
    pub(super) end: usize,
    /// Its index if it has been announced.
    pub(super) index: Option<usize>,
    /// It stands on its name alone.
    pub(super) bare_name: bool,
    /// Its end was written, or is plain without.
    pub(super) closed: bool,
}

/// A call that had begun when its body was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfinished {
    /// Its index if it has been announced.
    pub(super) index: Option<usize>,
    /// It was more than the mention of a delimiter.
    pub(super) meant: bool,
}

/// How far a body has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It needs more text.
    More,
    /// It is complete and ends here.
    Done(usize),
    /// It is no call, which is known here; the position does not depend on how the text was cut.
    Reject(usize),
    /// It is the header of a message for the user, or of the model's thinking, and ends here.
    Message {
        /// Where the message begins.
        end: usize,
        /// The message is thinking.
        thinking: bool,
        /// Somebody else says it than the model.
        foreign: bool,
    },
}

/// Whether a body of some family could begin with this text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lead {
    Yes,
    No,
    More,
}

/// What a piece of text is, compared with a delimiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    Yes,
    No,
    /// The text ends before the delimiter does.
    Open,
}

/// Compares the beginning of a text with a delimiter.
pub(super) fn is(text: &str, delimiter: &str) -> Is {
    if text.starts_with(delimiter) {
        Is::Yes
    } else if delimiter.starts_with(text) {
        Is::Open
    } else {
        Is::No
    }
}

/// Compares the beginning of a text with several delimiters; a whole one wins.
pub(super) fn is_any<'m>(text: &str, delimiters: impl IntoIterator<Item = &'m str>) -> Is {
    delimiters.into_iter().fold(Is::No, |best, delimiter| match (best, is(text, delimiter)) {
        (Is::Yes, _) | (_, Is::Yes) => Is::Yes,
        (Is::Open, _) | (_, Is::Open) => Is::Open,
        _ => Is::No,
    })
}

/// The part of `text` in `range`; nothing where that is no part of it.
pub(super) fn cut(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// The part of `text` from `at` on.
pub(super) fn rest(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// Where the white space (and `stray` bytes) that begins at `from` ends; nothing if it is too long to look through.
pub(super) fn ahead(text: &str, from: usize, stray: &[u8]) -> Option<usize> {
    let bytes = text.as_bytes().get(from..)?;
    let blank = |byte: &&u8| byte.is_ascii_whitespace() || stray.contains(byte);
    let length = bytes.iter().take(MAX_BLANK + 1).take_while(blank).count();
    (length <= MAX_BLANK).then_some(from + length)
}

/// What stands after a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// A closing delimiter, which ends here.
    Closed(usize),
    /// The beginning of one, and the text is at its end, which is here.
    Cut(usize),
    /// What could still become one.
    Open,
    /// Something else.
    None,
}

/// Looks for a closing delimiter after a body, the longest there is. White space and the `stray` bytes may stand before it.
pub(super) fn tail(text: &str, from: usize, closes: &[&str], stray: &[u8], eof: bool) -> Tail {
    let Some(at) = ahead(text, from, stray) else { return Tail::None };
    let rest = rest(text, at);
    let open = !eof && closes.iter().any(|close| close.len() > rest.len() && close.starts_with(rest));
    if open || (rest.is_empty() && closes.is_empty() && !eof) {
        return Tail::Open;
    }
    let whole = closes.iter().filter(|close| rest.starts_with(**close)).map(|close| close.len()).max();
    match whole {
        Some(length) => Tail::Closed(at + length),
        None if !rest.is_empty() && closes.iter().any(|close| close.starts_with(rest)) => {
            Tail::Cut(text.len())
        }
        None => Tail::None,
    }
}

/// What opens calls where a line starts and is no word.
fn signs() -> impl Iterator<Item = &'static str> {
    let words = Delimiters::get().words().iter().map(|(word, _)| *word);
    words.filter(|word| !word.starts_with(char::is_alphanumeric))
}

/// A call without a delimiter, which ends here, is one only if its line ends with it. Other calls and tokens may follow.
pub(super) fn done_on_line(text: &str, at: usize, eof: bool) -> Step {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b',' | b';');
    let length = text.bytes().skip(at).take(MAX_BLANK).take_while(blank).count();
    let behind = rest(text, at + length);
    let separated = cut(text, at..at + length).contains([',', ';']);
    match behind.bytes().next() {
        None if !eof && length < MAX_BLANK => Step::More,
        // What separates calls, or ends the last one as a statement, belongs to it.
        None | Some(b'\n' | b'{' | b'[') if separated => Step::Done(at + length),
        None | Some(b'\n' | b'{') => Step::Done(at),
        Some(b'`') if behind.starts_with("```") => Step::Done(at),
        Some(b'`') if "```".starts_with(behind) && !eof => Step::More,
        _ => match if eof { Delimiters::get().at_end(behind) } else { Delimiters::get().at(behind) } {
            Found::Delimiter(..) => Step::Done(at),
            Found::Partial => Step::More,
            Found::Nothing => match is_any(behind, signs()) {
                Is::Yes => Step::Done(at),
                Is::Open if !eof => Step::More,
                Is::Open | Is::No => Step::Reject(at),
            },
        },
    }
}
