//! Leaves a module alone that fails time and again, and tries it again with one call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::settings::BreakerSettings;

/// Whether a module is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// It is.
    Closed,
    /// It is not, after many failures in a row.
    Open,
    /// One call is trying it.
    HalfOpen,
}

#[derive(Debug)]
enum State {
    Closed { failures: u32 },
    Open { until: Timestamp, cause: Outage },
    HalfOpen { cause: Outage },
}

/// What is wrong with the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(super) text: String,
    /// What stays the same when it is the same once more.
    pub(super) mark: String,
}

impl From<String> for Outage {
    fn from(text: String) -> Self {
        Self { mark: text.clone(), text }
    }
}

/// A module is not called now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resting {
    /// When it is tried again; none while it is being tried.
    pub(super) until: Option<Timestamp>,
    pub(super) cause: Outage,
}

#[derive(Debug)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    state: Mutex<State>,
}

impl Breaker {
    pub(super) fn new(settings: BreakerSettings) -> Self {
        Self { settings, state: Mutex::new(State::Closed { failures: 0 }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call through, which then says what came of it, or why not.
    pub(super) fn admit(&self, now: Timestamp) -> Result<(), Resting> {
        let mut state = self.lock();
        match &*state {
            State::Closed { .. } => Ok(()),
            State::Open { until, cause } if now < *until => {
                Err(Resting { until: Some(*until), cause: cause.clone() })
            }
            State::Open { cause, .. } => {
                *state = State::HalfOpen { cause: cause.clone() };
                Ok(())
            }
            State::HalfOpen { cause } => Err(Resting { until: None, cause: cause.clone() }),
        }
    }

    /// The module has answered. Whether it is called again that was not.
    pub(super) fn succeeded(&self) -> bool {
        !matches!(std::mem::replace(&mut *self.lock(), State::Closed { failures: 0 }), State::Closed { .. })
    }

    /// The module has failed. Whether it is left alone from now on, and nobody was told so before.
    pub(super) fn failed(&self, now: Timestamp, cause: &Outage) -> bool {
        let mut state = self.lock();
        let (failures, is_told) = match &*state {
            State::Closed { failures } => (failures.saturating_add(1), false),
            // A call from before it opened says nothing new.
            State::Open { .. } => return false,
            State::HalfOpen { cause: known } => (self.settings.failures, known.mark == cause.mark),
        };
        if self.settings.failures == 0 || failures < self.settings.failures {
            *state = State::Closed { failures };
            return false;
        }
        let rest = SignedDuration::try_from(self.settings.rest).unwrap_or(SignedDuration::MAX);
        let until = now.checked_add(rest).unwrap_or(Timestamp::MAX);
        *state = State::Open { until, cause: cause.clone() };
        !is_told
    }

    /// The call ended without a word about the module: if it was the one that tried it, the next one does.
    pub(super) fn abandoned(&self, now: Timestamp) {
        let mut state = self.lock();
        if let State::HalfOpen { cause } = &*state {
            *state = State::Open { until: now, cause: cause.clone() };
        }
    }

    pub(super) fn state(&self) -> BreakerState {
        match &*self.lock() {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { .. } => BreakerState::Open,
            State::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn breaker(failures: u32) -> Breaker {
        Breaker::new(BreakerSettings { failures, rest: Duration::from_secs(30) })
    }

    fn refused() -> Outage {
        "refused".to_owned().into()
    }

    #[test]
    fn m8_it_opens_tries_once_and_closes() {
        let breaker = breaker(2);
        assert!(!breaker.failed(at(0), &"reset".to_owned().into()));
        assert!(breaker.failed(at(1), &refused()));
        let resting = Resting { until: Some(at(31)), cause: refused() };
        assert_eq!(breaker.admit(at(30)), Err(resting));
        assert_eq!(breaker.state(), BreakerState::Open);

        assert_eq!(breaker.admit(at(31)), Ok(()));
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert_eq!(breaker.admit(at(31)), Err(Resting { until: None, cause: refused() }));
        breaker.failed(at(32), &refused());
        assert!(breaker.admit(at(61)).is_err(), "one failure of the call that tries is enough");

        assert_eq!(breaker.admit(at(62)), Ok(()));
        breaker.abandoned(at(63));
        assert_eq!(breaker.admit(at(63)), Ok(()), "the next one tries");
        assert!(breaker.succeeded());
        assert_eq!(breaker.state(), BreakerState::Closed);
        assert!(!breaker.failed(at(64), &refused()), "it counts anew");
    }

    #[test]
    fn m8_a_cause_is_told_once_until_there_is_another_or_none() {
        let breaker = breaker(1);
        let status = |text: &str| Outage { text: text.to_owned(), mark: "status 502".to_owned() };
        let mut told = Vec::new();
        for (second, cause) in
            [refused(), refused(), status("at 1"), status("at 2"), refused()].iter().enumerate()
        {
            let now = at(31 * i64::try_from(second).unwrap());
            assert_eq!(breaker.admit(now), Ok(()));
            told.push(breaker.failed(now, cause));
        }
        assert_eq!(told, [true, false, true, false, true]);
        assert_eq!(breaker.admit(at(200)), Ok(()));
        assert!(breaker.succeeded() && breaker.failed(at(201), &refused()));
    }

    #[test]
    fn m8_only_failures_in_a_row_count() {
        let breaker = breaker(2);
        for second in 0..10 {
            assert!(!breaker.failed(at(second), &refused()));
            assert!(!breaker.succeeded());
        }
        let never = super::tests::breaker(0);
        assert!((0..100).all(|second| !never.failed(at(second), &refused())));
    }
}
