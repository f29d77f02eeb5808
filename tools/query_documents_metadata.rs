#![cfg(feature = "documents")]

use registry_core::prelude::*;
use toolrack_documents::{Documents, MetadataRows};

/// Query metadata of the user's documents (how many, which, how large, how old) with one SQLite SELECT over the view documents(path TEXT, title TEXT, kind TEXT [markdown|text|html|csv|pdf|office], bytes INTEGER, passages INTEGER, language TEXT, modified TEXT [UTC, 2026-01-31T08:00:00Z], added TEXT [UTC], hash TEXT, metadata TEXT [JSON, such as metadata ->> 'author']). For what is written in documents use retrieve_documents.
///
/// On once the host provides [`Documents`].
#[tool(
    title = "Query the documents' metadata",
    version = "1.0.0",
    tags = ["documents", "sql"],
    permission = Permission::User,
    reads = private | untrusted,
    sends = nothing,
    timeout = secs(10)
)]
async fn query_documents_metadata(
    ctx: &ToolContext,
    documents: Resource<Documents>,
    /// One SELECT. It may use aggregates, window functions, WITH, and functions of texts, dates and JSON; at most 200 rows are returned.
    #[arg(length = 1.., example = "SELECT kind, count(*) FROM documents GROUP BY kind")]
    sql: &str,
) -> Result<MetadataRows, ToolError> {
    ctx.status("Looking through the list of documents");
    documents.select(sql).await
}

#[cfg(test)]
mod tests {
    use registry_core::{Caller, Registry};
    use toolrack_documents::METADATA_COLUMNS;

    use super::*;
    use crate::test_documents::documents;

    #[tokio::test]
    async fn p6_a_select_is_answered_and_anything_else_refused() {
        let folder = tempfile::tempdir().unwrap();
        let documents = Resource::new(documents(folder.path()).await);
        let query =
            async |sql: &str| query_documents_metadata(&ToolContext::default(), documents.clone(), sql).await;
        let answer = query("SELECT kind, count(*) FROM documents GROUP BY kind ORDER BY kind").await.unwrap();
        assert_eq!(json!(answer.rows), json!([["csv", 1], ["markdown", 1], ["text", 1]]));
        for (sql, expected) in [
            ("SELECT author FROM documents", "SQLite says: no such column: author"),
            ("SELECT * FROM sqlite_master", "there is only `documents`"),
            ("DROP TABLE document", "only SELECT is allowed"),
        ] {
            let error = query(sql).await.unwrap_err();
            assert!(error.feedback().contains(expected), "{sql}: {error}");
        }
        assert_eq!(query("SELECT count(*) FROM documents").await.unwrap().rows, [[Value::from(3)]]);
    }

    #[tokio::test]
    async fn p6_the_description_lists_every_column_and_its_type() {
        let registry = Registry::builder().build().unwrap();
        let tool = registry.get("query_documents_metadata").unwrap();
        let description = tool.description();
        for (name, type_of, _) in METADATA_COLUMNS {
            assert!(description.contains(&format!("{name} {type_of}")), "{name}: {description}");
        }
        let why = registry.why_not(&tool, &registry.context(Caller::new("ada", Permission::User))).unwrap();
        assert!(why.message().contains("needs Documents"), "{why}");
    }
}
