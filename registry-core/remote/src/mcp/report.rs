//! What is known of a server, for people.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{BreakerState, ToolChange, ToolFault};

/// Whether a server is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum McpState {
    /// It is being reached, for the first time.
    Connecting,
    /// It is there.
    Connected,
    /// It is not, and is tried again.
    Away,
    /// It was left.
    Closed,
}

/// What is known of a server.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct McpServerReport {
    /// Its name, the prefix of its tools.
    pub name: String,
    /// Its command or URL, without what may be a secret.
    pub address: String,
    /// Whether it is there.
    pub state: McpState,
    /// Since when (UTC).
    pub since: Timestamp,
    /// The revision of the protocol that it speaks, or spoke last.
    pub protocol: Option<String>,
    /// What it calls itself, with its version.
    pub server: Option<String>,
    /// How many tools it has here now, those left out for another's name too.
    pub tools: usize,
    /// How often it was reached again after it was lost.
    pub restarts: u64,
    /// Whether it is called.
    pub breaker: BreakerState,
    /// Whether tools that are new or changed are off until they are accepted.
    pub pinned: bool,
    /// Names the tools as they are now, to [accept](super::McpServers::accept) just these.
    pub digest: String,
    /// The tools that are not as they were accepted.
    pub changes: Vec<ToolChange>,
    /// Why it could not be reached, or was lost.
    pub error: Option<String>,
    /// The tools that were left out.
    pub faults: Vec<ToolFault>,
    /// The tools that are left out because another has their name, each with both places.
    pub duplicates: Vec<String>,
}
