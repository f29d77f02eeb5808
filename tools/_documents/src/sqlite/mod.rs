//! Documents in a SQLite file.

mod file;
mod graph;
mod index;
mod presence;
pub(super) mod select;
mod vector;

use std::{fmt::Display, path::PathBuf, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::OnceCell;

use file::{private_file, private_folder, retry_busy};
use presence::Presence;
use registry_core::ToolError;

/// What lays out each version of the tables from the one before. Once released, none is ever changed.
pub(super) const SCHEMA: [&str; 3] =
    [include_str!("schema_1.sql"), include_str!("schema_2.sql"), include_str!("schema_3.sql")];
/// How long another process that writes is waited for.
const BUSY: Duration = Duration::from_secs(10);
/// A connection that nobody used for so long is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Documents in a SQLite file, which is opened with the first use.
pub(super) struct SqliteDocuments {
    file: PathBuf,
    opened: OnceCell<Opened>,
    presence: Presence,
}

/// The connections. One writes, as SQLite has one lock for all who do; the others never wait for it.
struct Opened {
    writer: SqlitePool,
    readers: SqlitePool,
    /// For what others ask in SQL.
    untrusted_readers: SqlitePool,
}

impl SqliteDocuments {
    pub(super) fn new(file: PathBuf) -> Self {
        let presence = Presence::new(&file);
        Self { file, opened: OnceCell::new(), presence }
    }

    async fn opened(&self) -> Result<&Opened, ToolError> {
        self.opened.get_or_try_init(|| self.open()).await
    }

    async fn open(&self) -> Result<Opened, ToolError> {
        vector::register().map_err(|error| self.fault(error))?;
        if let Some(folder) = self.file.parent() {
            private_folder(folder).map_err(|error| self.fault(error))?;
        }
        private_file(&self.file).map_err(|error| self.fault(error))?;
        let options = SqliteConnectOptions::new()
            .filename(&self.file)
            .journal_mode(SqliteJournalMode::Wal)
            // A document that was acknowledged survives a loss of power.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY)
            .disable_statement_logging();
        let writer = pool(1).connect_lazy_with(options.clone());
        self.make_tables(&writer).await?;
        let options = options.read_only(true).pragma("query_only", "ON");
        let readers = pool(4).connect_lazy_with(options.clone());
        let options = options.pragma("trusted_schema", "OFF");
        let untrusted_readers = pool(2).connect_lazy_with(options);
        Ok(Opened { writer, readers, untrusted_readers })
    }

    /// Makes the tables of a new file, and those that one of an earlier version lacks.
    async fn make_tables(&self, writer: &SqlitePool) -> Result<(), ToolError> {
        let make = || async {
            let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
            let version: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *transaction).await?;
            let done = usize::try_from(version).unwrap_or(usize::MAX);
            for step in SCHEMA.into_iter().skip(done) {
                sqlx::raw_sql(step).execute(&mut *transaction).await?;
            }
            if done < SCHEMA.len() {
                let set = format!("PRAGMA user_version = {}", SCHEMA.len());
                sqlx::raw_sql(AssertSqlSafe(set)).execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
            Ok(done)
        };
        match retry_busy(BUSY, make).await.map_err(|error| self.fault(error))? {
            newer if newer > SCHEMA.len() => {
                Err(self.fault(format!("its tables are of version {newer}; a newer program wrote them")))
            }
            _ => Ok(()),
        }
    }

    /// A failure of the store. The model is not told where it is.
    fn fault(&self, error: impl Display) -> ToolError {
        ToolError::failed(format!("the documents in {}: {error}", self.file.display()))
            .with_feedback("The documents cannot be read now. Do without them, and say so.")
    }
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new().max_connections(connections).min_connections(0).idle_timeout(IDLE)
}
