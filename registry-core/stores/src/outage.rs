//! A database that does not answer: when a few have waited for it in vain, the others no longer do, and now and then one finds out whether it is
//! back.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::sql::failure;
use registry_core::store::{StoreError, StoreResult};

/// So many have to have waited in vain, one after another, before others do not wait.
const IN_VAIN: u32 = 3;
/// How soon the next one then waits.
const TRY_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Outage(Mutex<Tries>);

#[derive(Debug, Default)]
struct Tries {
    /// How many have waited in vain since somebody last had a connection.
    in_vain: u32,
    /// When somebody last began to wait.
    last: Option<Instant>,
}

impl Outage {
    /// Waits for a connection, unless that is known to be in vain.
    pub(crate) async fn wait_for<T>(
        &self,
        connection: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> StoreResult<T> {
        if !self.may_wait(Instant::now()) {
            return Err(StoreError::unavailable(
                "the database did not answer before, and is asked again in a second",
            ));
        }
        let connection = connection.await;
        let mut tries = self.0.lock();
        tries.in_vain = if connection.is_ok() { 0 } else { tries.in_vain.saturating_add(1) };
        connection.map_err(failure)
    }

    fn may_wait(&self, now: Instant) -> bool {
        let mut tries = self.0.lock();
        let may = tries.in_vain < IN_VAIN || tries.last.is_none_or(|last| now - last >= TRY_AGAIN);
        if may {
            tries.last = Some(now);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use registry_core::store::StoreErrorKind;

    use super::*;

    /// How long one waits for a database that answers or does not, and whether it has a connection.
    async fn wait(outage: &Outage, answers: bool) -> (u64, bool) {
        let began = Instant::now();
        let connected = outage.wait_for(async {
            if answers {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
            Err(sqlx::Error::PoolTimedOut)
        });
        let connected = connected.await;
        assert!(connected.as_ref().err().is_none_or(|fault| fault.kind() == StoreErrorKind::Unavailable));
        (began.elapsed().as_secs(), connected.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn n4_after_a_few_nobody_waits_in_vain_but_one_a_second_until_the_database_is_back() {
        let outage = Outage::default();
        for _ in 0..3 {
            assert_eq!(wait(&outage, false).await, (5, false));
        }
        assert_eq!(wait(&outage, false).await, (5, false), "one tries whether it is back");
        let (one, others) = tokio::join!(wait(&outage, false), async {
            let mut others = Vec::new();
            for _ in 0..20 {
                others.push(wait(&outage, true).await);
            }
            others
        });
        assert_eq!(one, (5, false));
        assert!(others.iter().all(|other| *other == (0, false)), "{others:?}");
        tokio::time::sleep(TRY_AGAIN).await;
        assert_eq!(wait(&outage, true).await, (0, true));
        for _ in 0..2 {
            assert_eq!(wait(&outage, true).await, (0, true), "at once, for everybody");
        }
        // One that fails among others is no outage.
        assert_eq!(wait(&outage, false).await, (5, false));
        assert_eq!(wait(&outage, true).await, (0, true));
    }
}
