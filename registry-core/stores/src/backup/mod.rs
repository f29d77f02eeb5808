//! Copies of databases: for a backup while servers use them, and back again when none does.
//!
//! A copy of a SQLite file is a SQLite file. A copy of PostgreSQL's tables is a text with a line of JSON for each row, since the program
//! cannot count on `pg_dump`; it has all tables as of one moment.

#[cfg(feature = "postgres")]
mod layout;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
pub use layout::Layout;
#[cfg(feature = "postgres")]
pub use postgres::{BackupRows, dump_tables, load_tables, size_of_tables};
#[cfg(feature = "sqlite")]
pub use sqlite::{LockedSqlite, copy_sqlite, is_sqlite, lock_sqlite};
