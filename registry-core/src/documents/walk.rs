//! Goes through the graph of names, a relation at a time, wherever it is kept.

use std::collections::{BTreeMap, BTreeSet};

use super::{Graph, GraphPath, GraphQuery, GraphRelation, MENTIONED_WITH, Passage, graph::key};
use crate::result::ToolError;

/// From no more names is gone on.
const MAX_FRONTIER: usize = 12;
/// In no more passages of a name is looked for others beside it.
pub(super) const MAX_PASSAGES: i64 = 2000;
/// How much of a passage is shown, in bytes.
const SHOWN: usize = 320;

/// A name.
pub(super) struct Entity {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) kind: String,
}

/// A relation between two names, and a passage that says it.
pub(super) struct Edge {
    pub(super) subject: i64,
    pub(super) relation: String,
    pub(super) object: i64,
    pub(super) passages: u32,
    pub(super) chunk: i64,
}

/// Its number, name and kind.
impl From<(i64, String, String)> for Entity {
    fn from((id, name, kind): (i64, String, String)) -> Self {
        Self { id, name, kind }
    }
}

/// Subject, relation, object, in how many passages, and one of them.
impl From<(i64, String, i64, i64, i64)> for Edge {
    fn from((subject, relation, object, passages, chunk): (i64, String, i64, i64, i64)) -> Self {
        Self { subject, relation, object, passages: u32::try_from(passages).unwrap_or(u32::MAX), chunk }
    }
}

/// What has to be read of a graph.
pub(super) trait GraphRows: Sync {
    /// The name of that key.
    fn entity(&self, key: &str) -> impl Future<Output = Result<Option<Entity>, ToolError>> + Send;

    /// At most five names that have the key in theirs, or one of its longer words; those that have the key and are mentioned most first.
    fn near(&self, key: &str) -> impl Future<Output = Result<Vec<String>, ToolError>> + Send;

    /// What is said of some names, most often said first; only one relation where one is named.
    fn stated(
        &self,
        names: &[i64],
        relation: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Edge>, ToolError>> + Send;

    /// The names that are mentioned with some names. Those that are mentioned everywhere come last.
    fn beside(
        &self,
        names: &[i64],
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Edge>, ToolError>> + Send;

    /// How some names are written.
    fn names(&self, ids: Vec<i64>) -> impl Future<Output = Result<BTreeMap<i64, String>, ToolError>> + Send;

    /// Some passages.
    fn passages(
        &self,
        ids: Vec<i64>,
    ) -> impl Future<Output = Result<BTreeMap<i64, Passage>, ToolError>> + Send;
}

pub(super) async fn walk(rows: &impl GraphRows, query: &GraphQuery) -> Result<Graph, ToolError> {
    let start = entity(rows, &query.entity).await?;
    let relation = query.relation.as_deref().filter(|relation| !relation.is_empty());
    let mut edges: Vec<Edge> = Vec::new();
    // Each name that is reached, and the one it is reached from.
    let mut reached = BTreeMap::from([(start.id, None)]);
    let mut frontier = vec![start.id];
    for step in 0..query.depth.max(1) {
        let mut found = Vec::new();
        if relation != Some(MENTIONED_WITH) {
            found.extend(rows.stated(&frontier, relation, query.limit).await?);
        }
        // Further away nearly everything is mentioned with everything.
        if relation == Some(MENTIONED_WITH) || relation.is_none() && step == 0 {
            let room = query.limit.saturating_sub(edges.len() + found.len());
            found.extend(rows.beside(&frontier, room).await?);
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
    described(rows, start, edges, &reached).await
}

/// The name that is meant.
async fn entity(rows: &impl GraphRows, name: &str) -> Result<Entity, ToolError> {
    let key = key(name);
    if let Some(entity) = rows.entity(&key).await? {
        return Ok(entity);
    }
    let near = rows.near(&key).await?;
    let told = match near.as_slice() {
        [] => {
            format!("the documents do not name `{name}`; search them with other tools, or try another name")
        }
        near => format!("the documents do not name `{name}`; they name {}", near.join(", ")),
    };
    Err(ToolError::invalid(told).with_nearest(near))
}

/// The graph in words.
async fn described(
    rows: &impl GraphRows,
    start: Entity,
    edges: Vec<Edge>,
    reached: &BTreeMap<i64, Option<i64>>,
) -> Result<Graph, ToolError> {
    let list = |ids: BTreeSet<i64>| ids.into_iter().collect::<Vec<_>>();
    let ids = edges.iter().flat_map(|edge| [edge.subject, edge.object]).chain([start.id]).collect();
    let names = rows.names(list(ids)).await?;
    let passages = rows.passages(list(edges.iter().map(|edge| edge.chunk).collect())).await?;
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
    Ok(Graph { entity: start.name, kind: start.kind, relations: relations.collect(), paths: paths.collect() })
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
