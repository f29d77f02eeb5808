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

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
pub mod schedule;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "redis")]
pub use self::redis::{Redis, RedisManifests, RedisUsage};
#[cfg(feature = "postgres")]
pub use postgres::PostgresSettings;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use sql::SqlStore;
#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, SqliteSettings};

#[cfg(all(doctest, feature = "sqlite", feature = "postgres", feature = "redis"))]
#[doc = include_str!("../../../docs/stores.md")]
struct Stores;
