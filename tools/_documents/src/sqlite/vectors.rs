//! Keeping the vectors of passages, and finding the nearest of them.

use std::{collections::HashSet, sync::Arc};

use futures_util::TryStreamExt;
use sqlx::{FromRow, QueryBuilder, Row, Sqlite, Transaction, sqlite::SqliteRow};
use tokio::task::spawn_blocking;

use super::SqliteDocuments;
use crate::{
    DocumentFilter, Passage, UnreadPassage,
    loaded_vectors::{VectorRows, Wanted},
    sql::narrow,
    vectors::{Place, VectorMatrix, normalised, to_bytes},
};
use registry_core::result::ToolError;

impl SqliteDocuments {
    pub(super) async fn passages_without_vectors(
        &self,
        model: &str,
        limit: usize,
    ) -> Result<Vec<UnreadPassage>, ToolError> {
        let query = sqlx::query_as(
            "SELECT chunk.id, document.title, chunk.section, chunk.text
             FROM chunk CROSS JOIN document ON document.id = chunk.document
             WHERE NOT EXISTS (SELECT 1 FROM embedding WHERE embedding.model = $1 AND embedding.chunk = chunk.id)
             ORDER BY chunk.id LIMIT $2",
        );
        let query = query.bind(model).bind(i64::try_from(limit).unwrap_or(i64::MAX));
        query.fetch_all(&self.opened().await?.readers).await.map_err(|error| self.fault(error))
    }

    pub(super) async fn write_vectors(
        &self,
        model: &str,
        vectors: Vec<(i64, Vec<f32>)>,
    ) -> Result<(), ToolError> {
        let vectors: Vec<(i64, Vec<f32>)> = vectors
            .into_iter()
            .map(|(passage, vector)| (passage, normalised(vector).unwrap_or_default()))
            .collect();
        let dimensions = vectors.iter().map(|(_, vector)| vector.len()).max().unwrap_or_default();
        self.in_transaction(async |transaction| {
            let change: i64 =
                sqlx::query_scalar("UPDATE vector_change SET number = number + 1 RETURNING number")
                    .fetch_one(&mut **transaction)
                    .await?;
            if dimensions > 0 {
                // Of what the model's name stood for before.
                sqlx::query("DELETE FROM embedding WHERE model = $1 AND dimensions NOT IN (0, $2)")
                    .bind(model)
                    .bind(i64::try_from(dimensions).unwrap_or(i64::MAX))
                    .execute(&mut **transaction)
                    .await?;
            }
            for (passage, vector) in &vectors {
                sqlx::query(
                    "INSERT OR REPLACE INTO embedding (chunk, model, dimensions, change, vector)
                     SELECT id, $2, $3, $4, $5 FROM chunk WHERE id = $1",
                )
                .bind(passage)
                .bind(model)
                .bind(i64::try_from(vector.len()).unwrap_or(i64::MAX))
                .bind(change)
                .bind(to_bytes(vector))
                .execute(&mut **transaction)
                .await?;
            }
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
        let matrix = self.matrix(model, vector.len()).await?;
        let search = move || matrix.nearest(&vector, limit, documents.as_ref());
        let near = spawn_blocking(search).await?;
        let ids: Vec<i64> = near.iter().map(|(passage, _)| *passage).collect();
        let rows = sqlx::query(
            "SELECT chunk.id, document.path, document.title, document.kind, chunk.section, chunk.first, chunk.last, chunk.text,
                    0.0 AS score
             FROM json_each($1) AS near
             CROSS JOIN chunk ON chunk.id = near.value
             CROSS JOIN document ON document.id = chunk.document
             ORDER BY near.key",
        )
        .bind(serde_json::Value::from(ids).to_string())
        .fetch_all(&self.opened().await?.readers)
        .await
        .map_err(|error| self.fault(error))?;
        let passage = |row: &SqliteRow| {
            let id: i64 = row.try_get("id")?;
            let score = near.iter().find(|(passage, _)| *passage == id).map_or(0.0, |(_, score)| *score);
            Ok(Passage { score: score.into(), ..Passage::from_row(row)? })
        };
        rows.iter().map(passage).collect::<Result<_, sqlx::Error>>().map_err(|error| self.fault(error))
    }

    /// The documents that pass the filter; `None` where all do.
    async fn documents_of(&self, filter: &DocumentFilter) -> Result<Option<HashSet<i64>>, ToolError> {
        if *filter == DocumentFilter::default() {
            return Ok(None);
        }
        let mut query = QueryBuilder::new("SELECT id FROM document WHERE TRUE");
        narrow(&mut query, filter);
        let found = query.build_query_scalar().fetch_all(&self.opened().await?.readers).await;
        found.map(|ids: Vec<i64>| Some(ids.into_iter().collect())).map_err(|error| self.fault(error))
    }

    /// The vectors of a model that are so long, as they are in the file now.
    async fn matrix(&self, model: &str, dimensions: usize) -> Result<Arc<VectorMatrix>, ToolError> {
        let readers = &self.opened().await?.readers;
        // What is read is of one moment.
        let begin = async { readers.begin().await.map(Rows) };
        let matrix = self.vectors.matrix(begin, model, dimensions).await;
        matrix.map_err(|fault| self.fault(fault.told(model)))
    }
}

struct Rows(Transaction<'static, Sqlite>);

impl VectorRows for Rows {
    async fn last_write(&mut self) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar("SELECT number FROM vector_change").fetch_one(&mut *self.0).await
    }

    async fn count(&mut self, wanted: Wanted<'_>) -> Result<(i64, i64), sqlx::Error> {
        sqlx::query_as(
            "SELECT count(*), count(*) FILTER (WHERE change > $3) FROM embedding WHERE model = $1 AND dimensions = $2",
        )
        .bind(wanted.model)
        .bind(wanted.dimensions)
        .bind(wanted.since)
        .fetch_one(&mut *self.0)
        .await
    }

    async fn unchanged(&mut self, wanted: Wanted<'_>) -> Result<HashSet<i64>, sqlx::Error> {
        let unchanged = sqlx::query_scalar(
            "SELECT chunk FROM embedding WHERE model = $1 AND dimensions = $2 AND change <= $3",
        )
        .bind(wanted.model)
        .bind(wanted.dimensions)
        .bind(wanted.since)
        .fetch_all(&mut *self.0);
        Ok(unchanged.await?.into_iter().collect())
    }

    async fn add_new(&mut self, wanted: Wanted<'_>, matrix: &mut VectorMatrix) -> Result<(), sqlx::Error> {
        let mut rows = sqlx::query(
            "SELECT embedding.chunk, chunk.document, embedding.vector
             FROM embedding CROSS JOIN chunk ON chunk.id = embedding.chunk
             WHERE embedding.model = $1 AND embedding.dimensions = $2 AND embedding.change > $3",
        )
        .bind(wanted.model)
        .bind(wanted.dimensions)
        .bind(wanted.since)
        .fetch(&mut *self.0);
        while let Some(row) = rows.try_next().await? {
            let place = Place { passage: row.try_get("chunk")?, document: row.try_get("document")? };
            matrix.push(place, row.try_get("vector")?);
        }
        Ok(())
    }
}
