//! Goes through the passages that no model has been through.

use std::collections::HashSet;

use futures_util::{StreamExt, stream};

use super::{Extracted, Read, read};
use crate::{DocumentFilter, Documents};
use registry_core::{
    ErrorKind, ToolError,
    model::{Model, ModelQuestion},
};

/// Passages that are taken from the store at once.
const BATCH: usize = 32;
/// Passages that the model is asked about at once: while it writes of one, the next can be read.
const AT_ONCE: usize = 2;
/// After so many failures, one behind the other, it is not for the passages.
const MAX_FAILURES: usize = 3;

/// What came of the passages that a model went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extraction {
    /// So many were read and need not be read again.
    pub passages: usize,
    /// So many names the model found in them.
    pub names: usize,
    /// So many relations.
    pub relations: usize,
    /// So many the model refused, or there was nothing in its answer that could be read. They count as read.
    pub unreadable: usize,
    /// So many the model failed at. They are left for another time.
    pub failed: usize,
    /// The tokens of questions and answers.
    pub tokens: u64,
}

impl Documents {
    /// Has a model draw names and relations from each passage that none has been through, of the documents that pass the filter, oldest
    /// first. After each passage `progress` gets what was done so far.
    ///
    /// Each passage is kept as soon as it is read: whoever drops the future loses two answers at most, and the next run goes on from
    /// there. It costs a question to the model for each passage.
    ///
    /// # Errors
    /// When the model cannot be asked, or fails three times on end, or the store fails. What was done before stays.
    pub async fn extract_unread(
        &self,
        model: &Model,
        filter: &DocumentFilter,
        mut progress: impl FnMut(&Extraction) + Send,
    ) -> Result<Extraction, ToolError> {
        let name = model.name().await?;
        let mut done = Extraction::default();
        let mut asked = HashSet::new();
        let (mut failures, mut takes_questions) = (0, false);
        loop {
            let mut unread = self.unextracted(BATCH + done.failed, filter).await?;
            // Those that the model failed at are still among them.
            unread.retain(|passage| asked.insert(passage.id));
            if unread.is_empty() {
                return Ok(done);
            }
            let ask = |passage| async move { (read(&**model, &passage).await, passage.id) };
            let mut answers = stream::iter(unread.into_iter().map(ask)).buffer_unordered(AT_ONCE);
            while let Some((answer, passage)) = answers.next().await {
                match answer {
                    Ok(Read { extracted, is_readable, tokens }) => {
                        (failures, takes_questions) = (0, true);
                        done.passages += 1;
                        done.names += extracted.names.len();
                        done.relations += extracted.relations.len();
                        done.unreadable += usize::from(!is_readable);
                        done.tokens = done.tokens.saturating_add(tokens);
                        self.keep_extracted(&name, vec![(passage, extracted)]).await?;
                    }
                    // Of this passage, as where it is too long for the model; that will not change. Unless it is so of any question.
                    Err(error) if error.kind() == ErrorKind::InvalidArguments => {
                        if !takes_questions {
                            model.answer(short_question()).await?;
                            takes_questions = true;
                        }
                        done.passages += 1;
                        done.unreadable += 1;
                        self.keep_extracted(&name, vec![(passage, Extracted::default())]).await?;
                    }
                    Err(error) => {
                        failures += 1;
                        done.failed += 1;
                        if failures == MAX_FAILURES {
                            return Err(error);
                        }
                        tracing::warn!("A passage was not read by the model {name}: {}", error.message());
                    }
                }
                progress(&done);
            }
        }
    }
}

/// What every model has room for.
fn short_question() -> ModelQuestion {
    ModelQuestion { system: "Answer with one word.".into(), prompt: "Are you there?".into(), max_tokens: 200 }
}
