//! How many calls of a source run at once, and how many of each user run and wait there.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use parking_lot::Mutex;
use registry_core::ToolContext;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Which part of the calls that run one user may have.
const SHARE_OF_USER: usize = 2;
/// For how many users places are kept that nobody is in.
const USERS_KEPT: usize = 1024;

/// The places of a source. One user has at most half of them, so that slow calls of one do not keep the source from the others.
pub(crate) struct Slots {
    running: Arc<Semaphore>,
    concurrency: usize,
    of_users: Mutex<HashMap<u64, Arc<Places>>>,
    hash: RandomState,
}

/// The places of one user.
struct Places {
    running: Arc<Semaphore>,
    /// For those that run and those that wait.
    admitted: Arc<Semaphore>,
}

/// The place of a call that runs.
pub(crate) struct Slot {
    _admitted: OwnedSemaphorePermit,
    _of_user: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Slots {
    pub(crate) fn new(concurrency: usize) -> Self {
        let concurrency = concurrency.clamp(1, Semaphore::MAX_PERMITS / 2);
        Self {
            running: Arc::new(Semaphore::new(concurrency)),
            concurrency,
            of_users: Mutex::default(),
            hash: RandomState::new(),
        }
    }

    /// Who calls.
    pub(crate) fn user(&self, context: &ToolContext) -> u64 {
        self.hash.hash_one((context.tenant(), &*context.caller().user))
    }

    /// Waits for a place; `None` where as many of the user's calls run and wait as may.
    pub(crate) async fn enter(&self, user: u64) -> Option<Slot> {
        let places = self.of_user(user);
        let admitted = Arc::clone(&places.admitted).try_acquire_owned().ok()?;
        // The narrower first: what waits for its user's others is in nobody else's way. No semaphore is ever closed.
        let of_user = Arc::clone(&places.running).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.running).acquire_owned().await.ok()?;
        Some(Slot { _admitted: admitted, _of_user: of_user, _of_all: of_all })
    }

    fn of_user(&self, user: u64) -> Arc<Places> {
        let mut users = self.of_users.lock();
        if users.len() >= USERS_KEPT && !users.contains_key(&user) {
            // Whoever is about to enter holds the places, whoever is in there a permit.
            users.retain(|_, places| {
                Arc::strong_count(places) > 1 || places.admitted.available_permits() < 2 * self.concurrency
            });
        }
        let new = || {
            Arc::new(Places {
                running: Arc::new(Semaphore::new(self.concurrency.div_ceil(SHARE_OF_USER))),
                admitted: Arc::new(Semaphore::new(2 * self.concurrency)),
            })
        };
        Arc::clone(users.entry(user).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn m8_slow_calls_of_one_user_leave_places_for_the_others() {
        let slots = Slots::new(4);
        let (ada, bob, carl) = (1, 2, 3);
        let running: Vec<_> = (0..2).map(|_| slots.enter(ada).now_or_never().flatten().unwrap()).collect();
        let mut waiting: Vec<_> = (0..6).map(|_| Box::pin(slots.enter(ada))).collect();
        assert!(waiting.iter_mut().all(|call| call.as_mut().now_or_never().is_none()));
        assert!(slots.enter(ada).now_or_never().is_some_and(|slot| slot.is_none()), "no more of hers wait");
        let others: Vec<_> = (0..2).map(|_| slots.enter(bob).now_or_never().flatten().unwrap()).collect();
        // All places are taken. Of what becomes free, each user has the same part.
        let mut next = Box::pin(slots.enter(carl));
        assert!(next.as_mut().now_or_never().is_none());
        drop(running);
        assert!(next.now_or_never().flatten().is_some());
        drop((waiting, others));
        assert_eq!(slots.running.available_permits(), 4);
    }

    #[test]
    fn m8_no_places_are_kept_for_users_who_have_left() {
        let slots = Slots::new(2);
        let ada = u64::MAX;
        let held = slots.enter(ada).now_or_never().flatten();
        for user in 0..3 * USERS_KEPT as u64 {
            assert!(slots.enter(user).now_or_never().flatten().is_some());
        }
        assert!(held.is_some() && slots.of_users.lock().len() <= USERS_KEPT);
        assert!(slots.enter(ada).now_or_never().is_none(), "hers is still counted");
    }
}
