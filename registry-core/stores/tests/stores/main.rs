//! The stores in memory, in a file, on a PostgreSQL server, and Redis in front of them: requirements M2, M3, T3, T5, L5, B8,
//! B10.
//!
//! The servers are real ones: `servers.rs` says where they come from.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod accidents;
mod backup;
mod chains;
mod chats;
mod connections;
mod contract;
mod conversations;
mod crash;
mod erasure;
mod failures;
mod figures;
mod heads;
mod jobs;
mod limits;
mod limits_redis;
mod modules;
mod odd_rows;
#[allow(dead_code)] // of which the tests of modules use more
#[path = "../../../remote/tests/remote/modules/peer.rs"]
mod peer;
mod postgres_server;
mod schedule;
mod servers;
mod sqlite_file;
mod state;
mod transcripts;

use std::sync::Arc;

use jiff::Timestamp;
use registry_core::{
    Caller, Permission, Registry, ToolCall, ToolContext, ToolOutcome, ToolPolicy, ToolResult, ToolSpec,
    guard::{audit::AuditSink, limits::Usage},
    handler_fn,
};
use serde_json::json;
use tempfile::TempDir;
use toolrack_stores::{PostgresSettings, SqlStore, SqliteSettings};

/// A time on the first of March 2026.
fn at(time: &str) -> Timestamp {
    format!("2026-03-01T{time}Z").parse().unwrap()
}

/// A place for a database, that is removed at the end.
enum Place {
    File(TempDir),
    Postgres(String),
}

impl Place {
    /// A folder for a file of SQLite.
    fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    /// A new database on the PostgreSQL server; `None` where there is no server.
    fn postgres(test: &str) -> Option<Self> {
        servers::postgres(test).map(Self::Postgres)
    }

    /// Both kinds, as far as there are servers.
    fn all(test: &str) -> Vec<Self> {
        [Some(Self::file()), Self::postgres(test)].into_iter().flatten().collect()
    }

    /// What a child process gets of it.
    fn url(&self) -> String {
        match self {
            Self::File(folder) => folder.path().join("state/toolrack.db").display().to_string(),
            Self::Postgres(url) => url.clone(),
        }
    }

    async fn open(&self, server: &str) -> SqlStore {
        open(&self.url(), server).await
    }
}

/// Opens the store at a URL of PostgreSQL or in a file.
async fn open(url: &str, server: &str) -> SqlStore {
    if url.starts_with("postgres:") {
        PostgresSettings::new(url, server).open().await.unwrap()
    } else {
        SqliteSettings { server: server.to_owned(), ..SqliteSettings::new(url) }.open().await.unwrap()
    }
}

/// A registry with one tool, `act`.
fn registry(usage: Arc<dyn Usage>, audit: Arc<dyn AuditSink>, daily_limit: u32) -> Registry {
    let registry = Registry::builder().without_compiled().usage(usage).audit(audit).build().unwrap();
    let handler = handler_fn(|_, _| async { Ok(ToolResult::new("done")) });
    let policy = ToolPolicy { daily_limit, ..ToolPolicy::new() };
    registry.register(ToolSpec::new("act", json!({"type": "object"})), policy, Some(handler)).unwrap();
    registry
}

fn user(registry: &Registry, name: &str) -> ToolContext {
    registry.context(Caller::new(name, Permission::User))
}

async fn call(registry: &Registry, context: &ToolContext) -> ToolOutcome {
    registry.execute(context, ToolCall::new("act", json!({}))).await
}
