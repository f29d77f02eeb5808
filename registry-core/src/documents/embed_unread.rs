//! Gives passages their vectors.

use std::collections::HashSet;

use super::{Documents, EmbedError, Embedder, TextRole, UnreadPassage, chunk::SECTION_SEPARATOR};
use crate::result::ToolError;

/// What became of the passages that had no vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Embedded {
    /// So many have one now.
    pub passages: usize,
    /// So many the embedder does not take; they are not tried again with this model.
    pub passed_over: usize,
}

impl Documents {
    /// Gives a vector to each passage that has none of the embedder's model, `batch` of them at a time. After each batch `progress` is told
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
            let vectors = vectors(embedder, &unread).await.map_err(fault)?;
            let passed_over = vectors.iter().filter(|(_, vector)| vector.is_empty()).count();
            done.passed_over += passed_over;
            done.passages += vectors.len() - passed_over;
            self.index.keep_vectors(embedder.model(), vectors).await?;
            progress(done);
        }
    }
}

/// A vector for each passage; without numbers where the embedder does not take it.
async fn vectors(
    embedder: &dyn Embedder,
    passages: &[UnreadPassage],
) -> Result<Vec<(i64, Vec<f32>)>, EmbedError> {
    let all = embed(embedder, passages.iter().map(text).collect()).await;
    let ids = passages.iter().map(|passage| passage.id);
    match all {
        Ok(vectors) => Ok(ids.zip(vectors).collect()),
        Err(EmbedError::Refused(_)) => {
            let mut vectors = Vec::new();
            for passage in passages {
                vectors.push((passage.id, vector(embedder, passage).await?));
            }
            Ok(vectors)
        }
        Err(unavailable) => Err(unavailable),
    }
}

/// The vector of a passage that was refused together with others.
async fn vector(embedder: &dyn Embedder, passage: &UnreadPassage) -> Result<Vec<f32>, EmbedError> {
    let text = text(passage);
    let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let half = text.get(..half).unwrap_or_default().to_owned();
    let mut refused = String::new();
    for text in [text, half] {
        match embed(embedder, vec![text]).await {
            Ok(vectors) => return Ok(vectors.into_iter().next().unwrap_or_default()),
            Err(EmbedError::Refused(reason)) => refused = reason,
            Err(unavailable) => return Err(unavailable),
        }
    }
    // Whoever does not take this either takes nothing, and it is not for the passage.
    embed(embedder, vec!["text".to_owned()]).await?;
    let UnreadPassage { title, section, .. } = passage;
    tracing::warn!("A passage of \"{title}\", {section:?}, is found by its words alone: {refused}");
    Ok(Vec::new())
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
