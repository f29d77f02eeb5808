//! Turns that have no answer yet: what they have done is kept after each round, so that a server that is killed loses none of it.
//!
//! When the same conversation comes again, the turn goes on behind those rounds, so that no tool runs a second time for it. As long as a turn
//! runs, another one that begins like it begins anew: somebody may want several answers to one question.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use registry_core::flow::HasRead;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use toolrack_apis::Message;

use super::{Added, Place, Transcripts, beside, in_time};

/// For so long a turn is gone on with by a request that does not have the beginning of its answer: later somebody may just begin another
/// conversation with the same words.
const GOES_ON: i64 = 3600;
/// Behind rounds at which the model server has failed so often the turn begins anew.
const MOST_FAILED: u32 = 2;
/// How long a request waits for the turn before it that is being stopped.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far a turn has come that has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Unfinished {
    /// When that was, in seconds since 1970.
    at: i64,
    /// Whether the turn went on, so that the client may have more of its answer than is known here.
    pub(super) is_under_way: bool,
    /// How often the model server has failed behind these rounds.
    pub(super) failed: u32,
}

impl Unfinished {
    /// A turn that goes on, or that has just ended without an answer.
    pub(in super::super) fn now(is_under_way: bool, failed: u32) -> Self {
        Self { at: Timestamp::now().as_second(), is_under_way, failed }
    }

    /// Whether a request that has nothing of the answer goes on with it.
    pub(super) fn may_go_on(&self) -> bool {
        let age = Timestamp::now().as_second().saturating_sub(self.at);
        (0..GOES_ON).contains(&age) && self.failed < MOST_FAILED
    }
}

/// What a turn has done so far.
pub(in super::super) struct Rounds {
    pub(in super::super) messages: Vec<Message>,
    pub(in super::super) found: Vec<String>,
    pub(in super::super) read: HasRead,
    pub(in super::super) texts: Vec<String>,
    /// The whole texts of shortened results, by their ids.
    pub(in super::super) results: Vec<(String, Arc<str>)>,
}

/// The turns of this process, by their owner and what they are kept under until they have an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns(Arc<Mutex<HashMap<String, Standing>>>);

/// How a turn is doing.
#[derive(Debug, Clone)]
struct Standing {
    stopping: CancellationToken,
    over: CancellationToken,
}

/// That a turn is the only one at its place in its conversation; until this is dropped.
#[derive(Debug)]
pub(in super::super) struct Claim {
    turns: Turns,
    owned: String,
    over: CancellationToken,
}

impl Turns {
    /// Claims a place for a turn with this token, and waits for a moment where the turn that has it is being stopped.
    pub(super) async fn claim(&self, owned: String, stopping: CancellationToken) -> Option<Claim> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let before = match self.claim_now(&owned, &stopping) {
                Ok(claim) => return Some(claim),
                Err(before) => before,
            };
            if !before.stopping.is_cancelled() {
                return None;
            }
            timeout_at(deadline, before.over.cancelled()).await.ok()?;
        }
    }

    fn claim_now(&self, owned: &str, stopping: &CancellationToken) -> Result<Claim, Standing> {
        let mut turns = self.0.lock();
        match turns.entry(owned.to_owned()) {
            Entry::Occupied(before) => Err(before.get().clone()),
            Entry::Vacant(place) => {
                let over = CancellationToken::new();
                place.insert(Standing { stopping: stopping.clone(), over: over.clone() });
                Ok(Claim { turns: self.clone(), owned: owned.to_owned(), over })
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.turns.0.lock().remove(&self.owned);
        self.over.cancel();
    }
}

impl Transcripts {
    /// Claims the place of a turn, if its rounds may be kept and gone on with.
    pub(super) async fn claim(
        &self,
        (tenant, user): (&str, &str),
        key: &str,
        stopping: CancellationToken,
    ) -> Option<Claim> {
        if !self.are_answers_kept {
            return None;
        }
        self.turns.claim(format!("{}:{tenant}{user}{key}", tenant.len()), stopping).await
    }

    /// Keeps what a turn has done that goes on; whether that has worked.
    pub(in super::super) async fn keep_rounds(
        &self,
        owner: (&str, &str),
        key: String,
        rounds: Rounds,
    ) -> bool {
        let Rounds { messages, found, read, texts, results } = rounds;
        self.keep_results(owner, results).await;
        let transcripts = self.clone();
        let size = messages.iter().map(Message::size).sum();
        let write = move || {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let unfinished = Some(Unfinished::now(true, 0));
            let added = Added { messages: &messages, found: &found, read: &read, texts: &texts, unfinished };
            transcripts.text_of(added)
        };
        let kept = match beside(size, write).await {
            Some(Ok(text)) => {
                in_time(self.conversations.keep_transcript(owner, (key, None), text.into())).await
            }
            Some(Err(error)) => Err(error.to_string()),
            None => return false,
        };
        kept.inspect_err(|cause| tracing::warn!(cause, "transcript_of_rounds_not_kept")).is_ok()
    }

    /// Forgets the rounds of a turn that has an answer now.
    pub(super) async fn forget_rounds(&self, owner: (&str, &str), place: &Place) {
        let Some(key) = place.rounds_key() else { return };
        if let Err(cause) = in_time(self.conversations.delete_transcripts(owner, &[key])).await {
            tracing::warn!(cause, "transcript_of_rounds_not_deleted");
        }
    }
}

impl Place {
    /// Gives up that the rounds of the turn are kept.
    pub(in super::super) fn leave(&mut self) {
        self.claim = None;
    }

    /// What the rounds of the turn are kept under; `None` where they are not.
    pub(in super::super) fn rounds_key(&self) -> Option<String> {
        self.claim.as_ref()?;
        Some(self.before?.and_beginning().key())
    }
}
