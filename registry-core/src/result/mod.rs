//! What a call comes to: a [`ToolResult`] or a [`ToolError`].

mod convert;
mod error;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub use convert::{IntoToolError, KnownError, KnownErrors, with_causes};
pub use error::{ErrorKind, ToolError};

use crate::content::Content;

/// What a tool gives back when it has more to say than a value: a word to the user, what it changed, notes for the audit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// Whether the tool did what it was asked.
    pub success: bool,
    /// What it found, for the model: a string is given as it is, anything else as JSON.
    pub value: Value,
    /// Its parts beside the value: pictures, sound, files, tables. A chat shows them to the person, and pictures to a model that can see;
    /// what a model does not get is described to it.
    pub content: Vec<Content>,
    /// Whether it goes to the person as it is and ends the turn: the model is not asked again.
    pub ends_turn: bool,
    /// A word to the user beside the answer.
    pub message: Option<String>,
    /// What was changed, such as `created:inbox/note.md`.
    pub side_effects: Vec<String>,
    /// Notes for the audit record. The registry adds its own (tool, time, duration).
    pub audit: Map<String, Value>,
}

impl ToolResult {
    /// Success with a value.
    pub fn new(value: impl Into<Value>) -> Self {
        Self { success: true, value: value.into(), ..Self::default() }
    }

    /// The tool ran and could not do it, which is no error: `message` says why.
    pub fn unsuccessful(message: impl Into<String>) -> Self {
        Self { success: false, message: Some(message.into()), ..Self::new(Value::Null) }
    }

    /// Adds a word to the user.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Success with parts alone.
    ///
    /// ```
    /// use registry_core::{Content, File, Markdown, ToolResult};
    ///
    /// let result = ToolResult::parts([
    ///     Content::from(Markdown::new("The **report**:")),
    ///     File::new("report.csv", "city,degrees\nOslo,3.5\n").into(),
    /// ]);
    /// assert_eq!(result.content.len(), 2);
    /// ```
    pub fn parts<P: Into<Content>>(parts: impl IntoIterator<Item = P>) -> Self {
        Self { content: parts.into_iter().map(Into::into).collect(), ..Self::new(Value::Null) }
    }

    /// Adds a part.
    #[must_use]
    pub fn with_content(mut self, part: impl Into<Content>) -> Self {
        self.content.push(part.into());
        self
    }

    /// Gives the result to the person as it is, and ends the turn without asking the model again.
    #[must_use]
    pub fn ends_turn(mut self) -> Self {
        self.ends_turn = true;
        self
    }

    /// Adds something that was changed.
    #[must_use]
    pub fn with_side_effect(mut self, side_effect: impl Into<String>) -> Self {
        self.side_effects.push(side_effect.into());
        self
    }

    /// Adds a note for the audit record.
    #[must_use]
    pub fn with_audit(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.audit.insert(key.into(), value.into());
        self
    }

    /// The value as an object, which a sole table is too.
    pub fn structured(&self) -> Option<Value> {
        match (&self.value, self.content.as_slice()) {
            (Value::Object(_), _) => Some(self.value.clone()),
            (Value::Null, [Content::Table(table)]) => serde_json::to_value(table).ok(),
            _ => None,
        }
    }

    /// The text of its value for the model, without its parts.
    pub fn value_for_model(&self) -> Cow<'_, str> {
        match (&self.value, &self.message) {
            (Value::Null, Some(message)) => Cow::Borrowed(message.as_str()),
            (Value::Null, None) if !self.content.is_empty() => Cow::Borrowed(""),
            (Value::String(text), _) => Cow::Borrowed(text.as_str()),
            (value, _) => Cow::Owned(value.to_string()),
        }
    }

    /// The text for a model that takes only text: the value, and what is shown beside as text or described.
    pub fn for_model(&self) -> Cow<'_, str> {
        let value = self.value_for_model();
        if self.content.is_empty() {
            return value;
        }
        let value = Some(value.into_owned()).filter(|text| !text.is_empty());
        let shown = self.content.iter().map(Content::for_model);
        Cow::Owned(value.into_iter().chain(shown).collect::<Vec<_>>().join("\n"))
    }
}
