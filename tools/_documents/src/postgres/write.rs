//! Adding and removing.

use jiff::Timestamp;
use serde::Serialize;
use sqlx::{Postgres, Transaction};

use super::{PostgresDocuments, presence, server::LOCKS, vectors::count_write, words::words};
use crate::{
    Added, Document,
    rows::{Rows, folder, title},
    sql::seconds,
};
use registry_core::result::ToolError;

/// A passage, and the words it is found by.
#[derive(Serialize)]
struct Row<'a> {
    section: &'a str,
    first: u32,
    last: u32,
    text: &'a str,
    words_of_section: String,
    words_of_text: String,
    length: usize,
}

impl PostgresDocuments {
    pub(super) async fn has_document(&self, path: &str, hash: &str) -> Result<bool, ToolError> {
        let found = sqlx::query_scalar::<_, i64>(
            "SELECT id FROM document WHERE tenant = $1 AND path = $2 AND hash = $3",
        )
        .bind(&self.tenant)
        .bind(without_nul(path))
        .bind(hash)
        .fetch_optional(self.server.opened().await?);
        found.await.map(|found| found.is_some()).map_err(|error| self.fault(error))
    }

    pub(super) async fn write_document(&self, mut document: Document) -> Result<Added, ToolError> {
        document.path = without_nul(&document.path);
        if self.has_document(&document.path, &document.hash).await? {
            return Ok(Added::Unchanged);
        }
        document.title = without_nul(&document.title);
        document.language = document.language.map(|language| without_nul(&language));
        for line in &mut document.lines {
            if line.text.contains('\0') {
                line.text = without_nul(&line.text);
            }
        }
        let (document, rows) = Rows::of(document).await?;
        let added = self
            .in_transaction(async |transaction| replace(transaction, &self.tenant, &document, &rows).await);
        let added = added.await?;
        self.server.presence.add(&self.tenant);
        Ok(added)
    }

    pub(super) async fn remove_documents(&self, path: &str) -> Result<Vec<String>, ToolError> {
        let path = without_nul(path);
        let removed = self.in_transaction(async |transaction| {
            let removed: Vec<(i64, String)> = sqlx::query_as(
                "SELECT id, path FROM document WHERE tenant = $1 AND (path = $2 OR starts_with(path, $3)) ORDER BY path",
            )
            .bind(&self.tenant)
            .bind(&path)
            .bind(folder(&path))
            .fetch_all(&mut **transaction)
            .await?;
            for (id, _) in &removed {
                delete(transaction, &self.tenant, *id).await?;
            }
            Ok(removed.into_iter().map(|(_, path)| path).collect())
        });
        let removed = removed.await?;
        // Else it is known a second later.
        let _ = presence::refresh(&self.server).await;
        Ok(removed)
    }

    /// What is done is kept whole, or none of it. Of a tenant one document is written at a time, as documents share names. Whoever waits here
    /// holds no connection, and some are never written through, so that the others' searches go on.
    pub(super) async fn in_transaction<T>(
        &self,
        work: impl AsyncFnOnce(&mut Transaction<'_, Postgres>) -> Result<T, sqlx::Error>,
    ) -> Result<T, ToolError> {
        let pool = self.server.opened().await?;
        let _turn = self.writing.lock().await;
        let _permit = self.server.writers.acquire().await.map_err(|error| self.fault(error))?;
        let work = async {
            let mut transaction = pool.begin().await?;
            sqlx::query("SELECT pg_advisory_xact_lock($1, hashtext($2))")
                .bind(LOCKS)
                .bind(&self.tenant)
                .execute(&mut *transaction)
                .await?;
            let done = work(&mut transaction).await?;
            transaction.commit().await?;
            Ok(done)
        };
        work.await.map_err(|error: sqlx::Error| self.fault(error))
    }
}

/// PostgreSQL has no place for a NUL in a text.
pub(super) fn without_nul(text: &str) -> String {
    text.replace('\0', " ")
}

async fn replace(
    transaction: &mut Transaction<'_, Postgres>,
    tenant: &str,
    document: &Document,
    rows: &Rows,
) -> Result<Added, sqlx::Error> {
    let before: Option<(i64, String)> =
        sqlx::query_as("SELECT id, hash FROM document WHERE tenant = $1 AND path = $2")
            .bind(tenant)
            .bind(&document.path)
            .fetch_optional(&mut **transaction)
            .await?;
    let added = match before {
        Some((_, hash)) if hash == document.hash => return Ok(Added::Unchanged),
        Some((id, _)) => {
            delete(transaction, tenant, id).await?;
            Added::Updated
        }
        None => Added::New,
    };
    let (words_of_title, length) = words(&title(document));
    let chunks: Vec<Row> = rows
        .chunks
        .iter()
        .map(|chunk| {
            let (words_of_section, of_section) = words(&chunk.section);
            let (words_of_text, of_text) = words(&chunk.text);
            let length = length + of_section + of_text;
            let (section, text) = (chunk.section.as_str(), chunk.text.as_str());
            Row {
                section,
                first: chunk.first,
                last: chunk.last,
                text,
                words_of_section,
                words_of_text,
                length,
            }
        })
        .collect();
    let length: usize = chunks.iter().map(|chunk| chunk.length).sum();
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO document (tenant, path, title, kind, bytes, passages, words, language, modified, added, hash, metadata)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id",
    )
    .bind(tenant)
    .bind(&document.path)
    .bind(&document.title)
    .bind(document.kind.as_str())
    .bind(i64::try_from(document.bytes).unwrap_or(i64::MAX))
    .bind(rows.count())
    .bind(i64::try_from(length).unwrap_or(i64::MAX))
    .bind(&document.language)
    .bind(document.modified.map(seconds))
    .bind(seconds(Timestamp::now()))
    .bind(&document.hash)
    .bind(serde_json::Value::Object(document.metadata.clone()).to_string())
    .fetch_one(&mut **transaction)
    .await?;
    let chunks = serde_json::to_string(&chunks).map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query(
        "WITH given AS (
             SELECT number - 1 AS ordinal, section, first, last, text, words_of_section, words_of_text, length
             FROM ROWS FROM (json_to_recordset($2::json) AS (
                 section text, first bigint, last bigint, text text, words_of_section text, words_of_text text, length bigint
             )) WITH ORDINALITY AS row (section, first, last, text, words_of_section, words_of_text, length, number)
         ),
         kept AS (
             INSERT INTO document_chunk (document, ordinal, section, first, last, text)
             SELECT $1, ordinal, section, first, last, text FROM given RETURNING id, ordinal
         )
         INSERT INTO document_words (chunk, tenant, length, words)
         SELECT id, $3, length,
             to_tsvector('toolrack_words', words_of_text)
             || setweight(to_tsvector('toolrack_words', words_of_section), 'B')
             || setweight(to_tsvector('toolrack_words', $4), 'A')
         FROM given JOIN kept USING (ordinal)",
    )
    .bind(id)
    .bind(&chunks)
    .bind(tenant)
    .bind(&words_of_title)
    .execute(&mut **transaction)
    .await?;
    // A longer name does not fit an index, and nobody asks for it.
    sqlx::query(
        "INSERT INTO document_entity (tenant, key, name, kind)
         SELECT DISTINCT ON (key) $1, key, name, kind FROM json_to_recordset($2::json) AS (key text, name text, kind text)
         WHERE length(key) <= 500 ON CONFLICT DO NOTHING",
    )
    .bind(tenant)
    .bind(&rows.mentions)
    .execute(&mut **transaction)
    .await?;
    for (statement, rows) in [
        (
            "INSERT INTO document_mention (entity, chunk, times)
             SELECT entity.id, kept.id, times FROM json_to_recordset($2::json) AS row (chunk bigint, key text, times bigint)
             JOIN document_entity AS entity ON entity.tenant = $3 AND entity.key = row.key
             JOIN document_chunk AS kept ON kept.document = $1 AND kept.ordinal = row.chunk",
            &rows.mentions,
        ),
        (
            "INSERT INTO document_relation (subject, relation, object, chunk)
             SELECT subject.id, relation, object.id, kept.id
             FROM json_to_recordset($2::json) AS row (chunk bigint, subject text, relation text, object text)
             JOIN document_entity AS subject ON subject.tenant = $3 AND subject.key = row.subject
             JOIN document_entity AS object ON object.tenant = $3 AND object.key = row.object
             JOIN document_chunk AS kept ON kept.document = $1 AND kept.ordinal = row.chunk",
            &rows.relations,
        ),
    ] {
        sqlx::query(statement).bind(id).bind(rows).bind(tenant).execute(&mut **transaction).await?;
    }
    Ok(added)
}

/// Removes a document with its passages, and the names that are mentioned nowhere else.
async fn delete(
    transaction: &mut Transaction<'_, Postgres>,
    tenant: &str,
    id: i64,
) -> Result<(), sqlx::Error> {
    count_write(transaction, tenant).await?;
    let names: Vec<i64> = sqlx::query_scalar(
        "SELECT DISTINCT entity FROM document_mention JOIN document_chunk ON document_chunk.id = chunk WHERE document = $1",
    )
    .bind(id)
    .fetch_all(&mut **transaction)
    .await?;
    sqlx::query("DELETE FROM document WHERE id = $1").bind(id).execute(&mut **transaction).await?;
    sqlx::query(
        "DELETE FROM document_entity AS name WHERE id = ANY($1)
         AND NOT EXISTS (SELECT 1 FROM document_mention WHERE entity = name.id)",
    )
    .bind(names)
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
