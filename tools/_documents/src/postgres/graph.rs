//! Reads the graph.

use sqlx::{AssertSqlSafe, QueryBuilder};

use super::{
    PostgresDocuments,
    index::{PASSAGE, without_nul},
};
use crate::{
    graph::{Edge, Entity, GraphRows, MENTIONED_WITH},
    sql::limit_of,
};
use registry_core::ToolError;

/// What is said of the names in $1, most often said first.
const STATED: &str = "
    SELECT subject, relation, object, count(*) AS passages, min(chunk) AS chunk, 0.0 AS score FROM document_relation
    WHERE (subject = ANY($1) OR object = ANY($1)) AND ($2::text IS NULL OR relation = $2)
    GROUP BY subject, relation, object ORDER BY passages DESC, chunk, subject, object LIMIT $3";
/// The names that are mentioned with the names in $1. Those that are mentioned everywhere come last.
const BESIDE: &str = "
    SELECT near.entity AS subject, $2::text AS relation, other.entity AS object, count(*) AS passages,
        min(near.chunk) AS chunk,
        count(*) * count(*) * 1.0 / (SELECT count(*) FROM document_mention WHERE entity = other.entity) AS score
    FROM (SELECT entity, chunk FROM document_mention WHERE entity = ANY($1) LIMIT 2000) AS near
    JOIN document_mention AS other ON other.chunk = near.chunk AND other.entity <> near.entity
    GROUP BY near.entity, other.entity ORDER BY score DESC, chunk, object LIMIT $3";

impl GraphRows for PostgresDocuments {
    async fn entity(&self, key: &str) -> Result<Option<Entity>, ToolError> {
        let mut query = QueryBuilder::new("SELECT id, name, kind FROM document_entity WHERE tenant = ");
        query.push_bind(&self.tenant).push(" AND key = ").push_bind(without_nul(key));
        Ok(self.rows(&mut query).await?.pop())
    }

    async fn near(&self, key: &str) -> Result<Vec<String>, ToolError> {
        let key = without_nul(key);
        let near = sqlx::query_scalar(
            "SELECT name FROM document_entity AS entity WHERE tenant = $1 AND (
                 strpos(key, $2) > 0
                 OR EXISTS (SELECT 1 FROM unnest($3::text[]) AS word WHERE length(word) > 3 AND strpos(key, word) > 0)
             )
             ORDER BY strpos(key, $2) = 0, (SELECT count(*) FROM document_mention WHERE entity = id) DESC, name LIMIT 5",
        )
        .bind(&self.tenant)
        .bind(&key)
        .bind(key.split(' ').collect::<Vec<_>>())
        .fetch_all(self.server.opened().await?);
        near.await.map_err(|error| self.fault(error))
    }

    async fn edges(
        &self,
        names: &[i64],
        relation: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Edge>, ToolError> {
        let inner = if relation == Some(MENTIONED_WITH) { BESIDE } else { STATED };
        let edges = sqlx::query_as(AssertSqlSafe(format!(
            "{PASSAGE}, subject, subjects.name AS subject_name, relation, object, objects.name AS object_name, best.passages
             FROM ({inner}) AS best JOIN document_chunk ON document_chunk.id = best.chunk
             JOIN document ON document.id = document
             JOIN document_entity AS subjects ON subjects.id = subject
             JOIN document_entity AS objects ON objects.id = object
             ORDER BY best.score DESC, best.passages DESC, best.chunk, subject, object",
        )))
        .bind(names)
        .bind(relation.map(without_nul))
        .bind(limit_of(limit))
        .fetch_all(self.server.opened().await?);
        edges.await.map_err(|error| self.fault(error))
    }
}
