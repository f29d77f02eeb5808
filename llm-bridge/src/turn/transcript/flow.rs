//! What a conversation has read is kept beside its transcripts, so that it is known when the conversation goes on.

use registry_core::flow::{HasRead, Reads};

use super::{Place, Shown, Transcripts, fingerprint::Words, in_time, visible::VisibleAnswer};

/// What was read is looked for at so many answers, the last ones: each has what was read before it, too.
const MARKED_ANSWERS: usize = 64;
/// A source of what was read that nobody knows by name.
const EARLIER: &str = "an earlier answer";

/// What the last answers are found by.
pub(super) fn last_flow_keys(answers: &[VisibleAnswer]) -> Vec<String> {
    answers.iter().rev().take(MARKED_ANSWERS).flat_map(|answer| &answer.flow).cloned().collect()
}

impl Transcripts {
    /// What the conversation had read by its last answers. Where nobody can say, it may have been anything.
    pub(in super::super) async fn read_before(&self, owner: (&str, &str), keys: &[String]) -> HasRead {
        let mut read = HasRead::default();
        if keys.is_empty() {
            return read;
        }
        match in_time(self.marks.transcripts(owner, keys)).await {
            Ok(found) => {
                for kept in found {
                    match serde_json::from_str(&kept.messages) {
                        Ok(kept) => read.add(&kept),
                        Err(_) => read.note(Reads::BOTH, EARLIER),
                    }
                }
            }
            Err(cause) => {
                tracing::warn!(cause, "what_was_read_not_known");
                read.note(Reads::BOTH, EARLIER);
            }
        }
        read
    }

    /// Keeps what a conversation has read under [keys of its place](Place::read_keys).
    pub(in super::super) async fn keep_read(
        &self,
        owner: (&str, &str),
        keys: (String, Option<String>),
        read: &HasRead,
    ) {
        let kept = match serde_json::to_string(read) {
            Ok(json) => in_time(self.marks.keep_transcript(owner, keys, json.into())).await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(cause) = kept {
            tracing::warn!(cause, "what_was_read_not_kept");
        }
    }
}

impl Place {
    /// What is read in this turn is kept under these; `shown` is the whole answer, once it is there.
    pub(in super::super) fn read_keys(&self, shown: Option<&Shown>) -> Option<(String, Option<String>)> {
        let standing = self.standing?;
        Some(match shown {
            None => {
                let [of_model, of_any] = standing.begun_keys();
                (of_model, Some(of_any))
            }
            Some(shown) => {
                let key = |text: &str| standing.answered_key(Words::of(text));
                (key(&shown.all), shown.said.as_deref().map(key))
            }
        })
    }
}
