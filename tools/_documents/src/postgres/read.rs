//! Listing and searching.

use sqlx::{Postgres, QueryBuilder};

use super::{PostgresDocuments, words::queries};
use crate::{
    DocumentFilter, Passage, StoredDocument,
    query::{TextQuery, fill_up},
    sql::narrow,
};
use registry_core::result::ToolError;

/// The passages that have any of the words in $2, ranked by BM25 as SQLite's FTS5 does it: `k1` 1.2, `b` 0.75, and a word in the title
/// counts 2, in the section 3, in the text 1.
///
/// How often a word is in a text is told by `ts_rank`, the one function that looks at a single word without unpacking all of them. Of a
/// word that is there n times it makes 6/π² (1 + 1/4 + … + 1/n²), so that n follows; what it makes of a phrase, and of a beginning that several words
/// have, says only that it is there.
/// It counts the places in their order, which is why those of the text come first.
const RANKED: &str = "
    WITH total AS (
        SELECT sum(passages)::float8 AS passages, greatest(sum(words)::float8 / nullif(sum(passages), 0), 1) AS length
        FROM document WHERE tenant = $1
    ),
    asked AS (
        SELECT number, query, CASE WHEN numnode(query) = 1 AND text NOT LIKE '%:*' THEN pi() ^ 2 / 6 END AS sum
        FROM unnest($2::text[]) WITH ORDINALITY AS given (text, number), to_tsquery('toolrack_words', text) AS query
        WHERE numnode(query) > 0
    ),
    hit AS MATERIALIZED (
        SELECT number, chunk, length::float8 AS length, sum, ts_rank('{1, 0, 0, 0}', words, query) AS in_text,
            3 * ts_rank('{0, 0, 1, 0}', words, query) + 2 * ts_rank('{0, 0, 0, 1}', words, query) AS in_heading
        FROM asked JOIN document_words ON tenant = $1 AND words @@ query
    ),
    counted AS (
        SELECT number, chunk, length, in_heading * coalesce(sum, 1)
            + CASE WHEN in_text = 0 OR sum IS NULL THEN in_text
                ELSE round(1 / (sum * greatest(1 - in_text, 0.001)) - 0.5) END AS times
        FROM hit
    ),
    rarity AS (
        SELECT number, greatest(ln((total.passages - count(*) + 0.5) / (count(*)::float8 + 0.5)), 0.000001) AS weight
        FROM hit, total GROUP BY number, total.passages
    ),
    scored AS (
        SELECT chunk, sum(weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * counted.length / total.length))) AS score
        FROM counted JOIN rarity USING (number), total GROUP BY chunk
    ),
    best AS (SELECT scored.chunk, score FROM scored";

impl PostgresDocuments {
    pub(super) async fn list_documents(
        &self,
        filter: &DocumentFilter,
    ) -> Result<Vec<StoredDocument>, ToolError> {
        let mut query = QueryBuilder::new("SELECT * FROM document WHERE tenant = ");
        query.push_bind(&self.tenant);
        narrow(&mut query, filter);
        query.push(" ORDER BY path");
        let rows = query.build_query_as().fetch_all(self.server.opened().await?).await;
        rows.map_err(|error| self.fault(error))
    }

    pub(super) async fn search_passages(
        &self,
        question: &str,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let query = TextQuery::of(question)?;
        let mut passages = self.matching(queries(&query, false), limit, filter).await?;
        if passages.len() < limit {
            let others = self.matching(queries(&query, true), limit, filter).await?;
            fill_up(&mut passages, others, limit);
        }
        Ok(passages)
    }

    async fn matching(
        &self,
        words: Vec<String>,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let arguments = (self.tenant.clone(), words);
        let mut query = ranked(arguments).map_err(|error| self.fault(error))?;
        // The best are known before their texts are read, and nothing but the words where nothing else is asked for.
        if *filter != DocumentFilter::default() {
            query.push(
                " JOIN document_chunk ON document_chunk.id = scored.chunk
                 JOIN document ON document.id = document_chunk.document WHERE TRUE",
            );
            narrow(&mut query, filter);
        }
        query
            .push(" ORDER BY score DESC, scored.chunk LIMIT ")
            .push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        query.push(
            ") SELECT path, title, kind, section, first, last, text, score FROM best
             JOIN document_chunk ON document_chunk.id = best.chunk
             JOIN document ON document.id = document_chunk.document
             ORDER BY score DESC, best.chunk",
        );
        let rows = query.build_query_as().fetch_all(self.server.opened().await?).await;
        rows.map_err(|error| self.fault(error))
    }
}

/// The beginning of the statement, with its first two parameters.
fn ranked((tenant, words): (String, Vec<String>)) -> Result<QueryBuilder<Postgres>, sqlx::Error> {
    use sqlx::{Arguments, postgres::PgArguments};

    let mut arguments = PgArguments::default();
    arguments.add(tenant).map_err(sqlx::Error::Encode)?;
    arguments.add(words).map_err(sqlx::Error::Encode)?;
    Ok(QueryBuilder::with_arguments(RANKED, arguments))
}
