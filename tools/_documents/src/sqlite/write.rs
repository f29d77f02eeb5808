//! Adding and removing.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::json;
use sqlx::{Sqlite, Transaction};

use super::SqliteDocuments;
use crate::{
    Added, Document,
    rows::{Rows, folder, title},
    sql::seconds,
    unspaced::spaced,
};
use registry_core::result::ToolError;

impl SqliteDocuments {
    pub(super) async fn has_document(&self, path: &str, hash: &str) -> Result<bool, ToolError> {
        let found = sqlx::query_scalar::<_, i64>("SELECT 1 FROM document WHERE path = $1 AND hash = $2")
            .bind(path)
            .bind(hash)
            .fetch_optional(&self.opened().await?.readers);
        found.await.map(|found| found.is_some()).map_err(|error| self.fault(error))
    }

    pub(super) async fn write_document(&self, document: Document) -> Result<Added, ToolError> {
        if self.has_document(&document.path, &document.hash).await? {
            return Ok(Added::Unchanged);
        }
        let (document, rows) = Rows::of(document).await?;
        let chunks = serde_json::to_string(&rows.chunks).map_err(|error| self.fault(error))?;
        self.in_transaction(async |transaction| replace(transaction, &document, &rows, &chunks).await).await
    }

    pub(super) async fn remove_documents(&self, path: &str) -> Result<Vec<String>, ToolError> {
        self.in_transaction(async |transaction| {
            let removed: Vec<(i64, String)> = sqlx::query_as(
                "SELECT id, path FROM document WHERE path = $1 OR substr(path, 1, length($2)) = $2 ORDER BY path",
            )
            .bind(path)
            .bind(folder(path))
            .fetch_all(&mut **transaction)
            .await?;
            for (id, _) in &removed {
                delete(transaction, *id).await?;
            }
            Ok(removed.into_iter().map(|(_, path)| path).collect())
        })
        .await
    }

    /// What is done is kept whole, or none of it. The lock is taken at the beginning, so that nothing fails half-way for want of it.
    pub(super) async fn in_transaction<T>(
        &self,
        work: impl AsyncFnOnce(&mut Transaction<'_, Sqlite>) -> Result<T, sqlx::Error>,
    ) -> Result<T, ToolError> {
        let opened = self.opened().await?;
        let work = async {
            let mut transaction = opened.writer.begin_with("BEGIN IMMEDIATE").await?;
            let done = work(&mut transaction).await?;
            transaction.commit().await?;
            Ok(done)
        };
        work.await.map_err(|error: sqlx::Error| self.fault(error))
    }
}

/// The title, and the section and the text of each passage, as their words are looked up; `None` where they stand so.
fn spaced_words(document: &Document, rows: &Rows) -> Option<(String, String)> {
    let title = title(document);
    let title = spaced(&title);
    let words: Vec<[Cow<str>; 2]> =
        rows.chunks.iter().map(|chunk| [spaced(&chunk.section), spaced(&chunk.text)]).collect();
    let is_other = |text: &Cow<str>| matches!(text, Cow::Owned(_));
    let are_other = is_other(&title) || words.iter().flatten().any(is_other);
    are_other.then(|| (title.into_owned(), json!(words).to_string()))
}

async fn replace(
    transaction: &mut Transaction<'_, Sqlite>,
    document: &Document,
    rows: &Rows,
    chunks: &str,
) -> Result<Added, sqlx::Error> {
    let before: Option<(i64, String)> = sqlx::query_as("SELECT id, hash FROM document WHERE path = $1")
        .bind(&document.path)
        .fetch_optional(&mut **transaction)
        .await?;
    let added = match before {
        Some((_, hash)) if hash == document.hash => return Ok(Added::Unchanged),
        Some((id, _)) => {
            delete(transaction, id).await?;
            Added::Updated
        }
        None => Added::New,
    };
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO document (path, title, kind, bytes, passages, language, modified, added, hash, metadata)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id",
    )
    .bind(&document.path)
    .bind(&document.title)
    .bind(document.kind.as_str())
    .bind(i64::try_from(document.bytes).unwrap_or(i64::MAX))
    .bind(rows.count())
    .bind(&document.language)
    .bind(document.modified.map(seconds))
    .bind(seconds(Timestamp::now()))
    .bind(&document.hash)
    .bind(serde_json::Value::Object(document.metadata.clone()).to_string())
    .fetch_one(&mut **transaction)
    .await?;
    sqlx::query(
        "INSERT INTO chunk (id, document, ordinal, section, first, last, text)
         SELECT highest + 1 + key, $1, key, value ->> 'section', value ->> 'first', value ->> 'last', value ->> 'text'
         FROM json_each($2), chunk_number",
    )
    .bind(id)
    .bind(chunks)
    .execute(&mut **transaction)
    .await?;
    sqlx::query("UPDATE chunk_number SET highest = highest + $1")
        .bind(rows.count())
        .execute(&mut **transaction)
        .await?;
    let insert = match spaced_words(document, rows) {
        None => sqlx::query(
            "INSERT INTO chunk_words (rowid, title, section, text)
             SELECT id, $2, section, text FROM chunk WHERE document = $1",
        )
        .bind(id)
        .bind(title(document)),
        Some((title, words)) => sqlx::query(
            "INSERT INTO chunk_words (rowid, title, section, text)
             SELECT chunk.id, $2, value ->> 0, value ->> 1
             FROM json_each($3) CROSS JOIN chunk ON chunk.document = $1 AND chunk.ordinal = key",
        )
        .bind(id)
        .bind(title)
        .bind(words),
    };
    insert.execute(&mut **transaction).await?;
    for (statement, rows) in [
        (
            "INSERT INTO entity (key, name, kind)
             SELECT value ->> 'key', value ->> 'name', value ->> 'kind' FROM json_each($2) WHERE $1 > 0
             ON CONFLICT DO NOTHING",
            &rows.mentions,
        ),
        (
            "INSERT INTO mention (entity, chunk, times)
             SELECT entity.id, chunk.id, value ->> 'times'
             FROM json_each($2)
             CROSS JOIN entity ON entity.key = value ->> 'key'
             CROSS JOIN chunk ON chunk.document = $1 AND chunk.ordinal = value ->> 'chunk'",
            &rows.mentions,
        ),
        (
            "INSERT INTO relation (subject, relation, object, chunk)
             SELECT subject.id, value ->> 'relation', object.id, chunk.id
             FROM json_each($2)
             CROSS JOIN entity AS subject ON subject.key = value ->> 'subject'
             CROSS JOIN entity AS object ON object.key = value ->> 'object'
             CROSS JOIN chunk ON chunk.document = $1 AND chunk.ordinal = value ->> 'chunk'",
            &rows.relations,
        ),
    ] {
        sqlx::query(statement).bind(id).bind(rows).execute(&mut **transaction).await?;
    }
    Ok(added)
}

/// Removes a document with its passages, and the names that are mentioned nowhere else.
async fn delete(transaction: &mut Transaction<'_, Sqlite>, id: i64) -> Result<(), sqlx::Error> {
    let names: Vec<i64> = sqlx::query_scalar(
        "SELECT DISTINCT entity FROM mention WHERE chunk IN (SELECT id FROM chunk WHERE document = $1)",
    )
    .bind(id)
    .fetch_all(&mut **transaction)
    .await?;
    sqlx::query("DELETE FROM document WHERE id = $1").bind(id).execute(&mut **transaction).await?;
    sqlx::query(
        "DELETE FROM entity WHERE id IN (SELECT value FROM json_each($1))
         AND NOT EXISTS (SELECT 1 FROM mention WHERE entity = entity.id)",
    )
    .bind(serde_json::Value::from(names).to_string())
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
