//! What a running call has asked the person, and its time, which stands meanwhile.

use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::RunningCall;
use crate::{
    ask::{Asked, keeping::Keeping},
    guard::person::Held,
    id::random_id,
};

/// The questions of a call.
#[derive(Default)]
pub(crate) struct Questions {
    /// Of this try of the call.
    number: AtomicU32,
    scope: OnceLock<String>,
    arguments: OnceLock<String>,
    /// The answers, which are forgotten with the call.
    held: Mutex<Vec<Held>>,
    noted: Mutex<Vec<Asked>>,
    /// How the call outlives its process, where it can.
    keeping: OnceLock<Arc<Keeping>>,
    /// Whether the call is being stopped: what of it is dropped now has not gone on.
    stops: AtomicBool,
    /// The question that it waited for then.
    stopped_at: OnceLock<String>,
}

impl Questions {
    /// The call begins, once more or for the first time. What it asks is found again by its arguments.
    pub(crate) fn begin(&self) {
        self.number.store(0, Ordering::Relaxed);
    }

    /// The number of the next question, from 1 on.
    pub(crate) fn next(&self) -> Option<u32> {
        self.number.fetch_add(1, Ordering::Relaxed).checked_add(1)
    }

    /// The hash of the call's arguments, for questions that are answered later.
    pub(crate) fn set_arguments(&self, sha256: impl FnOnce() -> String) {
        self.arguments.get_or_init(sha256);
    }

    pub(crate) fn arguments(&self) -> String {
        self.arguments.get().cloned().unwrap_or_default()
    }

    /// A scope that no other call has.
    pub(crate) fn own_scope(&self) -> io::Result<String> {
        match self.scope.get() {
            Some(scope) => Ok(scope.clone()),
            None => random_id().map(|id| self.scope.get_or_init(|| id).clone()),
        }
    }

    pub(crate) fn set_keeping(&self, keeping: Arc<Keeping>) {
        self.keeping.get_or_init(|| keeping);
    }

    pub(crate) fn keeping(&self) -> Option<&Arc<Keeping>> {
        self.keeping.get()
    }

    pub(crate) fn keep(&self, held: Held) {
        self.held.lock().push(held);
    }

    /// The call is over. Its answers are forgotten, but where it is made again.
    pub(crate) async fn end(&self, comes_back: bool) {
        let held = std::mem::take(&mut *self.held.lock());
        for held in held {
            match comes_back {
                true => held.release(),
                false => held.withdraw().await,
            }
        }
    }

    /// The call is stopped.
    pub(crate) fn stop(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    /// The question that the call waited for when it was stopped.
    pub(crate) fn stopped_at(&self) -> Option<&str> {
        self.stopped_at.get().map(String::as_str)
    }

    /// The call waits for the answer to a question, which is left to another process where this is set.
    pub(crate) fn await_answer<'a>(
        &'a self,
        question: &'a str,
        leaving: Option<Arc<AtomicBool>>,
    ) -> Awaited<'a> {
        Awaited { questions: self, question, leaving, has_ended: false }
    }

    pub(crate) fn has_answers(&self) -> bool {
        !self.held.lock().is_empty()
    }

    pub(crate) fn note(&self, asked: Asked) {
        self.noted.lock().push(asked);
    }

    /// What was asked in this try, for its record.
    pub(crate) fn take_noted(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.noted.lock())
    }
}

/// A question whose answer a call waits for. Where the call is stopped meanwhile, it leaves word of that: the tool has not gone on.
pub(crate) struct Awaited<'a> {
    questions: &'a Questions,
    question: &'a str,
    leaving: Option<Arc<AtomicBool>>,
    has_ended: bool,
}

impl Awaited<'_> {
    /// The tool goes on.
    pub(crate) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let is_left = self.leaving.as_ref().is_some_and(|leaving| leaving.load(Ordering::Relaxed));
        if !self.has_ended && !is_left && self.questions.stops.load(Ordering::Relaxed) {
            self.questions.stopped_at.get_or_init(|| self.question.to_owned());
        }
    }
}

/// How long a call has stood, because a person was waited for.
#[derive(Default)]
pub(crate) struct Pauses(Mutex<State>);

#[derive(Default)]
struct State {
    /// How many wait for a person.
    waiting: usize,
    since: Option<Instant>,
    before: Duration,
    /// Woken when the time goes on.
    waker: Option<Waker>,
}

impl Pauses {
    /// How long the call has stood in all.
    pub(crate) fn total(&self) -> Duration {
        let state = self.0.lock();
        state.before + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Ready with how long the call has stood, as soon as it does not stand.
    pub(crate) fn poll_total(&self, cx: &mut Context<'_>) -> Poll<Duration> {
        let mut state = self.0.lock();
        if state.waiting == 0 {
            return Poll::Ready(state.before);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn begin(&self) {
        let mut state = self.0.lock();
        state.waiting += 1;
        state.since.get_or_insert_with(Instant::now);
    }

    fn end(&self) {
        let mut state = self.0.lock();
        state.waiting = state.waiting.saturating_sub(1);
        if state.waiting == 0 {
            let stood = state.since.take().map_or(Duration::ZERO, |since| since.elapsed());
            state.before += stood;
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        }
    }
}

/// While it is there, the time of the call and of all around it stands.
pub(crate) struct Paused<'a>(&'a RunningCall);

impl RunningCall {
    pub(crate) fn pause(&self) -> Paused<'_> {
        self.with_parents().for_each(|call| call.pauses.begin());
        Paused(self)
    }

    /// Whether the call, and those around it, can be made again from their beginning.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.with_parents().all(|call| call.repeatable)
    }

    fn with_parents(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |call| call.parent.as_deref())
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.with_parents().for_each(|call| call.pauses.end());
    }
}
