//! How the accounts of users on MCP servers are kept.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The key that connections are sealed with, in the data folder.
const KEY: &str = "connections.key";

/// The accounts of users on MCP servers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectionSettings {
    /// The file with the key that they are sealed with: 32 bytes as Base64. It is made where there is none; by default a file in the data
    /// folder. Servers that share a database share the key.
    pub key_file: Option<PathBuf>,
}

impl ConnectionSettings {
    /// The file with the key.
    pub fn key_file(&self, data: &Path) -> PathBuf {
        self.key_file.clone().unwrap_or_else(|| data.join(KEY))
    }
}
