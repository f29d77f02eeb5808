//! Listing and searching.

use jiff::Timestamp;
use sqlx::{FromRow, QueryBuilder, Row, Sqlite, sqlite::SqliteRow};

use super::{SqliteDocuments, write::folder};
use crate::{
    documents::{DocumentFilter, DocumentKind, Passage, StoredDocument, query::TextQuery},
    result::ToolError,
};

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
        let Some(query) = TextQuery::new(question) else {
            return Err(ToolError::invalid("there is no word to look for; say what the passages are about"));
        };
        let mut passages = self.matching(&query.any(), limit, filter).await?;
        if passages.len() < limit {
            for passage in self.matching(&query.beginning(), limit, filter).await? {
                // A long line and a page of a PDF are several passages with one place.
                let is = |known: &Passage| known.first == passage.first && known.text == passage.text;
                let is_known = passages.iter().any(|known| known.path == passage.path && is(known));
                if passages.len() < limit && !is_known {
                    passages.push(passage);
                }
            }
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

/// Leaves the documents that pass the filter.
pub(super) fn narrow(query: &mut QueryBuilder<Sqlite>, filter: &DocumentFilter) {
    if !filter.kinds.is_empty() {
        let mut kinds = query.push(" AND document.kind IN (").separated(", ");
        for kind in &filter.kinds {
            kinds.push_bind(kind.as_str());
        }
        query.push(")");
    }
    if let Some(path) = &filter.below {
        let folder = folder(path);
        query.push(" AND (document.path = ").push_bind(path.clone());
        query
            .push(" OR substr(document.path, 1, ")
            .push_bind(i64::try_from(folder.chars().count()).unwrap_or(0));
        query.push(") = ").push_bind(folder).push(")");
    }
    // Times are kept to the second and sort as texts.
    let text = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    if let Some(since) = filter.modified_since {
        query.push(" AND document.modified >= ").push_bind(text(since));
    }
    if let Some(before) = filter.modified_before {
        query.push(" AND document.modified < ").push_bind(text(before));
    }
}

fn kind(row: &SqliteRow) -> Result<DocumentKind, sqlx::Error> {
    let name: String = row.try_get("kind")?;
    name.parse().map_err(|error: String| sqlx::Error::Decode(error.into()))
}

impl FromRow<'_, SqliteRow> for Passage {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            path: row.try_get("path")?,
            title: row.try_get("title")?,
            kind: kind(row)?,
            section: row.try_get("section")?,
            first: row.try_get("first")?,
            last: row.try_get("last")?,
            score: row.try_get("score")?,
            text: row.try_get("text")?,
        })
    }
}

impl FromRow<'_, SqliteRow> for StoredDocument {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let time =
            |text: String| text.parse::<Timestamp>().map_err(|error| sqlx::Error::Decode(error.into()));
        let size = |number: i64| u64::try_from(number).unwrap_or_default();
        let metadata: String = row.try_get("metadata")?;
        Ok(Self {
            path: row.try_get("path")?,
            title: row.try_get("title")?,
            kind: kind(row)?,
            bytes: size(row.try_get("bytes")?),
            passages: size(row.try_get("passages")?),
            language: row.try_get("language")?,
            modified: row.try_get::<Option<String>, _>("modified")?.map(time).transpose()?,
            added: time(row.try_get("added")?)?,
            hash: row.try_get("hash")?,
            metadata: serde_json::from_str(&metadata).map_err(|error| sqlx::Error::Decode(error.into()))?,
        })
    }
}
