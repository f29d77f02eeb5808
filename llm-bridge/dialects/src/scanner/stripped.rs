//! Answers in messages whose special tokens a server has taken out: what is left of a header is its words, as in
//! `analysisHm.assistantcommentary to=functions.f json{…}` and `assistantfinalHello.`

use memchr::memmem;

use super::{Scanner, State, Went};
use crate::{
    Event,
    body::{Is, cut, is, is_any, rest},
    candidate::Candidate,
    delimiters::MESSAGE,
    table::{DelimiterKind, Dialect},
};

/// Who speaks, with which every header begins but the first, of which the prompt may have that.
pub(crate) const SPEAKER: &str = "assistant";
/// The channel with which an answer may begin so; it is thinking.
pub(crate) const FIRST: &str = "analysis";
/// The headers of messages, and whether those are thinking.
const MESSAGES: [(&str, bool); 3] =
    [("assistantanalysis", true), ("assistantfinal", false), ("assistantcommentary", false)];
/// What stands before a recipient.
const CALLS: [&str; 3] = ["assistantcommentary to=", "assistantanalysis to=", "assistant to="];

/// What is left of a header, which has so many bytes.
enum Left {
    Message(usize, bool),
    Call(usize),
}

/// What the text begins with, if that is left of a header; an error while more text decides.
fn left(text: &str, eof: bool) -> Result<Option<Left>, ()> {
    let all = CALLS.into_iter().chain(MESSAGES.map(|(message, _)| message));
    let longer = all.filter(|header| is(text, header) == Is::Open);
    if !eof && longer.count() > 0 {
        return Err(());
    }
    if let Some(call) = CALLS.into_iter().find(|call| text.starts_with(call)) {
        return Ok(Some(Left::Call(call.len())));
    }
    let message = MESSAGES.into_iter().find(|(message, _)| text.starts_with(message));
    Ok(message.map(|(message, thinking)| Left::Message(message.len(), thinking)))
}

impl Scanner {
    /// The dialects that are written so: those of which a header may have lost its beginning.
    fn stripped_rows(&self) -> Vec<(&'static Dialect, DelimiterKind)> {
        let headers = self.delimiters.headers().iter();
        let rows = headers
            .filter(|(begun, row)| row.header.is_some_and(|header| header.begun.first() == Some(begun)));
        let wanted = |name| self.options.only.is_none_or(|only| only == name);
        rows.filter(|(_, row)| wanted(row.name)).map(|(_, row)| (*row, DelimiterKind::Header)).collect()
    }

    /// Whether the answer, which begins here, is written so; an error while more text decides.
    pub(super) fn is_stripped(&mut self, text: &str, eof: bool) -> Result<bool, ()> {
        if self.stripped_rows().is_empty() {
            return Ok(false);
        }
        if let Some(behind) = text.strip_prefix(FIRST) {
            // Prose has a space after the word.
            return match behind.chars().next() {
                Some(next) if next.is_alphanumeric() => self.has_header(text, eof),
                None if !eof => Err(()),
                Some(_) | None => Ok(false),
            };
        }
        match is_any(text, MESSAGES.iter().map(|(message, _)| *message).chain([FIRST])) {
            Is::Yes => Ok(true),
            Is::Open if !eof => Err(()),
            Is::Open | Is::No => Ok(false),
        }
    }

    /// Whether another header follows. What has been looked through is not looked through again.
    fn has_header(&mut self, text: &str, eof: bool) -> Result<bool, ()> {
        let speakers = memmem::find_iter(rest(text, self.sought).as_bytes(), SPEAKER);
        for at in speakers.map(|at| self.sought + at) {
            match left(rest(text, at), eof) {
                Ok(Some(_)) => return Ok(true),
                Ok(None) => {}
                Err(()) => {
                    self.sought = at;
                    return Err(());
                }
            }
        }
        self.sought = text.floor_char_boundary(text.len().saturating_sub(SPEAKER.len()));
        if eof || text.len() > self.options.max_call_bytes { Ok(false) } else { Err(()) }
    }

    /// Passes text through up to the next header.
    pub(super) fn stripped(&mut self, text: &str, eof: bool, sink: &mut dyn FnMut(Event<'_>)) -> Went {
        if self.offset == 0 && text.starts_with(FIRST) {
            sink(Event::Frame(cut(text, 0..FIRST.len())));
            self.thinking = Some(MESSAGE);
            return (FIRST.len(), true);
        }
        for at in memmem::find_iter(text.as_bytes(), SPEAKER) {
            let here = rest(text, at);
            let header = left(here, eof);
            if !matches!(header, Ok(None)) {
                self.emit(cut(text, 0..at), sink);
            }
            match header {
                Ok(None) => {}
                Err(()) => return (at, false),
                Ok(Some(Left::Message(length, thinking))) => {
                    sink(Event::Frame(cut(here, 0..length)));
                    self.thinking = thinking.then_some(MESSAGE);
                    return (at + length, true);
                }
                Ok(Some(Left::Call(length))) => {
                    self.state = State::Call(Box::new(Candidate::marked(self.stripped_rows(), length)));
                    return (at, true);
                }
            }
        }
        let open = |length: &usize| text.ends_with(cut(SPEAKER, 0..*length));
        let held = if eof { None } else { (1..SPEAKER.len()).rev().find(open) };
        let end = text.len() - held.unwrap_or(0);
        self.emit(cut(text, 0..end), sink);
        (end, false)
    }
}
