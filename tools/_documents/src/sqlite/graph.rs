//! Reads the graph of names.

use std::collections::BTreeMap;

use sqlx::{FromRow, Row, sqlite::SqliteRow};

use super::SqliteDocuments;
use crate::{
    MENTIONED_WITH, Passage,
    walk::{Edge, Entity, GraphRows, MAX_PASSAGES},
};
use registry_core::result::ToolError;

/// What is said of the names in $1.
const STATED: &str = "
    SELECT subject, relation, object, count(*) AS passages, min(chunk) AS chunk FROM relation
    WHERE (subject IN (SELECT value FROM json_each($1)) OR object IN (SELECT value FROM json_each($1)))
    AND ($2 IS NULL OR relation = $2)
    GROUP BY subject, relation, object ORDER BY passages DESC, chunk, subject, object LIMIT $3";

/// The names that are mentioned with the names in $1. Those that are mentioned everywhere come last.
const BESIDE: &str = "
    WITH near AS (SELECT entity, chunk FROM mention WHERE entity IN (SELECT value FROM json_each($1)) LIMIT $4),
    pair AS (
        SELECT near.entity AS subject, other.entity AS object, count(*) AS passages, min(near.chunk) AS chunk
        FROM near CROSS JOIN mention AS other ON other.chunk = near.chunk AND other.entity <> near.entity
        GROUP BY 1, 2 ORDER BY passages DESC LIMIT 500
    )
    SELECT subject, $2 AS relation, object, passages, chunk FROM pair
    ORDER BY passages * passages * 1.0 / (SELECT count(*) FROM mention WHERE entity = object) DESC, chunk, object LIMIT $3";

impl GraphRows for SqliteDocuments {
    async fn entity(&self, key: &str) -> Result<Option<Entity>, ToolError> {
        let exact =
            sqlx::query_as::<_, (i64, String, String)>("SELECT id, name, kind FROM entity WHERE key = $1")
                .bind(key)
                .fetch_optional(&self.opened().await?.readers);
        Ok(exact.await.map_err(|error| self.fault(error))?.map(Entity::from))
    }

    async fn near(&self, key: &str) -> Result<Vec<String>, ToolError> {
        let near = sqlx::query_scalar(
            "SELECT name FROM entity WHERE kind <> 'link' AND (
                 instr(key, $1) > 0
                 OR EXISTS (SELECT 1 FROM json_each($2) WHERE length(value) > 3 AND instr(entity.key, value) > 0)
             )
             ORDER BY instr(key, $1) = 0, (SELECT count(*) FROM mention WHERE entity = id) DESC, name LIMIT 5",
        )
        .bind(key)
        .bind(serde_json::Value::from(key.split(' ').collect::<Vec<_>>()).to_string())
        .fetch_all(&self.opened().await?.readers);
        near.await.map_err(|error| self.fault(error))
    }

    async fn stated(
        &self,
        names: &[i64],
        relation: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Edge>, ToolError> {
        self.edges(STATED, names, relation, limit).await
    }

    async fn beside(&self, names: &[i64], limit: usize) -> Result<Vec<Edge>, ToolError> {
        self.edges(BESIDE, names, Some(MENTIONED_WITH), limit).await
    }

    async fn said(&self, name: i64) -> Result<Vec<String>, ToolError> {
        let said = sqlx::query_scalar(
            "SELECT relation FROM relation WHERE subject = $1 OR object = $1
             GROUP BY relation ORDER BY count(*) DESC, relation LIMIT 8",
        )
        .bind(name)
        .fetch_all(&self.opened().await?.readers);
        said.await.map_err(|error| self.fault(error))
    }

    async fn names(&self, ids: Vec<i64>) -> Result<BTreeMap<i64, String>, ToolError> {
        let names =
            sqlx::query_as("SELECT id, name FROM entity WHERE id IN (SELECT value FROM json_each($1))")
                .bind(serde_json::Value::from(ids).to_string())
                .fetch_all(&self.opened().await?.readers);
        Ok(names.await.map_err(|error| self.fault(error))?.into_iter().collect())
    }

    async fn passages(&self, ids: Vec<i64>) -> Result<BTreeMap<i64, Passage>, ToolError> {
        let passages = sqlx::query(
            "SELECT chunk.id, path, title, kind, section, first, last, text, 0.0 AS score
             FROM chunk JOIN document ON document.id = document WHERE chunk.id IN (SELECT value FROM json_each($1))",
        )
        .bind(serde_json::Value::from(ids).to_string())
        .try_map(|row: SqliteRow| Ok((row.try_get::<i64, _>("id")?, Passage::from_row(&row)?)))
        .fetch_all(&self.opened().await?.readers);
        Ok(passages.await.map_err(|error| self.fault(error))?.into_iter().collect())
    }
}

impl SqliteDocuments {
    async fn edges(
        &self,
        statement: &'static str,
        names: &[i64],
        relation: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Edge>, ToolError> {
        let edges = sqlx::query_as::<_, (i64, String, i64, i64, i64)>(statement)
            .bind(serde_json::Value::from(names).to_string())
            .bind(relation)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .bind(MAX_PASSAGES)
            .fetch_all(&self.opened().await?.readers);
        Ok(edges.await.map_err(|error| self.fault(error))?.into_iter().map(Edge::from).collect())
    }
}
