//! What can be done with documents, wherever they are kept.

use async_trait::async_trait;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Document, DocumentKind, Extracted, Graph, GraphQuery};
use registry_core::ToolError;

/// Keeps documents and finds passages in them. What it acknowledges it has kept.
///
/// Every method fails when the store does: its message names the file, for the operator, and its feedback is for a model.
#[async_trait]
pub trait DocumentIndex: Send + Sync + 'static {
    /// What there is, as of the last [refresh](Self::refresh) or the last change made here. It is read for every request of every caller
    /// and waits for nothing.
    fn contents(&self) -> Contents;

    /// Looks what there is. A background task asks for it every second while the documents are open. Where the store cannot be read, what
    /// was known stays.
    async fn refresh(&self);

    /// Adds a document, whole or not at all. It takes the place of the one of the same path, unless that has the same hash. `None`, and
    /// nothing is kept, where that would exceed the quota; however many are added at once, on however many servers.
    async fn add_within(&self, document: Document, quota: Option<&Quota>)
    -> Result<Option<Added>, ToolError>;

    /// Adds a document as [`add_within`](Self::add_within) does, without a quota.
    async fn add(&self, document: Document) -> Result<Added, ToolError> {
        let added = self.add_within(document, None).await?;
        added.ok_or_else(|| ToolError::failed("a document without a quota was not added"))
    }

    /// Whether there is room for a document of that path, of which so many bytes are kept.
    async fn has_room(&self, quota: &Quota, path: &str, bytes: u64) -> Result<bool, ToolError>;

    /// Whether the document of that path is there with that hash.
    async fn has(&self, path: &str, hash: &str) -> Result<bool, ToolError>;

    /// Removes the document of that path, and those in the folder of that path; says which.
    async fn remove(&self, path: &str) -> Result<Vec<String>, ToolError>;

    /// The documents that pass the filter, by path.
    async fn list(&self, filter: &DocumentFilter) -> Result<Vec<StoredDocument>, ToolError>;

    /// The first of them, those in the folder `own` before others, without their metadata; and how many there are.
    async fn first(
        &self,
        own: &str,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<(Vec<StoredDocument>, usize), ToolError>;

    /// At most `limit` passages for a question or some words, best first. Any of its telling words is looked for, and where that gives
    /// too few passages, words that begin so; what is written is words only, never a query language.
    async fn search(
        &self,
        query: &str,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError>;

    /// At most `limit` passages that have no vector of this model yet, oldest first. One that was kept without numbers has one.
    async fn without_vectors(&self, model: &str, limit: usize) -> Result<Vec<UnreadPassage>, ToolError>;

    /// Keeps the vectors that a model made of passages, in place of those of other models. A passage that is gone meanwhile is passed over;
    /// one whose vector has no numbers, or points nowhere, is not asked for again and not found by its vector.
    async fn keep_vectors(&self, model: &str, vectors: Vec<(i64, Vec<f32>)>) -> Result<(), ToolError>;

    /// Forgets vectors of a model, of the documents that pass the filter, so that they are made again; says how many.
    async fn forget_vectors(
        &self,
        model: &str,
        which: Forgotten,
        filter: &DocumentFilter,
    ) -> Result<usize, ToolError>;

    /// Gives a kind of work to one who asks for it, for so many seconds, unless another has it; one who has it may ask again.
    async fn claim(&self, work: &str, holder: &str, seconds: u32) -> Result<bool, ToolError>;

    /// Lets others have it.
    async fn release(&self, work: &str, holder: &str) -> Result<(), ToolError>;

    /// At most `limit` passages whose vectors of this model are nearest to a vector, nearest first. The score is the cosine. Vectors of
    /// another length are left out.
    async fn nearest(
        &self,
        model: &str,
        vector: &[f32],
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError>;

    /// The rows of one SQL `SELECT` over the view `documents`, whose columns are in [`METADATA_COLUMNS`]. Nothing else gets through: no
    /// second statement, no other table, no function that does more than look, nothing that writes.
    ///
    /// The error of what is refused or wrong says why, in the words of the database where they are its own.
    async fn select(&self, sql: &str) -> Result<MetadataRows, ToolError>;

    /// At most `limit` passages that no model has been through for names and relations, oldest first, of the documents that pass the filter.
    async fn unextracted(
        &self,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<UnreadPassage>, ToolError>;

    /// How many passages no model has been through, of the documents that pass the filter.
    async fn count_unextracted(&self, filter: &DocumentFilter) -> Result<usize, ToolError>;

    /// Adds what a model extracted from passages to the graph, and marks them as read. A passage that is gone meanwhile is passed over.
    async fn keep_extracted(&self, model: &str, passages: Vec<(i64, Extracted)>) -> Result<(), ToolError>;

    /// What has to do with a name. One that no document has is an error that lists those that are near.
    async fn graph(&self, query: &GraphQuery) -> Result<Graph, ToolError>;
}

/// The columns of the view `documents`, with their types and what is in them.
pub const METADATA_COLUMNS: [(&str, &str, &str); 10] = [
    ("path", "TEXT", "of the file"),
    ("title", "TEXT", ""),
    ("kind", "TEXT", "markdown, text, html, csv, pdf or office"),
    ("bytes", "INTEGER", "size of the file"),
    ("passages", "INTEGER", ""),
    ("language", "TEXT", "such as en, or NULL"),
    ("modified", "TEXT", "UTC, as in 2026-01-31T08:00:00Z, or NULL"),
    ("added", "TEXT", "UTC"),
    ("hash", "TEXT", "SHA-256"),
    ("metadata", "TEXT", "JSON object, such as author; read it with metadata ->> 'author'"),
];

/// What a store has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    /// Whether there is any document.
    pub documents: bool,
    /// Whether a model has extracted any name.
    pub graph: bool,
}

/// What a query of metadata gives.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MetadataRows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, with a value for each column.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than are given.
    pub truncated: bool,
}

/// What became of a document that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "AddedOutcome")]
pub enum Added {
    /// It is new.
    New,
    /// It replaced an older one.
    Updated,
    /// It was stored already.
    Unchanged,
}

/// Which vectors are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    /// All.
    All,
    /// None but what says of a passage that the model does not take it.
    Refused,
    /// Those that have another length.
    OtherThan(usize),
}

/// How much may be kept in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// The folder.
    pub folder: String,
    /// How many documents.
    pub documents: u64,
    /// How many bytes of them: their passages, the words and the vectors that these are found by, and their metadata; or the files, where
    /// they are larger.
    pub bytes: u64,
}

/// Which documents are meant; all where nothing is said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocumentFilter {
    /// Documents of one of these kinds.
    pub kinds: Vec<DocumentKind>,
    /// The document of this path, or those in this folder.
    pub below: Option<String>,
    /// Documents changed at this time or later.
    pub modified_since: Option<Timestamp>,
    /// Documents changed before this time.
    pub modified_before: Option<Timestamp>,
}

/// A document as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDocument {
    /// Where it is from.
    pub path: String,
    /// Its title.
    pub title: String,
    /// How it was read.
    pub kind: DocumentKind,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// How many passages it was cut into.
    pub passages: u64,
    /// Its language where it says so.
    pub language: Option<String>,
    /// When it was changed last.
    pub modified: Option<Timestamp>,
    /// When it was added.
    pub added: Timestamp,
    /// The SHA-256 of the file.
    pub hash: String,
    /// What else it says of itself.
    pub metadata: Map<String, Value>,
}

/// A passage that was found, with what is needed to cite it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Passage {
    /// Where its document is from.
    pub path: String,
    /// The title of its document.
    pub title: String,
    /// How its document was read.
    pub kind: DocumentKind,
    /// The headings above it, as in `Install > From source`; empty where there are none.
    pub section: String,
    /// Where it begins: a line of the file; in a PDF a page, and in others a paragraph, a slide or a row.
    pub first: u32,
    /// Where it ends, as it begins.
    pub last: u32,
    /// How well it fits; more is better. Passages of one search can be compared, those of different searches cannot.
    pub score: f64,
    /// What it says.
    pub text: String,
    /// Other documents that say the same under the same headings, at most five: copies, under other paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_in: Vec<String>,
}

/// A passage that a model has not been through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadPassage {
    /// Its number in the store. No other passage ever has it.
    pub id: i64,
    /// The title of its document.
    pub title: String,
    /// The headings above it; empty where there are none.
    pub section: String,
    /// What it says.
    pub text: String,
}

impl Passage {
    /// Its place in words: `line 3`, `lines 3-9`, `page 2`, `slide 4`.
    pub fn place(&self) -> String {
        let unit = match (self.kind, self.path.rsplit('.').next().unwrap_or_default()) {
            (DocumentKind::Pdf, _) => "page",
            (DocumentKind::Office, "pptx" | "odp") => "slide",
            (DocumentKind::Office, "xlsx" | "ods") => "row",
            (DocumentKind::Office, _) => "paragraph",
            _ => "line",
        };
        match self.first == self.last {
            true => format!("{unit} {}", self.first),
            false => format!("{unit}s {}-{}", self.first, self.last),
        }
    }
}
