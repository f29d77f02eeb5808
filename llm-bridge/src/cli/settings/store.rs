//! The persistent state.

use std::path::PathBuf;

use serde::Deserialize;
use toolrack_stores::Durability;

/// The store of registrations, users, limits, approvals and the audit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSettings {
    /// `sqlite:FILE`, or `postgres://…`; by default a file in the data folder.
    pub url: Option<String>,
    /// `redis://…`, a cache for servers that share a PostgreSQL database.
    pub redis: Option<String>,
    /// The name of this server in the audit, unique among servers that share a store.
    pub server: String,
    /// What an acknowledged record survives.
    pub durability: Durability,
}

impl StoreSettings {
    /// The URL, if it is a PostgreSQL database.
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

/// Where data is stored.
#[derive(Debug, PartialEq)]
pub(in crate::cli) enum Place<'s> {
    File(PathBuf),
    Postgres(&'s str),
}
