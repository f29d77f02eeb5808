//! Keeping and finding documents in a file.

use jiff::Timestamp;
use serde_json::Value;
use sqlx::{FromRow, QueryBuilder, Sqlite, Transaction};

use super::SqliteDocuments;
use crate::{
    Added, Contents, Document, DocumentFilter, DocumentIndex, Extracted, Graph, GraphQuery, MetadataRows,
    Passage, StoredDocument, UnreadPassage,
    graph::walk,
    index::Answer,
    query::{TextQuery, fill_up},
    rows::{Rows, extracted_rows, folder},
    sql::{limit_of, narrow, seconds},
    unspaced::spaced,
    vectors::{all_normalised, normalised},
};
use registry_core::{BoxFuture, ToolError};

/// The columns of a passage; its score is that of a row of `best`.
pub(super) const PASSAGE: &str =
    "SELECT path, document.title, document.kind, section, first, last, text, best.score";

impl DocumentIndex for SqliteDocuments {
    fn contents(&self) -> Contents {
        self.presence.contents()
    }

    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.presence.refresh(&self.file))
    }

    fn add(&self, document: Document) -> Answer<'_, Added> {
        Box::pin(async move {
            if self.has(&document.path, &document.hash).await? {
                return Ok(Added::Unchanged);
            }
            let (document, rows) = Rows::of(document, |text| spaced(text).into_owned()).await?;
            let added =
                self.in_transaction(async |transaction| replace(transaction, &document, &rows).await).await?;
            self.presence.update(|contents| contents.documents = true);
            Ok(added)
        })
    }

    fn has<'a>(&'a self, path: &'a str, hash: &'a str) -> Answer<'a, bool> {
        Box::pin(async move {
            let found =
                sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM document WHERE path = $1 AND hash = $2)")
                    .bind(path)
                    .bind(hash)
                    .fetch_one(&self.opened().await?.readers);
            found.await.map_err(|error| self.fault(error))
        })
    }

    fn remove<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<String>> {
        Box::pin(async move {
            let removed = self.in_transaction(async |transaction| {
                let removed: Vec<String> = sqlx::query_scalar(
                    "DELETE FROM document WHERE path = $1 OR substr(path, 1, length($2)) = $2 RETURNING path",
                )
                .bind(path)
                .bind(folder(path))
                .fetch_all(&mut **transaction)
                .await?;
                remove_unmentioned(transaction).await?;
                Ok(removed)
            });
            let mut removed = removed.await?;
            removed.sort();
            self.presence.refresh(&self.file).await;
            Ok(removed)
        })
    }

    fn list<'a>(&'a self, filter: &'a DocumentFilter) -> Answer<'a, Vec<StoredDocument>> {
        Box::pin(async move {
            let mut query = QueryBuilder::new("SELECT * FROM document WHERE TRUE");
            narrow(&mut query, filter);
            self.rows(query.push(" ORDER BY path")).await
        })
    }

    fn search<'a>(
        &'a self,
        question: &'a str,
        limit: usize,
        filter: &'a DocumentFilter,
    ) -> Answer<'a, Vec<Passage>> {
        Box::pin(async move {
            let query = TextQuery::of(question)?;
            let mut passages = self.matching(query.any(), limit, filter).await?;
            if passages.len() < limit {
                fill_up(&mut passages, self.matching(query.beginning(), limit, filter).await?, limit);
            }
            Ok(passages)
        })
    }

    fn without_vectors<'a>(&'a self, model: &'a str, limit: usize) -> Answer<'a, Vec<UnreadPassage>> {
        Box::pin(async move {
            let mut query = QueryBuilder::new(
                "SELECT chunk.id, title, section, text FROM chunk JOIN document ON document.id = document
                 WHERE NOT EXISTS (SELECT 1 FROM embedding WHERE chunk = chunk.id AND model = ",
            );
            query.push_bind(model).push(") ORDER BY chunk.id LIMIT ").push_bind(limit_of(limit));
            self.rows(&mut query).await
        })
    }

    fn keep_vectors<'a>(&'a self, model: &'a str, vectors: Vec<(i64, Vec<f32>)>) -> Answer<'a, ()> {
        Box::pin(async move {
            let (vectors, dimensions) = all_normalised(vectors);
            self.in_transaction(async |transaction| {
                // Of what the model's name stood for before.
                sqlx::query(
                    "DELETE FROM embedding WHERE $2 > 0 AND model = $1 AND dimensions NOT IN (0, $2)",
                )
                .bind(model)
                .bind(dimensions)
                .execute(&mut **transaction)
                .await?;
                for (passage, vector) in &vectors {
                    sqlx::query(
                        "INSERT OR REPLACE INTO embedding (chunk, model, dimensions, vector)
                         SELECT id, $2, $3, $4 FROM chunk WHERE id = $1",
                    )
                    .bind(passage)
                    .bind(model)
                    .bind(limit_of(vector.len()))
                    .bind(to_bytes(vector))
                    .execute(&mut **transaction)
                    .await?;
                }
                Ok(())
            })
            .await
        })
    }

    fn nearest<'a>(
        &'a self,
        model: &'a str,
        vector: &'a [f32],
        limit: usize,
        filter: &'a DocumentFilter,
    ) -> Answer<'a, Vec<Passage>> {
        Box::pin(async move {
            let Some(vector) = normalised(vector.to_vec()) else {
                return Err(ToolError::invalid(
                    "a vector of zeros or of no finite numbers is near to nothing",
                ));
            };
            let mut query = QueryBuilder::new(PASSAGE);
            query.push(" FROM (SELECT chunk AS id, 1 - vec_distance_cosine(vector, ");
            query.push_bind(to_bytes(&vector)).push(") AS score FROM embedding WHERE model = ");
            query.push_bind(model).push(" AND dimensions = ").push_bind(limit_of(vector.len()));
            self.best(query, limit, filter).await
        })
    }

    fn select<'a>(&'a self, sql: &'a str) -> Answer<'a, MetadataRows> {
        Box::pin(async move {
            let mut connection =
                self.opened().await?.untrusted_readers.acquire().await.map_err(|error| self.fault(error))?;
            super::select::select(&mut connection, sql, |error| self.fault(error)).await
        })
    }

    fn unextracted<'a>(&'a self, limit: usize, filter: &'a DocumentFilter) -> Answer<'a, Vec<UnreadPassage>> {
        Box::pin(async move {
            let mut query = QueryBuilder::new("SELECT chunk.id, title, section, text");
            query.push(UNEXTRACTED);
            narrow(&mut query, filter);
            query.push(" ORDER BY chunk.id LIMIT ").push_bind(limit_of(limit));
            self.rows(&mut query).await
        })
    }

    fn count_unextracted<'a>(&'a self, filter: &'a DocumentFilter) -> Answer<'a, usize> {
        Box::pin(async move {
            let mut query = QueryBuilder::new("SELECT count(*)");
            query.push(UNEXTRACTED);
            narrow(&mut query, filter);
            let count = query.build_query_scalar::<i64>().fetch_one(&self.opened().await?.readers).await;
            Ok(usize::try_from(count.map_err(|error| self.fault(error))?).unwrap_or_default())
        })
    }

    fn keep_extracted<'a>(&'a self, model: &'a str, passages: Vec<(i64, Extracted)>) -> Answer<'a, ()> {
        Box::pin(async move {
            self.in_transaction(async |transaction| {
                for (passage, extracted) in &passages {
                    let marked = sqlx::query(
                        "INSERT OR REPLACE INTO extraction (chunk, model) SELECT id, $2 FROM chunk WHERE id = $1",
                    )
                    .bind(passage)
                    .bind(model)
                    .execute(&mut **transaction)
                    .await?;
                    if marked.rows_affected() == 0 {
                        continue;
                    }
                    let (names, relations) = extracted_rows(extracted);
                    for (statement, rows) in [(NAMES, &names), (MENTIONS, &names), (RELATIONS, &relations)] {
                        sqlx::query(statement).bind(passage).bind(rows).execute(&mut **transaction).await?;
                    }
                }
                Ok(())
            })
            .await?;
            self.presence.refresh(&self.file).await;
            Ok(())
        })
    }

    fn graph<'a>(&'a self, query: &'a GraphQuery) -> Answer<'a, Graph> {
        Box::pin(walk(self, query))
    }
}

impl SqliteDocuments {
    pub(super) async fn rows<T>(&self, query: &mut QueryBuilder<Sqlite>) -> Result<Vec<T>, ToolError>
    where
        T: for<'r> FromRow<'r, sqlx::sqlite::SqliteRow> + Send + Unpin,
    {
        let rows = query.build_query_as().fetch_all(&self.opened().await?.readers).await;
        rows.map_err(|error| self.fault(error))
    }

    async fn matching(
        &self,
        words: String,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let mut query = QueryBuilder::new(PASSAGE);
        // What a word weighs in the title, in the section and in the text.
        query.push(" FROM (SELECT rowid AS id, -bm25(chunk_words, 2.0, 3.0, 1.0) AS score FROM chunk_words");
        query.push(" WHERE chunk_words MATCH ").push_bind(words);
        self.best(query, limit, filter).await
    }

    /// The passages of the best rows of an inner query, which is open at its conditions. They are known before their texts are read.
    async fn best(
        &self,
        mut query: QueryBuilder<Sqlite>,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        if *filter != DocumentFilter::default() {
            // With the sign SQLite asks the words once, and not for each of these.
            query.push(
                " AND +id IN (SELECT chunk.id FROM chunk JOIN document ON document.id = document WHERE TRUE",
            );
            narrow(&mut query, filter);
            query.push(")");
        }
        query.push(" ORDER BY score DESC LIMIT ").push_bind(limit_of(limit));
        query.push(
            ") AS best CROSS JOIN chunk ON chunk.id = best.id CROSS JOIN document ON document.id = document
             ORDER BY best.score DESC, chunk.id",
        );
        self.rows(&mut query).await
    }

    /// What is done is kept whole, or none of it. The lock is taken at the beginning, so that nothing fails half-way for want of it.
    async fn in_transaction<T>(
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

/// A vector as it is kept: its numbers one after the other, little-endian.
fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

async fn replace(
    transaction: &mut Transaction<'_, Sqlite>,
    document: &Document,
    rows: &Rows,
) -> Result<Added, sqlx::Error> {
    let before: Option<(i64, String)> = sqlx::query_as("SELECT id, hash FROM document WHERE path = $1")
        .bind(&document.path)
        .fetch_optional(&mut **transaction)
        .await?;
    let added = match before {
        Some((_, hash)) if hash == document.hash => return Ok(Added::Unchanged),
        Some((id, _)) => {
            sqlx::query("DELETE FROM document WHERE id = $1").bind(id).execute(&mut **transaction).await?;
            remove_unmentioned(transaction).await?;
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
    .bind(rows.count)
    .bind(&document.language)
    .bind(document.modified.map(seconds))
    .bind(seconds(Timestamp::now()))
    .bind(&document.hash)
    .bind(Value::Object(document.metadata.clone()).to_string())
    .fetch_one(&mut **transaction)
    .await?;
    for statement in [CHUNKS, "UPDATE chunk_number SET highest = highest + json_array_length($2)", WORDS] {
        sqlx::query(statement)
            .bind(id)
            .bind(&rows.json)
            .bind(&rows.title_words)
            .execute(&mut **transaction)
            .await?;
    }
    Ok(added)
}

/// Removes the names that are mentioned nowhere any more.
async fn remove_unmentioned(transaction: &mut Transaction<'_, Sqlite>) -> Result<(), sqlx::Error> {
    let remove = "DELETE FROM entity WHERE NOT EXISTS (SELECT 1 FROM mention WHERE entity = entity.id)";
    sqlx::query(remove).execute(&mut **transaction).await.map(drop)
}

/// The passages in $2 of the document $1.
const CHUNKS: &str = "
    INSERT INTO chunk (id, document, ordinal, section, first, last, text)
    SELECT highest + 1 + key, $1, key, value ->> 'section', value ->> 'first', value ->> 'last', value ->> 'text'
    FROM json_each($2), chunk_number";
const WORDS: &str = "
    INSERT INTO chunk_words (rowid, title, section, text)
    SELECT chunk.id, $3, value ->> 'section_words', value ->> 'text_words'
    FROM json_each($2) CROSS JOIN chunk ON chunk.document = $1 AND chunk.ordinal = key";

const UNEXTRACTED: &str = " FROM chunk JOIN document ON document.id = document
    WHERE NOT EXISTS (SELECT 1 FROM extraction WHERE chunk = chunk.id)";

// Of the rows in $2, each of the passage $1. A model that says more of a name than that it is one is believed.
const NAMES: &str = "
    INSERT INTO entity (key, name, kind)
    SELECT value ->> 'key', value ->> 'name', value ->> 'kind' FROM json_each($2) WHERE $1 > 0
    ON CONFLICT (key) DO UPDATE SET kind = excluded.kind WHERE entity.kind = 'name'";
const MENTIONS: &str = "
    INSERT INTO mention (entity, chunk)
    SELECT entity.id, $1 FROM json_each($2) CROSS JOIN entity ON entity.key = value ->> 'key' WHERE TRUE
    ON CONFLICT DO NOTHING";
const RELATIONS: &str = "
    INSERT INTO relation (subject, relation, object, chunk)
    SELECT subject.id, value ->> 'relation', object.id, $1
    FROM json_each($2)
    CROSS JOIN entity AS subject ON subject.key = value ->> 'subject'
    CROSS JOIN entity AS object ON object.key = value ->> 'object'
    WHERE TRUE
    ON CONFLICT DO NOTHING";
