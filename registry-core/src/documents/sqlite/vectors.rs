//! Keeping the vectors of passages, and finding the nearest of them.

use std::{collections::HashSet, sync::Arc};

use futures_util::TryStreamExt;
use sqlx::{FromRow, QueryBuilder, Row, SqliteConnection, sqlite::SqliteRow};
use tokio::{sync::Mutex, task::spawn_blocking};

use super::{SqliteDocuments, read::narrow};
use crate::{
    documents::{
        DocumentFilter, Passage, UnreadPassage,
        vectors::{Place, VectorMatrix, normalised, to_bytes},
    },
    result::ToolError,
};

/// Vectors in memory take no more bytes.
const MAX_BYTES: usize = 1 << 30;

/// The vectors that were asked for last, as they were in the file then.
#[derive(Default)]
pub(super) struct LoadedVectors(Mutex<Option<Loaded>>);

struct Loaded {
    model: String,
    /// The number of the write that they are up to.
    change: i64,
    matrix: Arc<VectorMatrix>,
}

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

    /// The vectors of a model that are so long, as they are in the file now. One at a time looks whether there are others.
    async fn matrix(&self, model: &str, dimensions: usize) -> Result<Arc<VectorMatrix>, ToolError> {
        let readers = &self.opened().await?.readers;
        let mut held = self.vectors.0.lock().await;
        let of_this = |loaded: &Loaded| loaded.model == model && loaded.matrix.dimensions() == dimensions;
        let loaded = held.take().filter(of_this).unwrap_or_else(|| Loaded {
            model: model.to_owned(),
            change: -1,
            matrix: Arc::new(VectorMatrix::new(dimensions)),
        });
        let fresh = async {
            // What is read is of one moment.
            let mut transaction = readers.begin().await?;
            loaded.brought_up(&mut transaction).await
        };
        let loaded = fresh.await.map_err(|error: sqlx::Error| self.fault(error))?;
        let loaded = loaded.ok_or_else(|| {
            self.fault(format!("the vectors of {model} take more than {} MiB of memory", MAX_BYTES >> 20))
        })?;
        Ok(Arc::clone(&held.insert(loaded).matrix))
    }
}

impl Loaded {
    /// With what changed since; `None` where that is too much.
    async fn brought_up(mut self, connection: &mut SqliteConnection) -> Result<Option<Self>, sqlx::Error> {
        let change: i64 =
            sqlx::query_scalar("SELECT number FROM vector_change").fetch_one(&mut *connection).await?;
        if change == self.change {
            return Ok(Some(self));
        }
        let dimensions = self.matrix.dimensions();
        let length = i64::try_from(dimensions).unwrap_or(i64::MAX);
        let (all, new): (i64, i64) = sqlx::query_as(
            "SELECT count(*), count(*) FILTER (WHERE change > $3) FROM embedding WHERE model = $1 AND dimensions = $2",
        )
        .bind(&self.model)
        .bind(length)
        .bind(self.change)
        .fetch_one(&mut *connection)
        .await?;
        let count = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        if count(all).saturating_mul(dimensions * size_of::<f32>()) > MAX_BYTES {
            return Ok(None);
        }
        let matrix = Arc::make_mut(&mut self.matrix);
        // Those that changed, that went, and that were taken from the model are not among the old ones any more.
        if matrix.len() > 0 {
            let stay = sqlx::query_scalar(
                "SELECT chunk FROM embedding WHERE model = $1 AND dimensions = $2 AND change <= $3",
            );
            let stay =
                stay.bind(&self.model).bind(length).bind(self.change).fetch_all(&mut *connection).await?;
            if stay.len() < matrix.len() {
                let stay: HashSet<i64> = stay.into_iter().collect();
                matrix.retain(|passage| stay.contains(&passage));
            }
        }
        matrix.reserve(count(new));
        let mut rows = sqlx::query(
            "SELECT embedding.chunk, chunk.document, embedding.vector
             FROM embedding CROSS JOIN chunk ON chunk.id = embedding.chunk
             WHERE embedding.model = $1 AND embedding.dimensions = $2 AND embedding.change > $3",
        )
        .bind(&self.model)
        .bind(length)
        .bind(self.change)
        .fetch(&mut *connection);
        while let Some(row) = rows.try_next().await? {
            let place = Place { passage: row.try_get("chunk")?, document: row.try_get("document")? };
            matrix.push(place, row.try_get("vector")?);
        }
        drop(rows);
        Ok(Some(Self { change, ..self }))
    }
}

impl FromRow<'_, SqliteRow> for UnreadPassage {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            title: row.try_get("title")?,
            section: row.try_get("section")?,
            text: row.try_get("text")?,
        })
    }
}
