//! Goes through the graph of names, a relation at a time.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{FromRow, Row, sqlite::SqliteRow};

use super::SqliteDocuments;
use crate::{
    documents::{
        Graph, GraphPath, GraphQuery, GraphRelation, GraphStep, MENTIONED_WITH, Passage, graph::key,
    },
    result::ToolError,
};

/// From no more names is gone on.
const MAX_FRONTIER: usize = 12;
/// In no more passages of a name is looked for others beside it.
const MAX_PASSAGES: i64 = 2000;
/// No more paths are told; the relations they go along are there all the same.
const MAX_PATHS: usize = 12;
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

/// What was found on the way from a name.
struct Walk {
    limit: usize,
    edges: Vec<Edge>,
    /// Each name that is reached.
    reached: BTreeMap<i64, Reached>,
    /// The names in the order in which they are reached, which is from near to far.
    order: Vec<i64>,
}

/// How a name is reached.
struct Reached {
    /// How many relations away it is.
    distance: u8,
    /// The name before it, and the relation between them by its place among the edges; nothing where the walk begins.
    by: Option<(i64, usize)>,
}

impl Walk {
    fn from(start: i64, limit: usize) -> Self {
        let reached = BTreeMap::from([(start, Reached { distance: 0, by: None })]);
        Self { limit, edges: Vec::new(), reached, order: Vec::new() }
    }

    /// Takes a relation that a step found. Says which name is reached by it and was not before.
    fn take(&mut self, edge: Edge, step: u8) -> Option<i64> {
        if self.edges.len() >= self.limit || self.edges.iter().any(|known| same(known, &edge)) {
            return None;
        }
        let new =
            [(edge.subject, edge.object), (edge.object, edge.subject)].into_iter().find(|(from, to)| {
                self.reached.get(from).is_some_and(|from| from.distance <= step)
                    && !self.reached.contains_key(to)
            });
        if let Some((from, to)) = new {
            self.reached.insert(to, Reached { distance: step + 1, by: Some((from, self.edges.len())) });
            self.order.push(to);
        }
        self.edges.push(edge);
        new.map(|(_, to)| to)
    }

    /// How far away a relation is.
    fn distance(&self, edge: &Edge) -> u8 {
        let ends = [edge.subject, edge.object].into_iter().filter_map(|end| self.reached.get(&end));
        ends.map(|reached| reached.distance).min().unwrap_or(u8::MAX)
    }

    /// The relations on the way to a name, by their places among the edges.
    fn way_to(&self, name: i64) -> Vec<usize> {
        let mut way = Vec::new();
        let mut at = name;
        while let Some((before, edge)) = self.reached.get(&at).and_then(|reached| reached.by) {
            way.insert(0, edge);
            at = before;
        }
        way
    }
}

impl SqliteDocuments {
    pub(super) async fn draw_graph(&self, query: &GraphQuery) -> Result<Graph, ToolError> {
        let start = self.entity(&query.entity).await?;
        let relation = query.relation.as_deref().filter(|relation| !relation.is_empty());
        let depth = query.depth.max(1);
        let mut walk = Walk::from(start.id, query.limit);
        let mut frontier = vec![start.id];
        let mut left_over = Vec::new();
        for step in 0..depth {
            let mut found = Vec::new();
            if relation != Some(MENTIONED_WITH) {
                found.extend(self.edges(STATED, &frontier, relation, query.limit).await?);
            }
            // Further away nearly everything is mentioned with everything.
            if relation == Some(MENTIONED_WITH) || relation.is_none() && step == 0 {
                found.extend(self.edges(BESIDE, &frontier, Some(MENTIONED_WITH), query.limit).await?);
            }
            // What is near must not take all the room, or nothing further away would ever be seen.
            let room = query.limit * usize::from(step + 1) / usize::from(depth);
            let mut next = Vec::new();
            for edge in found {
                match walk.edges.len() < room {
                    true => next.extend(walk.take(edge, step)),
                    false => left_over.push((edge, step)),
                }
            }
            next.truncate(MAX_FRONTIER);
            frontier = next;
        }
        for (edge, step) in left_over {
            walk.take(edge, step);
        }
        if let Some(relation) = relation.filter(|_| walk.edges.is_empty()) {
            return Err(self.no_such_relation(&start, relation).await?);
        }
        self.described(start, walk).await
    }

    /// That a name has no relation of a kind, with the kinds that it has.
    async fn no_such_relation(&self, start: &Entity, relation: &str) -> Result<ToolError, ToolError> {
        let said: Vec<String> = sqlx::query_scalar(
            "SELECT relation FROM relation WHERE subject = $1 OR object = $1
             GROUP BY relation ORDER BY count(*) DESC, relation LIMIT 8",
        )
        .bind(start.id)
        .fetch_all(&self.opened().await?.readers)
        .await
        .map_err(|error| self.fault(error))?;
        let name = &start.name;
        let told = match said.as_slice() {
            [] => format!("the documents say no `{relation}` of `{name}`; ask without a relation"),
            said => {
                format!("the documents say no `{relation}` of `{name}`; they say {}", said.join(", "))
            }
        };
        Ok(ToolError::invalid(told).with_nearest(said))
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
    async fn described(&self, start: Entity, walk: Walk) -> Result<Graph, ToolError> {
        let edges = &walk.edges;
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
        // By the places of their edges.
        let relations: BTreeMap<usize, GraphRelation> = edges
            .iter()
            .enumerate()
            .filter_map(|(place, edge)| {
                // It may have been removed between two questions.
                let passage = passages.get(&edge.chunk)?;
                let (subject, object) = (name(&edge.subject), name(&edge.object));
                let relation = GraphRelation {
                    text: around(&passage.text, &subject, &object),
                    subject,
                    relation: edge.relation.clone(),
                    object,
                    passages: edge.passages,
                    source: passage.path.clone(),
                    section: passage.section.clone(),
                    place: passage.place(),
                };
                Some((place, relation))
            })
            .collect();
        let paths = walk.order.iter().filter_map(|id| {
            let way = walk.way_to(*id);
            let steps: Option<Vec<GraphStep>> =
                way.iter().map(|place| relations.get(place).map(GraphStep::from)).collect();
            Some(GraphPath { name: name(id), steps: steps.filter(|steps| steps.len() > 1)? })
        });
        let mut paths: Vec<GraphPath> = paths.collect();
        paths.sort_by_key(|path| path.steps.len());
        paths.truncate(MAX_PATHS);
        let mut nearest: Vec<(usize, GraphRelation)> = relations.into_iter().collect();
        nearest.sort_by_key(|(place, _)| walk.edges.get(*place).map(|edge| walk.distance(edge)));
        Ok(Graph {
            entity: start.name,
            kind: start.kind,
            relations: nearest.into_iter().map(|(_, relation)| relation).collect(),
            paths,
        })
    }
}

/// Whether both say the same. That two names are mentioned together is said of either first, and nothing new where more is said of them.
fn same(one: &Edge, other: &Edge) -> bool {
    let names = |edge: &Edge| (edge.subject, edge.object);
    let is_mention = one.relation == MENTIONED_WITH || other.relation == MENTIONED_WITH;
    names(one) == names(other) && (is_mention || one.relation == other.relation)
        || is_mention && names(one) == (other.object, other.subject)
}

/// The part of a text that has both names in it, where they stand nearest to each other.
fn around(text: &str, subject: &str, object: &str) -> String {
    // Of the same length as the text, so that places in it are places in the text.
    let small = text.to_ascii_lowercase();
    let places = |name: &str| -> Vec<usize> {
        small.match_indices(&name.to_ascii_lowercase()).map(|(place, _)| place).collect()
    };
    let (subjects, objects) = (places(subject), places(object));
    let pairs = subjects.iter().flat_map(|one| objects.iter().map(move |other| (*one, *other)));
    let nearest = pairs.min_by_key(|(one, other)| one.abs_diff(*other));
    let only = objects.first().or(subjects.first()).copied().unwrap_or(0);
    let (first, last) = nearest.map_or((only, only), |(one, other)| (one.min(other), one.max(other)));
    match last - first < SHOWN / 2 {
        true => part(text, (first + last) / 2, SHOWN),
        false => format!("{} {}", part(text, first, SHOWN / 2), part(text, last, SHOWN / 2)),
    }
}

/// So many bytes of a text around a place.
fn part(text: &str, at: usize, bytes: usize) -> String {
    let start = text.floor_char_boundary(at.saturating_sub(bytes / 2));
    let end = text.ceil_char_boundary((start + bytes).min(text.len()));
    let shown = text.get(start..end).unwrap_or(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, behind) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{before}{shown}{behind}")
}
