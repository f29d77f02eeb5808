//! A circuit breaker: stops calling a source that fails time and again, and tries it again with one call.
//!
//! It is not a crate's because it says when a call may be made again by the registry's clock, admits one call at a time while
//! half open, and logs a cause once.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use registry_core::{ErrorKind, Remote, ToolContext, ToolError, clock::Clock};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use crate::{log::log_source, settings::BreakerSettings};

/// A call may still end on time, though the registry's own timer was the first to say that it did not.
const TIMER_GRAIN: Duration = Duration::from_millis(50);

/// Whether a source is called.
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
    Closed { failures: u32, of: Whose },
    Open { until: Timestamp, of: Whose, cause: Outage },
    HalfOpen { of: Whose, cause: Outage },
}

/// Whose calls have failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Calls of one user took too long, which may be because of what that user has asked for.
    Only(u64),
    /// The source is at fault.
    Everybodys,
}

impl Whose {
    fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Everybodys }
    }

    fn concerns(self, user: u64) -> bool {
        self == Self::Everybodys || self == Self::Only(user)
    }
}

/// What is wrong with a source, and not only with one call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outage {
    pub(crate) error: ToolError,
    /// What stays the same when it is the same once more.
    pub(crate) mark: String,
}

impl From<ToolError> for Outage {
    fn from(error: ToolError) -> Self {
        Self { mark: error.detail().to_owned(), error }
    }
}

/// A source is not called now.
#[derive(Debug, PartialEq)]
struct CircuitOpen {
    /// When it is tried again; none while it is being tried.
    until: Option<Timestamp>,
    cause: Outage,
}

const CLOSED: State = State::Closed { failures: 0, of: Whose::Everybodys };

pub(crate) struct Breaker {
    settings: BreakerSettings,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl Breaker {
    pub(crate) fn new(settings: BreakerSettings, clock: Arc<dyn Clock>) -> Self {
        Self { settings, clock, state: Mutex::new(CLOSED) }
    }

    pub(crate) fn state(&self) -> BreakerState {
        match &*self.state.lock() {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { .. } => BreakerState::Open,
            State::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Lets a user's call of the source through, or says why not.
    pub(crate) fn admit<'a>(
        &'a self,
        remote: &'a Remote,
        context: &'a ToolContext,
        user: u64,
        timeout: Duration,
    ) -> Result<Trial<'a>, ToolError> {
        self.try_admit(user).map_err(|open| open.error(remote))?;
        Ok(Trial { breaker: self, remote, context, user, timeout, since: Instant::now(), is_over: false })
    }

    fn try_admit(&self, user: u64) -> Result<(), CircuitOpen> {
        let (mut state, now) = (self.state.lock(), self.clock.now());
        match &*state {
            State::Open { of, .. } | State::HalfOpen { of, .. } if !of.concerns(user) => Ok(()),
            State::Closed { .. } => Ok(()),
            // A clock that was set back does not make it longer.
            State::Open { until, cause, .. } if now < *until && *until <= self.rested(now) => {
                Err(CircuitOpen { until: Some(*until), cause: cause.clone() })
            }
            State::Open { of, cause, .. } => {
                *state = State::HalfOpen { of: *of, cause: cause.clone() };
                Ok(())
            }
            State::HalfOpen { cause, .. } => Err(CircuitOpen { until: None, cause: cause.clone() }),
        }
    }

    /// Until when it is open that opens now.
    fn rested(&self, now: Timestamp) -> Timestamp {
        let rest = SignedDuration::try_from(self.settings.rest).unwrap_or(SignedDuration::MAX);
        now.checked_add(rest).unwrap_or(Timestamp::MAX)
    }

    /// The source has answered. Whether it is called again that was not.
    fn succeeded(&self) -> bool {
        !matches!(std::mem::replace(&mut *self.state.lock(), CLOSED), State::Closed { .. })
    }

    /// The source has failed. Whether its circuit opens now, for a cause that was not logged before.
    fn failed(&self, cause: &Outage, whose: Whose) -> bool {
        let mut state = self.state.lock();
        let (failures, of, is_logged) = match &*state {
            State::Closed { failures: 0, .. } => (1, whose, false),
            State::Closed { failures, of } => (failures.saturating_add(1), of.and(whose), false),
            // A call from before it opened says nothing new.
            State::Open { of, .. } if of.and(whose) == *of => return false,
            State::Open { of, cause: known, .. } | State::HalfOpen { of, cause: known } => {
                (self.settings.failures, of.and(whose), known.mark == cause.mark)
            }
        };
        if self.settings.failures == 0 || failures < self.settings.failures {
            *state = State::Closed { failures, of };
            return false;
        }
        *state = State::Open { until: self.rested(self.clock.now()), of, cause: cause.clone() };
        !is_logged
    }

    /// A user's call ended without a word about the source: if it was the one that tried it, the next one does.
    fn abandoned(&self, user: u64) {
        let mut state = self.state.lock();
        if let State::HalfOpen { of, cause } = &*state
            && of.concerns(user)
        {
            *state = State::Open { until: self.clock.now(), of: *of, cause: cause.clone() };
        }
    }
}

impl CircuitOpen {
    fn error(self, Remote { kind, name, .. }: &Remote) -> ToolError {
        let cause = self.cause.error;
        let when = match self.until {
            Some(until) => format!("until {until}"),
            None => "while another call tries it".to_owned(),
        };
        let message = |cause| {
            format!("the circuit of the {kind} {name} is open {when}, as its last calls failed: {cause}")
        };
        // Not retryable: nothing can have changed by the time of a second try.
        let error = ToolError::new(ErrorKind::Unavailable, message(cause.message()))
            .with_detail(message(cause.detail()))
            .with_feedback("The service behind the tool is down. Do without it for now.");
        match self.until {
            Some(until) => error.with_retry_at(until),
            None => error,
        }
    }
}

/// A call on its way, so that the breaker learns of its end also where the registry drops it.
pub(crate) struct Trial<'a> {
    breaker: &'a Breaker,
    remote: &'a Remote,
    context: &'a ToolContext,
    user: u64,
    timeout: Duration,
    since: Instant,
    is_over: bool,
}

impl Trial<'_> {
    pub(crate) fn succeeded(mut self) {
        self.is_over = true;
        if self.breaker.succeeded() {
            log_source!(info, self.remote, "circuit_closed");
        }
    }

    pub(crate) fn failed(&mut self, outage: &Outage, whose: Whose) {
        self.is_over = true;
        if self.breaker.failed(outage, whose) {
            log_source!(warn, self.remote, cause = outage.error.detail(), "circuit_open");
        }
    }

    /// Whose failure it is that the call took too long.
    pub(crate) fn late(&self) -> Whose {
        Whose::Only(self.user)
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if self.since.elapsed() + TIMER_GRAIN >= self.timeout && !self.context.is_cancelled() {
            self.failed(&ToolError::timed_out(self.timeout).into(), self.late());
        } else {
            self.breaker.abandoned(self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: u64 = 1;
    const BOB: u64 = 2;

    /// A clock that a test moves.
    struct Hand(Mutex<i64>);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            at(*self.0.lock())
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn breaker(failures: u32) -> (Breaker, impl Fn(i64)) {
        let hand = Arc::new(Hand(Mutex::new(0)));
        let settings = BreakerSettings { failures, rest: Duration::from_secs(30) };
        (Breaker::new(settings, hand.clone()), move |second| *hand.0.lock() = second)
    }

    fn outage(text: &str) -> Outage {
        ToolError::failed(text).into()
    }

    fn refused() -> Outage {
        outage("refused")
    }

    #[test]
    fn m8_it_opens_tries_once_and_closes() {
        let (breaker, now) = breaker(2);
        assert!(!breaker.failed(&outage("reset"), Whose::Everybodys));
        now(1);
        assert!(breaker.failed(&refused(), Whose::Everybodys));
        now(30);
        assert_eq!(breaker.try_admit(ADA), Err(CircuitOpen { until: Some(at(31)), cause: refused() }));
        assert_eq!(breaker.state(), BreakerState::Open);

        now(31);
        assert_eq!(breaker.try_admit(ADA), Ok(()));
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert_eq!(breaker.try_admit(ADA), Err(CircuitOpen { until: None, cause: refused() }));
        now(32);
        breaker.failed(&refused(), Whose::Everybodys);
        now(61);
        assert!(breaker.try_admit(ADA).is_err(), "one failure of the call that tries is enough");

        now(62);
        assert_eq!(breaker.try_admit(ADA), Ok(()));
        breaker.abandoned(ADA);
        assert_eq!(breaker.try_admit(ADA), Ok(()), "the next one tries");
        assert!(breaker.succeeded());
        assert_eq!(breaker.state(), BreakerState::Closed);
        assert!(!breaker.failed(&refused(), Whose::Everybodys), "it counts anew");
    }

    #[test]
    fn m8_a_cause_is_logged_once_until_there_is_another_or_none() {
        let (breaker, now) = breaker(1);
        let status = |text: &str| Outage { mark: "status 502".to_owned(), ..outage(text) };
        let mut logged = Vec::new();
        for (round, cause) in
            [refused(), refused(), status("at 1"), status("at 2"), refused()].iter().enumerate()
        {
            now(31 * i64::try_from(round).unwrap());
            assert_eq!(breaker.try_admit(ADA), Ok(()));
            logged.push(breaker.failed(cause, Whose::Everybodys));
        }
        assert_eq!(logged, [true, false, true, false, true]);
        now(200);
        assert_eq!(breaker.try_admit(ADA), Ok(()));
        assert!(breaker.succeeded() && breaker.failed(&refused(), Whose::Everybodys));
    }

    #[test]
    fn m8_only_failures_in_a_row_count() {
        let (two, _) = breaker(2);
        for _ in 0..10 {
            assert!(!two.failed(&refused(), Whose::Everybodys) && !two.succeeded());
        }
        let (never, _) = breaker(0);
        assert!((0..100).all(|_| !never.failed(&refused(), Whose::Everybodys)));
    }

    #[test]
    fn m8_slow_calls_of_one_user_open_it_for_that_user_alone() {
        let (breaker, now) = breaker(2);
        let late = || Outage::from(ToolError::timed_out(Duration::from_secs(30)));
        let failed = |user| breaker.failed(&late(), Whose::Only(user));
        assert!(!failed(ADA) && failed(ADA));
        assert!(breaker.try_admit(ADA).is_err());
        assert_eq!((breaker.state(), breaker.try_admit(BOB)), (BreakerState::Open, Ok(())));
        assert!(!failed(ADA), "it is open for her");
        breaker.abandoned(BOB);
        now(30);
        assert_eq!(breaker.try_admit(ADA), Ok(()), "one of hers tries");
        assert!(breaker.try_admit(ADA).is_err() && breaker.try_admit(BOB).is_ok());
        breaker.abandoned(BOB);
        assert!(breaker.try_admit(ADA).is_err(), "that was not the one that tries");
        // Others that fail as well show that it is the source.
        failed(BOB);
        assert!(breaker.try_admit(ADA).is_err() && breaker.try_admit(BOB).is_err());
        assert!(breaker.succeeded());
        // Nobody's failures count after an answer, nor does it matter in which order two users' calls fail.
        assert!(!failed(BOB) && failed(ADA));
        assert!(breaker.try_admit(3).is_err());
    }

    #[test]
    fn m8_a_clock_that_is_set_back_does_not_keep_it_open() {
        let (breaker, now) = breaker(1);
        now(3600);
        breaker.failed(&refused(), Whose::Everybodys);
        now(3595);
        assert_eq!(breaker.try_admit(ADA), Ok(()), "it would be open for longer than it rests");
        breaker.failed(&refused(), Whose::Everybodys);
        now(3624);
        assert!(breaker.try_admit(ADA).is_err());
        now(3625);
        assert_eq!(breaker.try_admit(ADA), Ok(()));
    }
}
