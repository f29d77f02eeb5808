//! A call that somebody wants made.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use strum::IntoStaticStr;

use crate::{id::call_id, text::cut};

/// How a call reached the registry, for the audit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Origin {
    /// The model's own tool call.
    Native,
    /// Read out of the model's text, in the dialect of that name.
    Text(Cow<'static, str>),
    /// An HTTP request for this one call.
    Http,
    /// An MCP client.
    Mcp,
    /// A job of the schedule, at its time.
    Schedule,
    /// A person at a command line.
    CommandLine,
    /// A tool that calls another one.
    Tool,
    /// Code that embeds the registry.
    #[default]
    Library,
}

/// The longest name of a tool that is repeated whole, in bytes.
const MAX_NAME: usize = 256;

/// A call that somebody wants made.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct ToolCall {
    /// Names this call among others; echoed in events and the audit. Empty: the registry gives it one.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments: an object.
    pub arguments: Value,
    /// How it came here.
    pub origin: Origin,
    /// The text behind the tag, where it was a line `TAG: text`.
    pub raw_argument: Option<String>,
    /// How often a failure that may pass is tried again, if the tool only reads or is idempotent.
    pub retries: u8,
    /// Whether it was made before and interrupted, as by the end of its process: it goes on with what was [kept](crate::ToolPolicy::resumable)
    /// of it, and is not begun a second time where nothing was.
    pub interrupted: bool,
}

impl ToolCall {
    /// A call made by code, tried once.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: String::new(),
            name: name.into(),
            arguments,
            origin: Origin::Library,
            raw_argument: None,
            retries: 0,
            interrupted: false,
        }
    }

    /// With an id.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Gives an id to a call that came without one, so that its records are distinct from those of others.
    pub(crate) fn ensure_id(&mut self) {
        if self.id.is_empty() {
            self.id = call_id();
        }
    }

    /// Cuts a name that no tool can have, so that nothing which repeats it is as long.
    pub(crate) fn cut_name(&mut self) {
        self.name = cut(std::mem::take(&mut self.name), MAX_NAME);
    }

    /// With where it came from.
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// With the number of times a failure that may pass is tried again.
    pub fn with_retries(mut self, retries: u8) -> Self {
        self.retries = retries;
        self
    }

    /// As one that was interrupted and goes on.
    pub fn after_interruption(mut self) -> Self {
        self.interrupted = true;
        self
    }
}
