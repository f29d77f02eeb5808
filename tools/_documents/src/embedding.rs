//! A model that makes vectors of texts, and finding by them.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};

use super::{
    DocumentFilter, DocumentIndex, Documents, Forgotten, Passage,
    rank_fusion::{reciprocal_rank_fusion, without_copies},
    vectors::normalised,
};
use registry_core::ToolError;

/// How long the embedder may take with a question.
const PATIENCE: Duration = Duration::from_secs(2);
/// So long it is not asked again after it could not be.
const REST: Duration = Duration::from_secs(5);
/// How long a request goes on that nobody waits for any more: a model is loaded from a disk within that.
const LOADING: Duration = Duration::from_secs(120);
/// So often it is looked at most whether vectors have another length than a question's.
const COMPARED_EACH: Duration = Duration::from_secs(60);
/// So many passages are looked through at most for such that are no copies.
const MOST: usize = 2000;
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
    pub(super) embedder: Arc<dyn Embedder>,
    /// Since it could not be asked: until when it is not asked again.
    outage: Arc<Mutex<Option<Instant>>>,
    /// Of a question that took too long the request goes on, for a model that is only now loaded; one at a time, and no other is asked.
    late: Arc<Semaphore>,
    /// When it was looked last whether the vectors that are kept have the length of a question's.
    compared: Mutex<Option<Instant>>,
}

impl Documents {
    /// The same documents, which are also found by what they mean: their passages are given vectors with [`Documents::embed_unread`].
    #[must_use]
    pub fn with_embedder(self, embedder: impl Embedder) -> Self {
        let embedding = Embedding {
            embedder: Arc::new(embedder),
            outage: Arc::default(),
            late: Arc::new(Semaphore::new(1)),
            compared: Mutex::default(),
        };
        Self { embedding: Some(Arc::new(embedding)), ..self }
    }

    /// The name of the embedder's model, where there is an embedder.
    pub fn embedding_model(&self) -> Option<&str> {
        self.embedding.as_ref().map(|embedding| embedding.embedder.model())
    }

    /// At most `limit` passages for a question or some words, best first. Of copies, which say the same under the same headings, there is
    /// one, with the paths of others.
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
        let vector = match &self.embedding {
            Some(embedding) => embedding.asked(query).await,
            None => None,
        };
        let mut wanted = if vector.is_some() { limit.saturating_mul(CANDIDATES) } else { limit };
        loop {
            let by_words = {
                let (index, query, filter) = (Arc::clone(&self.index), query.to_owned(), filter.clone());
                self.placed(&self.places.words, async move { index.search(&query, wanted, &filter).await })
            };
            let by_meaning = async {
                let (embedding, vector) = (Arc::clone(self.embedding.as_ref()?), vector.clone()?);
                let (index, filter) = (Arc::clone(&self.index), filter.clone());
                let compared = async move { Ok(embedding.nearest(&*index, &vector, wanted, &filter).await) };
                self.placed(&self.places.vectors, compared).await.ok().flatten()
            };
            let (by_words, by_meaning) = tokio::join!(by_words, by_meaning);
            let by_words = by_words?;
            let has_more = by_words.len().max(by_meaning.as_ref().map_or(0, Vec::len)) >= wanted;
            let mut found = match by_meaning {
                Some(by_meaning) => reciprocal_rank_fusion([by_words, by_meaning], limit),
                None => without_copies(by_words),
            };
            if found.len() >= limit || !has_more || wanted >= MOST {
                found.truncate(limit);
                return Ok(found);
            }
            wanted = wanted.saturating_mul(8).min(MOST);
        }
    }
}

impl Embedding {
    /// The vector of a question; `None` where it cannot be known now.
    async fn asked(&self, question: &str) -> Option<Vec<f32>> {
        let is_resting = self.outage.lock().is_some_and(|until| Instant::now() < until);
        if is_resting || self.late.available_permits() == 0 {
            return None;
        }
        let vector = self.vector(question).await;
        let mut outage = self.outage.lock();
        match vector {
            Ok(vector) => {
                if outage.take().is_some() {
                    tracing::info!("Documents are found by vectors of {} again", self.embedder.model());
                }
                Some(vector)
            }
            Err(error) => {
                if outage.is_none() {
                    tracing::warn!("Documents are found by their words alone for now: {error}");
                }
                // Another question may be taken at once where only this one is not.
                let rest = if matches!(error, EmbedError::Refused(_)) { Duration::ZERO } else { REST };
                *outage = Some(Instant::now() + rest);
                None
            }
        }
    }

    async fn vector(&self, question: &str) -> Result<Vec<f32>, EmbedError> {
        let (embedder, texts) = (Arc::clone(&self.embedder), vec![question.to_owned()]);
        let mut asked = Box::pin(async move { embedder.embed(texts, TextRole::Query).await });
        let Ok(vectors) = timeout(PATIENCE, &mut asked).await else {
            // A server that loads a model for a request stops where nobody waits for it any more.
            if let Ok(permit) = Arc::clone(&self.late).try_acquire_owned() {
                let outage = Arc::clone(&self.outage);
                tokio::spawn(async move {
                    if let Ok(Ok(_)) = timeout(LOADING, asked).await {
                        *outage.lock() = Some(Instant::now());
                    }
                    drop(permit);
                });
            }
            return Err(EmbedError::Unavailable(format!(
                "no vector of a question within {} s",
                PATIENCE.as_secs()
            )));
        };
        let vector = vectors?.into_iter().next().and_then(normalised);
        vector.ok_or_else(|| EmbedError::Refused("the vector of the question points nowhere".to_owned()))
    }

    /// The passages that are nearest; `None` where they cannot be known now.
    async fn nearest(
        &self,
        index: &dyn DocumentIndex,
        vector: &[f32],
        limit: usize,
        filter: &DocumentFilter,
    ) -> Option<Vec<Passage>> {
        let found = index.nearest(self.embedder.model(), vector, limit, filter).await;
        // Of this tenant alone, so that it says nothing of the embedder.
        let warn = |error: &ToolError| tracing::warn!("Found by words alone: {}", error.message());
        let found = found.inspect_err(warn).ok()?;
        if found.is_empty() && *filter == DocumentFilter::default() {
            self.forget_others(index, vector.len()).await;
        }
        Some(found)
    }

    /// Forgets vectors that have another length than a question's: the model's name stands for another model now.
    async fn forget_others(&self, index: &dyn DocumentIndex, length: usize) {
        let now = Instant::now();
        let before = self.compared.lock().replace(now);
        if before.is_some_and(|before| now < before + COMPARED_EACH) {
            return;
        }
        let (model, all) = (self.embedder.model(), DocumentFilter::default());
        match index.forget_vectors(model, Forgotten::OtherThan(length), &all).await {
            Ok(0) => {}
            Ok(count) => tracing::warn!(
                "{model} makes vectors of {length} numbers now: those of {count} passages, of another length, are made again"
            ),
            Err(error) => tracing::warn!("Vectors of another length are not removed: {}", error.message()),
        }
    }
}
