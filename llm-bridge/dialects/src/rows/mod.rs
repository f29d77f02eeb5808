//! The dialects of this crate, in the order in which they are asked where several share a delimiter.
//!
//! They are not in the slice because an entry there is a static with a link section of its own, which this crate,
//! without any unsafe code, may not have.

mod json;
mod literals;
mod messages;
mod tags;
mod wrapped;

use super::table::Dialect;
#[cfg(test)]
pub(super) use messages::HEADER;

/// All of them, by family.
pub(super) const ROWS: &[&[Dialect]] =
    &[json::ROWS, tags::ROWS, wrapped::ROWS, literals::ROWS, messages::ROWS];

/// Thinking delimiters that many models share.
const THINK: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
];
