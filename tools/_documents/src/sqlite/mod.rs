//! Documents in a SQLite file.

mod extraction;
mod file;
mod graph;
mod presence;
mod read;
pub(super) mod select;
mod vectors;
mod write;

use std::{fmt::Display, path::PathBuf, sync::Arc, time::Duration};

use sqlx::{
    ConnectOptions, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::OnceCell;

use file::{private_file, private_folder, retry_busy};
use presence::Presence;

use super::{
    Added, Document, DocumentFilter, Extracted, Graph, GraphQuery, MetadataRows, Passage, StoredDocument,
    UnreadPassage,
    loaded_vectors::{LoadedVectors, VectorMemory},
    stored::document_index,
    walk::walk,
};
use registry_core::{BoxFuture, result::ToolError};

/// The version of the tables that this program knows.
const VERSION: i64 = 2;
/// How long another process that writes is waited for.
const BUSY: Duration = Duration::from_secs(10);

/// Documents in a SQLite file, which is opened with the first use.
pub(super) struct SqliteDocuments {
    file: PathBuf,
    opened: OnceCell<Opened>,
    presence: Presence,
    vectors: LoadedVectors,
}

/// The connections. One writes, as SQLite has one lock for all who do; the others never wait for it.
struct Opened {
    writer: SqlitePool,
    readers: SqlitePool,
    /// For what others ask in SQL.
    untrusted_readers: SqlitePool,
}

impl SqliteDocuments {
    pub(super) fn new(file: PathBuf, memory: &Arc<VectorMemory>) -> Self {
        Self {
            file,
            opened: OnceCell::new(),
            presence: Presence::default(),
            vectors: LoadedVectors::new(Arc::clone(memory)),
        }
    }

    fn has_any(&self) -> bool {
        self.presence.ask(&self.file)
    }

    async fn opened(&self) -> Result<&Opened, ToolError> {
        self.opened.get_or_try_init(|| self.open()).await
    }

    async fn open(&self) -> Result<Opened, ToolError> {
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
        let writer = SqlitePoolOptions::new().max_connections(1).connect_lazy_with(options.clone());
        self.make_tables(&writer).await?;
        let options = options.read_only(true).pragma("query_only", "ON");
        let readers = SqlitePoolOptions::new().max_connections(4).connect_lazy_with(options.clone());
        let options = options.pragma("trusted_schema", "OFF");
        let untrusted_readers = SqlitePoolOptions::new().max_connections(2).connect_lazy_with(options);
        Ok(Opened { writer, readers, untrusted_readers })
    }

    /// Makes the tables of a new file, and those that one of an earlier version lacks.
    async fn make_tables(&self, writer: &SqlitePool) -> Result<(), ToolError> {
        let make = || async {
            let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
            let version: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *transaction).await?;
            if version == 0 {
                sqlx::raw_sql(include_str!("schema.sql")).execute(&mut *transaction).await?;
            }
            if version < VERSION {
                sqlx::raw_sql(include_str!("model_tables.sql")).execute(&mut *transaction).await?;
                sqlx::raw_sql("PRAGMA user_version = 2").execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
            Ok(version)
        };
        match retry_busy(BUSY, make).await.map_err(|error| self.fault(error))? {
            ..=VERSION => Ok(()),
            newer => {
                Err(self.fault(format!("its tables are of version {newer}; a newer program wrote them")))
            }
        }
    }

    /// A failure of the store. The model is not told where it is.
    fn fault(&self, error: impl Display) -> ToolError {
        ToolError::failed(format!("the documents in {}: {error}", self.file.display()))
            .with_feedback("The documents cannot be read now. Do without them, and say so.")
    }
}

document_index!(SqliteDocuments);
