//! How the registry's tools are offered over the protocol.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the registry's tools are offered over the protocol.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpSettings {
    /// Whether tools are listed by their own names, with the dot after the module. Clients pass names on to models as they are, and many
    /// model APIs refuse a dot.
    pub dotted_names: bool,
    /// For how many seconds the first list waits for sources of tools that have not answered yet; 0 for not at all.
    pub first_list_seconds: u64,
}

impl McpSettings {
    /// How long the first list waits.
    pub(super) fn first_list(&self) -> Duration {
        Duration::from_secs(self.first_list_seconds)
    }
}

impl Default for McpSettings {
    fn default() -> Self {
        // Some clients give up after 5 s.
        Self { dotted_names: false, first_list_seconds: 4 }
    }
}
