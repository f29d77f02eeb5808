//! Documents on a PostgreSQL server, for several servers that share them.

mod extraction;
mod graph;
mod presence;
mod read;
mod select;
mod server;
mod vectors;
mod words;
mod write;

use std::sync::Arc;

use sqlx::SqliteConnection;
use tokio::sync::Mutex;

use super::{
    Added, Document, DocumentFilter, Extracted, Graph, GraphQuery, MetadataRows, Passage, StoredDocument,
    UnreadPassage, loaded_vectors::LoadedVectors, stored::document_index, walk::walk,
};
use registry_core::{BoxFuture, result::ToolError};
pub(super) use server::Server;

/// The documents of a tenant.
pub(super) struct PostgresDocuments {
    server: Arc<Server>,
    tenant: String,
    /// The rows that SQL of others is about.
    metadata: Mutex<Option<SqliteConnection>>,
    writing: Mutex<()>,
    vectors: LoadedVectors,
}

impl PostgresDocuments {
    pub(super) fn new(server: Arc<Server>, tenant: &str) -> Self {
        let vectors = LoadedVectors::new(Arc::clone(&server.vector_memory));
        let tenant = tenant.to_owned();
        Self { server, tenant, metadata: Mutex::default(), writing: Mutex::default(), vectors }
    }

    fn has_any(&self) -> bool {
        presence::ask(&self.server, &self.tenant)
    }

    /// A failure of the store. The model is not told where it is.
    fn fault(&self, error: impl std::fmt::Display) -> ToolError {
        self.server.fault(error)
    }
}

document_index!(PostgresDocuments);
