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
/// So long it is read of one tenant's documents before it is another's turn. Of what is cut off, what was read is kept.
const TURN: Duration = Duration::from_secs(120);
/// After a fault it is waited longer each time, and at most so long.
const LONGEST_REST: Duration = Duration::from_secs(15 * 60);

/// What a model does with documents.
pub(super) enum Work {
    /// Gives their passages vectors.
    Embed,
    /// Draws names and relations from them.
    Extract(Model),
}

/// Work on documents that nobody waits for. Each kind is a task of its own, as one may take hours.
pub(super) struct DocumentReading {
    pub(super) documents: Documents,
    pub(super) work: Work,
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
        let mut rest = INTERVAL;
        loop {
            // Made before anything is looked for, so that nothing is added in between.
            let added = self.added.notified();
            tokio::pin!(added);
            added.as_mut().enable();
            let (mut failed, mut is_unfinished) = (None, false);
            for documents in self.documents.in_use().into_iter().filter(|documents| documents.are_there()) {
                // So that no tenant waits for all that another has.
                match tokio::time::timeout(TURN, self.read(&documents)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => failed = Some(error),
                    Err(_) => is_unfinished = true,
                }
            }
            if let Some(error) = &failed {
                // Not each time, as it may be long before somebody starts the model's server.
                if rest == INTERVAL {
                    tracing::warn!("{}: {}", self.work.told(), error.message());
                }
                rest = (rest * 2).min(LONGEST_REST);
            } else {
                rest = INTERVAL;
            }
            if !is_unfinished {
                let _ = tokio::time::timeout(rest, added).await;
            }
        }
    }

    async fn read(&self, documents: &Documents) -> Result<(), ToolError> {
        match &self.work {
            Work::Embed => embed(documents).await,
            Work::Extract(model) => extract(documents, model).await,
        }
    }
}

impl Work {
    /// What it is to the operator when it fails.
    fn told(&self) -> &'static str {
        match self {
            Self::Embed => "Some documents are found by their words alone for now",
            Self::Extract(_) => "Names are not drawn from some documents for now",
        }
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
