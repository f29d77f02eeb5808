//! A model that makes vectors of texts, and finding by them.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::{
    DocumentFilter, DocumentIndex, Documents, Passage, rank_fusion::reciprocal_rank_fusion,
    vectors::normalised,
};
use registry_core::ToolError;

/// How long the embedder may take with a question.
const PATIENCE: Duration = Duration::from_secs(2);
/// So long it is not asked again after it could not be.
const REST: Duration = Duration::from_secs(5);
/// So many passages are taken of each list for each that is wanted: what is not the best in either list may be so in both.
const CANDIDATES: usize = 4;

/// Makes a vector of a text, such that texts of one meaning have vectors of one direction.
#[async_trait]
pub trait Embedder: Send + Sync + 'static {
    /// The name of what makes the vectors of passages. Vectors of different names are never compared, so whatever changes a passage's
    /// vector has to change the name.
    fn model(&self) -> &str;

    /// A vector for each text, in their order, all of one length and of finite numbers.
    ///
    /// Fails as a whole where one text fails.
    async fn embed(&self, texts: Vec<String>, role: TextRole) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// What a text is in a search; many models ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    /// What is looked for.
    Query,
    /// What is to be found.
    Passage,
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The embedder does not take these texts, as where one is too long; it may take others.
    #[error("{0}")]
    Refused(String),
    /// The embedder takes no text now.
    #[error("{0}")]
    Unavailable(String),
}

/// The embedder of documents, and whether it could be asked.
pub(super) struct Embedding {
    pub(super) embedder: Box<dyn Embedder>,
    /// Since it could not be asked: until when it is not asked again.
    outage: Mutex<Option<Instant>>,
}

impl Documents {
    /// The same documents, which are also found by what they mean: their passages are given vectors with [`Documents::embed_unread`].
    #[must_use]
    pub fn with_embedder(self, embedder: impl Embedder) -> Self {
        let embedding = Embedding { embedder: Box::new(embedder), outage: Mutex::new(None) };
        Self { embedding: Some(Arc::new(embedding)), ..self }
    }

    /// The name of the embedder's model, where there is an embedder.
    pub fn embedding_model(&self) -> Option<&str> {
        self.embedding.as_ref().map(|embedding| embedding.embedder.model())
    }

    /// At most `limit` passages for a question or some words, best first.
    ///
    /// Without an embedder they are those of [`DocumentIndex::search`], with its scores. With one, those are put together with the passages
    /// whose vectors are nearest, by reciprocal rank fusion: the score is the sum of 1 / (60 + rank) over both lists. Where the embedder
    /// cannot be asked, or takes more than 2 s, the passages are found by their words alone.
    ///
    /// # Errors
    /// When there is no word to look for, or the store fails.
    pub async fn search(
        &self,
        query: &str,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let Some(embedding) = &self.embedding else {
            return self.index.search(query, limit, filter).await;
        };
        let candidates = limit.saturating_mul(CANDIDATES);
        let by_words = self.index.search(query, candidates, filter);
        let by_meaning = embedding.nearest(&*self.index, query, candidates, filter);
        let (by_words, by_meaning) = tokio::join!(by_words, by_meaning);
        let mut by_words = by_words?;
        Ok(match by_meaning {
            Some(by_meaning) => reciprocal_rank_fusion([by_words, by_meaning], limit),
            None => {
                by_words.truncate(limit);
                by_words
            }
        })
    }
}

impl Embedding {
    /// `None` where they cannot be known now.
    async fn nearest(
        &self,
        index: &dyn DocumentIndex,
        question: &str,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Option<Vec<Passage>> {
        if self.outage.lock().is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let vector = self.vector(question).await;
        let before = *self.outage.lock();
        match vector {
            Ok(vector) => {
                if before.is_some() {
                    tracing::info!("Documents are found by vectors of {} again", self.embedder.model());
                    *self.outage.lock() = None;
                }
                let found = index.nearest(self.embedder.model(), &vector, limit, filter).await;
                // Of this tenant alone, so that it says nothing of the embedder.
                let warn = |error: &ToolError| tracing::warn!("Found by words alone: {}", error.message());
                found.inspect_err(warn).ok()
            }
            Err(error) => {
                if before.is_none() {
                    tracing::warn!("Documents are found by their words alone for now: {error}");
                }
                // Another question may be taken at once where only this one is not.
                let rest = if matches!(error, EmbedError::Refused(_)) { Duration::ZERO } else { REST };
                *self.outage.lock() = Some(Instant::now() + rest);
                None
            }
        }
    }

    async fn vector(&self, question: &str) -> Result<Vec<f32>, EmbedError> {
        let asked = self.embedder.embed(vec![question.to_owned()], TextRole::Query);
        let vectors = timeout(PATIENCE, asked).await.map_err(|_| {
            EmbedError::Unavailable(format!("no vector of a question within {} s", PATIENCE.as_secs()))
        })??;
        let vector = vectors.into_iter().next().and_then(normalised);
        vector.ok_or_else(|| EmbedError::Refused("the vector of the question points nowhere".to_owned()))
    }
}
