//! Foreign texts, cut so that they can be shown.

use std::error::Error;

use crate::{result::ToolError, source::hidden::is_hidden};

/// How much of a text of a server is shown, in bytes.
const MAX_SHOWN: usize = 500;

/// A text without what nobody sees, and no longer than fits a line.
pub(super) fn shown(text: &str) -> String {
    let visible: String =
        text.chars().map(|c| if is_hidden(c) || c.is_control() { ' ' } else { c }).collect();
    cut(visible, MAX_SHOWN)
}

/// The beginning of a text.
pub(super) fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

/// An error with its causes.
pub(super) fn cause_of(error: impl Error + Send + Sync + 'static) -> String {
    shown(ToolError::from(error).message())
}
