//! A store on a PostgreSQL server, for several servers that share it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{
    ConnectOptions, Connection, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    outage::Outage,
    session,
    sql::{Database, Link, Row, SEARCHER_IDLE, SEARCHERS, SqlStore, Statement, failure},
};
use registry_core::store::{StoreError, StoreResult};

/// How soon a change by another server is seen when its notice is lost; else it is seen at once.
const POLL: Duration = Duration::from_millis(900);
/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long reading may take. A server that has gone away without a word is noticed by this.
const LONGEST: Duration = Duration::from_secs(30);

/// What lays out each version of the tables from the one before. Once released, none is ever changed.
pub(crate) const SCHEMA: [&str; 20] = [
    include_str!("schema/postgres.sql"),
    include_str!("schema/postgres_dead_letters.sql"),
    include_str!("schema/modules.sql"),
    include_str!("schema/jobs.sql"),
    include_str!("schema/approvals_asker.sql"),
    include_str!("schema/personas_postgres.sql"),
    include_str!("schema/conversations_postgres.sql"),
    include_str!("schema/responses_given.sql"),
    include_str!("schema/transcripts_postgres.sql"),
    include_str!("schema/tool_state_postgres.sql"),
    include_str!("schema/audit_starts_postgres.sql"),
    include_str!("schema/files_postgres.sql"),
    include_str!("schema/audit_erasure_postgres.sql"),
    include_str!("schema/chats_postgres.sql"),
    include_str!("schema/sessions_postgres.sql"),
    include_str!("schema/connections_postgres.sql"),
    include_str!("schema/chats_context.sql"),
    include_str!("schema/audit_indexes.sql"),
    include_str!("schema/api_keys_expire_postgres.sql"),
    include_str!("schema/api_keys_names_postgres.sql"),
];

/// Where the database is.
///
/// ```no_run
/// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
/// use toolrack_stores::PostgresSettings;
///
/// let store = PostgresSettings::new("postgres://toolrack:secret@db.example/toolrack", "server-1").open().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("PostgresSettings({server})")]
pub struct PostgresSettings {
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with `?sslmode=` and the like where wanted. Its tables are laid out by the first
    /// server that comes, in the schema that is first in the search path.
    pub url: String,
    /// The name of this server, for its chain in the audit. Each server has its own.
    pub server: String,
    /// How many connections read at once at most; one more writes, one listens, and two search.
    pub readers: u32,
}

impl PostgresSettings {
    /// The database at this URL, and this server's name.
    pub fn new(url: impl Into<String>, server: impl Into<String>) -> Self {
        Self { url: url.into(), server: server.into(), readers: 4 }
    }

    /// Opens the store, inside a tokio runtime.
    ///
    /// # Errors
    /// Names the host and the database: when it cannot be reached, lets nobody in, or was written by a
    /// newer program.
    pub async fn open(&self) -> StoreResult<SqlStore> {
        let options: PgConnectOptions = self.url.parse().map_err(|error| {
            StoreError::invalid(format!("the URL of the database is not understood: {error}"))
        })?;
        let options = options.application_name("toolrack").disable_statement_logging();
        let nudge = watch::Sender::new(());
        let server = Server {
            name: format!(
                "PostgreSQL database {} on {}:{}",
                options.get_database().unwrap_or(options.get_username()),
                options.get_host(),
                options.get_port()
            ),
            readers: PgPoolOptions::new()
                .max_connections(self.readers)
                .acquire_timeout(CONNECT)
                .after_connect(|connection, _| Box::pin(session::limit(connection)))
                .connect_lazy_with(options.clone()),
            searchers: PgPoolOptions::new()
                .max_connections(SEARCHERS)
                .acquire_timeout(LONGEST)
                .idle_timeout(SEARCHER_IDLE)
                .after_connect(|connection, _| Box::pin(session::limit_searches(connection)))
                .connect_lazy_with(options.clone()),
            outage: Outage::default(),
            _listener: Listener(tokio::spawn(listen(options.clone(), nudge.clone()))),
            options,
        };
        SqlStore::start(Arc::new(server), self.server.clone(), nudge).await
    }
}

/// Passes on the notices of changes. While there is no connection, changes are seen by asking.
async fn listen(options: PgConnectOptions, nudge: watch::Sender<()>) {
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(CONNECT).connect_lazy_with(options);
    loop {
        let listening = async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen("toolrack_revision").await?;
            loop {
                // `None` is a connection that was lost and made anew: notifications of meanwhile are lost.
                listener.try_recv().await?;
                nudge.send_replace(());
            }
        };
        let ended: Result<(), sqlx::Error> = listening.await;
        if let Err(error) = ended {
            tracing::debug!(cause = %error, "store_changes_not_received");
        }
        tokio::time::sleep(POLL).await;
    }
}

struct Server {
    name: String,
    options: PgConnectOptions,
    readers: PgPool,
    searchers: PgPool,
    /// What is known of whether readers get connections.
    outage: Outage,
    _listener: Listener,
}

/// Listens as long as the store is there.
struct Listener(JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn no_answer() -> StoreError {
    StoreError::unavailable("no answer in time")
}

#[async_trait]
impl Database for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn take_name(&self) -> Option<&'static str> {
        Some("SELECT pg_try_advisory_lock(1953460332, hashtext(current_schema() || '/' || $1))::int::bigint")
    }

    async fn connect(&self) -> StoreResult<Box<dyn Link>> {
        let connecting = async {
            let mut connection = PgConnection::connect_with(&self.options).await?;
            session::limit(&mut connection).await.map(|()| connection)
        };
        match tokio::time::timeout(CONNECT, connecting).await {
            Ok(connection) => Ok(Box::new(connection.map_err(failure)?)),
            Err(_) => Err(no_answer()),
        }
    }

    async fn read(&self, statement: Statement) -> StoreResult<Vec<Row>> {
        let reading = async { self.outage.wait_for(self.readers.acquire()).await?.fetch(statement).await };
        tokio::time::timeout(LONGEST, reading).await.unwrap_or_else(|_| Err(no_answer()))
    }

    async fn search(&self, statement: Statement) -> StoreResult<Vec<Row>> {
        let searching = async { self.searchers.acquire().await.map_err(failure)?.fetch(statement).await };
        tokio::time::timeout(LONGEST, searching).await.unwrap_or_else(|_| Err(no_answer()))
    }

    fn begin(&self, locks: &BTreeSet<i32>) -> Vec<Statement> {
        /// Keeps our numbers apart from those of others who use the same database.
        const OURS: &str = "1953460331";
        // In the order of the numbers, so that no two wait for each other.
        let keys: Vec<String> = locks.iter().map(i32::to_string).collect();
        let lock = format!(
            "SELECT pg_advisory_xact_lock({OURS}, key::int)::text FROM json_array_elements_text($1::json) AS keys (key)"
        );
        vec![
            Statement::new("BEGIN", Vec::new()),
            Statement::new(lock, vec![format!("[{}]", keys.join(",")).into()]),
        ]
    }

    fn before_laying_out(&self) -> Option<Statement> {
        Some(Statement::new(session::UNLIMITED, Vec::new()))
    }

    fn member(&self, column: &str, name: &str) -> String {
        // It has no text with a NUL.
        format!(r"replace({column}, '\u0000', '\ufffd')::json ->> '{name}'")
    }

    fn poll(&self) -> Duration {
        POLL
    }

    fn version_table(&self) -> &'static str {
        // Else the server tells at every start, and into the log, that it is there already.
        "SET LOCAL client_min_messages = warning; \
         CREATE TABLE IF NOT EXISTS toolrack_schema (version BIGINT NOT NULL)"
    }

    fn schema(&self) -> &'static [&'static str] {
        &SCHEMA
    }
}
