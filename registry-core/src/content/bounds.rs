//! How much a result may be, and what the audit has of it.

use serde_json::{Value, json};

use super::Content;
use crate::{
    json::is_within,
    result::{ToolError, ToolResult},
};

/// How many parts a result may have.
pub(super) const MAX_PARTS: usize = 1000;
/// How large a result may be in all, in bytes as they go over a wire: pictures, sound and files are in Base64 there.
pub(super) const MAX_BYTES: usize = 32 << 20;
/// How many parts the audit tells of.
const TOLD: usize = 16;

impl Content {
    /// How large it is, in bytes as it goes over a wire.
    pub fn size(&self) -> usize {
        let values = |value: &Value| match value {
            Value::String(text) => text.len() + 3,
            other => other.to_string().len() + 1,
        };
        match self {
            Self::Text { text } | Self::Markdown { text } => text.len(),
            Self::Image { data, .. } | Self::Audio { data, .. } => data.len(),
            Self::Resource { resource: map } | Self::ResourceLink { link: map } => {
                map.values().map(values).sum()
            }
            Self::Table(table) => table.rows().iter().flatten().map(values).sum(),
        }
    }

    /// The word that its JSON has for it in `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text { .. } => "text",
            Self::Image { .. } => "image",
            Self::Audio { .. } => "audio",
            Self::Resource { .. } => "resource",
            Self::ResourceLink { .. } => "resource_link",
            Self::Table(_) => "table",
            Self::Markdown { .. } => "markdown",
        }
    }
}

/// Fails where a result has more than may be, or a table that is none.
pub(crate) fn check(result: &ToolResult) -> Result<(), ToolError> {
    let parts = result.content.len();
    if parts > MAX_PARTS {
        return Err(too_many());
    }
    let content: usize = result.content.iter().map(Content::size).sum();
    let beside: usize = result.side_effects.iter().chain(&result.message).map(String::len).sum();
    let left = MAX_BYTES.checked_sub(content).and_then(|left| left.checked_sub(beside));
    let fits = |left| match &result.value {
        Value::String(text) => text.len() <= left,
        other => is_within(other, left),
    };
    if !left.is_some_and(fits) {
        return Err(too_large());
    }
    let uneven = result.content.iter().find_map(|part| match part {
        Content::Table(table) => Some((table.uneven()?, table.columns().len())),
        _ => None,
    });
    match uneven {
        None => Ok(()),
        Some(((row, cells), columns)) => Err(ToolError::failed(format!(
            "row {row} of the table has {cells} cells, and there are {columns} columns"
        ))
        .with_feedback(
            "The tool failed with a fault of its own. Do not call it again with these arguments.",
        )),
    }
}

pub(super) fn too_many() -> ToolError {
    ToolError::failed(format!("the result has more than {MAX_PARTS} parts"))
        .with_feedback("The tool's result has too many parts. Ask it for less.")
}

pub(super) fn too_large() -> ToolError {
    let most = MAX_BYTES >> 20;
    ToolError::failed(format!("the result is too large, its parts with Base64; {most} MiB at most are taken"))
        .with_feedback("The tool's result is too large. Ask it for less.")
}

/// What the audit has of the parts of a result: what they are, and not what is in them.
pub(crate) fn described(parts: &[Content]) -> Option<Value> {
    let one = |part: &Content| match part.blob() {
        Some(blob) => json!({"type": part.kind(), "media_type": blob.media_type, "bytes": blob.size()}),
        None => json!({"type": part.kind(), "bytes": part.size()}),
    };
    let mut told: Vec<Value> = parts.iter().take(TOLD).map(one).collect();
    if parts.len() > TOLD {
        told.push(json!({"more": parts.len() - TOLD}));
    }
    (!told.is_empty()).then_some(told.into())
}
