//! The whole texts of shortened results, kept beside the transcripts.

use std::sync::Arc;

use super::{Transcripts, beside, fingerprint::key_of_result, in_time};

impl Transcripts {
    /// Keeps the whole texts of shortened results of a user, each under its id.
    pub(in super::super) async fn keep_results(&self, owner: (&str, &str), results: Vec<(String, Arc<str>)>) {
        // Without the transcript the model does not know the ids.
        if !self.are_answers_kept {
            return;
        }
        for (id, text) in results {
            let size = text.len();
            let Some(Ok(json)) = beside(size, move || serde_json::to_string(&*text)).await else { return };
            let keys = (key_of_result(&id), None);
            if let Err(cause) = in_time(self.conversations.keep_transcript(owner, keys, json.into())).await {
                tracing::warn!(cause, "shortened_result_not_kept");
                return;
            }
        }
    }

    /// The whole text of a shortened result of a user, if it is kept.
    pub(in super::super) async fn result(&self, owner: (&str, &str), id: &str) -> Option<String> {
        let found = in_time(self.conversations.transcripts(owner, &[key_of_result(id)])).await;
        let found = found.inspect_err(|cause| tracing::warn!(cause, "shortened_result_not_read")).ok()?;
        let json = found.into_iter().next()?.messages;
        beside(json.len(), move || serde_json::from_str(&json).ok()).await?
    }
}
