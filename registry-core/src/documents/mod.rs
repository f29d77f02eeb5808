//! Documents that tools search and cite.
//!
//! [`read`] makes a [`Document`] of a file. The store cuts it into passages along its headings and sentences, each with its place in
//! the file, and draws a graph of names from them. Without a model passages are found by their words alone, ranked by BM25; with an
//! [`Embedder`] also by what they mean.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use registry_core::documents::{DocumentFilter, DocumentKind, Documents, read};
//!
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("documents.db");
//! let documents = Documents::in_file(file);
//! let text = b"# Tea\n\n## Green\n\nGreen tea is steeped at 75 degrees.\n";
//! documents.add(read::document("tea.md", DocumentKind::Markdown, text, None)?).await?;
//!
//! let found = documents.search("How hot is green tea steeped?", 3, &DocumentFilter::default()).await?;
//! let best = found.first().ok_or("nothing was found")?;
//! assert_eq!((&*best.path, &*best.section, (best.first, best.last)), ("tea.md", "Tea > Green", (5, 5)));
//! # Ok(())
//! # }
//! ```

mod chunk;
mod document;
mod embed_unread;
mod embedding;
pub mod files;
mod graph;
mod index;
mod network;
mod query;
mod rank_fusion;
pub mod read;
mod sqlite;
mod statement;
mod vectors;

use std::{fmt, ops::Deref, path::PathBuf, sync::Arc};

pub use network::{Graph, GraphPath, GraphQuery, GraphRelation, MENTIONED_WITH};
use tokio::task::spawn_blocking;

use crate::result::ToolError;

pub use document::{Document, DocumentKind, Line};
pub use embed_unread::Embedded;
use embedding::Embedding;
pub use embedding::{EmbedError, Embedder, TextRole};
pub use index::{
    Added, DocumentFilter, DocumentIndex, METADATA_COLUMNS, MetadataRows, Passage, StoredDocument,
    UnreadPassage,
};
pub use rank_fusion::reciprocal_rank_fusion;

/// The documents that a host provides to its tools, as a resource. What can be done with them is in [`DocumentIndex`].
#[derive(Clone)]
pub struct Documents {
    index: Arc<dyn DocumentIndex>,
    embedding: Option<Arc<Embedding>>,
}

impl Documents {
    /// What the host tells where it provides none.
    pub const HOW_TO_PROVIDE: &'static str =
        "there are none yet; add some with `toolrack documents add PATH…` and start again";

    /// The documents in a SQLite file. It is made with the first use, with its folder, for nobody else to read.
    pub fn in_file(file: impl Into<PathBuf>) -> Self {
        Self::new(sqlite::SqliteDocuments::new(file.into()))
    }

    /// Reads a file and adds it. One that is there as it is now is not read again.
    ///
    /// # Errors
    /// Why it was not added, without its path.
    pub async fn add_file(&self, path: PathBuf) -> Result<Added, String> {
        let fault = |error: ToolError| error.message().to_owned();
        let opened =
            spawn_blocking(move || read::File::open(&path)).await.map_err(|error| error.to_string())??;
        if self.has(opened.path(), opened.hash()).await.map_err(fault)? {
            return Ok(Added::Unchanged);
        }
        let document = spawn_blocking(move || opened.read()).await.map_err(|error| error.to_string())??;
        self.add(document).await.map_err(fault)
    }

    /// Documents that are kept otherwise.
    pub fn new(index: impl DocumentIndex) -> Self {
        Self { index: Arc::new(index), embedding: None }
    }
}

impl Deref for Documents {
    type Target = dyn DocumentIndex;

    fn deref(&self) -> &Self::Target {
        &*self.index
    }
}

impl fmt::Debug for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents").finish_non_exhaustive()
    }
}
