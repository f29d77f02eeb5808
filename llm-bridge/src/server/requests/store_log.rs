//! What the log says while the store does not answer: each request fails then, and not each is a line.

use std::{sync::LazyLock, time::Duration};

use parking_lot::Mutex;
use registry_core::store::{StoreError, StoreErrorKind};
use tokio::time::Instant;

/// How often it is said again how many requests have failed since.
const EVERY: Duration = Duration::from_secs(60);

static OUTAGE: LazyLock<Mutex<Outage>> = LazyLock::new(Mutex::default);

/// Requests that have failed because the store did not answer.
#[derive(Default)]
struct Outage {
    /// When it was last said; `None` while the store answers.
    said: Option<Instant>,
    /// How many have failed.
    failed: u64,
    /// How many of them were there when it was said.
    known: u64,
}

impl Outage {
    /// One more has failed. How many since it was said last, where it is to be said.
    fn failed(&mut self, now: Instant) -> Option<u64> {
        self.failed += 1;
        if self.said.is_some_and(|said| now - said < EVERY) {
            return None;
        }
        self.said = Some(now);
        Some(self.failed - std::mem::replace(&mut self.known, self.failed))
    }

    /// The store answers. How many have failed, where it did not before.
    fn over(&mut self) -> Option<u64> {
        self.said.take()?;
        let failed = self.failed;
        *self = Self::default();
        Some(failed)
    }
}

/// Logs a failure of the store.
pub(in crate::server) fn failed(cause: &StoreError) {
    match cause.kind() {
        StoreErrorKind::Unavailable => unanswered(cause),
        // What clients send or do at the same time is no failure of the store.
        StoreErrorKind::Conflict | StoreErrorKind::Invalid => tracing::debug!(%cause, "store_refused"),
        _ => tracing::error!(%cause, "store_failed"),
    }
}

/// Logs that the store has not answered.
pub(in crate::server) fn unanswered(cause: impl std::fmt::Display) {
    if let Some(requests) = OUTAGE.lock().failed(Instant::now()) {
        tracing::error!(%cause, requests, "store_failed");
    }
}

/// Logs that the store answers again, once.
pub(in crate::server) fn answered() {
    if let Some(requests) = OUTAGE.lock().over() {
        tracing::info!(requests, "store_back");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n4_an_outage_is_said_at_its_beginning_each_minute_and_at_its_end() {
        let (mut outage, began) = (Outage::default(), Instant::now());
        let after = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(outage.over(), None);
        assert_eq!(outage.failed(began), Some(1));
        assert!((1..=59).all(|second| outage.failed(after(second)).is_none()));
        assert_eq!(outage.failed(after(60)), Some(60));
        assert_eq!(outage.failed(after(61)), None);
        assert_eq!((outage.over(), outage.over()), (Some(62), None));
        assert_eq!(outage.failed(after(62)), Some(1), "another one");
    }
}
