//! Reads the graph.

use serde_json::Value;
use sqlx::{AssertSqlSafe, QueryBuilder};

use super::{SqliteDocuments, index::PASSAGE};
use crate::{
    graph::{Edge, Entity, GraphRows, MENTIONED_WITH},
    sql::limit_of,
};
use registry_core::ToolError;

/// What is said of the names in $1, most often said first.
const STATED: &str = "
    SELECT subject, relation, object, count(*) AS passages, min(chunk) AS chunk, 0.0 AS score FROM relation
    WHERE (subject IN (SELECT value FROM json_each($1)) OR object IN (SELECT value FROM json_each($1)))
    AND ($2 IS NULL OR relation = $2)
    GROUP BY subject, relation, object ORDER BY passages DESC, chunk, subject, object LIMIT $3";
/// The names that are mentioned with the names in $1. Those that are mentioned everywhere come last.
const BESIDE: &str = "
    SELECT near.entity AS subject, $2 AS relation, other.entity AS object, count(*) AS passages,
        min(near.chunk) AS chunk,
        count(*) * count(*) * 1.0 / (SELECT count(*) FROM mention WHERE entity = other.entity) AS score
    FROM (SELECT entity, chunk FROM mention WHERE entity IN (SELECT value FROM json_each($1)) LIMIT 2000) AS near
    CROSS JOIN mention AS other ON other.chunk = near.chunk AND other.entity <> near.entity
    GROUP BY subject, object ORDER BY score DESC, chunk, object LIMIT $3";

impl GraphRows for SqliteDocuments {
    async fn entity(&self, key: &str) -> Result<Option<Entity>, ToolError> {
        let mut query = QueryBuilder::new("SELECT id, name, kind FROM entity WHERE key = ");
        Ok(self.rows(query.push_bind(key)).await?.pop())
    }

    async fn near(&self, key: &str) -> Result<Vec<String>, ToolError> {
        let near = sqlx::query_scalar(
            "SELECT name FROM entity WHERE instr(key, $1) > 0
             OR EXISTS (SELECT 1 FROM json_each($2) WHERE length(value) > 3 AND instr(entity.key, value) > 0)
             ORDER BY instr(key, $1) = 0, (SELECT count(*) FROM mention WHERE entity = id) DESC, name LIMIT 5",
        )
        .bind(key)
        .bind(Value::from(key.split(' ').collect::<Vec<_>>()).to_string())
        .fetch_all(&self.opened().await?.readers);
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
             FROM ({inner}) AS best JOIN chunk ON chunk.id = best.chunk JOIN document ON document.id = document
             JOIN entity AS subjects ON subjects.id = subject JOIN entity AS objects ON objects.id = object
             ORDER BY best.score DESC, best.passages DESC, best.chunk, subject, object",
        )))
        .bind(Value::from(names).to_string())
        .bind(relation)
        .bind(limit_of(limit))
        .fetch_all(&self.opened().await?.readers);
        edges.await.map_err(|error| self.fault(error))
    }
}
