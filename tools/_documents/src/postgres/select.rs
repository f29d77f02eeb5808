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

impl PostgresDocuments {
    pub(super) async fn select_metadata(&self, sql: &str) -> Result<MetadataRows, ToolError> {
        let rows = sqlx::query_scalar(
            "SELECT coalesce(json_agg(document), '[]')::text FROM document WHERE tenant = $1",
        )
        .bind(&self.tenant)
        .fetch_one(self.server.opened().await?);
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
