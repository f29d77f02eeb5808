//! Documents that tools search and cite.
//!
//! [`read`] makes a [`Document`] of a file, and the store cuts it into passages along its headings and sentences, each with its place in
//! the file. Passages are found by their words, and with an [`Embedder`] also by what they mean; a graph of the names in them is what a
//! model extracts with [`Documents::extract_unread`].
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

mod chats;
mod chunk;
mod database;
mod document;
mod embed_unread;
mod embedding;
mod extraction;
pub mod files;
mod graph;
mod index;
#[cfg(feature = "postgres")]
mod postgres;
mod query;
mod rank_fusion;
pub mod read;
mod rows;
mod sql;
mod sqlite;
mod store;
mod tenants;
mod unspaced;
mod vectors;

use std::{collections::HashSet, path::PathBuf, sync::Arc};

pub use graph::{Graph, GraphPath, GraphQuery, GraphRelation, GraphStep};
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use chats::is_place_of_chats;
use registry_core::{DEFAULT_TENANT, ToolContext, ToolError, UserPlaces, tenant_path};
use tenants::Tenants;

pub use chats::ChatDocuments;
pub use document::{Document, DocumentKind};
pub use embed_unread::Embedded;
use embedding::Embedding;
pub use embedding::{EmbedError, Embedder, TextRole};
pub use extraction::{Extracted, ExtractedName, ExtractedRelation, Extraction};
pub use index::{
    Added, Contents, DocumentFilter, DocumentIndex, Forgotten, METADATA_COLUMNS, MetadataRows, Passage,
    Quota, StoredDocument, UnreadPassage,
};
#[cfg(feature = "postgres")]
pub use postgres::{POSTGRES_SCHEMA, POSTGRES_VERSION_TABLE};
pub use rank_fusion::reciprocal_rank_fusion;
pub use toolrack_web::Line;

/// The documents that a host provides to its tools, as a resource: those of one tenant, and the way to those of others. Cheap to
/// clone. What can be done with them is in [`DocumentIndex`].
#[derive(Clone, derive_more::Debug, derive_more::Deref)]
#[debug("Documents")]
pub struct Documents {
    #[deref(forward)]
    index: Arc<dyn DocumentIndex>,
    tenants: Arc<Tenants>,
    embedding: Option<Arc<Embedding>>,
    /// Whether one tenant's are kept apart from another's.
    is_by_tenant: bool,
    is_of_chats: bool,
    /// The folders of chats that have documents, as far as it was looked.
    chats: Arc<Mutex<HashSet<String>>>,
    /// The tenant and the user who asks; nobody where the program does.
    user: Option<(String, String)>,
    places: Arc<Places>,
}

/// What one user has looked up at once of each kind: connections are few, and how long a question takes is up to who asks it.
const OF_ONE_USER: usize = 1;

struct Places {
    words: UserPlaces,
    vectors: UserPlaces,
    selects: UserPlaces,
}

impl Default for Places {
    fn default() -> Self {
        let [words, vectors, selects] = [(); 3].map(|()| UserPlaces::new(OF_ONE_USER));
        Self { words, vectors, selects }
    }
}

impl Documents {
    /// The documents in a SQLite file. It is made with the first use, with its folder, for nobody else to read. It has the documents of
    /// the default tenant; another tenant has a file of its own, in a folder beside it.
    pub fn in_file(file: impl Into<PathBuf>) -> Self {
        let file = file.into();
        Self::by_tenant(move |tenant| Arc::new(sqlite::SqliteDocuments::new(tenant_path(&file, tenant))))
    }

    /// The documents in a PostgreSQL database, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, for several servers that share them. Its
    /// tables are made with the first use, in the schema that is first in the search path. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the URL is none.
    #[cfg(feature = "postgres")]
    pub fn in_postgres(url: &str) -> Result<Self, String> {
        let server = Arc::new(postgres::Server::new(url)?);
        Ok(Self::by_tenant(move |tenant| {
            Arc::new(postgres::PostgresDocuments::new(Arc::clone(&server), tenant))
        }))
    }

    /// Documents that are kept otherwise. Every tenant finds all of them.
    pub fn new(index: impl DocumentIndex) -> Self {
        let index: Arc<dyn DocumentIndex> = Arc::new(index);
        Self { is_by_tenant: false, ..Self::by_tenant(move |_| Arc::clone(&index)) }
    }

    /// Documents that are kept otherwise, those of each tenant apart. `open` is asked for each tenant, and again when nobody has asked for
    /// that tenant's for ten minutes, or for many others' since.
    pub fn by_tenant(open: impl Fn(&str) -> Arc<dyn DocumentIndex> + Send + Sync + 'static) -> Self {
        let tenants = Arc::new(Tenants::new(Box::new(open)));
        let index = tenants.index(DEFAULT_TENANT);
        Self {
            index,
            tenants,
            embedding: None,
            is_by_tenant: true,
            is_of_chats: false,
            chats: Arc::default(),
            user: None,
            places: Arc::default(),
        }
    }

    /// The documents of a tenant, whichever tenant's these are.
    #[must_use]
    pub fn for_tenant(&self, tenant: &str) -> Self {
        Self { index: self.tenants.index(tenant), is_of_chats: false, ..self.clone() }
    }

    /// The documents of a user's tenant, for requests of that user, which wait for each other before they hold up those of others.
    #[must_use]
    pub fn for_user(&self, (tenant, user): (&str, &str)) -> Self {
        Self { user: Some((tenant.to_owned(), user.to_owned())), ..self.for_tenant(tenant) }
    }

    /// Looks something up in a place of the user's. It has its place until it ends, also where nobody waits for it any more: so does its
    /// connection.
    async fn placed<T: Send + 'static>(
        &self,
        places: &UserPlaces,
        work: impl Future<Output = Result<T, ToolError>> + Send + 'static,
    ) -> Result<T, ToolError> {
        let Some((tenant, user)) = &self.user else { return work.await };
        places.task((tenant, user), work).await?
    }

    /// The rows of one SQL `SELECT`, as [`DocumentIndex::select`] gives them.
    ///
    /// # Errors
    /// When it is refused or wrong, or the store fails.
    pub async fn select(&self, sql: &str) -> Result<MetadataRows, ToolError> {
        let (index, sql) = (Arc::clone(&self.index), sql.to_owned());
        self.placed(&self.places.selects, async move { index.select(&sql).await }).await
    }

    /// The documents of each tenant that are open: that was asked for in the last ten minutes. Those of its chats are by themselves.
    pub fn in_use(&self) -> Vec<Self> {
        let opened = self.tenants.opened().into_iter();
        opened
            .map(|(tenant, index)| Self { index, is_of_chats: is_place_of_chats(&tenant), ..self.clone() })
            .collect()
    }

    /// Whether there is any document, as is known without asking the store. What others write is known a second or two later.
    pub fn are_there(&self) -> bool {
        self.contents().documents
    }

    /// The documents of the tenant that a request is of, for [`Resources::insert_by_request`](registry_core::Resources::insert_by_request): a
    /// tool gets no others, and comes on with the first, or the first of the chat that the request is in.
    ///
    /// # Errors
    /// Why tools have no documents: there are none of the tenant yet.
    pub fn for_request(&self, context: &ToolContext) -> Result<Self, String> {
        let documents = self.for_user((context.tenant(), context.caller().user.as_str()));
        match documents.are_there() || documents.of_request_chat(context).is_some() {
            true => Ok(documents),
            false => Err(missing("there are none yet; add some with", "add", "PATH…", context)),
        }
    }

    /// The graph of names in the documents of the tenant that a request is of, as [`for_request`](Self::for_request) gives the documents.
    ///
    /// # Errors
    /// Why tools have no graph: there are no documents, or no model has extracted names from them.
    pub fn graph_for_request(&self, context: &ToolContext) -> Result<DocumentGraph, String> {
        let documents = self.for_request(context)?;
        match documents.contents().graph {
            true => Ok(DocumentGraph(documents)),
            false => Err(missing(
                "no model has extracted names from the documents yet; run",
                "extract",
                "",
                context,
            )),
        }
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

/// What to do about something that a tenant has not.
fn missing(reason: &str, command: &str, arguments: &str, context: &ToolContext) -> String {
    let whose = match context.tenant() {
        DEFAULT_TENANT => String::new(),
        tenant => format!(" --tenant {tenant:?}"),
    };
    let separator = if arguments.is_empty() { "" } else { " " };
    format!("{reason} `toolrack documents {command}{whose}{separator}{arguments}`")
}

/// The graph of names that a model extracted from documents, as a resource that is there once there is one.
#[derive(Debug, Clone)]
pub struct DocumentGraph(Documents);

impl DocumentGraph {
    /// What has to do with a name.
    ///
    /// # Errors
    /// When no document has the name, which lists those that are near, or the store fails.
    pub async fn search(&self, query: &GraphQuery) -> Result<Graph, ToolError> {
        let Documents { index, places, .. } = &self.0;
        let (index, query) = (Arc::clone(index), query.clone());
        self.0.placed(&places.words, async move { index.graph(&query).await }).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{sync::oneshot, time::timeout};

    use super::*;

    const SOON: Duration = Duration::from_millis(200);
    const ADA: (&str, &str) = ("default", "ada");

    #[tokio::test]
    async fn a40_a_user_looks_up_one_thing_of_each_kind_at_once_and_holds_up_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let documents = Documents::in_file(folder.path().join("documents.db"));
        let text = b"Green tea is steeped at 75 degrees.";
        documents.add(read::document("tea.txt", DocumentKind::Text, text, None).unwrap()).await.unwrap();
        let query = GraphQuery { entity: "tea".into(), depth: 1, relation: None, limit: 1 };
        let waits = async |user| {
            let documents = documents.for_user(("default", user));
            let graph = DocumentGraph(documents.clone());
            [
                timeout(SOON, documents.search("tea", 1, &DocumentFilter::default())).await.is_err(),
                timeout(SOON, graph.search(&query)).await.is_err(),
                timeout(SOON, documents.select("SELECT path FROM documents")).await.is_err(),
            ]
        };
        let words = documents.places.words.enter(ADA.0, ADA.1).await;
        assert_eq!([waits("ada").await, waits("bob").await], [[true, true, false], [false; 3]]);
        drop(words);
        let _selects = documents.places.selects.enter(ADA.0, ADA.1).await;
        assert_eq!([waits("ada").await, waits("bob").await], [[false, false, true], [false; 3]]);
    }

    #[tokio::test]
    async fn a40_what_is_looked_up_has_its_place_until_it_ends_also_where_nobody_waits() {
        let folder = tempfile::tempdir().unwrap();
        let documents = Documents::in_file(folder.path().join("documents.db")).for_user(ADA);
        let (ends, waits) = oneshot::channel::<()>();
        let work = async move { Ok(waits.await.is_ok()) };
        assert!(timeout(SOON, documents.placed(&documents.places.words, work)).await.is_err());
        let next = documents.placed(&documents.places.words, async { Ok(()) });
        let mut next = Box::pin(next);
        assert!(timeout(SOON, &mut next).await.is_err(), "the first has not ended");
        drop(ends);
        timeout(Duration::from_secs(20), next).await.unwrap().unwrap();
    }
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/documents.md")]
struct Guide;
