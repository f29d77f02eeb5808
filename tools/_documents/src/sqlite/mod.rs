//! Documents in a SQLite file.

mod file;
mod presence;
mod respell;
pub(super) mod select;
mod statements;
mod vector;

use std::{
    fmt::Display,
    path::PathBuf,
    time::{Duration, Instant},
};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Sqlite, SqlitePool, Transaction,
    query::QueryAs,
    sqlite::{
        SqliteArguments, SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions,
        SqliteSynchronous,
    },
};
use tokio::sync::OnceCell;

use super::{
    Contents, MetadataRows,
    database::{AnyRow, Argument, Database, SEARCHING, Sql, Statement},
    query::TextQuery,
    unspaced::spaced,
};
use file::retry_busy;
use presence::Presence;
use registry_core::{
    ToolError,
    private::{private_file, private_folder},
};

/// What lays out each version of the tables from the one before. Once released, none is ever changed.
pub(super) const SCHEMA: [&str; 5] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
];
/// Files of earlier versions have the words of some scripts otherwise.
const LETTERS_SINCE: usize = 5;
/// How long another process that writes is waited for.
const BUSY: Duration = Duration::from_secs(10);
/// After so many steps of a statement it is seen how long it takes.
const STEPS: i32 = 10_000;
/// A statement of the program's own that takes longer is ended.
const READING: Duration = Duration::from_secs(60);
/// A connection that nobody used for so long is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Gives back what removed documents took: merges the parts of the words that have removed ones, and cuts the file.
const GIVE_BACK: [&str; 3] = [
    "INSERT INTO chunk_words (chunk_words, rank) VALUES ('merge', -2000)",
    "PRAGMA incremental_vacuum",
    "PRAGMA wal_checkpoint(TRUNCATE)",
];

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
    /// For what takes long.
    timed_readers: SqlitePool,
}

impl SqliteDocuments {
    pub(super) fn new(file: PathBuf) -> Self {
        let presence = Presence::new(&file);
        Self { file, opened: OnceCell::new(), presence }
    }

    /// The rows of a statement on a connection all of whose uses have a time.
    async fn timed<T: AnyRow>(
        &self,
        pool: &SqlitePool,
        statement: Statement,
        time: Duration,
    ) -> Result<Vec<T>, ToolError> {
        let fault = |error| self.fault(error);
        let mut connection = pool.acquire().await.map_err(fault)?;
        let deadline = Instant::now() + time;
        // A statement that nobody waits for any more is ended by it too.
        let is_in_time = move || Instant::now() < deadline;
        connection.lock_handle().await.map_err(fault)?.set_progress_handler(STEPS, is_in_time);
        bound(statement).fetch_all(&mut *connection).await.map_err(fault)
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
        // What is removed can be given back; a file of an earlier version keeps it for what comes next.
        let writing = options.clone().auto_vacuum(SqliteAutoVacuum::Incremental);
        let writer = pool(1).connect_lazy_with(writing);
        self.make_tables(&writer).await?;
        let options = options.read_only(true).pragma("query_only", "ON");
        let readers = pool(4).connect_lazy_with(options.clone());
        let timed_readers = pool(2).connect_lazy_with(options.clone());
        let options = options.pragma("trusted_schema", "OFF");
        let untrusted_readers = pool(2).connect_lazy_with(options);
        Ok(Opened { writer, readers, untrusted_readers, timed_readers })
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
            if (1..LETTERS_SINCE).contains(&done) {
                respell::respell(&mut transaction).await?;
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
}

impl Database for SqliteDocuments {
    type Transaction = Transaction<'static, Sqlite>;

    const SQL: Sql = statements::SQL;

    fn tenant(&self) -> &str {
        ""
    }

    fn words(text: &str) -> String {
        spaced(text).into_owned()
    }

    fn query(asked: &TextQuery, beginning: bool) -> String {
        if beginning { asked.beginning() } else { asked.any() }
    }

    fn contents(&self) -> Contents {
        self.presence.contents()
    }

    fn update(&self, change: impl FnOnce(&mut Contents)) {
        self.presence.update(change);
    }

    async fn look(&self, _: bool) {
        self.presence.refresh(&self.file).await;
    }

    async fn nearest(&self) -> Result<&'static str, ToolError> {
        Ok(statements::NEAREST)
    }

    async fn rows<T: AnyRow>(&self, statement: Statement) -> Result<Vec<T>, ToolError> {
        self.timed(&self.opened().await?.readers, statement, READING).await
    }

    async fn found<T: AnyRow>(&self, statement: Statement) -> Result<Vec<T>, ToolError> {
        self.timed(&self.opened().await?.readers, statement, SEARCHING).await
    }

    async fn rows_within<T: AnyRow>(
        &self,
        statement: Statement,
        time: Duration,
    ) -> Result<Vec<T>, ToolError> {
        self.timed(&self.opened().await?.timed_readers, statement, time).await
    }

    /// The lock is taken at the beginning, so that nothing fails half-way for want of it.
    async fn begin(&self) -> Result<Transaction<'static, Sqlite>, ToolError> {
        let begun = self.opened().await?.writer.begin_with("BEGIN IMMEDIATE").await;
        begun.map_err(|error| self.fault(error))
    }

    async fn write<T: AnyRow>(
        transaction: &mut Transaction<'static, Sqlite>,
        statement: Statement,
    ) -> Result<Vec<T>, sqlx::Error> {
        bound(statement).fetch_all(&mut **transaction).await
    }

    async fn commit(transaction: Transaction<'static, Sqlite>) -> Result<(), sqlx::Error> {
        transaction.commit().await
    }

    async fn give_back(&self) {
        let give_back = async {
            let writer = &self.opened().await?.writer;
            for sql in GIVE_BACK {
                sqlx::raw_sql(sql).execute(writer).await.map_err(|error| self.fault(error))?;
            }
            Ok::<_, ToolError>(())
        };
        if let Err(cause) = give_back.await {
            tracing::warn!(%cause, "documents_space_not_given_back");
        }
    }

    async fn select(&self, sql: &str) -> Result<MetadataRows, ToolError> {
        let mut connection =
            self.opened().await?.untrusted_readers.acquire().await.map_err(|error| self.fault(error))?;
        select::select(&mut connection, sql, |error| self.fault(error)).await
    }

    fn fault(&self, error: impl Display) -> ToolError {
        ToolError::failed(format!("the documents in {}: {error}", self.file.display()))
            .with_feedback("The documents cannot be read now. Do without them, and say so.")
    }
}

fn bound<T: AnyRow>(statement: Statement) -> QueryAs<'static, Sqlite, T, SqliteArguments> {
    let query = sqlx::query_as(AssertSqlSafe(statement.sql));
    statement.arguments.into_iter().fold(query, |query, argument| match argument {
        Argument::Text(text) => query.bind(text),
        Argument::Number(number) => query.bind(number),
        Argument::Vector(vector) => query.bind(to_bytes(&vector)),
    })
}

/// A vector as it is kept: its numbers one after the other, little-endian.
fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new().max_connections(connections).min_connections(0).idle_timeout(IDLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn p6_a_statement_with_a_time_ends_with_it_and_leaves_the_connections() {
        let folder = tempfile::tempdir().unwrap();
        let documents = SqliteDocuments::new(folder.path().join("documents.db"));
        let endless =
            "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
        let began = Instant::now();
        for _ in 0..6 {
            let statement = Statement::new(&documents, endless);
            let ended = documents.rows_within::<(i64,)>(statement, Duration::from_millis(100)).await;
            assert!(ended.unwrap_err().message().contains("interrupted"));
        }
        assert!(began.elapsed() < Duration::from_secs(10) + SEARCHING, "{:?}", began.elapsed());
        let ended = documents.found::<(i64,)>(Statement::new(&documents, endless)).await;
        assert!(ended.unwrap_err().message().contains("interrupted"));
        let short = Statement::new(&documents, "SELECT 7");
        assert_eq!(documents.rows_within::<(i64,)>(short, BUSY).await.unwrap(), [(7,)]);
    }
}
