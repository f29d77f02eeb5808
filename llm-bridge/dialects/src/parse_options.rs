//! Parsing options: what an embedder may decide differently where parsers of tool calls disagree.

use std::{borrow::Cow, str::FromStr};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Abort,
    body::Ready,
    entities,
    envelope::repeats_a_member,
    offered::Offered,
    typing::{Shape, Types},
};

/// What to decide differently where parsers of tool calls disagree. All options are off by default. A delimiter that is
/// merely mentioned is always text.
///
/// ```
/// use toolrack_dialects::{Offered, ParseOptions, ScanOptions, parse};
///
/// let mut parsing = ParseOptions::default();
/// parsing.only_closed = true;
/// let options = ScanOptions::default().parsing(parsing);
/// let text = r#"<tool_call>{"name": "add", "arguments": {}}"#;
/// assert_eq!(parse(text, Offered::any().into(), options).content, text);
/// assert_eq!(parse(text, Offered::any().into(), ScanOptions::default()).calls.len(), 1);
///
/// // By name, as a configuration or a command line has them.
/// assert_eq!("only_closed".parse(), Ok(parsing));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ParseOptions {
    /// A call after a delimiter to a tool that was not offered is text, so that no error is reported to the model.
    /// By default it is a call, and whoever runs it answers. SGLang does so, and smg while it streams.
    pub only_offered: bool,
    /// A call whose closing delimiter is missing is none: [`Abort::Incomplete`], and text. By default it is a call if its
    /// arguments are whole; [`Call::closed`](super::Call::closed) reports it. No call is begun before its end is read.
    /// SGLang does so, dynamo and smg in some dialects. A tag line and JSON without a delimiter have no closing delimiter.
    pub only_closed: bool,
    /// Calls in thinking that is closed count as well, after a full delimiter and to an offered tool: they come out as
    /// calls, with thinking before and after them. By default they stay thinking. dynamo reads so in the dialect of
    /// GLM.
    pub calls_in_thinking: bool,
    /// All text after the first call is for nobody: it comes out as [`Event::Frame`](super::Event::Frame). By
    /// default it is kept. dynamo reads so in most dialects, vLLM in some.
    pub drop_text_after_call: bool,
    /// White space around values in tags is none of theirs. By default only the framing line ends are not. vLLM
    /// reads so in the dialects of GLM. Values are not handed on before they are whole.
    pub trim_values: bool,
    /// Entities in values in tags are read: the five of XML, and numbers. By default they are kept as they are
    /// written. smg reads so, and SGLang did. Values are not handed on before they are whole.
    pub decode_entities: bool,
    /// A value in tags whose type neither the schema nor the markup states is JSON, where it can be read so: a
    /// number, a literal, an array or an object, in Python's notation as well. By default it is text, but for
    /// rows whose values are guessed. dynamo and smg read so in every dialect.
    pub guess_types: bool,
    /// A call that names an argument twice is text. By default the last one counts. SGLang reads so in the dialect
    /// of MiniCPM5, dynamo in that of DeepSeek V4.1. No call is begun before its end is read.
    pub refuse_duplicates: bool,
    /// What begins as a call after a delimiter and cannot be read is for nobody, up to its closing delimiter, the next
    /// opening one or the end of the text, and so are the calls that other options refuse: all that comes out
    /// as [`Event::Frame`](super::Event::Frame). By default it is text. dynamo reads so in most dialects, SGLang
    /// and vLLM in some.
    pub drop_unreadable: bool,
}

impl ParseOptions {
    /// Whether a call that has begun may still be refused when it is whole.
    pub(super) fn decides_late(&self) -> bool {
        self.only_closed || self.refuse_duplicates
    }

    /// Whether a call to this tool may be one.
    pub(super) fn takes(&self, name: &str, offered: &Offered) -> bool {
        !self.only_offered || offered.contains(name)
    }

    /// Why a call that was read is none, if it is none.
    pub(super) fn refuses(&self, call: &Ready, offered: &Offered) -> Option<Abort> {
        if !self.takes(&call.name, offered) {
            Some(Abort::NotOffered)
        } else if self.only_closed && !call.closed {
            Some(Abort::Incomplete)
        } else if self.refuse_duplicates && repeats_a_member(&call.arguments) {
            Some(Abort::Unreadable)
        } else {
            None
        }
    }

    /// Whether a value in tags is what is written, so that it can be handed on as it comes.
    pub(super) fn is_verbatim(&self) -> bool {
        !self.trim_values && !self.decode_entities
    }

    /// A value in tags.
    pub(super) fn value<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = if self.trim_values { text.trim() } else { text };
        if self.decode_entities { entities::decoded(text) } else { text.into() }
    }

    /// The types of a value in tags.
    pub(super) fn types(&self, shape: &Shape<'_>) -> Types {
        shape.types_or(if self.guess_types { Types::ANY } else { Types::TEXT })
    }
}

/// The names of what is turned on, with commas between them.
impl FromStr for ParseOptions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let on: Map<String, Value> = names.map(|name| (name.to_owned(), Value::Bool(true))).collect();
        serde_json::from_value(Value::Object(on)).map_err(|error| error.to_string())
    }
}
