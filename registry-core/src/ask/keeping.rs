//! A running call that is kept while it waits for an answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::kept::{Answered, Done, Kept, KeptState, Spot};
use crate::{
    background::Background,
    clock::Clock,
    flow::{HasRead, Reads},
    guard::approval::Approval,
    outcome::ToolOutcome,
    store::{StateError, StoreError},
};

/// How long the result of a call that was made anew can be fetched, in seconds.
const REMEMBERED: i64 = 3600;

/// A running call that can be kept.
pub(crate) struct Keeping {
    spot: Spot,
    clock: Arc<dyn Clock>,
    background: Background,
    /// Set when the host ends: what waits then stays for another process.
    leaving: Arc<AtomicBool>,
    timeout: Duration,
    /// Whether its result is kept too, because nobody waits for it.
    pub(crate) is_unattended: bool,
    /// How the call was admitted that was kept, where this goes on with one.
    pub(crate) admitted: Option<AdmittedBefore>,
    now: Mutex<Now>,
}

/// What a call that goes on was admitted with, before its process ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmittedBefore {
    /// What its turn had read.
    pub(crate) reads: Reads,
    /// Whether a person has approved it.
    pub(crate) approved: bool,
}

struct Now {
    kept: Kept,
    /// As the store has it, where it has it.
    text: Option<String>,
    /// Answers from before, which the tool gets again.
    replay: Vec<Answered>,
}

/// What the host gives to a call that can be kept.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) background: Background,
    pub(crate) leaving: Arc<AtomicBool>,
    pub(crate) timeout: Duration,
}

impl Keeping {
    /// A call that begins, or one that goes on with what was kept under `text`.
    pub(crate) fn new(spot: Spot, means: Means, kept: Kept, text: Option<String>, unattended: bool) -> Self {
        let Means { clock, background, leaving, timeout } = means;
        let admitted = AdmittedBefore { reads: kept.flow.reads(), approved: kept.approved };
        let (admitted, replay) = (text.is_some().then_some(admitted), kept.answers.clone());
        let kept = Kept { answers: Vec::new(), ..kept };
        let now = Mutex::new(Now { kept, text, replay });
        Self { spot, clock, background, leaving, timeout, is_unattended: unattended, admitted, now }
    }

    /// Adds to what the turn of the call had read what this one has, and gives all of it.
    pub(crate) fn add_read(&self, read: Option<&HasRead>) -> HasRead {
        let mut now = self.now.lock();
        if let Some(read) = read {
            now.kept.flow.add(read);
        }
        now.kept.flow.clone()
    }

    /// A person has approved the call.
    pub(crate) fn approve(&self) {
        self.now.lock().kept.approved = true;
    }

    pub(crate) fn key(&self) -> &str {
        &self.spot.key
    }

    pub(crate) fn version(&self) -> Option<String> {
        self.now.lock().kept.version.clone()
    }

    /// What is made anew, once a person has changed the arguments.
    pub(crate) fn change(&self, arguments: &Map<String, Value>) {
        self.now.lock().kept.arguments.clone_from(arguments);
    }

    pub(crate) fn leaving(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.leaving)
    }

    /// The answer to a question that had one before the process ended.
    pub(crate) fn replayed(&self, hash: &str) -> Option<Answered> {
        let mut now = self.now.lock();
        let at = now.replay.iter().position(|known| known.hash == hash)?;
        let answer = now.replay.remove(at);
        now.kept.answers.push(answer.clone());
        Some(answer)
    }

    /// Keeps that the call waits for the answer to this question. Where that fails it waits all the same.
    pub(crate) async fn waits(&self, question: &str, until: Timestamp) {
        let (kept, text) = {
            let now = self.now.lock();
            let state = KeptState::Waiting(question.to_owned());
            let kept = Kept { state, expires_at: until, ..now.kept.clone() };
            (kept, now.text.clone())
        };
        let mut put = self.spot.put(Some(&kept), text.as_deref()).await;
        if matches!(put, Err(StateError::Full { .. })) && self.spot.clear(self.clock.now()).await.is_ok() {
            put = self.spot.put(Some(&kept), text.as_deref()).await;
        }
        match put {
            Ok(Some(text)) => *self.now.lock() = Now { kept, text: Some(text), replay: Vec::new() },
            // The same call waits already, or has expired.
            Ok(None) => {}
            Err(cause) => tracing::warn!(tool = kept.tool, %cause, "waiting_call_not_kept"),
        }
    }

    /// Goes on with an answer; false where another process has gone on with it.
    ///
    /// # Errors
    /// Where that cannot be told.
    pub(crate) async fn answered(&self, question: &Approval) -> Result<bool, StoreError> {
        let (kept, text) = {
            let mut now = self.now.lock();
            now.kept.answers.push(Answered::of(question));
            let Some(text) = now.text.clone() else { return Ok(true) };
            let process = Arc::clone(&now.kept.process);
            (now.kept.clone().taken(&process, self.clock.now(), self.timeout), text)
        };
        match self.spot.put_again(&kept, &text).await {
            Ok(Some(text)) => {
                *self.now.lock() = Now { kept, text: Some(text), replay: Vec::new() };
                Ok(true)
            }
            Ok(None) => {
                self.now.lock().text = None;
                Ok(false)
            }
            Err(StateError::Store(cause)) => Err(cause),
            Err(cause) => Err(StoreError::invalid(cause)),
        }
    }

    /// Forgets the call, unless it waits and the host ends.
    pub(crate) async fn forget(&self) {
        if let Some(text) = self.to_forget()
            && let Err(cause) = self.spot.put(None, Some(&text)).await
        {
            tracing::warn!(%cause, "waiting_call_not_forgotten");
        }
    }

    fn to_forget(&self) -> Option<String> {
        let mut now = self.now.lock();
        let is_waiting = matches!(now.kept.state, KeptState::Waiting(_));
        let stays = self.leaving.load(Ordering::Relaxed) && (is_waiting || self.is_unattended);
        now.text.take().filter(|_| !stays)
    }

    /// Keeps what a call came to that nobody waits for.
    pub(crate) async fn done(&self, outcome: &ToolOutcome) {
        let (kept, text) = {
            let mut now = self.now.lock();
            let Some(text) = now.text.take() else { return };
            (now.kept.clone(), text)
        };
        let expires_at =
            self.clock.now().checked_add(SignedDuration::from_secs(REMEMBERED)).unwrap_or(Timestamp::MAX);
        let done =
            |done| Kept { state: KeptState::Done(done), expires_at, answers: Vec::new(), ..kept.clone() };
        let put = self.spot.put(Some(&done(Box::new(Done::of(outcome)))), Some(&text)).await;
        let Err(StateError::TooLarge { bytes, .. }) = put else { return noted(put) };
        let message =
            format!("{} was done, and its result has {bytes} bytes, which is more than is kept", kept.tool);
        let put = self.spot.put(Some(&done(Box::new(Done::failed(message)))), Some(&text)).await;
        noted(put);
    }
}

fn noted(put: Result<Option<String>, StateError>) {
    if let Err(cause) = put {
        tracing::warn!(%cause, "result_of_waiting_call_not_kept");
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        if let Some(text) = self.to_forget() {
            let spot = self.spot.clone();
            self.background
                .run("forget_waiting_call", async move { noted(spot.put(None, Some(&text)).await) });
        }
    }
}
