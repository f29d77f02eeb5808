//! Where a registry keeps what has to outlast the process: SQLite for one server, PostgreSQL for several, Redis in front of either.
//! [`schedule`] makes calls at set times, from jobs that are kept in the same stores.
//!
//! ```
//! use registry_core::store::Store;
//! use toolrack_stores::SqliteSettings;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let store = SqliteSettings::new(folder.join("toolrack.db")).open().await?;
//! assert!(store.users("default").await?.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # Adding a store
//!
//! A store is a module that implements those traits that it serves; others go on being served by another store, which it may stand in
//! front of, as [`RedisUsage`] does.
//!
//! | trait | what it keeps | tested by |
//! |---|---|---|
//! | [`Store`](registry_core::store::Store) | registrations, switches, users, keys, personas | `store_contract` |
//! | [`Usage`](registry_core::guard::limits::Usage) | counted calls | `usage_contract` |
//! | [`Approvals`](registry_core::guard::approval::Approvals) | calls that wait for a person | `approvals_contract` |
//! | [`AuditSink`](registry_core::guard::audit::AuditSink), [`AuditLog`](registry_core::guard::audit::log::AuditLog) | the audit, and reading it | `chains.rs` |
//! | [`DeadLetters`](registry_core::store::DeadLetters) | webhook messages that could not be delivered | `letters_contract` |
//! | [`ConversationStore`](registry_core::store::ConversationStore) | responses that clients continue | `conversations_contract` |
//! | [`StateStore`](registry_core::store::StateStore) | what tools keep between calls | `state_contract` |
//! | [`ManifestCache`](registry_core::store::ManifestCache), [`ManifestStore`](registry_core::store::ManifestStore) | manifests of modules | `manifest_contract` |
//! | [`schedule::Jobs`] | scheduled calls | `jobs_contract` |
//!
//! The contracts are in `tests/stores` and take the trait, so a store is one more line in the test that calls them for all. What a method acknowledges is
//! kept; what it cannot do is a [`StoreError`](registry_core::store::StoreError) of the kind that callers decide by. A method waits for
//! files and databases on threads of their own, never on the runtime's. The program opens the stores that its settings name in
//! `llm-bridge/src/cli/store.rs`, one field for each trait.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod backup;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod heads;
#[cfg(feature = "postgres")]
mod outage;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
pub mod schedule;
#[cfg(feature = "postgres")]
mod session;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "redis")]
pub use self::redis::{Redis, RedisManifests, RedisUsage};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use heads::{HeadStore, KeptHead};
#[cfg(feature = "postgres")]
pub use postgres::PostgresSettings;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use sql::{Erased, NameTaken, SqlStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, SqliteSettings};

#[cfg(all(doctest, feature = "sqlite", feature = "postgres", feature = "redis"))]
#[doc = include_str!("../../../docs/stores.md")]
struct Stores;
