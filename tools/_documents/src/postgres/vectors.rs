//! Keeping the vectors of passages, and finding the nearest of them.

use std::{collections::HashSet, sync::Arc};

use futures_util::TryStreamExt;
use sqlx::{FromRow, Postgres, QueryBuilder, Row, Transaction, postgres::PgRow};
use tokio::task::spawn_blocking;

use super::{PostgresDocuments, write::without_nul};
use crate::{
    DocumentFilter, Passage, UnreadPassage,
    loaded_vectors::{VectorRows, Wanted},
    sql::narrow,
    vectors::{Place, VectorMatrix, normalised, to_bytes},
};
use registry_core::result::ToolError;

impl PostgresDocuments {
    pub(super) async fn passages_without_vectors(
        &self,
        model: &str,
        limit: usize,
    ) -> Result<Vec<UnreadPassage>, ToolError> {
        let rows = sqlx::query_as(
            "SELECT document_chunk.id, title, section, text
             FROM document_chunk JOIN document ON document.id = document_chunk.document
             WHERE tenant = $1
             AND NOT EXISTS (SELECT 1 FROM document_embedding WHERE model = $2 AND chunk = document_chunk.id)
             ORDER BY document_chunk.id LIMIT $3",
        )
        .bind(&self.tenant)
        .bind(without_nul(model))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(self.server.opened().await?)
        .await
        .map_err(|error| self.fault(error))?;
        Ok(rows)
    }

    pub(super) async fn write_vectors(
        &self,
        model: &str,
        vectors: Vec<(i64, Vec<f32>)>,
    ) -> Result<(), ToolError> {
        let model = without_nul(model);
        let (passages, vectors): (Vec<i64>, Vec<Vec<f32>>) = vectors
            .into_iter()
            .map(|(passage, vector)| (passage, normalised(vector).unwrap_or_default()))
            .unzip();
        let dimensions = vectors.iter().map(Vec::len).max().unwrap_or_default();
        let vectors: Vec<Vec<u8>> = vectors.iter().map(|vector| to_bytes(vector)).collect();
        self.in_transaction(async |transaction| {
            if dimensions > 0 {
                // Of what the model's name stood for before.
                sqlx::query(
                    "DELETE FROM document_embedding WHERE tenant = $1 AND model = $2 AND dimensions NOT IN (0, $3)",
                )
                .bind(&self.tenant)
                .bind(&model)
                .bind(i64::try_from(dimensions).unwrap_or(i64::MAX))
                .execute(&mut **transaction)
                .await?;
            }
            let change = count_write(transaction, &self.tenant).await?;
            // A number of 32 bits is four bytes.
            sqlx::query(
                "INSERT INTO document_embedding (chunk, tenant, model, dimensions, change, vector)
                 SELECT given.chunk, $1, $2, length(given.vector) / 4, $3, given.vector
                 FROM unnest($4::bigint[], $5::bytea[]) AS given (chunk, vector)
                 JOIN document_chunk ON document_chunk.id = given.chunk
                 JOIN document ON document.id = document_chunk.document AND document.tenant = $1
                 ON CONFLICT (chunk) DO UPDATE SET (model, dimensions, change, vector)
                     = (excluded.model, excluded.dimensions, excluded.change, excluded.vector)",
            )
            .bind(&self.tenant)
            .bind(&model)
            .bind(change)
            .bind(&passages)
            .bind(&vectors)
            .execute(&mut **transaction)
            .await?;
            Ok(())
        })
        .await
    }

    pub(super) async fn nearest_passages(
        &self,
        model: &str,
        vector: &[f32],
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let Some(vector) = normalised(vector.to_vec()) else {
            return Err(ToolError::invalid("a vector of zeros or of no finite numbers is near to nothing"));
        };
        let documents = self.documents_of(filter).await?;
        let matrix = self.matrix(&without_nul(model), vector.len()).await?;
        let search = move || matrix.nearest(&vector, limit, documents.as_ref());
        let near = spawn_blocking(search).await?;
        let (passages, scores): (Vec<i64>, Vec<f64>) =
            near.into_iter().map(|(passage, score)| (passage, f64::from(score))).unzip();
        let found = sqlx::query(
            "SELECT path, title, kind, section, first, last, text, near.score
             FROM unnest($1::bigint[], $2::float8[]) WITH ORDINALITY AS near (chunk, score, rank)
             JOIN document_chunk ON document_chunk.id = near.chunk
             JOIN document ON document.id = document_chunk.document
             ORDER BY near.rank",
        )
        .bind(passages)
        .bind(scores)
        .try_map(|row: PgRow| Passage::from_row(&row))
        .fetch_all(self.server.opened().await?);
        found.await.map_err(|error| self.fault(error))
    }

    /// The documents that pass the filter; `None` where all do.
    async fn documents_of(&self, filter: &DocumentFilter) -> Result<Option<HashSet<i64>>, ToolError> {
        if *filter == DocumentFilter::default() {
            return Ok(None);
        }
        let mut query = QueryBuilder::new("SELECT id FROM document WHERE tenant = ");
        query.push_bind(&self.tenant);
        narrow(&mut query, filter);
        let found = query.build_query_scalar().fetch_all(self.server.opened().await?).await;
        found.map(|ids: Vec<i64>| Some(ids.into_iter().collect())).map_err(|error| self.fault(error))
    }

    /// The vectors of a model that are so long, as they are in the database now.
    async fn matrix(&self, model: &str, dimensions: usize) -> Result<Arc<VectorMatrix>, ToolError> {
        let pool = self.server.opened().await?;
        // What is read is of one moment.
        let begin = async {
            let transaction = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
            Ok(Rows { transaction, tenant: &self.tenant })
        };
        let matrix = self.vectors.matrix(begin, model, dimensions).await;
        matrix.map_err(|fault| self.fault(fault.told(model)))
    }
}

/// Gives a write of vectors its number. Their removal is one, too.
pub(super) async fn count_write(
    transaction: &mut Transaction<'_, Postgres>,
    tenant: &str,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO document_vector_change AS change (tenant, number) VALUES ($1, 1)
         ON CONFLICT (tenant) DO UPDATE SET number = change.number + 1 RETURNING number",
    )
    .bind(tenant)
    .fetch_one(&mut **transaction)
    .await
}

struct Rows<'t> {
    transaction: Transaction<'static, Postgres>,
    tenant: &'t str,
}

impl VectorRows for Rows<'_> {
    async fn last_write(&mut self) -> Result<i64, sqlx::Error> {
        let number = sqlx::query_scalar("SELECT number FROM document_vector_change WHERE tenant = $1")
            .bind(self.tenant)
            .fetch_optional(&mut *self.transaction);
        Ok(number.await?.unwrap_or(0))
    }

    async fn count(&mut self, wanted: Wanted<'_>) -> Result<(i64, i64), sqlx::Error> {
        sqlx::query_as(
            "SELECT count(*), count(*) FILTER (WHERE change > $4)
             FROM document_embedding WHERE tenant = $1 AND model = $2 AND dimensions = $3",
        )
        .bind(self.tenant)
        .bind(wanted.model)
        .bind(wanted.dimensions)
        .bind(wanted.since)
        .fetch_one(&mut *self.transaction)
        .await
    }

    async fn unchanged(&mut self, wanted: Wanted<'_>) -> Result<HashSet<i64>, sqlx::Error> {
        let unchanged = sqlx::query_scalar(
            "SELECT chunk FROM document_embedding
             WHERE tenant = $1 AND model = $2 AND dimensions = $3 AND change <= $4",
        )
        .bind(self.tenant)
        .bind(wanted.model)
        .bind(wanted.dimensions)
        .bind(wanted.since)
        .fetch_all(&mut *self.transaction);
        Ok(unchanged.await?.into_iter().collect())
    }

    async fn add_new(&mut self, wanted: Wanted<'_>, matrix: &mut VectorMatrix) -> Result<(), sqlx::Error> {
        let mut rows = sqlx::query(
            "SELECT chunk, document, vector
             FROM document_embedding JOIN document_chunk ON document_chunk.id = chunk
             WHERE tenant = $1 AND model = $2 AND dimensions = $3 AND change > $4",
        )
        .bind(self.tenant)
        .bind(wanted.model)
        .bind(wanted.dimensions)
        .bind(wanted.since)
        .fetch(&mut *self.transaction);
        while let Some(row) = rows.try_next().await? {
            let place = Place { passage: row.try_get("chunk")?, document: row.try_get("document")? };
            matrix.push(place, row.try_get("vector")?);
        }
        Ok(())
    }
}
