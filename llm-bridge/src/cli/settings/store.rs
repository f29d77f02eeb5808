//! The persistent state.

use std::{fmt, path::PathBuf};

use registry_core::secret_in;
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

    /// Environment variables override the file.
    pub(super) fn lay_over(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<(), String> {
        for (name, setting) in
            [("TOOLRACK_STORE_URL", &mut self.url), ("TOOLRACK_STORE_REDIS", &mut self.redis)]
        {
            if let Some(value) = secret_in(&variable, name)? {
                *setting = Some(value);
            }
        }
        if let Some(server) = variable("TOOLRACK_STORE_SERVER").filter(|server| !server.is_empty()) {
            self.server = server;
        }
        self.check()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b10_the_place_of_the_store_may_be_in_the_environment_or_in_a_file_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let file = write("url", "postgres://ada:hush@db.example/rack\n");
        let laid_over = |variables: &[(&str, &str)]| {
            let mut settings =
                StoreSettings { url: Some("sqlite:a.db".to_owned()), ..StoreSettings::default() };
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            settings.lay_over(variable).map(|()| settings)
        };
        let url = |variables: &[(&str, &str)]| laid_over(variables).unwrap().url.unwrap();
        assert_eq!(url(&[]), "sqlite:a.db");
        assert_eq!(url(&[("TOOLRACK_STORE_URL", "")]), "sqlite:a.db");
        assert_eq!(url(&[("TOOLRACK_STORE_URL", "sqlite:b.db")]), "sqlite:b.db");
        assert_eq!(url(&[("TOOLRACK_STORE_URL_FILE", &file)]), "postgres://ada:hush@db.example/rack");
        let settings =
            laid_over(&[("TOOLRACK_STORE_REDIS", "redis://r/0"), ("TOOLRACK_STORE_SERVER", "two")]).unwrap();
        assert_eq!((settings.redis(), settings.server.as_str()), (Some("redis://r/0"), "two"));
        let fault = laid_over(&[("TOOLRACK_STORE_URL", "sqlite:b.db"), ("TOOLRACK_STORE_URL_FILE", &file)])
            .unwrap_err();
        assert!(fault.contains("leave one of them out"), "{fault}");
        let fault = laid_over(&[("TOOLRACK_STORE_URL_FILE", "/nowhere/url")]).unwrap_err();
        assert!(fault.starts_with("TOOLRACK_STORE_URL_FILE: cannot read /nowhere/url"), "{fault}");
        for (name, text, reported) in
            [("empty", "\n", " is empty"), ("large", &*"x".repeat((64 << 10) + 1), "larger than 64 KiB")]
        {
            let fault = laid_over(&[("TOOLRACK_STORE_URL_FILE", &write(name, text))]).unwrap_err();
            assert!(fault.contains(reported), "{fault}");
        }
    }
}
