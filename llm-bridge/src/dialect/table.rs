//! The table of dialects: what a row says, and the rows of this crate.

use linkme::distributed_slice;

use super::{json::JsonStyle, xml::XmlStyle};

/// Dialects of other crates. A crate adds one by putting a row into this slice:
///
/// ```
/// use linkme::distributed_slice;
/// use llm_bridge::dialect::{DIALECTS, Dialect, Family, JsonStyle, Mark};
///
/// #[distributed_slice(DIALECTS)]
/// static MINE: Dialect = Dialect {
///     name: "mine",
///     marks: &[Mark::wrapper("<my_call>")],
///     close: &["</my_call>"],
///     family: Family::Json(JsonStyle::PLAIN),
///     result: "<my_result>{content}</my_result>",
/// };
/// # fn main() {
/// # use llm_bridge::dialect::{Offered, ScanOptions, parse};
/// let text = r#"<my_call>{"name": "add", "arguments": {}}</my_call>"#;
/// assert_eq!(parse(text, Offered::any().into(), ScanOptions::default()).dialect, Some("mine"));
/// # }
/// ```
#[distributed_slice]
pub static DIALECTS: [Dialect];

/// One way of writing tool calls as text.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// The name used in the configuration, in events and in documentation.
    pub name: &'static str,
    /// What opens a call. A dialect without marks is looked for where a line starts (bare JSON).
    pub marks: &'static [Mark],
    /// What may close it; the first is the one that is rendered. A missing one is forgiven.
    pub close: &'static [&'static str],
    /// How the body between the marks is written.
    pub family: Family,
    /// How the result of a call is given back to the model: `{name}` and `{content}` stand for what they say.
    pub result: &'static str,
}

/// An opening mark.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// The mark, byte for byte.
    pub text: &'static str,
    /// The mark is itself the beginning of the body, written without its wrapper. Such a mark is too weak to
    /// end thinking that was left open.
    pub inner: bool,
}

impl Mark {
    /// A mark that stands before the body.
    pub const fn wrapper(text: &'static str) -> Self {
        Self { text, inner: false }
    }

    /// A mark with which the body itself begins.
    pub const fn inner(text: &'static str) -> Self {
        Self { text, inner: true }
    }
}

/// The reader that owns a body once a mark has been seen.
#[derive(Debug, Clone, Copy)]
pub enum Family {
    /// JSON objects that name a tool and its arguments.
    Json(JsonStyle),
    /// A tag naming the tool around one tag for each argument; values are text, typed by the tool's schema.
    Xml(XmlStyle),
}

/// How the Qwen and Hermes templates give results back.
const RESPONSE: &str = "<tool_response>\n{content}\n</tool_response>";

/// The rows of this crate. They are not in the slice because an entry there is a static with a link section of
/// its own, which this crate, without any unsafe code, may not have.
const ROWS: &[Dialect] = &[
    Dialect {
        name: "hermes",
        marks: &[Mark::wrapper("<tool_call>")],
        close: &["</tool_call>"],
        family: Family::Json(JsonStyle::PLAIN),
        result: RESPONSE,
    },
    Dialect {
        name: "qwen3_coder",
        marks: &[Mark::wrapper("<tool_call>"), Mark::inner("<function=")],
        close: &["</tool_call>"],
        family: Family::Xml(XmlStyle {
            call: ("<function=", ">"),
            call_end: "</function>",
            param: ("<parameter=", ">"),
            param_end: "</parameter>",
        }),
        result: RESPONSE,
    },
    Dialect {
        name: "bare_json",
        marks: &[],
        // Left over where a server has eaten the opening mark of another dialect as a special token.
        close: &["</tool_call>"],
        family: Family::Json(JsonStyle::PLAIN),
        result: RESPONSE,
    },
];

/// Every dialect: the rows of this crate and those other crates have put into [`DIALECTS`].
pub fn dialects() -> impl Iterator<Item = &'static Dialect> {
    ROWS.iter().chain(DIALECTS.iter())
}

/// The row of this name.
pub fn dialect(name: &str) -> Option<&'static Dialect> {
    dialects().find(|row| row.name == name)
}

/// The name under which calls of tag lines are reported; the tools declare them, so there is no row.
pub const TAG_LINE: &str = "tag_line";

/// Thinking marks, opening and closing.
pub(crate) const THINKING: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
];
