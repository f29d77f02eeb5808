//! What a store keeps of a document.

use serde::Serialize;

use serde_json::json;

use super::{
    Document, ExtractedName, ExtractedRelation,
    chunk::{Chunk, chunks},
    graph::{Mention, Relation, drawn, key},
};
use registry_core::result::ToolError;

/// What is drawn from a document. The names and relations are one JSON text for each statement: a database reads a list of a thousand rows
/// sooner than it is asked a thousand times.
pub(super) struct Rows {
    pub(super) chunks: Vec<Chunk>,
    pub(super) mentions: String,
    pub(super) relations: String,
}

/// A row of a passage, by its place among the passages.
#[derive(Serialize)]
struct Of<T> {
    chunk: usize,
    #[serde(flatten)]
    row: T,
}

impl Rows {
    /// Draws them on a thread where that holds nobody up.
    pub(super) async fn of(document: Document) -> Result<(Document, Self), ToolError> {
        let work = move || {
            let rows = Self::drawn(&document)?;
            Ok((document, rows))
        };
        let drawn: Result<_, serde_json::Error> = tokio::task::spawn_blocking(work).await?;
        drawn.map_err(|error| ToolError::failed(format!("a document cannot be kept: {error}")))
    }

    fn drawn(document: &Document) -> Result<Self, serde_json::Error> {
        let chunks: Vec<Chunk> = chunks(&document.lines);
        let mut mentions: Vec<Of<Mention>> = Vec::new();
        let mut relations: Vec<Of<Relation>> = Vec::new();
        for (chunk, passage) in chunks.iter().enumerate() {
            let drawn = drawn(&document.title, &passage.text);
            mentions.extend(drawn.mentions.into_iter().map(|row| Of { chunk, row }));
            relations.extend(drawn.relations.into_iter().map(|row| Of { chunk, row }));
        }
        Ok(Self {
            chunks,
            mentions: serde_json::to_string(&mentions)?,
            relations: serde_json::to_string(&relations)?,
        })
    }

    /// How many passages there are.
    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.chunks.len()).unwrap_or(i64::MAX)
    }
}

/// The names that a model drew from a passage, as one JSON text.
pub(super) fn name_rows(names: &[ExtractedName]) -> String {
    let row = |name: &ExtractedName| json!({"key": key(&name.name), "name": name.name, "kind": name.kind});
    json!(names.iter().map(row).collect::<Vec<_>>()).to_string()
}

/// The relations that a model drew from a passage, as one JSON text.
pub(super) fn relation_rows(relations: &[ExtractedRelation]) -> String {
    let row = |it: &ExtractedRelation| json!({"subject": key(&it.subject), "relation": it.relation, "object": key(&it.object)});
    json!(relations.iter().map(row).collect::<Vec<_>>()).to_string()
}

/// What is looked for as the title of a document: the name of its file is, too.
pub(super) fn title(document: &Document) -> String {
    let name = document.path.rsplit(['/', '\\']).next().unwrap_or(&document.path);
    format!("{} {name}", document.title)
}

/// A path as what the paths in that folder begin with.
pub(super) fn folder(path: &str) -> String {
    format!("{}{}", path.trim_end_matches(['/', '\\']), if path.contains('\\') { '\\' } else { '/' })
}
