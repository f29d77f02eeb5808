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
    Added, Document, DocumentFilter, DocumentIndex, Extracted, Graph, GraphQuery, MetadataRows, Passage,
    StoredDocument, UnreadPassage, loaded_vectors::LoadedVectors, walk::walk,
};
use crate::{execute::BoxFuture, result::ToolError};
pub(super) use server::Server;

/// The documents of a tenant.
pub(super) struct PostgresDocuments {
    server: Arc<Server>,
    tenant: String,
    /// The rows that SQL of others is about.
    metadata: Mutex<Option<SqliteConnection>>,
    vectors: LoadedVectors,
}

impl PostgresDocuments {
    pub(super) fn new(server: Arc<Server>, tenant: &str) -> Self {
        Self {
            server,
            tenant: tenant.to_owned(),
            metadata: Mutex::default(),
            vectors: LoadedVectors::default(),
        }
    }

    /// A failure of the store. The model is not told where it is.
    fn fault(&self, error: impl std::fmt::Display) -> ToolError {
        self.server.fault(error)
    }
}

impl DocumentIndex for PostgresDocuments {
    fn are_there(&self) -> bool {
        presence::ask(&self.server, &self.tenant)
    }

    fn add(&self, document: Document) -> BoxFuture<'_, Result<Added, ToolError>> {
        Box::pin(self.write_document(document))
    }

    fn has<'a>(&'a self, path: &'a str, hash: &'a str) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(self.has_document(path, hash))
    }

    fn remove<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<String>, ToolError>> {
        Box::pin(self.remove_documents(path))
    }

    fn list<'a>(
        &'a self,
        filter: &'a DocumentFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredDocument>, ToolError>> {
        Box::pin(self.list_documents(filter))
    }

    fn search<'a>(
        &'a self,
        query: &'a str,
        limit: usize,
        filter: &'a DocumentFilter,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
        Box::pin(self.search_passages(query, limit, filter))
    }

    fn select<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<MetadataRows, ToolError>> {
        Box::pin(self.select_metadata(sql))
    }

    fn without_vectors<'a>(
        &'a self,
        model: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<UnreadPassage>, ToolError>> {
        Box::pin(self.passages_without_vectors(model, limit))
    }

    fn keep_vectors<'a>(
        &'a self,
        model: &'a str,
        vectors: Vec<(i64, Vec<f32>)>,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.write_vectors(model, vectors))
    }

    fn nearest<'a>(
        &'a self,
        model: &'a str,
        vector: &'a [f32],
        limit: usize,
        filter: &'a DocumentFilter,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
        Box::pin(self.nearest_passages(model, vector, limit, filter))
    }

    fn unextracted<'a>(
        &'a self,
        _model: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<UnreadPassage>, ToolError>> {
        Box::pin(async move { self.passages_unextracted(limit, &DocumentFilter::default()).await })
    }

    fn unextracted_in<'a>(
        &'a self,
        _model: &'a str,
        limit: usize,
        filter: &'a DocumentFilter,
    ) -> BoxFuture<'a, Result<Vec<UnreadPassage>, ToolError>> {
        Box::pin(self.passages_unextracted(limit, filter))
    }

    fn keep_extracted<'a>(
        &'a self,
        model: &'a str,
        passages: Vec<(i64, Extracted)>,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.write_extracted(model, passages))
    }

    fn graph<'a>(&'a self, query: &'a GraphQuery) -> BoxFuture<'a, Result<Graph, ToolError>> {
        Box::pin(walk(self, query))
    }
}
