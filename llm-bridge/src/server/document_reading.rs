//! Has models read the documents that were added, beside everything else.

use std::{sync::Arc, time::Duration};

use registry_core::{
    ToolError,
    documents::{DocumentFilter, Documents, Embedded, Extraction},
    model::Model,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::chat::UpstreamEmbedder;

/// So often it is seen what other processes have added.
const INTERVAL: Duration = Duration::from_secs(60);
/// After a fault it is waited longer each time, and at most so long.
const LONGEST_REST: Duration = Duration::from_secs(15 * 60);

/// Work on documents that nobody waits for: giving their passages vectors, and drawing names and relations from them.
pub(super) struct DocumentReading {
    pub(super) documents: Documents,
    /// The model that names and relations are drawn with, where that is wanted.
    pub(super) extracting: Option<Model>,
    /// Told of each document that this server adds.
    pub(super) added: Arc<Notify>,
}

impl DocumentReading {
    /// Looks at once, once a minute, and when a document was added. What is being read when `closing` is cancelled is read again by the
    /// next server.
    pub(super) async fn run(self, closing: CancellationToken) {
        closing.run_until_cancelled(self.read_on()).await;
    }

    async fn read_on(self) {
        let (mut embedding, mut extraction) = (Rest::default(), Rest::default());
        loop {
            for documents in self.documents.in_use().into_iter().filter(|documents| documents.are_there()) {
                if let Err(error) = embed(&documents).await {
                    embedding.failed("Some documents are found by their words alone for now", &error);
                } else {
                    embedding = Rest::default();
                }
                let Some(model) = &self.extracting else { continue };
                if let Err(error) = extract(&documents, model).await {
                    extraction.failed("Names are not drawn from some documents for now", &error);
                } else {
                    extraction = Rest::default();
                }
            }
            let rest = embedding.0.max(extraction.0);
            let _ = tokio::time::timeout(rest, self.added.notified()).await;
        }
    }
}

/// How long nothing is tried.
struct Rest(Duration);

impl Default for Rest {
    fn default() -> Self {
        Self(INTERVAL)
    }
}

impl Rest {
    fn failed(&mut self, told: &str, error: &ToolError) {
        // Not each time, as it may be long before somebody starts the model's server.
        if self.0 == INTERVAL {
            tracing::warn!("{told}: {}", error.message());
        }
        self.0 = (self.0 * 2).min(LONGEST_REST);
    }
}

async fn embed(documents: &Documents) -> Result<(), ToolError> {
    let Embedded { passages, .. } = documents.embed_unread(UpstreamEmbedder::BATCH, |_| {}).await?;
    if passages > 0 {
        tracing::info!("{passages} passages of documents were given vectors");
    }
    Ok(())
}

async fn extract(documents: &Documents, model: &Model) -> Result<(), ToolError> {
    let drawn = documents.extract_unread(model, &DocumentFilter::default(), |_| {}).await?;
    let Extraction { passages, names, relations, tokens, .. } = drawn;
    if passages > 0 {
        tracing::info!(
            "{names} names and {relations} relations were drawn from {passages} passages, with {tokens} tokens"
        );
    }
    Ok(())
}
