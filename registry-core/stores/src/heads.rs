//! Signed heads of the audit in a database beside that of the records: whoever can change the one has not changed the other.

use std::fmt;

#[cfg(feature = "sqlite")]
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
#[cfg(feature = "postgres")]
use sqlx::{Connection, PgConnection};

use crate::sql::{Link, failure, statement};
#[cfg(feature = "sqlite")]
use registry_core::private::{private_file, private_folder};
use registry_core::store::StoreError;

/// Made where it is not there. Nothing in it is changed or deleted, so a role that may insert and select is enough.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS audit_heads (\
     tenant TEXT NOT NULL, server TEXT NOT NULL, seq BIGINT NOT NULL, removed BIGINT NOT NULL, line TEXT NOT NULL, \
     PRIMARY KEY (tenant, server, seq, removed))";
/// How long a server of PostgreSQL may take to answer.
#[cfg(feature = "postgres")]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// A signed head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptHead {
    /// The tenant of its chain.
    pub tenant: String,
    /// The server that writes the chain.
    pub server: String,
    /// The number of the chain's last record.
    pub seq: u64,
    /// Whether it is of records that were removed.
    pub removed: bool,
    /// All of it, as it was signed.
    pub line: String,
}

/// A database for signed heads. It is opened for each use, so it may come and go.
#[derive(Clone, PartialEq, Eq)]
pub struct HeadStore(Place);

#[derive(Clone, PartialEq, Eq)]
enum Place {
    #[cfg(feature = "sqlite")]
    File(std::path::PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(String),
}

impl fmt::Display for HeadStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            Place::File(file) => file.display().fmt(f),
            // The text before `@` may be a password.
            #[cfg(feature = "postgres")]
            Place::Postgres(url) => write!(f, "PostgreSQL at {}", url.rsplit('@').next().unwrap_or(url)),
        }
    }
}

impl fmt::Debug for HeadStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeadStore({self})")
    }
}

impl HeadStore {
    /// The database at `sqlite:FILE` or `postgres://…`; `None` where this is no such address.
    pub fn parse(address: &str) -> Option<Self> {
        #[cfg(feature = "sqlite")]
        if let Some(file) = address.strip_prefix("sqlite:") {
            let file = file.strip_prefix("//").unwrap_or(file);
            return (!file.is_empty()).then(|| Self(Place::File(file.into())));
        }
        #[cfg(feature = "postgres")]
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            return Some(Self(Place::Postgres(address.to_owned())));
        }
        None
    }

    async fn connect(&self) -> Result<Box<dyn Link>, StoreError> {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            Place::File(file) => {
                if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                    private_folder(folder).map_err(StoreError::unavailable)?;
                }
                private_file(file).map_err(StoreError::unavailable)?;
                let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
                Ok(Box::new(options.disable_statement_logging().connect().await.map_err(failure)?))
            }
            #[cfg(feature = "postgres")]
            Place::Postgres(url) => Ok(Box::new(PgConnection::connect(url).await.map_err(failure)?)),
        }
    }

    async fn within<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        #[cfg(feature = "postgres")]
        let done = tokio::time::timeout(PATIENCE, work).await;
        #[cfg(feature = "postgres")]
        let done = done.unwrap_or_else(|_| Err(StoreError::unavailable("no answer in time")));
        #[cfg(not(feature = "postgres"))]
        let done = work.await;
        done.map_err(|error| error.of(self.to_string()))
    }

    /// Adds heads. Of two with the same number the first stays, so that none is rewritten.
    ///
    /// # Errors
    /// When the database cannot be reached, or does not take them.
    pub async fn add(&self, heads: &[KeptHead]) -> Result<(), StoreError> {
        self.within(async {
            let mut link = self.connect().await?;
            for head in heads {
                let insert = || {
                    let sql = "INSERT INTO audit_heads (tenant, server, seq, removed, line) \
                               VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
                    let KeptHead { tenant, server, seq, removed, line } = head;
                    statement!(sql, tenant.as_str(), server.as_str(), *seq, *removed, line.as_str())
                };
                // The role may be one that makes no tables.
                if link.fetch(insert()).await.is_err() {
                    link.script(TABLE).await?;
                    link.fetch(insert()).await?;
                }
            }
            Ok(())
        })
        .await
    }

    /// The last lines of each chain, so many of each at most, in the order of their records. There may be none.
    ///
    /// # Errors
    /// When the database cannot be reached or read.
    pub async fn lines(&self, most: usize) -> Result<Vec<String>, StoreError> {
        #[cfg(feature = "sqlite")]
        if matches!(&self.0, Place::File(file) if !file.exists()) {
            return Ok(Vec::new());
        }
        self.within(async {
            let mut link = self.connect().await?;
            let chains = "SELECT DISTINCT tenant, server FROM audit_heads ORDER BY tenant, server";
            let chains = match link.fetch(statement!(chains)).await {
                Ok(chains) => chains,
                Err(_) => {
                    link.script(TABLE).await?;
                    Vec::new()
                }
            };
            let mut lines = Vec::new();
            for mut chain in chains {
                let sql = "SELECT line FROM audit_heads WHERE tenant = $1 AND server = $2 ORDER BY seq DESC LIMIT $3";
                let found = link.fetch(statement!(sql, chain.text()?, chain.text()?, most)).await?;
                let found = found.into_iter().rev().map(|mut row| row.string());
                lines.extend(found.collect::<Result<Vec<String>, StoreError>>()?);
            }
            Ok(lines)
        })
        .await
    }
}
