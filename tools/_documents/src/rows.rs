//! What the stores keep of a document, as one JSON text for each statement: a database reads a list of a thousand rows sooner than it is
//! asked a thousand times.

use registry_core::ToolError;
use serde::Serialize;
use serde_json::json;

use super::{Document, Extracted, chunk::chunks, extraction::key};

/// A passage, and the words that it is found by.
#[derive(Serialize)]
struct Row {
    section: String,
    first: u32,
    last: u32,
    text: String,
    section_words: String,
    text_words: String,
}

/// The passages of a document.
pub(super) struct Rows {
    pub(super) json: String,
    pub(super) count: i64,
    /// How many bytes are kept of the document, or what was sent of it where that is more.
    pub(super) kept: i64,
    /// What is looked up as the title.
    pub(super) title_words: String,
}

impl Rows {
    /// Cuts a document on a thread where that holds nobody up. `words` makes of a text what is looked up.
    pub(super) async fn of(
        document: Document,
        words: fn(&str) -> String,
    ) -> Result<(Document, Self), ToolError> {
        let cut = tokio::task::spawn_blocking(move || {
            let rows = chunks(&document.lines).into_iter().map(|chunk| Row {
                section_words: words(&chunk.section),
                text_words: words(&chunk.text),
                section: chunk.section,
                first: chunk.first,
                last: chunk.last,
                text: chunk.text,
            });
            let rows: Vec<Row> = rows.collect();
            let json = serde_json::to_string(&rows)?;
            let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
            let title_words = words(&titled(&document.title, &document.path));
            // The passages and the words that they are found by, each with those of the title.
            let metadata: usize =
                document.metadata.iter().map(|(key, value)| key.len() + value.to_string().len()).sum();
            let kept = rows.len().saturating_mul(title_words.len()) + json.len() + metadata;
            let kept = i64::try_from(document.bytes.max(u64::try_from(kept).unwrap_or(u64::MAX)))
                .unwrap_or(i64::MAX);
            Ok((document, Self { json, count, kept, title_words }))
        });
        let cut: Result<_, serde_json::Error> = cut.await?;
        cut.map_err(|error| ToolError::failed(format!("a document cannot be kept: {error}")))
    }
}

/// A title, and the name of the file, which is looked for, too.
pub(super) fn titled(title: &str, path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    format!("{title} {name}")
}

/// The names that a model found in a passage, and what it says of them.
pub(super) fn extracted_rows(extracted: &Extracted) -> (String, String) {
    let names =
        extracted.names.iter().map(|it| json!({"key": key(&it.name), "name": it.name, "kind": it.kind}));
    let relations = extracted
        .relations
        .iter()
        .map(|it| json!({"subject": key(&it.subject), "relation": it.relation, "object": key(&it.object)}));
    (json!(names.collect::<Vec<_>>()).to_string(), json!(relations.collect::<Vec<_>>()).to_string())
}

/// A path as what the paths in that folder begin with.
pub(super) fn folder(path: &str) -> String {
    format!("{}{}", path.trim_end_matches(['/', '\\']), if path.contains('\\') { '\\' } else { '/' })
}
