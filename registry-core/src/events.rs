//! The changes of a registry, as events for subscribers.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// How many events are kept for a listener that is slow. One that is slower still gets the number of those that it has missed.
pub(crate) const EVENTS_KEPT: usize = 1024;

/// One change. As JSON it is one flat object:
/// `{"tenant", "tool", "kind": "replaced", "from", "to", "older", "version", "elsewhere", "ts"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegistryEvent {
    /// Whose registry it is.
    pub tenant: String,
    /// The tool's name.
    pub tool: String,
    /// What has happened to it.
    #[serde(flatten)]
    pub change: Change,
    /// The version it has now, or had last; none where it has none.
    pub version: Option<String>,
    /// Whether another server made the change, which then also notifies the webhooks.
    pub elsewhere: bool,
    /// When it was made, or seen here where it was made elsewhere (UTC).
    pub ts: Timestamp,
}

/// What has happened to a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// It is there, and was not.
    Registered,
    /// Another version stands in its place, switched on.
    Replaced {
        /// The version before.
        from: Option<String>,
        /// The version now.
        to: Option<String>,
        /// Whether that is the older one of the two.
        older: bool,
    },
    /// It was switched on.
    Enabled,
    /// It was switched off.
    Disabled,
    /// It is there no more.
    Removed,
}

impl Change {
    /// Its kind, as JSON has it.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}
