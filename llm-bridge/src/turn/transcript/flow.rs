//! What a conversation has read is kept beside its transcripts, so that it is known when the conversation goes on.

use std::collections::HashSet;

use registry_core::flow::{HasRead, Reads};

use super::{
    Place, Shown, Transcripts,
    fingerprint::{Fingerprint, Words},
    in_time,
    visible::VisibleAnswer,
};

/// What was read is looked for at so many answers, the last ones: each has what was read before it, too.
const MARKED_ANSWERS: usize = 64;
/// A source of what was read that nobody knows by name.
const EARLIER: &str = "an earlier answer";

/// A source that nobody can know: the answer is not from here, or what is kept of it is gone.
const UNKNOWN: &str = "an answer of unknown origin";

/// What is kept of a conversation under one key, or under one of two.
pub(in super::super) type Keys = (String, Option<String>);

/// What is kept of the conversation of an answer, as it was when the answer was written.
#[derive(Debug, Clone)]
pub(super) struct FlowKeys {
    /// What it had read.
    pub(super) read: Vec<String>,
    /// That it had read nothing; `None` where the server has kept the answer itself, with all results.
    pub(super) known: Option<Vec<String>>,
}

impl FlowKeys {
    /// Of an answer that a client has sent, by its places.
    pub(super) fn of(places: &[Fingerprint]) -> Self {
        let known = places.iter().map(|place| place.known_key()).collect();
        Self { known: Some(known), ..Self::of_own(places) }
    }

    /// Of one that the server has kept.
    pub(super) fn of_own(places: &[Fingerprint]) -> Self {
        Self { read: places.iter().map(|place| place.flow_key()).collect(), known: None }
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.read.iter().chain(self.known.iter().flatten())
    }
}

/// What the last answers are found by.
pub(super) fn last_flow_keys(answers: &[VisibleAnswer]) -> Vec<FlowKeys> {
    answers.iter().rev().take(MARKED_ANSWERS).map(|answer| answer.flow.clone()).collect()
}

impl Transcripts {
    /// What the conversation had read by its last answers. Where nobody can say, it may have been anything.
    pub(super) async fn read_before(&self, owner: (&str, &str), answers: &[FlowKeys]) -> HasRead {
        let mut read = HasRead::default();
        let keys: Vec<String> = answers.iter().flat_map(FlowKeys::all).cloned().collect();
        if keys.is_empty() {
            return read;
        }
        match in_time(self.marks.transcripts(owner, &keys)).await {
            Ok(found) => {
                let names: HashSet<&String> =
                    found.iter().flat_map(|kept| [&kept.key, &kept.other_key]).collect();
                let is_unknown = |answer: &FlowKeys| {
                    answer.known.is_some() && !answer.all().any(|key| names.contains(key))
                };
                if answers.iter().any(is_unknown) {
                    read.note(Reads::BOTH, UNKNOWN);
                }
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
    pub(in super::super) async fn keep_read(&self, owner: (&str, &str), keys: Keys, read: &HasRead) {
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
    pub(in super::super) fn read_keys(&self, shown: Option<&Shown>) -> Option<Keys> {
        let standing = self.standing?;
        Some(match shown {
            None => (standing.begun().flow_key(), None),
            Some(shown) => {
                let key = |text: &str| standing.answered(Words::of(text)).flow_key();
                (key(&shown.all), shown.said.as_deref().map(key))
            }
        })
    }

    /// That nothing was read by the end of this turn is kept under these; `shown` is the whole answer, if it has ended with one.
    pub(in super::super) fn known_keys(&self, shown: Option<&Shown>) -> Vec<Keys> {
        let Some(standing) = self.standing else { return Vec::new() };
        let key = |text: &str| standing.answered(Words::of(text)).known_key();
        let begun = (standing.begun().known_key(), shown.map(|shown| key(&shown.all)));
        let said = shown.and_then(|shown| shown.said.as_deref());
        [begun].into_iter().chain(said.map(|said| (key(said), None))).collect()
    }
}
