//! Documents that tools search and cite.
//!
//! [`read`] makes a [`Document`] of a file. The store cuts it into passages along its headings and sentences, each with its place in
//! the file, and draws a graph of names from them, to which a model adds with [`Documents::extract_unread`]. Without a model passages are
//! found by their words alone, ranked by BM25; with an [`Embedder`] also by what they mean.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use toolrack_documents::{DocumentFilter, DocumentKind, Documents, read};
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
mod extraction;
pub mod files;
mod graph;
mod index;
mod loaded_vectors;
mod network;
mod postgres;
mod query;
mod rank_fusion;
pub mod read;
mod rows;
mod sql;
mod sqlite;
mod statement;
mod stored;
mod tenants;
mod unspaced;
mod vectors;
mod walk;

use std::{fmt, ops::Deref, path::PathBuf, sync::Arc};

pub use network::{Graph, GraphPath, GraphQuery, GraphRelation, GraphStep, MENTIONED_WITH};
use tokio::task::spawn_blocking;

use registry_core::{DEFAULT_TENANT, context::ToolContext, result::ToolError, tenant_path};
use tenants::Tenants;

pub use document::{Document, DocumentKind, Line};
pub use embed_unread::Embedded;
use embedding::Embedding;
pub use embedding::{EmbedError, Embedder, TextRole};
pub use extraction::{Extracted, ExtractedName, ExtractedRelation, Extraction};
pub use index::{
    Added, DocumentFilter, DocumentIndex, METADATA_COLUMNS, MetadataRows, Passage, StoredDocument,
    UnreadPassage,
};
pub use rank_fusion::reciprocal_rank_fusion;

/// The documents that a host provides to its tools, as a resource: those of one tenant, and the way to those of others. Cheap to
/// clone. What can be done with them is in [`DocumentIndex`].
#[derive(Clone)]
pub struct Documents {
    index: Arc<dyn DocumentIndex>,
    tenants: Arc<Tenants>,
    embedding: Option<Arc<Embedding>>,
}

impl Documents {
    /// The documents in a SQLite file. It is made with the first use, with its folder, for nobody else to read. It has the documents of
    /// the default tenant; another tenant has a file of its own, in a folder beside it.
    pub fn in_file(file: impl Into<PathBuf>) -> Self {
        let (file, memory) = (file.into(), Arc::default());
        Self::by_tenant(move |tenant| {
            Arc::new(sqlite::SqliteDocuments::new(tenant_path(&file, tenant), &memory))
        })
    }

    /// The documents in a PostgreSQL database, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, for several servers that share them. Its
    /// tables are made with the first use, in the schema that is first in the search path. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the URL is none.
    pub fn in_postgres(url: &str) -> Result<Self, String> {
        let server = Arc::new(postgres::Server::new(url)?);
        Ok(Self::by_tenant(move |tenant| {
            Arc::new(postgres::PostgresDocuments::new(Arc::clone(&server), tenant))
        }))
    }

    /// Documents that are kept otherwise. Every tenant finds all of them.
    pub fn new(index: impl DocumentIndex) -> Self {
        let index: Arc<dyn DocumentIndex> = Arc::new(index);
        Self::by_tenant(move |_| Arc::clone(&index))
    }

    /// Documents that are kept otherwise, those of each tenant apart. `open` is asked once for each tenant.
    pub fn by_tenant(open: impl Fn(&str) -> Arc<dyn DocumentIndex> + Send + Sync + 'static) -> Self {
        let tenants = Arc::new(Tenants::new(Box::new(open)));
        Self { index: tenants.index(DEFAULT_TENANT), tenants, embedding: None }
    }

    /// The documents of a tenant, whichever tenant's these are.
    #[must_use]
    pub fn for_tenant(&self, tenant: &str) -> Self {
        Self { index: self.tenants.index(tenant), ..self.clone() }
    }

    /// The documents of each tenant that was asked for since the program began.
    pub fn in_use(&self) -> Vec<Self> {
        self.tenants.opened().into_iter().map(|index| Self { index, ..self.clone() }).collect()
    }

    /// The documents of the tenant that a request is of, for [`Resources::insert_by_request`](registry_core::Resources::insert_by_request): a tool
    /// gets no others, and comes on with the first.
    ///
    /// # Errors
    /// Why tools have no documents: there are none of the tenant yet.
    pub fn for_request(&self, context: &ToolContext) -> Result<Self, String> {
        let documents = self.for_tenant(context.tenant());
        if documents.are_there() {
            return Ok(documents);
        }
        let whose = match context.tenant() {
            DEFAULT_TENANT => String::new(),
            tenant => format!("--tenant {tenant:?} "),
        };
        Err(format!("there are none yet; add some with `toolrack documents add {whose}PATH…`"))
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

#[cfg(doctest)]
#[doc = include_str!("../../../docs/documents.md")]
struct Guide;
