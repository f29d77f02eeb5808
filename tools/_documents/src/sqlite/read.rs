//! Listing and searching.

use sqlx::QueryBuilder;

use super::SqliteDocuments;
use crate::{
    DocumentFilter, Passage, StoredDocument,
    query::{TextQuery, fill_up},
    sql::narrow,
};
use registry_core::result::ToolError;

/// How much a word weighs in the title, in the section and in the text of a passage.
const WEIGHTS: &str = "2.0, 3.0, 1.0";

impl SqliteDocuments {
    pub(super) async fn list_documents(
        &self,
        filter: &DocumentFilter,
    ) -> Result<Vec<StoredDocument>, ToolError> {
        let mut query = QueryBuilder::new("SELECT * FROM document WHERE TRUE");
        narrow(&mut query, filter);
        query.push(" ORDER BY path");
        let rows = query.build_query_as().fetch_all(&self.opened().await?.readers).await;
        rows.map_err(|error| self.fault(error))
    }

    pub(super) async fn search_passages(
        &self,
        question: &str,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let query = TextQuery::of(question)?;
        let mut passages = self.matching(&query.any(), limit, filter).await?;
        if passages.len() < limit {
            let others = self.matching(&query.beginning(), limit, filter).await?;
            fill_up(&mut passages, others, limit);
        }
        Ok(passages)
    }

    async fn matching(
        &self,
        words: &str,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        // The best are known before their texts are read, and nothing but the words where nothing else is asked for.
        let mut query = QueryBuilder::new(
            "SELECT document.path, document.title, document.kind, chunk.section, chunk.first, chunk.last, chunk.text, -rank AS score
             FROM (SELECT chunk_words.rowid AS id, bm25(chunk_words, ",
        );
        query.push(WEIGHTS).push(") AS rank FROM chunk_words");
        if *filter != DocumentFilter::default() {
            query.push(
                " CROSS JOIN chunk ON chunk.id = chunk_words.rowid
                 CROSS JOIN document ON document.id = chunk.document",
            );
        }
        query.push(" WHERE chunk_words MATCH ").push_bind(words);
        narrow(&mut query, filter);
        query.push(" ORDER BY rank LIMIT ").push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        query.push(
            ") AS best
             CROSS JOIN chunk ON chunk.id = best.id
             CROSS JOIN document ON document.id = chunk.document
             ORDER BY rank, chunk.id",
        );
        let rows = query.build_query_as().fetch_all(&self.opened().await?.readers).await;
        rows.map_err(|error| self.fault(error))
    }
}
