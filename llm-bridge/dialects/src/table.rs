//! What a dialect is: its delimiters, the forms its calls are written in, its thinking and how results are given back.

use super::{header::HeaderStyle, json::JsonStyle, named::NamedStyle, rows::ROWS};

/// Dialects of other crates. A crate adds one by putting a row into this slice, which there is wherever the linker has sections: not on
/// WebAssembly.
///
/// ```
/// use linkme::distributed_slice;
/// use toolrack_dialects::{DIALECTS, Dialect, Form, JsonStyle, Delimiter};
///
/// #[distributed_slice(DIALECTS)]
/// static MINE: Dialect = Dialect::new("mine", &[Form::Json(JsonStyle::PLAIN)])
///     .delimiters(&[Delimiter::wrapper("<my_call>")])
///     .close(&["</my_call>"])
///     .results("<my_result>{content}</my_result>");
/// # fn main() {
/// # use toolrack_dialects::{Offered, ScanOptions, parse};
/// let text = r#"<my_call>{"name": "add", "arguments": {}}</my_call>"#;
/// assert_eq!(parse(text, Offered::any().into(), ScanOptions::default()).dialect, Some("mine"));
/// # }
/// ```
#[cfg(not(target_family = "wasm"))]
#[linkme::distributed_slice]
pub static DIALECTS: [Dialect];

/// One way of writing tool calls as text.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Dialect {
    /// The name used in the configuration, in events and in documentation.
    pub name: &'static str,
    /// What opens a call. A dialect without delimiters is looked for where a line starts.
    pub delimiters: &'static [Delimiter],
    /// What may close what a wrapper has opened; the first is the one that is rendered. A missing one is forgiven.
    pub close: &'static [&'static str],
    /// How calls are written; the first is the one that is rendered.
    pub forms: &'static [Form],
    /// Opening and closing delimiters of its models' thinking.
    pub thinking: &'static [(&'static str, &'static str)],
    /// Sentences with which an answer begins its thinking, and ends it. To others they are sentences like any.
    pub(super) spoken: &'static [(&'static str, &'static str)],
    /// Special tokens that mean nothing to the reader of an answer.
    pub noise: &'static [&'static str],
    /// Tokens that mean nothing to the reader where an answer ends with them.
    pub stops: &'static [&'static str],
    /// What its models write around an answer. To others these are tags like any.
    pub(super) around: &'static [&'static str],
    /// Lines that mean nothing to the reader where an answer begins with them.
    pub(super) starts: &'static [&'static str],
    /// The closing delimiter is read, and not written.
    pub(super) open_ended: bool,
    /// Delimiters and calls are written on lines of their own.
    pub(super) lines: bool,
    /// Its tags may carry the suffix of a checkpoint: `<tag:SUFFIX>`.
    pub(super) suffixed: bool,
    /// How the headers of its messages are written, where it speaks in messages.
    pub(super) header: Option<&'static HeaderStyle>,
    /// How the result of a call is given back to the model: `{name}` and `{content}` stand for what they say.
    pub(super) result: &'static str,
}

/// How the Qwen and Hermes templates give results back.
const RESPONSE: &str = "<tool_response>\n{content}\n</tool_response>";

impl Dialect {
    /// A row without delimiters, whose results are given back as most templates do.
    pub const fn new(name: &'static str, forms: &'static [Form]) -> Self {
        Self {
            name,
            delimiters: &[],
            close: &[],
            forms,
            thinking: &[],
            spoken: &[],
            noise: &[],
            stops: &[],
            around: &[],
            starts: &[],
            open_ended: false,
            lines: false,
            suffixed: false,
            header: None,
            result: RESPONSE,
        }
    }

    /// The row with these opening delimiters.
    pub const fn delimiters(mut self, delimiters: &'static [Delimiter]) -> Self {
        self.delimiters = delimiters;
        self
    }

    /// The row with these closing delimiters.
    pub const fn close(mut self, close: &'static [&'static str]) -> Self {
        self.close = close;
        self
    }

    /// The row with these thinking delimiters.
    pub const fn thinking(mut self, thinking: &'static [(&'static str, &'static str)]) -> Self {
        self.thinking = thinking;
        self
    }

    /// The row with these sentences around thinking.
    pub(super) const fn spoken(mut self, spoken: &'static [(&'static str, &'static str)]) -> Self {
        self.spoken = spoken;
        self
    }

    /// The row with these tokens without a meaning.
    pub const fn noise(mut self, noise: &'static [&'static str]) -> Self {
        self.noise = noise;
        self
    }

    /// The row with these tokens at the end of an answer.
    pub const fn stops(mut self, stops: &'static [&'static str]) -> Self {
        self.stops = stops;
        self
    }

    /// The row with these tags around an answer.
    pub(super) const fn around(mut self, around: &'static [&'static str]) -> Self {
        self.around = around;
        self
    }

    /// How the result of a call begins, up to what differs.
    pub(super) fn result_begins(&self) -> &'static str {
        let fixed = self.result.split('{').next().unwrap_or_default();
        let end = fixed.rfind(['>', ']']).map_or(fixed.trim_end().len(), |last| last + 1);
        fixed.get(..end).unwrap_or_default()
    }

    /// The row with these lines at the beginning of an answer.
    pub(super) const fn starts(mut self, starts: &'static [&'static str]) -> Self {
        self.starts = starts;
        self
    }

    /// The row with a closing delimiter that is read, and not written.
    pub const fn open_ended(mut self) -> Self {
        self.open_ended = true;
        self
    }

    /// Whether its calls end without a closing delimiter.
    pub(super) const fn is_open_ended(&self) -> bool {
        self.open_ended || self.close.is_empty()
    }

    /// The row with its delimiters and calls on lines of their own.
    pub const fn on_lines(mut self) -> Self {
        self.lines = true;
        self
    }

    /// The row with tags that may carry the suffix of a checkpoint.
    pub(super) const fn suffixed(mut self) -> Self {
        self.suffixed = true;
        self
    }

    /// The row with messages that have such headers.
    pub(super) const fn header(mut self, header: &'static HeaderStyle) -> Self {
        self.header = Some(header);
        self
    }

    /// The row with this form of results.
    pub const fn results(mut self, result: &'static str) -> Self {
        self.result = result;
        self
    }
}

/// An opening delimiter.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Delimiter {
    /// The delimiter, byte for byte.
    pub text: &'static str,
    /// What it is to the call after it.
    pub kind: DelimiterKind,
}

/// What a delimiter is to the call after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DelimiterKind {
    /// It stands before calls and is none of their own text.
    Wrapper,
    /// Every call begins with it.
    Call,
    /// Calls begin with it that should stand in a wrapper. Such a delimiter is too weak to end thinking that was left
    /// open.
    Inner,
    /// It stands before calls and is an ordinary word: it counts only where a line starts.
    Line,
    /// It stands before calls and is an ordinary word, anywhere in a line: they count only if they name offered tools.
    Word,
    /// It stands after the name of an offered tool where a line starts: calls whose other delimiters a server has
    /// taken out as special tokens.
    Name,
    /// It begins the header of a message, which says whom the message is for.
    Header,
    /// It may stand before calls, after a header.
    Section,
}

impl Delimiter {
    /// A delimiter that stands before the body.
    pub const fn wrapper(text: &'static str) -> Self {
        Self { text, kind: DelimiterKind::Wrapper }
    }

    /// A delimiter with which each call begins.
    pub const fn call(text: &'static str) -> Self {
        Self { text, kind: DelimiterKind::Call }
    }

    /// A delimiter with which a call begins whose wrapper is missing.
    pub const fn inner(text: &'static str) -> Self {
        Self { text, kind: DelimiterKind::Inner }
    }

    /// A word before the body, where a line starts.
    pub const fn line(text: &'static str) -> Self {
        Self { text, kind: DelimiterKind::Line }
    }

    /// A word before the body, anywhere in a line.
    pub const fn word(text: &'static str) -> Self {
        Self { text, kind: DelimiterKind::Word }
    }

    /// What stands after a name at a line's start.
    pub const fn name(text: &'static str) -> Self {
        Self { text, kind: DelimiterKind::Name }
    }

    /// A delimiter that begins a message's header.
    pub(super) const fn header(text: &'static str) -> Self {
        Self { text, kind: DelimiterKind::Header }
    }

    /// A delimiter that may stand before the body, after a header.
    pub(super) const fn section(text: &'static str) -> Self {
        Self { text, kind: DelimiterKind::Section }
    }
}

/// The family of readers that owns a body once a delimiter has been seen, and how the dialect varies it.
// Rows are constants: none is moved about.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Form {
    /// JSON objects that name a tool and its arguments.
    Json(JsonStyle),
    /// The tool's name, then its arguments.
    Named(NamedStyle),
}

/// Every dialect: the rows of this crate, then those other crates have put into [`DIALECTS`].
pub fn dialects() -> impl Iterator<Item = &'static Dialect> {
    ROWS.iter().copied().flatten().chain(others())
}

/// The rows of other crates.
pub(super) fn others() -> &'static [Dialect] {
    #[cfg(not(target_family = "wasm"))]
    return &DIALECTS;
    #[cfg(target_family = "wasm")]
    &[]
}

/// The row of this name.
pub fn dialect(name: &str) -> Option<&'static Dialect> {
    dialects().find(|row| row.name == name)
}

/// The name under which calls of tag lines are reported; the tools declare them, so there is no row.
pub const TAG_LINE: &str = "tag_line";
