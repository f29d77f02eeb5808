//! A store in one file.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use sqlx::{
    ConnectOptions, Connection, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::{sync::watch, time::sleep};

use crate::sql::{Database, Link, Row, SEARCH, SEARCHER_IDLE, SEARCHERS, SqlStore, Statement, failure};
use registry_core::{
    private::{private_file, private_folder},
    store::{StoreError, StoreResult},
};

/// How soon a change by another process is seen.
const POLL: Duration = Duration::from_millis(300);

/// After so many pages of 4 KiB what was written beside the file is moved into it. Under load SQLite's own 1000 come many times a
/// second, each with a wait for the disk.
const CHECKPOINT: &str = "8000";

/// How long is waited before what was busy is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// So many rows of an answer may be read before anybody takes them: as many as one statement asks for.
const ROWS_AHEAD: usize = 256;

/// What an acknowledged record has survived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The end of the process, in whatever way. A machine that loses power may lose the last moments before it, never what is older,
    /// and what is left is whole.
    #[default]
    Process,
    /// A loss of power too. Every commit waits for the disk.
    Power,
}

/// Where a store in a file is, and how it is kept.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use registry_core::Registry;
/// use toolrack_stores::SqliteSettings;
///
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("toolrack.db");
/// let store = Arc::new(SqliteSettings::new(file).open().await?);
/// let registry = Registry::builder()
///     .without_compiled()
///     .usage(store.clone())
///     .approvals(store.clone())
///     .audit(store)
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SqliteSettings {
    /// The file. It is made where there is none, with its folder; two more lie beside it while it is open.
    pub file: PathBuf,
    /// The name of this server, for its chain in the audit.
    pub server: String,
    /// What an acknowledged record has survived.
    pub durability: Durability,
    /// How long to wait for another process that writes to the same file.
    pub busy_timeout: Duration,
}

impl SqliteSettings {
    /// The file at this path; the server is called `main`, and another process is waited for up to 5 s.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            server: "main".to_owned(),
            durability: Durability::default(),
            busy_timeout: Duration::from_secs(5),
        }
    }

    /// Opens the store, inside a tokio runtime.
    ///
    /// # Errors
    /// Names the file: when it cannot be made or read, is no SQLite database, or was written by a newer
    /// program.
    pub async fn open(&self) -> StoreResult<SqlStore> {
        if let Some(folder) = self.file.parent() {
            private_folder(folder)
                .map_err(|error| StoreError::unavailable(error).of(folder.display().to_string()))?;
        }
        let name = self.file.display().to_string();
        private_file(&self.file).map_err(|error| StoreError::unavailable(error).of(&*name))?;
        let options = SqliteConnectOptions::new()
            .filename(&self.file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(match self.durability {
                Durability::Process => SqliteSynchronous::Normal,
                Durability::Power => SqliteSynchronous::Full,
            })
            .busy_timeout(self.busy_timeout)
            // The responses of a conversation go with it.
            .foreign_keys(true)
            .pragma("wal_autocheckpoint", CHECKPOINT)
            .row_buffer_size(ROWS_AHEAD)
            .disable_statement_logging();
        let file = File {
            name,
            path: self.file.clone(),
            identity: identity(&self.file),
            readers: SqlitePoolOptions::new().max_connections(4).connect_lazy_with(options.clone()),
            searchers: SqlitePoolOptions::new()
                .max_connections(SEARCHERS)
                .idle_timeout(SEARCHER_IDLE)
                .connect_lazy_with(options.clone()),
            options,
            patience: self.busy_timeout,
        };
        SqlStore::start(Arc::new(file), self.server.clone(), watch::Sender::new(())).await
    }
}

/// Does it again while others have locked the file, for so long. While another makes a new file, SQLite does not wait by itself.
async fn retry_busy<T, F>(patience: Duration, run: impl Fn() -> F) -> Result<T, sqlx::Error>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let began = Instant::now();
    loop {
        match run().await {
            Err(error) if is_busy(&error) && began.elapsed() < patience => sleep(PAUSE).await,
            ended => return ended,
        }
    }
}

/// SQLITE_BUSY and what it is in particular: https://sqlite.org/rescode.html
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|fault| fault.code()?.parse().ok());
    code.is_some_and(|code: u32| code & 0xff == 5)
}

struct File {
    name: String,
    path: PathBuf,
    /// That of the file which was opened: a file that is removed goes on taking what is written, and is gone when it is closed.
    identity: Option<(u64, u64)>,
    options: SqliteConnectOptions,
    patience: Duration,
    readers: SqlitePool,
    searchers: SqlitePool,
}

/// The device and the number of a file; `None` where there is none, or the system has no such numbers.
#[cfg(unix)]
fn identity(file: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(file).ok()?;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<(u64, u64)> {
    None
}

#[async_trait]
impl Database for File {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> StoreResult<()> {
        if self.identity.is_none() || identity(&self.path) == self.identity {
            return Ok(());
        }
        let cause = "the file was removed or replaced while it was open; put it back, or restart the program with another one";
        Err(StoreError::unavailable(cause).of(&*self.name))
    }

    async fn connect(&self) -> StoreResult<Box<dyn Link>> {
        async {
            let connect = || SqliteConnection::connect_with(&self.options);
            let connection = retry_busy(self.patience, connect).await.map_err(failure)?;
            Ok(Box::new(connection) as Box<dyn Link>)
        }
        .await
    }

    async fn read(&self, statement: Statement) -> StoreResult<Vec<Row>> {
        async { self.readers.acquire().await.map_err(failure)?.fetch(statement).await }.await
    }

    async fn search(&self, statement: Statement) -> StoreResult<Vec<Row>> {
        async {
            let mut connection = self.searchers.acquire().await.map_err(failure)?;
            let deadline = Instant::now() + SEARCH;
            // Asked at each row, of which one may take long, and also where nobody waits for the answer any more.
            let is_in_time = move || Instant::now() < deadline;
            connection.lock_handle().await.map_err(failure)?.set_progress_handler(1, is_in_time);
            connection.fetch(statement).await
        }
        .await
    }

    fn begin(&self, _: &BTreeSet<i32>) -> Vec<Statement> {
        // There is one lock, for the whole file, and it is taken before anything is read.
        vec![Statement::new("BEGIN IMMEDIATE", Vec::new())]
    }

    fn before_erasing(&self) -> Vec<Statement> {
        vec![Statement::new("PRAGMA secure_delete = ON", Vec::new())]
    }

    fn member(&self, column: &str, name: &str) -> String {
        format!("json_extract({column}, '$.{name}')")
    }

    fn after_erasing(&self) -> Option<Statement> {
        Some(Statement::new("PRAGMA wal_checkpoint(TRUNCATE)", Vec::new()))
    }

    fn poll(&self) -> Duration {
        POLL
    }

    fn version_table(&self) -> &'static str {
        "CREATE TABLE IF NOT EXISTS toolrack_schema (version BIGINT NOT NULL)"
    }

    fn schema(&self) -> &'static [&'static str] {
        &[
            include_str!("schema/sqlite.sql"),
            include_str!("schema/sqlite_dead_letters.sql"),
            include_str!("schema/modules.sql"),
            include_str!("schema/jobs.sql"),
            include_str!("schema/approvals_asker.sql"),
            include_str!("schema/personas_sqlite.sql"),
            include_str!("schema/conversations_sqlite.sql"),
            include_str!("schema/responses_given.sql"),
            include_str!("schema/transcripts_sqlite.sql"),
            include_str!("schema/tool_state_sqlite.sql"),
            include_str!("schema/audit_starts_sqlite.sql"),
            include_str!("schema/files_sqlite.sql"),
            include_str!("schema/audit_erasure_sqlite.sql"),
            include_str!("schema/chats_sqlite.sql"),
            include_str!("schema/sessions_sqlite.sql"),
            include_str!("schema/connections_sqlite.sql"),
            include_str!("schema/chats_context.sql"),
            include_str!("schema/audit_indexes.sql"),
            include_str!("schema/api_keys_expire_sqlite.sql"),
            include_str!("schema/api_keys_names_sqlite.sql"),
        ]
    }
}
