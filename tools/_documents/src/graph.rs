//! The graph of names that a model extracted: which have to do with which, and where it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{
    Passage,
    database::{Database, Statement},
    extraction::key,
    sql::PASSAGE,
};
use registry_core::ToolError;

/// The relation of names that are mentioned in the same passages.
pub(crate) const MENTIONED_WITH: &str = "mentioned_with";
/// From no more names is gone on.
const MAX_FRONTIER: usize = 12;
/// No more paths are given; the relations they go along are there all the same.
const MAX_PATHS: usize = 12;
/// How much of a passage is shown, in bytes.
const SHOWN: usize = 320;

/// Which part of the graph is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphQuery {
    /// The name to begin at, however it is written.
    pub entity: String,
    /// How many relations away a name may be, from 1.
    pub depth: u8,
    /// Only relations of this kind, such as `uses`; all where nothing is said.
    pub relation: Option<String>,
    /// How many relations are given at most.
    pub limit: usize,
}

/// A part of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Graph {
    /// The name it begins at, as it was written where it was found first.
    pub entity: String,
    /// What it is, such as `person`; `name` where the model did not say.
    pub kind: String,
    /// The relations, nearest first.
    pub relations: Vec<GraphRelation>,
    /// The names that are more than one relation away, nearest first, and how they are reached.
    pub paths: Vec<GraphPath>,
}

/// What the documents say of two names.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GraphRelation {
    /// The name of which it is said.
    pub subject: String,
    /// What is said, such as `uses` or `is_a`; `mentioned_with` where both are only mentioned in the same passages.
    pub relation: String,
    /// The other name.
    pub object: String,
    /// In how many passages.
    pub passages: u32,
    /// Where one of them is from.
    pub source: String,
    /// The headings above it.
    pub section: String,
    /// Its lines, or its page.
    pub place: String,
    /// What is written there.
    pub text: String,
}

/// How a name is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GraphPath {
    /// The name.
    pub name: String,
    /// The relations on the way to it, from where the graph begins. What their passages say is in the relations of the graph.
    pub steps: Vec<GraphStep>,
}

/// A relation on a path, and where it is written. It may be said of either name; a path goes along it both ways.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GraphStep {
    /// The name of which it is said.
    pub subject: String,
    /// What is said.
    pub relation: String,
    /// The other name.
    pub object: String,
    /// Where the passage is from.
    pub source: String,
    /// The headings above it.
    pub section: String,
    /// Its lines, or its page.
    pub place: String,
}

impl From<&GraphRelation> for GraphStep {
    fn from(relation: &GraphRelation) -> Self {
        let GraphRelation { subject, relation, object, source, section, place, .. } = relation.clone();
        Self { subject, relation, object, source, section, place }
    }
}

/// A name.
pub(super) struct Entity {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) kind: String,
}

/// A relation between two names, and a passage that says it.
pub(super) struct Edge {
    pub(super) subject: i64,
    pub(super) subject_name: String,
    pub(super) relation: String,
    pub(super) object: i64,
    pub(super) object_name: String,
    pub(super) passages: i64,
    pub(super) passage: Passage,
}

/// The name of that key.
async fn entity<D: Database>(database: &D, key: &str) -> Result<Option<Entity>, ToolError> {
    Ok(database.found(Statement::new(database, D::SQL.entity).given(key)).await?.pop())
}

/// At most five names that have the key in theirs, or one of its longer words; those that have the key and are mentioned most first.
async fn similar_names<D: Database>(database: &D, key: &str) -> Result<Vec<String>, ToolError> {
    let words = Value::from(key.split(' ').collect::<Vec<_>>()).to_string();
    let similar = Statement::new(database, D::SQL.similar_names).given(key).given(&*words);
    Ok(database.found(similar).await?.into_iter().map(|(name,)| name).collect())
}

/// At most `limit` relations of some names, most often said first; only those of one kind where it is named. Those that are only
/// [mentioned](MENTIONED_WITH) together are asked for by that name.
async fn edges<D: Database>(
    database: &D,
    names: &[i64],
    relation: Option<&str>,
    limit: usize,
) -> Result<Vec<Edge>, ToolError> {
    let inner = if relation == Some(MENTIONED_WITH) { D::SQL.mentioned } else { D::SQL.stated };
    let edges = format!(
        "{PASSAGE}, subject, subjects.name AS subject_name, relation, object, objects.name AS object_name, best.passages
         FROM ({inner}) AS best {}
         ORDER BY best.score DESC, best.passages DESC, best.chunk, subject, object",
        D::SQL.edges_joined
    );
    let names = Value::from(names).to_string();
    let edges = Statement::new(database, edges).given(&*names);
    database.found(edges.given(relation.map(str::to_owned)).given(limit)).await
}

/// What was found on the way from a name.
struct Walk {
    limit: usize,
    /// The relations, and how far away each is.
    edges: Vec<(Edge, u8)>,
    /// Each name that is reached: how far away it is, and the relation by which it is, by its place among the edges.
    reached: BTreeMap<i64, (u8, Option<usize>)>,
    /// The names in the order in which they are reached, which is from near to far.
    order: Vec<i64>,
}

impl Walk {
    /// Takes a relation that was found `distance` steps away. Says which name is reached by it and was not before.
    fn take(&mut self, edge: Edge, distance: u8) -> Option<i64> {
        if self.edges.len() >= self.limit || self.edges.iter().any(|(known, _)| same(known, &edge)) {
            return None;
        }
        let is_near = |name: &i64| self.reached.get(name).is_some_and(|(near, _)| *near <= distance);
        let ends = [(edge.subject, edge.object), (edge.object, edge.subject)];
        let new = ends.iter().find(|(from, to)| is_near(from) && !self.reached.contains_key(to));
        let new = new.map(|(_, to)| *to);
        if let Some(to) = new {
            self.reached.insert(to, (distance + 1, Some(self.edges.len())));
            self.order.push(to);
        }
        self.edges.push((edge, distance));
        new
    }

    /// The relations on the way to a name.
    fn way_to(&self, mut name: i64) -> Vec<&Edge> {
        let mut way = Vec::new();
        while let Some((edge, _)) = self.reached.get(&name).and_then(|(_, by)| self.edges.get((*by)?)) {
            way.insert(0, edge);
            name = if edge.subject == name { edge.object } else { edge.subject };
        }
        way
    }
}

/// What has to do with a name, as far as a question asks for it.
pub(super) async fn walk(database: &impl Database, query: &GraphQuery) -> Result<Graph, ToolError> {
    let key = key(&query.entity);
    let Some(start) = entity(database, &key).await? else {
        return Err(unknown(&query.entity, similar_names(database, &key).await?));
    };
    let relation = query.relation.as_deref().filter(|relation| !relation.is_empty());
    let depth = query.depth.max(1);
    let reached = BTreeMap::from([(start.id, (0, None))]);
    let mut walk = Walk { limit: query.limit, edges: Vec::new(), reached, order: Vec::new() };
    let mut frontier = vec![start.id];
    let mut left_over = Vec::new();
    for step in 0..depth {
        let mut found = edges(database, &frontier, relation, query.limit).await?;
        // Further away nearly everything is mentioned with everything.
        if relation.is_none() && step == 0 {
            found.extend(edges(database, &frontier, Some(MENTIONED_WITH), query.limit).await?);
        }
        // What is near must not take all the room, or nothing further away would ever be seen.
        let room = query.limit * usize::from(step + 1) / usize::from(depth);
        frontier.clear();
        for edge in found {
            match walk.edges.len() < room {
                true => frontier.extend(walk.take(edge, step)),
                false => left_over.push((edge, step)),
            }
        }
        frontier.truncate(MAX_FRONTIER);
    }
    for (edge, step) in left_over {
        walk.take(edge, step);
    }
    if let Some(relation) = relation.filter(|_| walk.edges.is_empty()) {
        let mut edges = edges(database, &[start.id], None, 200).await?;
        edges.sort_by(|one, other| {
            other.passages.cmp(&one.passages).then_with(|| one.relation.cmp(&other.relation))
        });
        let mut said: Vec<String> = Vec::new();
        for edge in edges {
            if !said.contains(&edge.relation) && said.len() < 8 {
                said.push(edge.relation);
            }
        }
        return Err(unsaid(&start.name, relation, said));
    }
    walk.edges.sort_by_key(|(_, distance)| *distance);
    Ok(described(start, walk))
}

fn unknown(name: &str, near: Vec<String>) -> ToolError {
    let message = match near.as_slice() {
        [] => {
            format!("the documents do not name `{name}`; search them with other tools, or try another name")
        }
        near => format!("the documents do not name `{name}`; they name {}", near.join(", ")),
    };
    ToolError::invalid(message).with_nearest(near)
}

fn unsaid(name: &str, relation: &str, said: Vec<String>) -> ToolError {
    let message = match said.as_slice() {
        [] => format!("the documents say no `{relation}` of `{name}`; ask without a relation"),
        said => format!("the documents say no `{relation}` of `{name}`; they say {}", said.join(", ")),
    };
    ToolError::invalid(message).with_nearest(said)
}

/// The graph in words.
fn described(start: Entity, walk: Walk) -> Graph {
    let paths = walk.order.iter().filter_map(|id| {
        let way = walk.way_to(*id);
        let last = way.last().filter(|_| way.len() > 1)?;
        let name = if last.subject == *id { &last.subject_name } else { &last.object_name };
        let steps = way.iter().map(|edge| GraphStep::from(&GraphRelation::from(*edge))).collect();
        Some(GraphPath { name: name.clone(), steps })
    });
    let mut paths: Vec<GraphPath> = paths.collect();
    paths.sort_by_key(|path| path.steps.len());
    paths.truncate(MAX_PATHS);
    let relations = walk.edges.iter().map(|(edge, _)| GraphRelation::from(edge)).collect();
    Graph { entity: start.name, kind: start.kind, relations, paths }
}

impl From<&Edge> for GraphRelation {
    fn from(edge: &Edge) -> Self {
        let Edge { subject_name, relation, object_name, passages, passage, .. } = edge;
        Self {
            subject: subject_name.clone(),
            relation: relation.clone(),
            object: object_name.clone(),
            passages: u32::try_from(*passages).unwrap_or(u32::MAX),
            source: passage.path.clone(),
            section: passage.section.clone(),
            place: passage.place(),
            text: around(&passage.text, subject_name, object_name),
        }
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
