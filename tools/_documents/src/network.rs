//! What the documents say of names: which have to do with which, and where it is written.

use schemars::JsonSchema;
use serde::Serialize;

/// The relation of names that are mentioned in the same passages.
pub const MENTIONED_WITH: &str = "mentioned_with";

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
    /// What it is: `name`, `code`, `concept`, `link` or `document`.
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
