//! Documents on a PostgreSQL server, for several servers that share them.

mod presence;
mod select;
mod server;
mod session;
mod statements;
mod words;

use std::{
    fmt::Display,
    sync::{Arc, Once},
    time::{Duration, Instant},
};

use registry_core::ToolError;
use sqlx::{AssertSqlSafe, Postgres, postgres::PgArguments, query::QueryAs};
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit};

use super::{
    Contents, MetadataRows,
    database::{AnyRow, Argument, Database, SEARCHING, Sql, Statement},
    query::TextQuery,
};
use server::LOCKS;
pub(super) use server::Server;
pub use server::{POSTGRES_SCHEMA, POSTGRES_VERSION_TABLE};

/// The documents of a tenant.
pub(super) struct PostgresDocuments {
    server: Arc<Server>,
    tenant: String,
    writing: Arc<Mutex<()>>,
}

impl PostgresDocuments {
    pub(super) fn new(server: Arc<Server>, tenant: &str) -> Self {
        Self { server, tenant: tenant.to_owned(), writing: Arc::default() }
    }

    /// The rows of a statement, or an error where there are none by then.
    async fn timed<T: AnyRow>(&self, statement: Statement, until: Instant) -> Result<Vec<T>, ToolError> {
        let pool = self.server.opened().await?;
        let rows = async {
            let mut transaction = pool.begin().await?;
            // Without any there is none.
            let left = until.saturating_duration_since(Instant::now()).as_millis().max(1);
            let within = format!("SET LOCAL statement_timeout = {left}");
            sqlx::raw_sql(AssertSqlSafe(within)).execute(&mut *transaction).await?;
            let rows = bound(statement).fetch_all(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(rows)
        };
        rows.await.map_err(|error: sqlx::Error| self.fault(error))
    }
}

/// Of a tenant one document is written at a time, as documents share names. Whoever waits for its turn holds no connection, and some are
/// never written through, so that the others' searches go on.
pub(super) struct Transaction {
    inner: sqlx::Transaction<'static, Postgres>,
    _permit: OwnedSemaphorePermit,
    _turn: OwnedMutexGuard<()>,
}

impl Database for PostgresDocuments {
    type Transaction = Transaction;

    const SQL: Sql = statements::SQL;

    fn tenant(&self) -> &str {
        &self.tenant
    }

    fn words(text: &str) -> String {
        words::words(text)
    }

    fn query(asked: &TextQuery, beginning: bool) -> String {
        words::query(asked, beginning)
    }

    fn contents(&self) -> Contents {
        self.server.presence.of(&self.tenant)
    }

    fn update(&self, change: impl FnOnce(&mut Contents)) {
        self.server.presence.update(&self.tenant, change);
    }

    async fn look(&self, now: bool) {
        presence::refresh(&self.server, now).await;
    }

    async fn nearest(&self) -> Result<&'static str, ToolError> {
        self.server.opened().await?;
        let has_pgvector = self.server.has_pgvector();
        if !has_pgvector {
            static TOLD: Once = Once::new();
            TOLD.call_once(|| {
                tracing::warn!(
                    "Vectors of documents are compared in plain SQL, which takes seconds for ten thousand passages: CREATE EXTENSION vector"
                );
            });
        }
        Ok(if has_pgvector { statements::NEAREST_BY_PGVECTOR } else { statements::NEAREST })
    }

    async fn rows<T: AnyRow>(&self, statement: Statement) -> Result<Vec<T>, ToolError> {
        let rows = bound(statement).fetch_all(self.server.opened().await?).await;
        rows.map_err(|error| self.fault(error))
    }

    async fn found<T: AnyRow>(&self, statement: Statement) -> Result<Vec<T>, ToolError> {
        self.timed(statement, Instant::now() + SEARCHING).await
    }

    async fn rows_within<T: AnyRow>(
        &self,
        statement: Statement,
        time: Duration,
    ) -> Result<Vec<T>, ToolError> {
        let until = Instant::now() + time;
        let _permit = self.server.comparers.acquire().await.map_err(|error| self.fault(error))?;
        self.timed(statement, until).await
    }

    async fn begin(&self) -> Result<Transaction, ToolError> {
        let pool = self.server.opened().await?;
        let turn = Arc::clone(&self.writing).lock_owned().await;
        let permit = Arc::clone(&self.server.writers).acquire_owned().await;
        let permit = permit.map_err(|error| self.fault(error))?;
        let begin = async {
            let mut inner = pool.begin().await?;
            sqlx::query("SELECT pg_advisory_xact_lock($1, hashtext($2))")
                .bind(LOCKS)
                .bind(&self.tenant)
                .execute(&mut *inner)
                .await?;
            Ok(Transaction { inner, _permit: permit, _turn: turn })
        };
        begin.await.map_err(|error: sqlx::Error| self.fault(error))
    }

    async fn write<T: AnyRow>(
        transaction: &mut Transaction,
        statement: Statement,
    ) -> Result<Vec<T>, sqlx::Error> {
        bound(statement).fetch_all(&mut *transaction.inner).await
    }

    async fn commit(transaction: Transaction) -> Result<(), sqlx::Error> {
        transaction.inner.commit().await
    }

    async fn select(&self, sql: &str) -> Result<MetadataRows, ToolError> {
        self.select_metadata(sql).await
    }

    fn fault(&self, error: impl Display) -> ToolError {
        self.server.fault(error)
    }
}

/// PostgreSQL has no place for a NUL in a text.
fn bound<T: AnyRow>(statement: Statement) -> QueryAs<'static, Postgres, T, PgArguments> {
    let query = sqlx::query_as(AssertSqlSafe(statement.sql));
    statement.arguments.into_iter().fold(query, |query, argument| match argument {
        Argument::Text(text) => query.bind(text.map(|text| text.replace('\0', " "))),
        Argument::Number(number) => query.bind(number),
        Argument::Vector(vector) => query.bind(vector),
    })
}
