//! Keeping and finding documents in a database.

use jiff::Timestamp;
use serde_json::Value;
use sqlx::{FromRow, Postgres, QueryBuilder, Transaction, postgres::PgRow};

use super::{
    PostgresDocuments, presence,
    server::LOCKS,
    words::{query, words},
};
use crate::{
    Added, Contents, Document, DocumentFilter, DocumentIndex, Extracted, Graph, GraphQuery, MetadataRows,
    Passage, StoredDocument, UnreadPassage,
    graph::walk,
    index::Answer,
    query::{TextQuery, fill_up},
    rows::{Rows, extracted_rows, folder},
    sql::{limit_of, narrow, seconds},
    vectors::{all_normalised, normalised},
};
use registry_core::{BoxFuture, ToolError};

/// The columns of a passage; its score is that of a row of `best`.
pub(super) const PASSAGE: &str =
    "SELECT path, document.title, document.kind, section, first, last, text, best.score::float8 AS score";

impl DocumentIndex for PostgresDocuments {
    fn contents(&self) -> Contents {
        self.server.presence.of(&self.tenant)
    }

    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(presence::refresh(&self.server, false))
    }

    fn add(&self, mut document: Document) -> Answer<'_, Added> {
        Box::pin(async move {
            document.path = without_nul(&document.path);
            if self.has(&document.path, &document.hash).await? {
                return Ok(Added::Unchanged);
            }
            document.title = without_nul(&document.title);
            document.language = document.language.map(|language| without_nul(&language));
            for line in document.lines.iter_mut().filter(|line| line.text.contains('\0')) {
                line.text = without_nul(&line.text);
            }
            let (document, rows) = Rows::of(document, words).await?;
            let added = self
                .in_transaction(async |transaction| {
                    replace(transaction, &self.tenant, &document, &rows).await
                })
                .await?;
            self.server.presence.update(&self.tenant, |contents| contents.documents = true);
            Ok(added)
        })
    }

    fn has<'a>(&'a self, path: &'a str, hash: &'a str) -> Answer<'a, bool> {
        Box::pin(async move {
            let found = sqlx::query_scalar(
                "SELECT EXISTS (SELECT 1 FROM document WHERE tenant = $1 AND path = $2 AND hash = $3)",
            )
            .bind(&self.tenant)
            .bind(without_nul(path))
            .bind(hash)
            .fetch_one(self.server.opened().await?);
            found.await.map_err(|error| self.fault(error))
        })
    }

    fn remove<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<String>> {
        Box::pin(async move {
            let path = without_nul(path);
            let removed = self.in_transaction(async |transaction| {
                let removed: Vec<String> = sqlx::query_scalar(
                    "DELETE FROM document WHERE tenant = $1 AND (path = $2 OR starts_with(path, $3)) RETURNING path",
                )
                .bind(&self.tenant)
                .bind(&path)
                .bind(folder(&path))
                .fetch_all(&mut **transaction)
                .await?;
                remove_unmentioned(transaction, &self.tenant).await?;
                Ok(removed)
            });
            let mut removed = removed.await?;
            removed.sort();
            presence::refresh(&self.server, true).await;
            Ok(removed)
        })
    }

    fn list<'a>(&'a self, filter: &'a DocumentFilter) -> Answer<'a, Vec<StoredDocument>> {
        Box::pin(async move {
            let mut query = QueryBuilder::new("SELECT * FROM document WHERE tenant = ");
            query.push_bind(&self.tenant);
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
            let asked = TextQuery::of(question)?;
            let mut passages = self.matching(query(&asked, false), limit, filter).await?;
            if passages.len() < limit {
                fill_up(&mut passages, self.matching(query(&asked, true), limit, filter).await?, limit);
            }
            Ok(passages)
        })
    }

    fn without_vectors<'a>(&'a self, model: &'a str, limit: usize) -> Answer<'a, Vec<UnreadPassage>> {
        Box::pin(async move {
            let mut query = QueryBuilder::new("SELECT passage.id, title, section, text");
            query.push(UNREAD).push("document_embedding WHERE chunk = passage.id AND model = ");
            query.push_bind(without_nul(model)).push(") AND document.tenant = ").push_bind(&self.tenant);
            query.push(" ORDER BY passage.id LIMIT ").push_bind(limit_of(limit));
            self.rows(&mut query).await
        })
    }

    fn keep_vectors<'a>(&'a self, model: &'a str, vectors: Vec<(i64, Vec<f32>)>) -> Answer<'a, ()> {
        Box::pin(async move {
            let model = without_nul(model);
            let (vectors, dimensions) = all_normalised(vectors);
            self.in_transaction(async |transaction| {
                // Of what the model's name stood for before.
                sqlx::query(
                    "DELETE FROM document_embedding WHERE $3 > 0 AND tenant = $1 AND model = $2 AND dimensions NOT IN (0, $3)",
                )
                .bind(&self.tenant)
                .bind(&model)
                .bind(dimensions)
                .execute(&mut **transaction)
                .await?;
                for (passage, vector) in &vectors {
                    sqlx::query(
                        "INSERT INTO document_embedding (chunk, tenant, model, dimensions, vector)
                         SELECT passage.id, $1, $2, cardinality($4::real[]), $4 FROM document_chunk AS passage
                         JOIN document ON document.id = document AND tenant = $1 WHERE passage.id = $3
                         ON CONFLICT (chunk) DO UPDATE SET (model, dimensions, vector)
                             = (excluded.model, excluded.dimensions, excluded.vector)",
                    )
                    .bind(&self.tenant)
                    .bind(&model)
                    .bind(passage)
                    .bind(vector)
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
            let dimensions = limit_of(vector.len());
            self.server.opened().await?;
            let mut query = QueryBuilder::new(PASSAGE);
            query.push(" FROM (SELECT chunk AS id, ");
            // Both have length 1, so that the product is the cosine.
            match self.server.has_pgvector() {
                true => query.push("-(vector::vector <#> ").push_bind(vector).push("::real[]::vector)"),
                false => query
                    .push("(SELECT sum(one * other) FROM unnest(vector, ")
                    .push_bind(vector)
                    .push("::real[]) AS pair (one, other))"),
            };
            query.push(" AS score FROM document_embedding AS hit WHERE tenant = ").push_bind(&self.tenant);
            query.push(" AND model = ").push_bind(without_nul(model));
            query.push(" AND dimensions = ").push_bind(dimensions);
            self.best(query, limit, filter).await
        })
    }

    fn select<'a>(&'a self, sql: &'a str) -> Answer<'a, MetadataRows> {
        Box::pin(self.select_metadata(sql))
    }

    fn unextracted<'a>(&'a self, limit: usize, filter: &'a DocumentFilter) -> Answer<'a, Vec<UnreadPassage>> {
        Box::pin(async move {
            let mut query = self.unextracted("SELECT passage.id, title, section, text", filter);
            query.push(" ORDER BY passage.id LIMIT ").push_bind(limit_of(limit));
            self.rows(&mut query).await
        })
    }

    fn count_unextracted<'a>(&'a self, filter: &'a DocumentFilter) -> Answer<'a, usize> {
        Box::pin(async move {
            let mut query = self.unextracted("SELECT count(*)", filter);
            let count = query.build_query_scalar::<i64>().fetch_one(self.server.opened().await?).await;
            Ok(usize::try_from(count.map_err(|error| self.fault(error))?).unwrap_or_default())
        })
    }

    fn keep_extracted<'a>(&'a self, model: &'a str, passages: Vec<(i64, Extracted)>) -> Answer<'a, ()> {
        Box::pin(async move {
            let model = without_nul(model);
            self.in_transaction(async |transaction| {
                for (passage, extracted) in &passages {
                    let marked = sqlx::query(
                        "INSERT INTO document_extraction (chunk, model)
                         SELECT passage.id, $2 FROM document_chunk AS passage JOIN document ON document.id = document
                         WHERE passage.id = $1 AND tenant = $3
                         ON CONFLICT (chunk) DO UPDATE SET model = excluded.model",
                    )
                    .bind(passage)
                    .bind(&model)
                    .bind(&self.tenant)
                    .execute(&mut **transaction)
                    .await?;
                    if marked.rows_affected() == 0 {
                        continue;
                    }
                    let (names, relations) = extracted_rows(extracted);
                    for (statement, rows) in [(NAMES, &names), (MENTIONS, &names), (RELATIONS, &relations)] {
                        sqlx::query(statement)
                            .bind(passage)
                            .bind(rows)
                            .bind(&self.tenant)
                            .execute(&mut **transaction)
                            .await?;
                    }
                }
                Ok(())
            })
            .await?;
            if passages.iter().any(|(_, extracted)| !extracted.names.is_empty()) {
                self.server.presence.update(&self.tenant, |contents| contents.graph = true);
            }
            Ok(())
        })
    }

    fn graph<'a>(&'a self, query: &'a GraphQuery) -> Answer<'a, Graph> {
        Box::pin(walk(self, query))
    }
}

impl PostgresDocuments {
    pub(super) async fn rows<T>(&self, query: &mut QueryBuilder<Postgres>) -> Result<Vec<T>, ToolError>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let rows = query.build_query_as().fetch_all(self.server.opened().await?).await;
        rows.map_err(|error| self.fault(error))
    }

    async fn matching(
        &self,
        words: String,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let mut query = QueryBuilder::new(PASSAGE);
        query.push(RANKED).push_bind(words);
        query.push(") AS asked WHERE words @@ asked AND tenant = ").push_bind(&self.tenant);
        self.best(query, limit, filter).await
    }

    /// The passages of the best rows of an inner query, which is open at its conditions. They are known before their texts are read.
    async fn best(
        &self,
        mut query: QueryBuilder<Postgres>,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        if *filter != DocumentFilter::default() {
            query.push(
                " AND hit.chunk IN (SELECT passage.id FROM document_chunk AS passage
                 JOIN document ON document.id = document WHERE document.tenant = ",
            );
            query.push_bind(&self.tenant);
            narrow(&mut query, filter);
            query.push(")");
        }
        query.push(" ORDER BY score DESC, id LIMIT ").push_bind(limit_of(limit));
        query.push(
            ") AS best JOIN document_chunk ON document_chunk.id = best.id JOIN document ON document.id = document
             ORDER BY best.score DESC, best.id",
        );
        self.rows(&mut query).await
    }

    fn unextracted<'q>(&self, columns: &'q str, filter: &DocumentFilter) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new(columns);
        query.push(UNREAD).push("document_extraction WHERE chunk = passage.id) AND document.tenant = ");
        query.push_bind(self.tenant.clone());
        narrow(&mut query, filter);
        query
    }

    /// What is done is kept whole, or none of it. Of a tenant one document is written at a time, as documents share names. Whoever waits here
    /// holds no connection, and some are never written through, so that the others' searches go on.
    async fn in_transaction<T>(
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
            sqlx::query("DELETE FROM document WHERE id = $1").bind(id).execute(&mut **transaction).await?;
            remove_unmentioned(transaction, tenant).await?;
            Added::Updated
        }
        None => Added::New,
    };
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO document (tenant, path, title, kind, bytes, passages, language, modified, added, hash, metadata)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id",
    )
    .bind(tenant)
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
    sqlx::query(CHUNKS)
        .bind(id)
        .bind(&rows.json)
        .bind(tenant)
        .bind(&rows.title_words)
        .execute(&mut **transaction)
        .await?;
    Ok(added)
}

/// Removes the names that are mentioned nowhere any more.
async fn remove_unmentioned(
    transaction: &mut Transaction<'_, Postgres>,
    tenant: &str,
) -> Result<(), sqlx::Error> {
    let remove = sqlx::query(
        "DELETE FROM document_entity AS name WHERE tenant = $1
         AND NOT EXISTS (SELECT 1 FROM document_mention WHERE entity = name.id)",
    );
    remove.bind(tenant).execute(&mut **transaction).await.map(drop)
}

/// The passages in $2 of the document $1 of the tenant $3, whose title has the words $4.
const CHUNKS: &str = "
    WITH given AS (
        SELECT * FROM ROWS FROM (json_to_recordset($2::json) AS (
            section text, first bigint, last bigint, text text, section_words text, text_words text
        )) WITH ORDINALITY AS row (section, first, last, text, section_words, text_words, number)
    ),
    kept AS (
        INSERT INTO document_chunk (document, ordinal, section, first, last, text)
        SELECT $1, number - 1, section, first, last, text FROM given RETURNING id, ordinal
    )
    INSERT INTO document_words (chunk, tenant, words)
    SELECT id, $3,
        to_tsvector('toolrack_words', text_words)
        || setweight(to_tsvector('toolrack_words', section_words), 'B')
        || setweight(to_tsvector('toolrack_words', $4), 'A')
    FROM given JOIN kept ON ordinal = number - 1";

/// What a word weighs in the text, in the section and in the title. `ts_rank_cd` finds a third less of what is asked for: it wants the
/// words of a question near to each other.
const RANKED: &str = " FROM (SELECT chunk AS id, ts_rank('{0.6, 0, 1, 0.6}', words, asked) AS score
    FROM document_words AS hit, to_tsquery('toolrack_words', ";

const UNREAD: &str = " FROM document_chunk AS passage JOIN document ON document.id = document
    WHERE NOT EXISTS (SELECT 1 FROM ";

// Of the rows in $2, each of the passage $1 of the tenant $3. A model that says more of a name than that it is one is believed. As two
// names may be one when they are looked up, the first of them counts; a longer one does not fit an index, and nobody asks for it.
const NAMES: &str = "
    INSERT INTO document_entity (tenant, key, name, kind)
    SELECT DISTINCT ON (key) $3, key, name, kind FROM json_to_recordset($2::json) AS (key text, name text, kind text)
    WHERE $1::bigint > 0 AND length(key) <= 500
    ON CONFLICT (tenant, key) DO UPDATE SET kind = excluded.kind WHERE document_entity.kind = 'name'";
const MENTIONS: &str = "
    INSERT INTO document_mention (entity, chunk)
    SELECT entity.id, $1 FROM json_to_recordset($2::json) AS row (key text)
    JOIN document_entity AS entity ON entity.tenant = $3 AND entity.key = row.key
    ON CONFLICT DO NOTHING";
const RELATIONS: &str = "
    INSERT INTO document_relation (subject, relation, object, chunk)
    SELECT subject.id, relation, object.id, $1
    FROM json_to_recordset($2::json) AS row (subject text, relation text, object text)
    JOIN document_entity AS subject ON subject.tenant = $3 AND subject.key = row.subject
    JOIN document_entity AS object ON object.tenant = $3 AND object.key = row.object
    ON CONFLICT DO NOTHING";
