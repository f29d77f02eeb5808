//! How often a user may call a tool: the least time between two calls, and the number of calls in a day.
//!
//! A call is checked and counted in one step, so that however many come at once no more run than may. Days are those
//! of UTC.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::{store::StoreResult, tool::Tool};

/// Seconds of a day; UTC as computers count it has no other days.
const DAY: i64 = 86_400;
/// How far the clocks of two servers, or two calls at once, may be apart and still be taken in their order.
const SKEW: SignedDuration = SignedDuration::from_secs(10);

/// One call to be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// Whose calls are counted together.
    pub tenant: Arc<str>,
    /// The user.
    pub user: String,
    /// The tool.
    pub tool: Arc<str>,
    /// The least time between two calls; zero for none.
    pub cooldown: Duration,
    /// Calls in a day; 0 for any number.
    pub daily_limit: u32,
    /// When the call is made.
    pub at: Timestamp,
}

impl Charge {
    /// The day of the call, in days since 1970-01-01 (UTC).
    fn day(&self) -> i64 {
        day_of(self.at)
    }

    /// What keeps the call from being made, where so many calls were made on that day and the last was then.
    fn refused(&self, day: i64, calls: u32, last: Option<Timestamp>) -> Option<Limited> {
        if self.daily_limit > 0 && calls >= self.daily_limit {
            let free_at = end_of(day);
            return Some(Limited { limit: Limit::Daily(self.daily_limit), free_at });
        }
        // Without a cooldown the order of two calls says nothing.
        let last = last.filter(|_| !self.cooldown.is_zero());
        let cooldown = SignedDuration::try_from(self.cooldown).unwrap_or(SignedDuration::MAX);
        let free_at = last?.checked_add(cooldown).unwrap_or(Timestamp::MAX);
        // Of two calls at once the later may be counted first. A clock that was set back must not lock anybody out.
        let at_once = last?.duration_since(self.at) <= SKEW;
        let pending = at_once && free_at > self.at;
        pending.then_some(Limited { limit: Limit::Cooldown(self.cooldown), free_at })
    }
}

/// The day of a time, in days since 1970-01-01 (UTC).
pub(super) fn day_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(DAY)
}

/// When a day ends (UTC).
pub(super) fn end_of(day: i64) -> Timestamp {
    Timestamp::from_second((day + 1) * DAY).unwrap_or(Timestamp::MAX)
}

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The least time between two calls.
    Cooldown(Duration),
    /// The number of calls in a day.
    Daily(u32),
}

/// A call that may not be made yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limited {
    /// What was reached.
    pub limit: Limit,
    /// When the call may be made.
    pub free_at: Timestamp,
}

/// Keeps count of calls. It is the authority: where it fails the call is not made, or stays counted.
#[async_trait]
pub trait Usage: Send + Sync {
    /// Counts a call, or says why it may not be made, in one step.
    async fn charge(&self, charge: &Charge) -> StoreResult<Option<Limited>>;

    /// Takes back a call that was counted and not made.
    async fn refund(&self, charge: &Charge) -> StoreResult<()>;
}

#[async_trait]
impl<U: Usage + ?Sized> Usage for Arc<U> {
    async fn charge(&self, charge: &Charge) -> StoreResult<Option<Limited>> {
        U::charge(self, charge).await
    }

    async fn refund(&self, charge: &Charge) -> StoreResult<()> {
        U::refund(self, charge).await
    }
}

/// Whether a tool's calls have to be counted at all.
pub(crate) fn is_limited(tool: &Tool) -> bool {
    tool.daily_limit() > 0 || !tool.cooldown().is_zero()
}

/// Keeps count in memory, until the process ends.
#[derive(Debug, Default)]
pub struct MemoryUsage {
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    by_key: HashMap<(Arc<str>, String, Arc<str>), UsageRow>,
    /// At so many rows those that no longer say anything are dropped.
    sweep_at: usize,
}

/// The counted calls of one tool by one user, as every store keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageRow {
    /// The day, in days since 1970 in UTC.
    pub day: i64,
    /// How many calls were counted that day.
    pub calls: u32,
    /// When the last one was counted (UTC).
    pub last: Timestamp,
    /// The last call before that one, for taking it back.
    pub before: Option<Timestamp>,
    /// From here on the row says nothing any more.
    pub until: Timestamp,
}

impl UsageRow {
    /// The row with the call counted, or why it may not be made.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn charged(known: Option<Self>, charge: &Charge) -> Result<Self, Limited> {
        let today = charge.day();
        // A clock since set back has left a row of the next day: it goes on counting. One of a later day is of a clock that was wrong.
        let counting = known.filter(|row| row.day == today || row.day == today + 1);
        let (day, calls) = counting.map_or((today, 0), |row| (row.day, row.calls));
        let last = known.map(|row| row.last);
        if let Some(limited) = charge.refused(day, calls, last) {
            return Err(limited);
        }
        let cooled = SignedDuration::try_from(charge.cooldown)
            .ok()
            .and_then(|cooldown| charge.at.checked_add(cooldown).ok())
            .unwrap_or(Timestamp::MAX);
        Ok(Self {
            day,
            calls: calls.saturating_add(1),
            last: charge.at,
            before: last,
            until: end_of(day).max(cooled),
        })
    }

    /// The row with the call taken back.
    #[must_use]
    pub fn refunded(mut self, charge: &Charge) -> Self {
        if self.day == charge.day() {
            self.calls = self.calls.saturating_sub(1);
        }
        if self.last == charge.at {
            // Where there was none, one so long ago that it says nothing.
            self.last = self.before.take().unwrap_or(Timestamp::UNIX_EPOCH);
        }
        self
    }
}

impl Rows {
    fn sweep(&mut self, now: Timestamp) {
        if self.by_key.len() >= self.sweep_at {
            self.by_key.retain(|_, row| row.until > now);
            self.sweep_at = (self.by_key.len() * 2).max(1024);
        }
    }
}

fn key(charge: &Charge) -> (Arc<str>, String, Arc<str>) {
    (Arc::clone(&charge.tenant), charge.user.clone(), Arc::clone(&charge.tool))
}

#[async_trait]
impl Usage for MemoryUsage {
    async fn charge(&self, charge: &Charge) -> StoreResult<Option<Limited>> {
        let mut rows = self.rows.lock();
        rows.sweep(charge.at);
        let known = rows.by_key.get(&key(charge)).copied();
        let limited = match UsageRow::charged(known, charge) {
            Ok(row) => {
                rows.by_key.insert(key(charge), row);
                None
            }
            Err(limited) => Some(limited),
        };
        Ok(limited)
    }

    async fn refund(&self, charge: &Charge) -> StoreResult<()> {
        let mut rows = self.rows.lock();
        if let Some(row) = rows.by_key.get_mut(&key(charge)) {
            *row = row.refunded(charge);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(at: &str, cooldown: u64, daily_limit: u32) -> Charge {
        Charge {
            tenant: "default".into(),
            user: "ada".into(),
            tool: "search".into(),
            cooldown: Duration::from_secs(cooldown),
            daily_limit,
            at: at.parse().unwrap(),
        }
    }

    async fn take(usage: &MemoryUsage, charge: &Charge) -> Option<String> {
        usage.charge(charge).await.unwrap().map(|limited| limited.free_at.to_string())
    }

    #[tokio::test]
    async fn t3_a_day_is_a_day_of_utc() {
        let usage = MemoryUsage::default();
        assert_eq!(take(&usage, &charge("2026-03-01T23:59:58Z", 0, 1)).await, None);
        let over = take(&usage, &charge("2026-03-01T23:59:59Z", 0, 1)).await;
        assert_eq!(over.as_deref(), Some("2026-03-02T00:00:00Z"));
        assert_eq!(take(&usage, &charge("2026-03-02T00:00:00Z", 0, 1)).await, None);
    }

    #[tokio::test]
    async fn t3_a_cooldown_says_when_it_is_over() {
        let usage = MemoryUsage::default();
        assert_eq!(take(&usage, &charge("2026-03-01T12:00:00Z", 60, 0)).await, None);
        let early = take(&usage, &charge("2026-03-01T12:00:59Z", 60, 0)).await;
        assert_eq!(early.as_deref(), Some("2026-03-01T12:01:00Z"));
        assert_eq!(take(&usage, &charge("2026-03-01T12:01:00Z", 60, 0)).await, None);
    }

    #[tokio::test]
    async fn t3_what_is_taken_back_may_be_taken_again() {
        let usage = MemoryUsage::default();
        let first = charge("2026-03-01T12:00:00Z", 60, 1);
        assert_eq!(take(&usage, &first).await, None);
        usage.refund(&first).await.unwrap();
        assert_eq!(take(&usage, &charge("2026-03-01T12:00:01Z", 60, 1)).await, None);
        assert!(take(&usage, &charge("2026-03-01T12:05:00Z", 60, 1)).await.is_some());
    }

    #[tokio::test]
    async fn t3_of_two_calls_at_once_counted_in_the_other_order_one_has_to_wait() {
        let usage = MemoryUsage::default();
        assert_eq!(take(&usage, &charge("2026-03-01T12:00:00.002Z", 60, 0)).await, None);
        let other = take(&usage, &charge("2026-03-01T12:00:00.001Z", 60, 0)).await;
        assert_eq!(other.as_deref(), Some("2026-03-01T12:01:00.002Z"));
    }

    #[tokio::test]
    async fn t3_without_a_cooldown_calls_at_once_are_counted_in_any_order() {
        let usage = MemoryUsage::default();
        assert_eq!(take(&usage, &charge("2026-03-01T12:00:00.002Z", 0, 2)).await, None);
        assert_eq!(take(&usage, &charge("2026-03-01T12:00:00.001Z", 0, 2)).await, None);
        assert!(take(&usage, &charge("2026-03-01T12:00:00.003Z", 0, 2)).await.is_some());
    }

    #[tokio::test]
    async fn t3_a_clock_set_back_frees_nothing_and_locks_nobody_out() {
        let usage = MemoryUsage::default();
        assert_eq!(take(&usage, &charge("2026-03-02T00:00:10Z", 60, 1)).await, None);
        assert!(take(&usage, &charge("2026-03-01T23:59:00Z", 60, 1)).await.is_some());
        assert_eq!(take(&usage, &charge("2026-03-01T23:59:00Z", 60, 2)).await, None);
    }

    #[tokio::test]
    async fn t3_a_clock_that_was_years_ahead_locks_nobody_out_of_a_day() {
        let usage = MemoryUsage::default();
        assert_eq!(take(&usage, &charge("2028-03-01T12:00:00Z", 60, 1)).await, None);
        assert_eq!(take(&usage, &charge("2026-03-01T12:00:00Z", 60, 1)).await, None);
        let over = take(&usage, &charge("2026-03-01T13:00:00Z", 60, 1)).await;
        assert_eq!(over.as_deref(), Some("2026-03-02T00:00:00Z"));
        assert_eq!(take(&usage, &charge("2026-03-02T12:00:00Z", 60, 1)).await, None);
        // One of the next day counts until that is over, and says so.
        let over = take(&usage, &charge("2026-03-01T23:59:00Z", 0, 1)).await;
        assert_eq!(over.as_deref(), Some("2026-03-03T00:00:00Z"));
    }
}
