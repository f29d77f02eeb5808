//! The server, as all tenants share it.

use std::{
    fmt::Display,
    sync::{Arc, OnceLock},
    time::Duration,
};

use sqlx::{
    ConnectOptions, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::sync::{OnceCell, Semaphore};

use super::{presence::Presence, session};
use registry_core::ToolError;

/// How long to wait for a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(5);
/// How many connections there are at most.
const CONNECTIONS: u32 = 6;
/// Through so many of them is written at once.
const WRITERS: usize = 3;
/// So many questions are compared with vectors at once.
const COMPARERS: usize = 2;
/// So many copies of the rows of a tenant are in memory at once.
const COPIERS: usize = 2;
/// Keeps the numbers of our locks apart from those of others who use the same database: one for laying out, one for each tenant.
pub(super) const LOCKS: i32 = 1_953_460_332;
const LAYING_OUT: i32 = -1;

/// What lays out each version of the tables from the one before, for a program that makes backups of them. Once released, none is ever
/// changed.
pub const POSTGRES_SCHEMA: [&str; 4] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
];

/// The table that has the version of the others, in its column `version`.
pub const POSTGRES_VERSION_TABLE: &str = "toolrack_documents_schema";

/// A PostgreSQL server, which is connected to with the first use.
pub(crate) struct Server {
    name: String,
    pub(super) options: PgConnectOptions,
    pool: OnceLock<PgPool>,
    /// Whether the database has pgvector, once the tables are there.
    laid_out: OnceCell<bool>,
    pub(super) presence: Presence,
    pub(super) writers: Arc<Semaphore>,
    pub(super) comparers: Semaphore,
    pub(super) copiers: Semaphore,
}

impl Server {
    /// The server at a URL.
    ///
    /// # Errors
    /// When the URL is none, without what it has of a password.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let options: PgConnectOptions =
            url.parse().map_err(|error| format!("the URL of the database is not understood: {error}"))?;
        let name = format!(
            "PostgreSQL database {} on {}:{}",
            options.get_database().unwrap_or(options.get_username()),
            options.get_host(),
            options.get_port()
        );
        let options = options.application_name("toolrack documents").disable_statement_logging();
        Ok(Self {
            name,
            options,
            pool: OnceLock::new(),
            laid_out: OnceCell::new(),
            presence: Presence::default(),
            writers: Arc::new(Semaphore::new(WRITERS)),
            comparers: Semaphore::new(COMPARERS),
            copiers: Semaphore::new(COPIERS),
        })
    }

    /// The connections, inside a tokio runtime. Tables may not have been made.
    pub(super) fn pool(&self) -> &PgPool {
        self.pool.get_or_init(|| {
            let options = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(CONNECT);
            let options = options.after_connect(|connection, _| Box::pin(session::limit(connection)));
            options.connect_lazy_with(self.options.clone())
        })
    }

    /// The connections, with the tables.
    pub(super) async fn opened(&self) -> Result<&PgPool, ToolError> {
        let pool = self.pool();
        self.laid_out.get_or_try_init(|| self.lay_out(pool)).await?;
        Ok(pool)
    }

    /// Whether vectors can be compared by pgvector.
    pub(super) fn has_pgvector(&self) -> bool {
        self.laid_out.get().copied().unwrap_or(false)
    }

    /// Brings the tables to the version this program knows. Of several servers that start at once one does it.
    async fn lay_out(&self, pool: &PgPool) -> Result<bool, ToolError> {
        let laid_out = async {
            let mut transaction = pool.begin().await?;
            // It takes as long as the tables are large.
            sqlx::raw_sql("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0")
                .execute(&mut *transaction)
                .await?;
            sqlx::query("SELECT pg_advisory_xact_lock($1, $2)")
                .bind(LOCKS)
                .bind(LAYING_OUT)
                .execute(&mut *transaction)
                .await?;
            // Else the server reports at every start, and into the log, that it is there already.
            sqlx::raw_sql(
                "SET LOCAL client_min_messages = warning;
                 CREATE TABLE IF NOT EXISTS toolrack_documents_schema (version BIGINT NOT NULL)",
            )
            .execute(&mut *transaction)
            .await?;
            let version: Option<i64> = sqlx::query_scalar("SELECT version FROM toolrack_documents_schema")
                .fetch_optional(&mut *transaction)
                .await?;
            let done = usize::try_from(version.unwrap_or(0)).unwrap_or(usize::MAX);
            for step in POSTGRES_SCHEMA.into_iter().skip(done) {
                sqlx::raw_sql(step).execute(&mut *transaction).await?;
            }
            if done < POSTGRES_SCHEMA.len() {
                sqlx::raw_sql("DELETE FROM toolrack_documents_schema").execute(&mut *transaction).await?;
                sqlx::query("INSERT INTO toolrack_documents_schema VALUES ($1)")
                    .bind(i64::try_from(POSTGRES_SCHEMA.len()).unwrap_or(i64::MAX))
                    .execute(&mut *transaction)
                    .await?;
            }
            // Where statements find it: an extension may be in another schema than those of the search path.
            let has_pgvector = sqlx::query_scalar("SELECT to_regtype('vector') IS NOT NULL")
                .fetch_one(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok((done, has_pgvector))
        };
        match laid_out.await.map_err(|error: sqlx::Error| self.fault(error))? {
            (done, _) if done > POSTGRES_SCHEMA.len() => Err(self.fault(format!(
                "the tables of the documents are of version {done}; a newer program wrote them"
            ))),
            (_, has_pgvector) => Ok(has_pgvector),
        }
    }

    /// A failure of the store. The model does not see where it is.
    pub(super) fn fault(&self, error: impl Display) -> ToolError {
        ToolError::failed(format!("the documents in {}: {error}", self.name))
            .with_feedback("The documents cannot be read now. Do without them, and say so.")
    }
}
