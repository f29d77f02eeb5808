//! What models draw from the passages, beside what is known by its form.

use sqlx::QueryBuilder;

use super::SqliteDocuments;
use crate::{
    DocumentFilter, Extracted, UnreadPassage,
    rows::{name_rows, relation_rows},
    sql::narrow,
};
use registry_core::result::ToolError;

impl SqliteDocuments {
    pub(super) async fn passages_unextracted(
        &self,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<UnreadPassage>, ToolError> {
        let mut query = QueryBuilder::new(
            "SELECT chunk.id, document.title, chunk.section, chunk.text
             FROM chunk CROSS JOIN document ON document.id = chunk.document
             WHERE NOT EXISTS (SELECT 1 FROM extraction WHERE extraction.chunk = chunk.id)",
        );
        narrow(&mut query, filter);
        query.push(" ORDER BY chunk.id LIMIT ").push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        let rows = query
            .build_query_as()
            .fetch_all(&self.opened().await?.readers)
            .await
            .map_err(|error| self.fault(error))?;
        Ok(rows)
    }

    pub(super) async fn count_passages_unextracted(
        &self,
        filter: &DocumentFilter,
    ) -> Result<usize, ToolError> {
        let mut query = QueryBuilder::new(
            "SELECT count(*) FROM chunk CROSS JOIN document ON document.id = chunk.document
             WHERE NOT EXISTS (SELECT 1 FROM extraction WHERE extraction.chunk = chunk.id)",
        );
        narrow(&mut query, filter);
        let count = query.build_query_scalar().fetch_one(&self.opened().await?.readers).await;
        let count: i64 = count.map_err(|error| self.fault(error))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    pub(super) async fn write_extracted(
        &self,
        model: &str,
        passages: Vec<(i64, Extracted)>,
    ) -> Result<(), ToolError> {
        self.in_transaction(async |transaction| {
            for (passage, Extracted { names, relations }) in &passages {
                let marked = sqlx::query(
                    "INSERT OR REPLACE INTO extraction (chunk, model) SELECT id, $2 FROM chunk WHERE id = $1",
                )
                .bind(passage)
                .bind(model)
                .execute(&mut **transaction)
                .await?;
                if marked.rows_affected() == 0 {
                    continue;
                }
                let (names, relations) = (name_rows(names), relation_rows(relations));
                for (statement, rows) in [(NAMES, &names), (MENTIONS, &names), (RELATIONS, &relations)] {
                    sqlx::query(statement).bind(passage).bind(rows).execute(&mut **transaction).await?;
                }
            }
            Ok(())
        })
        .await
    }
}

// Of the rows in $2, each of the passage $1. By its form a name is no more than a name; a model knows what it is the name of.
const NAMES: &str = "
    INSERT INTO entity (key, name, kind)
    SELECT value ->> 'key', value ->> 'name', value ->> 'kind' FROM json_each($2) WHERE $1 > 0
    ON CONFLICT (key) DO UPDATE SET kind = excluded.kind WHERE entity.kind = 'name'";
const MENTIONS: &str = "
    INSERT INTO mention (entity, chunk, times)
    SELECT entity.id, $1, 1 FROM json_each($2) CROSS JOIN entity ON entity.key = value ->> 'key' WHERE TRUE
    ON CONFLICT DO NOTHING";
const RELATIONS: &str = "
    INSERT INTO relation (subject, relation, object, chunk)
    SELECT subject.id, value ->> 'relation', object.id, $1
    FROM json_each($2)
    CROSS JOIN entity AS subject ON subject.key = value ->> 'subject'
    CROSS JOIN entity AS object ON object.key = value ->> 'object'
    WHERE TRUE
    ON CONFLICT DO NOTHING";
