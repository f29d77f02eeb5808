//! What is known of a module, for people.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::SourceReport;

/// What is known of a module. While it cannot be asked, its tools are those it had before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModuleReport {
    /// What is known of every source.
    #[serde(flatten)]
    pub source: SourceReport,
    /// Where it is.
    pub url: String,
    /// The version it gives itself.
    pub version: Option<String>,
    /// When it gave the manifest that is in use (UTC).
    pub fetched_at: Option<Timestamp>,
    /// How long ago that was, in seconds.
    pub age: Option<u64>,
}
