//! What is known of a server, for people.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::SourceReport;

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
    /// What is known of every source.
    #[serde(flatten)]
    pub source: SourceReport,
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
    /// How often it was reached again after it was lost.
    pub restarts: u64,
}
