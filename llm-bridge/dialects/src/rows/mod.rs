//! The dialects of this crate, in the order in which they are asked where several share a delimiter.
//!
//! They are not in the slice because an entry there is a static with a link section of its own, which this crate,
//! without any unsafe code, may not have.

mod json;
mod literals;
mod messages;
mod tags;
mod wrapped;

use super::{named::Head, table::Dialect};
#[cfg(test)]
pub(super) use messages::HEADER;

pub(super) use literals::LIST;
pub(super) use tags::IN_ELEMENTS;

/// All of them, by family.
pub(super) const ROWS: &[&[Dialect]] =
    &[json::ROWS, tags::ROWS, wrapped::ROWS, literals::ROWS, messages::ROWS];

/// How the turns of others begin: a model that writes one makes up what they say.
pub(super) const TURNS: &[&str] = &[
    "<|im_start|>user",
    "<|im_start|>tool",
    "<|im_start|>system",
    "<|start_header_id|>user",
    "<|start_header_id|>ipython",
    "<|start_header_id|>tool",
    "<start_of_turn>user",
    "<|turn>user",
    "<|user|>",
    "<|observation|>",
    "<|im_user|>",
    "<|im_system|>",
    "<｜User｜>",
    "<seed:bos>user",
    "<seed:bos>tool",
    "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>",
    "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>",
    "[INST]",
];

/// Thinking delimiters that many models share. They are words of prose, too.
pub(super) const THINK: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
];

/// A name after a space.
const fn spaced(close: &'static [&'static str]) -> Head {
    Head::Between { open: "", close, before: " ", id: "", written_id: "" }
}
