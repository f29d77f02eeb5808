//! What models draw from the passages, beside what is known by its form.

use sqlx::QueryBuilder;

use super::{PostgresDocuments, write::without_nul};
use crate::{
    DocumentFilter, Extracted, UnreadPassage,
    rows::{name_rows, relation_rows},
    sql::narrow,
};
use registry_core::result::ToolError;

impl PostgresDocuments {
    pub(super) async fn passages_unextracted(
        &self,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<UnreadPassage>, ToolError> {
        let mut query = QueryBuilder::new(
            "SELECT document_chunk.id, title, section, text
             FROM document_chunk JOIN document ON document.id = document_chunk.document
             WHERE NOT EXISTS (SELECT 1 FROM document_extraction WHERE chunk = document_chunk.id) AND tenant = ",
        );
        query.push_bind(&self.tenant);
        narrow(&mut query, filter);
        query.push(" ORDER BY document_chunk.id LIMIT ").push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        let rows = query
            .build_query_as()
            .fetch_all(self.server.opened().await?)
            .await
            .map_err(|error| self.fault(error))?;
        Ok(rows)
    }

    pub(super) async fn count_passages_unextracted(
        &self,
        filter: &DocumentFilter,
    ) -> Result<usize, ToolError> {
        let mut query = QueryBuilder::new(
            "SELECT count(*) FROM document_chunk JOIN document ON document.id = document_chunk.document
             WHERE NOT EXISTS (SELECT 1 FROM document_extraction WHERE chunk = document_chunk.id) AND tenant = ",
        );
        query.push_bind(&self.tenant);
        narrow(&mut query, filter);
        let count = query.build_query_scalar().fetch_one(self.server.opened().await?).await;
        let count: i64 = count.map_err(|error| self.fault(error))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    pub(super) async fn write_extracted(
        &self,
        model: &str,
        passages: Vec<(i64, Extracted)>,
    ) -> Result<(), ToolError> {
        let model = without_nul(model);
        self.in_transaction(async |transaction| {
            for (passage, Extracted { names, relations }) in &passages {
                let marked = sqlx::query(
                    "INSERT INTO document_extraction (chunk, model)
                     SELECT document_chunk.id, $2 FROM document_chunk JOIN document ON document.id = document
                     WHERE document_chunk.id = $1 AND tenant = $3
                     ON CONFLICT (chunk) DO UPDATE SET model = excluded.model",
                )
                .bind(passage)
                .bind(&model)
                .bind(&self.tenant)
                .execute(&mut **transaction)
                .await?;
                if marked.rows_affected() == 0 {
                    continue;
                }
                let (names, relations) = (name_rows(names), relation_rows(relations));
                for (statement, rows) in [(NAMES, &names), (MENTIONS, &names), (RELATIONS, &relations)] {
                    sqlx::query(statement)
                        .bind(passage)
                        .bind(rows)
                        .bind(&self.tenant)
                        .execute(&mut **transaction)
                        .await?;
                }
            }
            Ok(())
        })
        .await
    }
}

// Of the rows in $2, each of the passage $1. By its form a name is no more than a name; a model knows what it is the name of. As two
// names may be one when they are looked up, the first of them counts.
const NAMES: &str = "
    INSERT INTO document_entity (tenant, key, name, kind)
    SELECT DISTINCT ON (key) $3, key, name, kind FROM json_to_recordset($2::json) AS (key text, name text, kind text)
    WHERE $1::bigint > 0 AND length(key) <= 500
    ON CONFLICT (tenant, key) DO UPDATE SET kind = excluded.kind WHERE document_entity.kind = 'name'";
const MENTIONS: &str = "
    INSERT INTO document_mention (entity, chunk, times)
    SELECT entity.id, $1, 1 FROM json_to_recordset($2::json) AS row (key text)
    JOIN document_entity AS entity ON entity.tenant = $3 AND entity.key = row.key
    ON CONFLICT DO NOTHING";
const RELATIONS: &str = "
    INSERT INTO document_relation (subject, relation, object, chunk)
    SELECT subject.id, relation, object.id, $1
    FROM json_to_recordset($2::json) AS row (subject text, relation text, object text)
    JOIN document_entity AS subject ON subject.tenant = $3 AND subject.key = row.subject
    JOIN document_entity AS object ON object.tenant = $3 AND object.key = row.object
    ON CONFLICT DO NOTHING";
