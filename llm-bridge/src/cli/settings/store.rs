//! The persistent state.

use std::{fmt, path::PathBuf};

use serde::Deserialize;
use toolrack_stores::Durability;

use crate::cli::features::missing;

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
        self.url.as_deref().filter(|url| is_postgres(url))
    }

    /// The URL of Redis, if there is one.
    pub fn redis(&self) -> Option<&str> {
        self.redis.as_deref().filter(|url| !url.is_empty())
    }

    /// Checks that the program can open them.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.postgres().is_some() && !cfg!(feature = "postgres") {
            return Err(format!("store.url: {}", missing("postgres")));
        }
        if self.redis().is_some() && !cfg!(feature = "redis") {
            return Err(format!("store.redis: {}", missing("redis")));
        }
        Ok(())
    }
}

/// Whether a URL is that of a PostgreSQL database.
pub(in crate::cli) fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
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

impl Place<'_> {
    /// Whether there is anything; a database is assumed to have it.
    pub(in crate::cli) fn exists(&self) -> bool {
        match self {
            Self::File(file) => file.exists(),
            Self::Postgres(_) => true,
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => std::path::absolute(file).as_ref().unwrap_or(file).display().fmt(f),
            // The text before `@` may be a password.
            Self::Postgres(url) => write!(f, "PostgreSQL at {}", url.rsplit('@').next().unwrap_or(url)),
        }
    }
}
