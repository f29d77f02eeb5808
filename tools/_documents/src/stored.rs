//! What each store of documents does under the same names, as the trait has it.

/// Has a store do by its own methods what [`DocumentIndex`](super::DocumentIndex) asks for. They are in several files, and a trait is
/// implemented in one. The names of its types are looked up where the store is.
macro_rules! document_index {
    ($store:ty) => {
        impl crate::DocumentIndex for $store {
            fn are_there(&self) -> bool {
                self.has_any()
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

            fn unextracted<'a>(
                &'a self,
                limit: usize,
                filter: &'a DocumentFilter,
            ) -> BoxFuture<'a, Result<Vec<UnreadPassage>, ToolError>> {
                Box::pin(self.passages_unextracted(limit, filter))
            }

            fn count_unextracted<'a>(
                &'a self,
                filter: &'a DocumentFilter,
            ) -> BoxFuture<'a, Result<usize, ToolError>> {
                Box::pin(self.count_passages_unextracted(filter))
            }

            fn keep_extracted<'a>(
                &'a self,
                model: &'a str,
                passages: Vec<(i64, Extracted)>,
            ) -> BoxFuture<'a, Result<(), ToolError>> {
                Box::pin(self.write_extracted(model, passages))
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

            fn select<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<MetadataRows, ToolError>> {
                Box::pin(self.select_metadata(sql))
            }

            fn graph<'a>(&'a self, query: &'a GraphQuery) -> BoxFuture<'a, Result<Graph, ToolError>> {
                Box::pin(walk(self, query))
            }
        }
    };
}

pub(super) use document_index;
