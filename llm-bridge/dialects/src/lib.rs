//! Parse tool calls and reasoning from the text that a language model streams, whatever dialect it writes.
//!
//! A [`Scanner`] takes the text in pieces of any size and gives [`Event`]s: text, reasoning, calls. Plain text passes
//! through at once; only a suffix that could still become an opening delimiter is held back. After a delimiter, one of a
//! few families of parsers owns the text until the call is complete or turns out to be none; then it comes back as text.
//! The dialects are rows of a table, [`dialects`], to which other crates add through `DIALECTS`. The model's name is
//! never needed.
//!
//! ```
//! use toolrack_dialects::{Offered, ScanOptions, parse};
//!
//! let text = "One moment.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>";
//! let parsed = parse(text, Offered::any().into(), ScanOptions::default());
//! assert_eq!(parsed.content, "One moment.\n");
//! assert_eq!(parsed.calls[0].name, "add");
//! assert_eq!(parsed.calls[0].arguments, r#"{"a": 1}"#);
//! assert_eq!(parsed.dialect, Some("hermes"));
//! ```
//!
//! A stream is parsed piece by piece:
//!
//! ```
//! use toolrack_dialects::{Event, Offered, Parsed, ScanOptions, Scanner};
//!
//! let mut scanner = Scanner::new(Offered::any().into(), ScanOptions::default());
//! let mut parsed = Parsed::default();
//! for piece in ["<think>Hm.</th", "ink>Sure. [TOOL_CALLS]li", "ght[ARGS]{\"on\": true}"] {
//!     scanner.push(piece, &mut |event: Event<'_>| parsed.take(event));
//! }
//! scanner.finish(&mut |event: Event<'_>| parsed.take(event));
//! assert_eq!((parsed.reasoning.as_str(), parsed.content.as_str()), ("Hm.", "Sure. "));
//! assert_eq!(parsed.calls[0].arguments, r#"{"on": true}"#);
//! ```
//!
//! # What is a call
//! These are the defaults; [`ParseOptions`] changes some of them.
//! - After an explicit delimiter: every body that can be parsed, whether or not its tool was offered.
//! - Without a delimiter (bare JSON, a code fence with JSON, a list of Python calls, a name with its arguments): only at
//!   the start of a line that ends with it, only if the name is an offered tool, and only if an object has no members but
//!   those of a call. A name alone, here or after an ordinary word, is none of a tool that needs arguments. With [`Offered::any`] any name is offered.
//! - The name of an offered tool between the delimiters of a call, without arguments; at the end of the text, where a
//!   server may have taken the end out, only of a tool that has none.
//! - Not the definition of a tool: the schema of its arguments is not taken for arguments.
//! - A tag line: only if nothing stands before it on its line, not even white space, and it matches its tool's
//!   expression.
//! - A message that its header addresses to a tool. Other headers are not shown; a message for analysis is reasoning.
//! - A call with whole arguments whose closing delimiter or outer brackets are missing at the end of the text. Not one
//!   that is cut off in an argument.
//! - In tags, a value goes up to its end. Where that is missing, an argument that the tool has ends it, the end of the
//!   call, or the next call. Calls and arguments that are opened and closed in a value belong to it, and so do the tag
//!   of an argument that the call has already and an end of a value that another one follows. A value that quotes whole calls and is cut off after them is no argument.
//! - In Python after a delimiter or in a fence that says it holds calls, values without names: those of the tool's
//!   arguments, in the order of its schema. An object that is the only one may hold all of them.
//! - Nothing after the words that a model makes up for others once it has made a call: a result, or the user's turn. They
//!   end the answer, and what follows is not shown.
//! - An array of calls. If any of its elements is not a call, all of it is text, after a delimiter as well.
//! - Text between the arguments of a call in tags stays in its source, and the call is `repaired`. Text after its last
//!   argument is text if no end of the call follows. With text before the first argument it is no call.
//! - Not what stands in inline code (the backtick has to be closed on its line), directly after an opening quote,
//!   `<code>`, `<pre>` or `<!--`, in a code fence that shows something (a fence counts only if all of it is calls; with
//!   delimiters, only if it also begins the answer), or in reasoning.
//!
//! # What is reasoning
//! The text between the delimiters of thinking of any dialect, wherever they stand outside code and quotes. Of those that are
//! words of prose (`<think>`, `<thinking>`, `<thought>`, `<reasoning>`) one within a line opens thinking only if it is
//! closed, and does not stand there as a word does: `the <thinking> tag`. Calls in it are
//! neither shown nor executed, unless the whole answer is thinking: then calls after a full delimiter to offered tools
//! are read with which it ends. The end of thinking that has no beginning is not shown. One of these
//! words may be ended by another, where its own end does not follow. Thinking that is never closed is
//! ended by such calls as well. A call after which the thinking goes on was weighed, not made.
//!
//! Only where an answer begins: what begins with a character that prose is full of (`◁think▷`), and sentences
//! (`Here is my thought process:`), which have to be followed by the one that ends the thinking.
//!
//! Special tokens of the dialects that mean nothing to a reader come out as [`Event::Frame`], but not in code, in
//! quotes, or in what could not be parsed. Those that end a message do so at the end of the text only.
//!
//! # Bytes
//! Every byte of the input comes back in exactly one of [`Event::Text`], [`Event::Reasoning`], [`Event::Frame`] and
//! the `source` of a [`Call`] that is not `shown`, in the input's order, however it was cut into pieces.

mod body;
mod byte_set;
mod candidate;
mod delimiters;
mod elements;
mod entities;
mod envelope;
mod fence;
mod grammar;
mod header;
mod json;
mod literal;
mod named;
mod offered;
mod parse_options;
mod render;
mod repair;
mod rows;
mod scan_options;
mod scanner;
mod suffix;
mod table;
mod typing;

use std::{fmt, sync::Arc};

pub use delimiters::thinking_ends;
pub use json::JsonStyle;
pub use literal::LiteralStyle;
pub use named::{Arguments, Head, NamedStyle, TagStyle};
pub use offered::{Offered, OfferedTool, Tag};
pub use parse_options::ParseOptions;
pub use scan_options::ScanOptions;
pub use scanner::Scanner;
#[cfg(not(target_family = "wasm"))]
pub use table::DIALECTS;
pub use table::{Delimiter, DelimiterKind, Dialect, Form, TAG_LINE, dialect, dialects};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What the scanner finds, in the order of the text.
///
/// A new kind of event is a new version: whoever matches on these is to be told by the compiler, as text that nobody shows is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// Text for the user.
    Text(&'a str),
    /// The model's thinking.
    Reasoning(&'a str),
    /// Delimiters around thinking, white space after them, closing delimiters left over after a call, and what [`ParseOptions`]
    /// drops: for nobody.
    Frame(&'a str),
    /// A call has begun. Only with [`ScanOptions::deltas`]; exactly one `Call` or `Aborted` of its index follows.
    CallBegin {
        /// The call's place among the calls of this text, from 0.
        index: usize,
        /// The tool's name.
        name: &'a str,
        /// The dialect it is written in.
        dialect: &'static str,
    },
    /// The next piece of the arguments; together they are the arguments of the committed call.
    CallDelta {
        /// As in `CallBegin`.
        index: usize,
        /// JSON text.
        arguments: &'a str,
    },
    /// A complete call.
    Call(Call),
    /// A call had begun but cannot be read.
    Aborted {
        /// As in `CallBegin`; if that was not sent, the index the next call will have.
        index: usize,
        /// What had been read of it. It is still to come, as `Text` (or `Frame`, where the [`ParseOptions`] drops it) and
        /// whatever else is found in it.
        source: &'a str,
        /// Why it is none.
        reason: Abort,
    },
}

/// Why a call that had begun is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Abort {
    /// The text ended inside it.
    Incomplete,
    /// It cannot be read, and repairing it would be guessing.
    Unreadable,
    /// It is longer than [`ScanOptions::max_call_bytes`].
    TooLong,
    /// Its tool was not offered; only with [`ParseOptions::only_offered`].
    NotOffered,
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incomplete => "the text ended inside it",
            Self::Unreadable => "it is not written as a call",
            Self::TooLong => "it is too long",
            Self::NotOffered => "no such tool was offered",
        })
    }
}

/// A call as it was parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// Its place among the calls of this text, from 0; with deltas, aborted ones are counted too.
    pub index: usize,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// A JSON object as text. Where the model wrote valid JSON it is that, to the byte; of a key that is there
    /// twice the last counts, as JSON readers have it.
    pub arguments: String,
    /// The raw text of the call, with its delimiters.
    pub source: String,
    /// The dialect's name.
    pub dialect: &'static str,
    /// It could not be read strictly: quotes, commas, brackets or tags were repaired.
    pub repaired: bool,
    /// Its end was written. Without it, at the end of a text that was cut off, it may be half of a call.
    pub closed: bool,
    /// The source has also been given as [`Event::Text`], because its tag asks for that.
    pub shown: bool,
}

/// A whole text, parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parsed {
    /// The text for the user.
    pub content: String,
    /// The thinking.
    pub reasoning: String,
    /// The calls.
    pub calls: Vec<Call>,
    /// The dialect of the first call.
    pub dialect: Option<&'static str>,
}

/// Parses a whole text as one piece.
pub fn parse(text: &str, offered: Arc<Offered>, options: ScanOptions) -> Parsed {
    let mut parsed = Parsed::default();
    let mut scanner = Scanner::new(offered, options);
    let mut sink = |event: Event<'_>| parsed.take(event);
    scanner.push(text, &mut sink);
    scanner.finish(&mut sink);
    parsed
}

/// The text without the model's thinking. Calls stay in it. What stands before an end of thinking that has no beginning
/// is thinking, too: the prompt had begun it.
pub fn strip_thinking(text: &str) -> String {
    let strip = |thinking| {
        let (mut parsed, mut first) = (Parsed::default(), None);
        let options = ScanOptions { thinking, ..ScanOptions::default() };
        let mut scanner = Scanner::new(Offered::none().into(), options);
        let mut sink = |event: Event<'_>| {
            if let Event::Frame(delimiter) = event
                && !delimiter.trim().is_empty()
            {
                first.get_or_insert_with(|| thinking_ends().any(|end| end == delimiter));
            }
            parsed.take(event);
        };
        scanner.push(text, &mut sink);
        scanner.finish(&mut sink);
        (parsed.content, first == Some(true))
    };
    let (content, ends_unopened) = strip(false);
    if ends_unopened { strip(true).0 } else { content }
}

impl Parsed {
    /// Adds one event; for texts that come in pieces.
    pub fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.content.push_str(text),
            Event::Reasoning(text) => self.reasoning.push_str(text),
            Event::Call(call) => {
                self.dialect = self.dialect.or(Some(call.dialect));
                self.calls.push(call);
            }
            Event::Frame(_) | Event::CallBegin { .. } | Event::CallDelta { .. } | Event::Aborted { .. } => {}
        }
    }
}
