//! Runs SQL that somebody else wrote, beside the server and not on it.
//!
//! What may be asked about is small: a row for each document of the tenant. So the rows are copied into a SQLite database in memory, and the
//! statement runs there. It never comes near the server or another tenant's rows, and the same columns and functions work wherever
//! documents are kept.

use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use super::PostgresDocuments;
use crate::{
    MetadataRows,
    database::Database,
    sqlite::{SCHEMA, select::select},
};
use registry_core::ToolError;

/// A tenant's rows are not copied where they have more bytes.
const MAX_COPY: i64 = 64 * 1024 * 1024;
const SIZE: &str = "
    SELECT coalesce(sum(400 + octet_length(path) + octet_length(title) + octet_length(metadata)), 0)::bigint
    FROM document WHERE tenant = $1";
const ROWS: &str = "SELECT coalesce(json_agg(document), '[]')::text FROM document WHERE tenant = $1";

impl PostgresDocuments {
    pub(super) async fn select_metadata(&self, sql: &str) -> Result<MetadataRows, ToolError> {
        let pool = self.server.opened().await?;
        let _permit = self.server.copiers.acquire().await.map_err(|error| self.fault(error))?;
        let size = sqlx::query_scalar(SIZE).bind(&self.tenant).fetch_one(pool);
        let size: i64 = size.await.map_err(|error| self.fault(error))?;
        if size > MAX_COPY {
            return Err(ToolError::invalid(format!(
                "the rows of all documents have {} MiB, and {} are the most that can be queried here; search for what the documents say instead",
                size >> 20,
                MAX_COPY >> 20
            )));
        }
        let rows = sqlx::query_scalar(ROWS).bind(&self.tenant).fetch_one(pool);
        let rows: String = rows.await.map_err(|error| self.fault(error))?;
        let mut copy = copy(rows).await.map_err(|error| self.fault(error))?;
        select(&mut copy, sql, |error| self.fault(error)).await
    }
}

/// A database in memory with these rows, that is as closed as one in a file.
async fn copy(rows: String) -> Result<SqliteConnection, sqlx::Error> {
    // What a statement sorts goes into a file beside the memory where it is much, as SQLite has it by itself.
    let options = SqliteConnectOptions::new().pragma("trusted_schema", "OFF");
    let mut copy = SqliteConnection::connect_with(&options).await?;
    let [tables, ..] = SCHEMA;
    sqlx::raw_sql(tables).execute(&mut copy).await?;
    sqlx::query(
        "INSERT INTO document (id, path, title, kind, bytes, passages, language, modified, added, hash, metadata)
         SELECT value ->> 'id', value ->> 'path', value ->> 'title', value ->> 'kind', value ->> 'bytes',
             value ->> 'passages', value ->> 'language', value ->> 'modified', value ->> 'added', value ->> 'hash',
             value ->> 'metadata'
         FROM json_each($1)",
    )
    .bind(rows)
    .execute(&mut copy)
    .await?;
    sqlx::raw_sql("PRAGMA query_only = ON").execute(&mut copy).await?;
    Ok(copy)
}
