#![cfg(feature = "documents")]

use registry_core::prelude::*;
use toolrack_documents::{DocumentKind, Documents, Passage};

use crate::document_filter::DocumentsFilter;

/// Passages that were found.
#[output]
#[derive(Debug)]
struct Passages {
    /// Best first; empty where nothing was found.
    passages: Vec<FoundPassage>,
}

/// A passage, and where it is from.
#[output]
#[derive(Debug)]
struct FoundPassage {
    /// The document's path; that of a document of this chat begins with `this chat/`.
    source: String,
    /// The headings above the passage.
    #[serde(skip_serializing_if = "String::is_empty")]
    section: String,
    /// Its lines in the file, or its page.
    place: String,
    kind: DocumentKind,
    /// More is better.
    score: f64,
    text: String,
    /// Other documents that say the same, at most five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also_in: Vec<String>,
}

/// Search the user's documents. Use it for questions that they may answer. Returns the passages that match best; cite what you use by source, section and place.
///
/// On once the host provides [`Documents`].
#[tool(
    title = "Search the documents",
    version = "1.0.0",
    tags = ["documents", "search"],
    permission = Permission::User,
    reads = private | untrusted,
    sends = nothing,
    timeout = secs(15),
    example = "What do my documents say about the warranty?" => {"query": "warranty"}
)]
async fn retrieve_documents(
    ctx: &ToolContext,
    documents: Resource<Documents>,
    /// A question, or words of the passages.
    #[arg(length = 1..=1000)]
    query: &str,
    /// Maximum number of passages.
    #[arg(default = 5, range = 1..=20)]
    limit: u8,
    /// Search only these documents. Default: all.
    filter: Option<DocumentsFilter>,
) -> Result<Passages, ToolError> {
    let filter = filter.unwrap_or_default().read()?;
    ctx.status(format!("Searching the documents for \"{query}\""));
    let found = documents.search_for(ctx, query, limit.into(), &filter).await?;
    Ok(Passages { passages: found.into_iter().map(FoundPassage::from).collect() })
}

impl From<Passage> for FoundPassage {
    fn from(passage: Passage) -> Self {
        Self {
            place: passage.place(),
            source: passage.path,
            section: passage.section,
            kind: passage.kind,
            score: three_digits(passage.score),
            text: passage.text,
            also_in: passage.also_in,
        }
    }
}

/// Enough to compare by. Among few passages, where every word is common, scores are a millionth.
fn three_digits(score: f64) -> f64 {
    format!("{score:.2e}").parse().unwrap_or(score)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_documents::documents;

    async fn retrieve(query: &str, limit: u8, filter: Value) -> Result<Vec<FoundPassage>, ToolError> {
        let folder = tempfile::tempdir()?;
        let documents = Resource::new(documents(folder.path()).await);
        let filter = serde_json::from_value(filter)?;
        Ok(retrieve_documents(&ToolContext::default(), documents, query, limit, filter).await?.passages)
    }

    #[tokio::test]
    async fn p6_passages_can_be_cited() {
        let found = retrieve("How hot is green tea?", 5, Value::Null).await.unwrap();
        let best = found.first().unwrap();
        assert_eq!(
            (best.source.as_str(), best.section.as_str(), best.place.as_str()),
            ("drinks/tea.md", "Tea > Green", "line 5")
        );
        assert!(best.text.contains("75 degrees") && best.score > 0.0, "{best:?}");
        assert_eq!(retrieve("How hot is green tea?", 1, Value::Null).await.unwrap().len(), 1);
        assert!(retrieve("zebras", 5, Value::Null).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn p6_a_filter_narrows() {
        for (filter, count) in [
            (json!({"kind": "csv"}), 1),
            (json!({"path": "drinks"}), 1),
            (json!({"kind": "markdown", "path": "prices.csv"}), 0),
            (json!({"modified_since": "2026-01-01"}), 2),
            (json!({"modified_since": "2026-03-02", "modified_before": "2026-03-03T00:00:00Z"}), 0),
        ] {
            assert_eq!(retrieve("espresso", 5, filter.clone()).await.unwrap().len(), count, "{filter}");
        }
    }

    #[tokio::test]
    async fn p6_what_cannot_be_meant_is_reported() {
        let error = retrieve("?!", 5, Value::Null).await.unwrap_err();
        assert!(error.feedback().contains("no word to look for"), "{error}");
        let error = retrieve("tea", 5, json!({"modified_since": "last week"})).await.unwrap_err();
        assert!(
            error
                .feedback()
                .contains("`filter.modified_since`: `last week` is no date; write one as in 2026-01-31"),
            "{error}"
        );
        assert!(retrieve("tea", 5, json!({"kind": "docx"})).await.is_err());
    }
}
