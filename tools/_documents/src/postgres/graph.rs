//! Reads the graph of names.

use std::collections::BTreeMap;

use sqlx::{FromRow, Row, postgres::PgRow};

use super::PostgresDocuments;
use crate::{
    MENTIONED_WITH, Passage,
    walk::{Edge, Entity, GraphRows, MAX_PASSAGES},
};
use registry_core::result::ToolError;

/// What is said of the names in $1.
const STATED: &str = "
    SELECT subject, relation, object, count(*) AS passages, min(chunk) AS chunk FROM document_relation
    WHERE (subject = ANY($1) OR object = ANY($1)) AND ($2::text IS NULL OR relation = $2)
    GROUP BY subject, relation, object ORDER BY passages DESC, chunk, subject, object LIMIT $3";

/// The names that are mentioned with the names in $1. Those that are mentioned everywhere come last.
const BESIDE: &str = "
    WITH near AS (SELECT entity, chunk FROM document_mention WHERE entity = ANY($1) LIMIT $4),
    pair AS (
        SELECT near.entity AS subject, other.entity AS object, count(*) AS passages, min(near.chunk) AS chunk
        FROM near JOIN document_mention AS other ON other.chunk = near.chunk AND other.entity <> near.entity
        GROUP BY 1, 2 ORDER BY passages DESC LIMIT 500
    )
    SELECT subject, $2, object, passages, chunk FROM pair
    ORDER BY passages * passages * 1.0 / (SELECT count(*) FROM document_mention WHERE entity = object) DESC, chunk, object LIMIT $3";

impl GraphRows for PostgresDocuments {
    async fn entity(&self, key: &str) -> Result<Option<Entity>, ToolError> {
        let exact = sqlx::query_as::<_, (i64, String, String)>(
            "SELECT id, name, kind FROM document_entity WHERE tenant = $1 AND key = $2",
        )
        .bind(&self.tenant)
        .bind(key.replace('\0', " "))
        .fetch_optional(self.server.opened().await?);
        Ok(exact.await.map_err(|error| self.fault(error))?.map(Entity::from))
    }

    async fn near(&self, key: &str) -> Result<Vec<String>, ToolError> {
        let key = key.replace('\0', " ");
        let near = sqlx::query_scalar(
            "SELECT name FROM document_entity AS entity WHERE tenant = $1 AND kind <> 'link' AND (
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

    async fn stated(
        &self,
        names: &[i64],
        relation: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Edge>, ToolError> {
        let relation = relation.map(|relation| relation.replace('\0', " "));
        let edges = sqlx::query_as::<_, (i64, String, i64, i64, i64)>(STATED)
            .bind(names)
            .bind(relation)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(self.server.opened().await?);
        Ok(edges.await.map_err(|error| self.fault(error))?.into_iter().map(Edge::from).collect())
    }

    async fn beside(&self, names: &[i64], limit: usize) -> Result<Vec<Edge>, ToolError> {
        let edges = sqlx::query_as::<_, (i64, String, i64, i64, i64)>(BESIDE)
            .bind(names)
            .bind(MENTIONED_WITH)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .bind(MAX_PASSAGES)
            .fetch_all(self.server.opened().await?);
        Ok(edges.await.map_err(|error| self.fault(error))?.into_iter().map(Edge::from).collect())
    }

    async fn said(&self, name: i64) -> Result<Vec<String>, ToolError> {
        let said = sqlx::query_scalar(
            "SELECT relation FROM document_relation WHERE subject = $1 OR object = $1
             GROUP BY relation ORDER BY count(*) DESC, relation LIMIT 8",
        )
        .bind(name)
        .fetch_all(self.server.opened().await?);
        said.await.map_err(|error| self.fault(error))
    }

    async fn names(&self, ids: Vec<i64>) -> Result<BTreeMap<i64, String>, ToolError> {
        let names = sqlx::query_as("SELECT id, name FROM document_entity WHERE id = ANY($1)")
            .bind(ids)
            .fetch_all(self.server.opened().await?);
        Ok(names.await.map_err(|error| self.fault(error))?.into_iter().collect())
    }

    async fn passages(&self, ids: Vec<i64>) -> Result<BTreeMap<i64, Passage>, ToolError> {
        let passages = sqlx::query(
            "SELECT document_chunk.id, path, title, kind, section, first, last, text, 0.0::float8 AS score
             FROM document_chunk JOIN document ON document.id = document WHERE document_chunk.id = ANY($1)",
        )
        .bind(ids)
        .try_map(|row: PgRow| Ok((row.try_get::<i64, _>("id")?, Passage::from_row(&row)?)))
        .fetch_all(self.server.opened().await?);
        Ok(passages.await.map_err(|error| self.fault(error))?.into_iter().collect())
    }
}
