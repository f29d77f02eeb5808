//! Where what has to last is kept.

use serde::Deserialize;

/// Where registrations, users, limits, approvals and the audit are kept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSettings {
    /// `sqlite:FILE`, or `postgres://…`; a file in the data folder where nothing is said.
    pub url: Option<String>,
    /// `redis://…`, for faster answers when several servers share a PostgreSQL.
    pub redis: Option<String>,
    /// The name of this server in the audit; several servers with one store have names of their own.
    pub server: String,
    /// What an acknowledged record survives.
    pub durability: Durability,
}

impl StoreSettings {
    /// The PostgreSQL database, where it is one.
    pub fn postgres(&self) -> Option<&str> {
        let url = self.url.as_deref()?;
        (url.starts_with("postgres://") || url.starts_with("postgresql://")).then_some(url)
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self { url: None, redis: None, server: "main".to_owned(), durability: Durability::Process }
    }
}

/// What an acknowledged record survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The end of the process, in whatever way.
    #[default]
    Process,
    /// A loss of power too; every commit waits for the disk.
    Power,
}
