//! Goes through the graph of names, a relation at a time, wherever it is kept.

use std::collections::{BTreeMap, BTreeSet};

use super::{Graph, GraphPath, GraphQuery, GraphRelation, GraphStep, MENTIONED_WITH, Passage, graph::key};
use registry_core::result::ToolError;

/// From no more names is gone on.
const MAX_FRONTIER: usize = 12;
/// In no more passages of a name is looked for others beside it.
pub(super) const MAX_PASSAGES: i64 = 2000;
/// No more paths are told; the relations they go along are there all the same.
const MAX_PATHS: usize = 12;
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

    /// At most eight relations that are said of a name, most often said first.
    fn said(&self, name: i64) -> impl Future<Output = Result<Vec<String>, ToolError>> + Send;

    /// How some names are written.
    fn names(&self, ids: Vec<i64>) -> impl Future<Output = Result<BTreeMap<i64, String>, ToolError>> + Send;

    /// Some passages.
    fn passages(
        &self,
        ids: Vec<i64>,
    ) -> impl Future<Output = Result<BTreeMap<i64, Passage>, ToolError>> + Send;
}

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

/// What has to do with a name, as far as a question asks for it.
pub(super) async fn walk(rows: &impl GraphRows, query: &GraphQuery) -> Result<Graph, ToolError> {
    let start = entity(rows, &query.entity).await?;
    let relation = query.relation.as_deref().filter(|relation| !relation.is_empty());
    let depth = query.depth.max(1);
    let mut walk = Walk::from(start.id, query.limit);
    let mut frontier = vec![start.id];
    let mut left_over = Vec::new();
    for step in 0..depth {
        let mut found = Vec::new();
        if relation != Some(MENTIONED_WITH) {
            found.extend(rows.stated(&frontier, relation, query.limit).await?);
        }
        // Further away nearly everything is mentioned with everything.
        if relation == Some(MENTIONED_WITH) || relation.is_none() && step == 0 {
            found.extend(rows.beside(&frontier, query.limit).await?);
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
        return Err(no_such_relation(rows, &start, relation).await?);
    }
    described(rows, start, walk).await
}

/// That a name has no relation of a kind, with the kinds that it has.
async fn no_such_relation(
    rows: &impl GraphRows,
    start: &Entity,
    relation: &str,
) -> Result<ToolError, ToolError> {
    let said = rows.said(start.id).await?;
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
async fn described(rows: &impl GraphRows, start: Entity, walk: Walk) -> Result<Graph, ToolError> {
    let edges = &walk.edges;
    let list = |ids: BTreeSet<i64>| ids.into_iter().collect::<Vec<_>>();
    let ids = edges.iter().flat_map(|edge| [edge.subject, edge.object]).chain([start.id]).collect();
    let names = rows.names(list(ids)).await?;
    let passages = rows.passages(list(edges.iter().map(|edge| edge.chunk).collect())).await?;
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
    // Next to a place of the one, the nearest of the other is the last before it or the first behind it.
    let pairs = subjects.iter().flat_map(|one| {
        let behind = objects.partition_point(|other| other < one);
        let beside = [behind.checked_sub(1), Some(behind)].into_iter().flatten();
        beside.filter_map(|at| Some((*one, *objects.get(at)?)))
    });
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
