//! What is known of a module, for people.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{BreakerState, ToolChange, ToolFault};

/// What is known of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModuleReport {
    /// Its name, the prefix of its tools.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// The version it gives itself.
    pub version: Option<String>,
    /// How many tools it has here, those that are off or left out for another's name too.
    pub tools: usize,
    /// Why it could not be asked for its tools the last time. Then those that are there are from before.
    pub error: Option<String>,
    /// When it gave the manifest that is in use (UTC).
    pub fetched_at: Option<Timestamp>,
    /// How long ago that was, in seconds.
    pub age: Option<u64>,
    /// Whether it is called.
    pub breaker: BreakerState,
    /// Whether tools that are new or changed are off until they are accepted.
    pub pinned: bool,
    /// Names the tools as they are now, to [accept](super::Modules::accept) just these.
    pub digest: String,
    /// The tools that are not as they were accepted.
    pub changes: Vec<ToolChange>,
    /// The tools that were left out, or are not as they say.
    pub faults: Vec<ToolFault>,
    /// The tools that are left out because another has their name, each with both places.
    pub duplicates: Vec<String>,
}
