//! Gives passages their vectors.

use std::collections::HashSet;

use super::{Documents, EmbedError, Embedder, TextRole, UnreadPassage, chunk::SECTION_SEPARATOR};
use registry_core::ToolError;

/// What became of the passages that had no vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Embedded {
    /// So many have one now.
    pub passages: usize,
    /// So many the embedder does not take; they are not tried again with this model until that is [forgotten](crate::Forgotten::Refused).
    pub passed_over: usize,
}

impl Documents {
    /// Gives a vector to each passage that has none of the embedder's model, `batch` of them at a time. After each batch `progress` gets
    /// what was done so far. Without an embedder there is nothing to do.
    ///
    /// Each batch is kept before the next is begun: whoever drops the future loses one batch at most, and the next run goes on from there.
    /// A passage that the embedder refuses is tried again cut in half, and passed over where that is refused too while a short text is taken.
    ///
    /// # Errors
    /// When the embedder takes no text, or the store fails. What was done before stays.
    pub async fn embed_unread(
        &self,
        batch: usize,
        mut progress: impl FnMut(Embedded) + Send,
    ) -> Result<Embedded, ToolError> {
        let mut done = Embedded::default();
        let Some(embedding) = &self.embedding else { return Ok(done) };
        let embedder = &*embedding.embedder;
        let mut seen = HashSet::new();
        loop {
            let unread = self.index.without_vectors(embedder.model(), batch.max(1)).await?;
            let Some(first) = unread.first() else { return Ok(done) };
            if !seen.insert(first.id) {
                return Err(ToolError::failed(format!(
                    "passages lose the vectors of {} again; does another program give them vectors of another model?",
                    embedder.model()
                )));
            }
            let fault = |error: EmbedError| ToolError::unavailable(error.to_string());
            let mut vectors = Vec::new();
            for (passage, outcome) in unread.iter().zip(outcomes(embedder, &unread).await.map_err(fault)?) {
                match &outcome {
                    Ok(_) => done.passages += 1,
                    Err(refused) => {
                        log_refusal(passage, refused, done.passed_over == 0);
                        done.passed_over += 1;
                    }
                }
                vectors.push((passage.id, outcome.unwrap_or_default()));
            }
            self.index.keep_vectors(embedder.model(), vectors).await?;
            progress(done);
        }
    }
}

/// There may be thousands of them, and mostly for one reason.
fn log_refusal(passage: &UnreadPassage, refused: &str, is_first: bool) {
    let UnreadPassage { title, section, .. } = passage;
    match is_first {
        true => tracing::warn!(
            "A passage of \"{title}\", {section:?}, and perhaps others, are found by their words alone: {refused}"
        ),
        false => tracing::debug!("A passage of \"{title}\", {section:?}: {refused}"),
    }
}

/// A passage's vector, or why the embedder does not take the passage.
type Outcome = Result<Vec<f32>, String>;

/// What becomes of each passage.
async fn outcomes(embedder: &dyn Embedder, passages: &[UnreadPassage]) -> Result<Vec<Outcome>, EmbedError> {
    match embed(embedder, passages.iter().map(text).collect()).await {
        Ok(vectors) => Ok(vectors.into_iter().map(Ok).collect()),
        Err(EmbedError::Refused(_)) => {
            let mut outcomes = Vec::new();
            for passage in passages {
                outcomes.push(outcome(embedder, passage).await?);
            }
            Ok(outcomes)
        }
        Err(unavailable) => Err(unavailable),
    }
}

/// What becomes of a passage that was refused together with others.
async fn outcome(embedder: &dyn Embedder, passage: &UnreadPassage) -> Result<Outcome, EmbedError> {
    let whole = text(passage);
    let half = whole.chars().take(whole.chars().count() / 2).collect();
    let mut refused = String::new();
    for text in [whole, half] {
        match embed(embedder, vec![text]).await {
            Ok(vectors) => return Ok(Ok(vectors.into_iter().next().unwrap_or_default())),
            Err(EmbedError::Refused(reason)) => refused = reason,
            Err(unavailable) => return Err(unavailable),
        }
    }
    // Whoever does not take this either takes nothing, and it is not for the passage.
    embed(embedder, vec!["text".to_owned()]).await?;
    Ok(Err(refused))
}

async fn embed(embedder: &dyn Embedder, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
    let count = texts.len();
    let vectors = embedder.embed(texts, TextRole::Passage).await?;
    match vectors.len() == count {
        true => Ok(vectors),
        false => Err(EmbedError::Unavailable(format!("{} vectors for {count} texts", vectors.len()))),
    }
}

/// What is embedded of a passage: its words alone often leave out what they are about.
fn text(passage: &UnreadPassage) -> String {
    let UnreadPassage { title, section, text, .. } = passage;
    let is_titled = section.strip_prefix(title.as_str());
    match is_titled.is_some_and(|rest| rest.is_empty() || rest.starts_with(SECTION_SEPARATOR)) {
        true => format!("{section}\n\n{text}"),
        false if section.is_empty() => format!("{title}\n\n{text}"),
        false => format!("{title}{SECTION_SEPARATOR}{section}\n\n{text}"),
    }
}
