//! Goes through the graph of names, a relation at a time.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{FromRow, Row, sqlite::SqliteRow};

use super::SqliteDocuments;
use crate::{
    documents::{Graph, GraphPath, GraphQuery, GraphRelation, MENTIONED_WITH, Passage, graph::key},
    result::ToolError,
};

/// From no more names is gone on.
const MAX_FRONTIER: usize = 12;
/// In no more passages of a name is looked for others beside it.
const MAX_PASSAGES: i64 = 2000;
/// How much of a passage is shown, in bytes.
const SHOWN: usize = 320;

/// A name.
struct Entity {
    id: i64,
    name: String,
    kind: String,
}

/// A relation between two names, and a passage that says it.
struct Edge {
    subject: i64,
    relation: String,
    object: i64,
    passages: u32,
    chunk: i64,
}

impl FromRow<'_, SqliteRow> for Entity {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self { id: row.try_get("id")?, name: row.try_get("name")?, kind: row.try_get("kind")? })
    }
}

impl FromRow<'_, SqliteRow> for Edge {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            subject: row.try_get("subject")?,
            relation: row.try_get("relation")?,
            object: row.try_get("object")?,
            passages: row.try_get("passages")?,
            chunk: row.try_get("chunk")?,
        })
    }
}

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

impl SqliteDocuments {
    pub(super) async fn draw_graph(&self, query: &GraphQuery) -> Result<Graph, ToolError> {
        let start = self.entity(&query.entity).await?;
        let relation = query.relation.as_deref().filter(|relation| !relation.is_empty());
        let mut edges: Vec<Edge> = Vec::new();
        // Each name that is reached, and the one it is reached from.
        let mut reached = BTreeMap::from([(start.id, None)]);
        let mut frontier = vec![start.id];
        for step in 0..query.depth.max(1) {
            let mut found = Vec::new();
            if relation != Some(MENTIONED_WITH) {
                found.extend(self.edges(STATED, &frontier, relation, query.limit).await?);
            }
            // Further away nearly everything is mentioned with everything.
            if relation == Some(MENTIONED_WITH) || relation.is_none() && step == 0 {
                let room = query.limit.saturating_sub(edges.len() + found.len());
                found.extend(self.edges(BESIDE, &frontier, Some(MENTIONED_WITH), room).await?);
            }
            let mut next = Vec::new();
            for edge in found {
                let is_known = edges.iter().any(|known| same(known, &edge));
                if is_known || edges.len() == query.limit {
                    continue;
                }
                for (from, to) in [(edge.subject, edge.object), (edge.object, edge.subject)] {
                    if frontier.contains(&from) && !reached.contains_key(&to) {
                        reached.insert(to, Some(from));
                        next.push(to);
                    }
                }
                edges.push(edge);
            }
            next.truncate(MAX_FRONTIER);
            frontier = next;
        }
        self.described(start, edges, &reached).await
    }

    /// The name that is meant.
    async fn entity(&self, name: &str) -> Result<Entity, ToolError> {
        let key = key(name);
        let readers = &self.opened().await?.readers;
        let exact = sqlx::query_as("SELECT id, name, kind FROM entity WHERE key = $1")
            .bind(&key)
            .fetch_optional(readers);
        if let Some(entity) = exact.await.map_err(|error| self.fault(error))? {
            return Ok(entity);
        }
        // Names that have its words, those that are mentioned most first.
        let near: Vec<String> = sqlx::query_scalar(
            "SELECT name FROM entity WHERE kind <> 'link' AND (
                 instr(key, $1) > 0
                 OR EXISTS (SELECT 1 FROM json_each($2) WHERE length(value) > 3 AND instr(entity.key, value) > 0)
             )
             ORDER BY instr(key, $1) = 0, (SELECT count(*) FROM mention WHERE entity = id) DESC, name LIMIT 5",
        )
        .bind(&key)
        .bind(serde_json::Value::from(key.split(' ').collect::<Vec<_>>()).to_string())
        .fetch_all(readers)
        .await
        .map_err(|error| self.fault(error))?;
        let told = match near.as_slice() {
            [] => format!(
                "the documents do not name `{name}`; search them with other tools, or try another name"
            ),
            near => format!("the documents do not name `{name}`; they name {}", near.join(", ")),
        };
        Err(ToolError::invalid(told).with_nearest(near))
    }

    async fn edges(
        &self,
        statement: &'static str,
        names: &[i64],
        relation: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Edge>, ToolError> {
        let edges = sqlx::query_as(statement)
            .bind(serde_json::Value::from(names).to_string())
            .bind(relation)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .bind(MAX_PASSAGES)
            .fetch_all(&self.opened().await?.readers);
        edges.await.map_err(|error| self.fault(error))
    }

    /// The graph in words.
    async fn described(
        &self,
        start: Entity,
        edges: Vec<Edge>,
        reached: &BTreeMap<i64, Option<i64>>,
    ) -> Result<Graph, ToolError> {
        let readers = &self.opened().await?.readers;
        let list =
            |ids: BTreeSet<i64>| serde_json::Value::from(ids.into_iter().collect::<Vec<_>>()).to_string();
        let ids = edges.iter().flat_map(|edge| [edge.subject, edge.object]).chain([start.id]).collect();
        let names =
            sqlx::query_as("SELECT id, name FROM entity WHERE id IN (SELECT value FROM json_each($1))")
                .bind(list(ids))
                .fetch_all(readers);
        let names: BTreeMap<i64, String> =
            names.await.map_err(|error| self.fault(error))?.into_iter().collect();
        let passages = sqlx::query(
            "SELECT chunk.id, path, title, kind, section, first, last, text, 0.0 AS score
             FROM chunk JOIN document ON document.id = document WHERE chunk.id IN (SELECT value FROM json_each($1))",
        )
        .bind(list(edges.iter().map(|edge| edge.chunk).collect()))
        .try_map(|row: SqliteRow| Ok((row.try_get::<i64, _>("id")?, Passage::from_row(&row)?)))
        .fetch_all(readers);
        let passages: BTreeMap<i64, Passage> =
            passages.await.map_err(|error| self.fault(error))?.into_iter().collect();
        let name = |id: &i64| names.get(id).cloned().unwrap_or_default();
        let relations = edges.iter().filter_map(|edge| {
            // It may have been removed between two questions.
            let passage = passages.get(&edge.chunk)?;
            Some(GraphRelation {
                subject: name(&edge.subject),
                relation: edge.relation.clone(),
                object: name(&edge.object),
                passages: edge.passages,
                source: passage.path.clone(),
                section: passage.section.clone(),
                place: passage.place(),
                text: around(&passage.text, &name(&edge.object)),
            })
        });
        let paths = reached.iter().filter_map(|(id, from)| {
            let mut through = Vec::new();
            let mut at = *from;
            while let Some(id) = at {
                through.insert(0, name(&id));
                at = reached.get(&id).copied().flatten();
            }
            (through.len() > 1).then(|| GraphPath { name: name(id), through })
        });
        Ok(Graph {
            entity: start.name,
            kind: start.kind,
            relations: relations.collect(),
            paths: paths.collect(),
        })
    }
}

/// Whether both say the same; that two are mentioned together is said of either first.
fn same(one: &Edge, other: &Edge) -> bool {
    let names = |edge: &Edge| (edge.subject, edge.object);
    let reversed = (other.object, other.subject);
    one.relation == other.relation
        && (names(one) == names(other) || one.relation == MENTIONED_WITH && names(one) == reversed)
}

/// The part of a text that has a name in it.
fn around(text: &str, name: &str) -> String {
    let at = text.find(name).unwrap_or(0);
    let start = text.floor_char_boundary(at.saturating_sub(SHOWN / 2));
    let end = text.ceil_char_boundary((start + SHOWN).min(text.len()));
    let shown = text.get(start..end).unwrap_or(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, behind) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{before}{shown}{behind}")
}
