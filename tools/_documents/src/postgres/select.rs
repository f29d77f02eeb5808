//! Runs SQL that somebody else wrote, beside the server and not on it.
//!
//! What may be asked about is small: a row for each document of the tenant. So the rows are copied into a SQLite database in memory, and the
//! statement runs there. It never comes near the server or another tenant's rows, and the same columns and functions work wherever
//! documents are kept.

use std::collections::BTreeSet;

use sqlx::{Connection, PgPool, SqliteConnection, sqlite::SqliteConnectOptions};

use super::PostgresDocuments;
use crate::{
    MetadataRows,
    sqlite::{SCHEMA, select::select},
    statement::checked,
};
use registry_core::result::ToolError;

/// So many rows are fetched at once.
const BATCH: usize = 1000;

/// The row of a document.
type Row = (i64, String, String, String, i64, i64, Option<String>, Option<String>, String, String, String);

impl PostgresDocuments {
    pub(super) async fn select_metadata(&self, sql: &str) -> Result<MetadataRows, ToolError> {
        let sql = checked(sql).map_err(ToolError::invalid)?;
        let pool = self.server.opened().await?;
        let mut kept = self.metadata.lock().await;
        // It is taken out while it is at work: where nobody waits for the answer any more, the next one makes another.
        let mut copy = match kept.take() {
            Some(copy) => copy,
            None => new_copy().await.map_err(|error| self.fault(error))?,
        };
        self.bring_up(pool, &mut copy).await.map_err(|error| self.fault(error))?;
        let answer = select(&mut copy, sql, |error| self.fault(error)).await;
        *kept = Some(copy);
        answer
    }

    /// Makes the copy what the server has now. A document that changed has another number.
    async fn bring_up(&self, pool: &PgPool, copy: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        copy.lock_handle().await?.remove_progress_handler();
        sqlx::raw_sql("PRAGMA query_only = OFF").execute(&mut *copy).await?;
        let there: BTreeSet<i64> = sqlx::query_scalar("SELECT id FROM document WHERE tenant = $1")
            .bind(&self.tenant)
            .fetch_all(pool)
            .await?
            .into_iter()
            .collect();
        let copied: Vec<i64> = sqlx::query_scalar("SELECT id FROM document").fetch_all(&mut *copy).await?;
        let copied: BTreeSet<i64> = copied.into_iter().collect();
        let mut transaction = copy.begin().await?;
        for gone in copied.difference(&there) {
            sqlx::query("DELETE FROM document WHERE id = $1").bind(gone).execute(&mut *transaction).await?;
        }
        let new: Vec<i64> = there.difference(&copied).copied().collect();
        for batch in new.chunks(BATCH) {
            let rows: Vec<Row> = sqlx::query_as(
                "SELECT id, path, title, kind, bytes, passages, language, modified, added, hash, metadata
                 FROM document WHERE tenant = $1 AND id = ANY($2)",
            )
            .bind(&self.tenant)
            .bind(batch)
            .fetch_all(pool)
            .await?;
            for row in rows {
                insert(&mut transaction, row).await?;
            }
        }
        transaction.commit().await?;
        sqlx::raw_sql("PRAGMA query_only = ON").execute(copy).await?;
        Ok(())
    }
}

/// An empty database with the tables of a file.
async fn new_copy() -> Result<SqliteConnection, sqlx::Error> {
    // What a statement sorts goes into a file beside the memory where it is much, as SQLite has it by itself.
    let options = SqliteConnectOptions::new().pragma("trusted_schema", "OFF");
    let mut copy = SqliteConnection::connect_with(&options).await?;
    let [tables, ..] = SCHEMA;
    sqlx::raw_sql(tables).execute(&mut copy).await?;
    Ok(copy)
}

async fn insert(copy: &mut SqliteConnection, row: Row) -> Result<(), sqlx::Error> {
    let (id, path, title, kind, bytes, passages, language, modified, added, hash, metadata) = row;
    // A path may have been removed and added again between two questions.
    let insert = sqlx::query(
        "INSERT OR REPLACE INTO document (id, path, title, kind, bytes, passages, language, modified, added, hash, metadata)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    );
    insert
        .bind(id)
        .bind(path)
        .bind(title)
        .bind(kind)
        .bind(bytes)
        .bind(passages)
        .bind(language)
        .bind(modified)
        .bind(added)
        .bind(hash)
        .bind(metadata)
        .execute(copy)
        .await?;
    Ok(())
}
