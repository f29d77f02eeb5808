//! Places of each user, for work of which only a few are done at once.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{JoinError, spawn_blocking},
};
use tracing::Instrument;

/// How much of some work is done for one user at once: what is more waits for the user's own, and holds up nobody else. All users together
/// may have a bound as well.
#[derive(Debug, Clone)]
pub struct UserPlaces {
    each: usize,
    users: Arc<Mutex<ByUser>>,
    all: Arc<Semaphore>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct UserPlace {
    _of_all: OwnedSemaphorePermit,
    // Given back last: it is what the user's next waits for.
    _own: OwnedSemaphorePermit,
}

/// By tenant and user. A user who has none, and waits for none, is forgotten.
type ByUser = HashMap<(String, String), Weak<Semaphore>>;

/// One place for each.
impl Default for UserPlaces {
    fn default() -> Self {
        Self::new(1)
    }
}

impl UserPlaces {
    /// So many for each user.
    pub fn new(each: usize) -> Self {
        Self { each, users: Arc::default(), all: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)) }
    }

    /// And so many for all users together.
    #[must_use]
    pub fn among(self, all: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), ..self }
    }

    /// Waits for a place of a user of a tenant.
    pub async fn enter(&self, tenant: &str, user: &str) -> Option<UserPlace> {
        // The semaphores are never closed.
        let own = self.of(tenant, user).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(UserPlace { _of_all: of_all, _own: own })
    }

    /// Does work of a user beside the runtime, in a place of its own. It cannot be stopped: it has its place until it ends, also where nobody
    /// waits for it any more.
    ///
    /// # Errors
    /// When it panics, or the runtime ends.
    pub async fn work<T: Send + 'static>(
        &self,
        (tenant, user): (&str, &str),
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let place = self.enter(tenant, user).await;
        let work = move || {
            let _place = place;
            work()
        };
        spawn_blocking(work).await
    }

    /// Does something that waits, such as for a database, in the same way: also where nobody waits for it any more, it is done to its end.
    ///
    /// # Errors
    /// When it panics, or the runtime ends.
    pub async fn task<T: Send + 'static>(
        &self,
        (tenant, user): (&str, &str),
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        let place = self.enter(tenant, user).await;
        let task = async move {
            let _place = place;
            task.await
        };
        tokio::spawn(task.in_current_span()).await
    }

    /// How many places of all are free.
    pub fn free(&self) -> usize {
        self.all.available_permits()
    }

    fn of(&self, tenant: &str, user: &str) -> Arc<Semaphore> {
        let owner = (tenant.to_owned(), user.to_owned());
        let mut users = self.users.lock();
        if let Some(there) = users.get(&owner).and_then(Weak::upgrade) {
            return there;
        }
        users.retain(|_, there| there.strong_count() > 0);
        let new = Arc::new(Semaphore::new(self.each));
        users.insert(owner, Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a25_each_user_has_so_many_places() {
        let places = UserPlaces::new(2);
        let mut held = vec![places.enter("default", "ada").await, places.enter("default", "ada").await];
        let free = |tenant: &str, user: &str| places.of(tenant, user).available_permits();
        assert_eq!([free("default", "ada"), free("default", "eve"), free("acme", "ada")], [0, 2, 2]);
        held.pop();
        assert_eq!(free("default", "ada"), 1);
        drop(held);
        let _other = places.enter("default", "bob").await;
        assert_eq!(places.users.lock().len(), 1);
    }

    #[tokio::test]
    async fn a11_the_next_place_is_of_another_user_however_many_of_one_wait() {
        let places = UserPlaces::new(1).among(1);
        let held = places.enter("default", "ada").await;
        let mut more = [0; 3].map(|_| Box::pin(places.enter("default", "ada")));
        for next in &mut more {
            assert!(futures_util::poll!(next).is_pending());
        }
        let mut other = Box::pin(places.enter("default", "eve"));
        assert!(futures_util::poll!(&mut other).is_pending());
        drop(held);
        assert!(futures_util::poll!(&mut more[0]).is_pending());
        assert!(other.await.is_some());
    }

    #[tokio::test]
    async fn a25_all_users_together_have_so_many_places() {
        let places = UserPlaces::new(2).among(3);
        let held = [places.enter("default", "ada").await, places.enter("default", "eve").await];
        let last = places.enter("acme", "ada").await;
        assert_eq!(places.free(), 0);
        let mut next = Box::pin(places.enter("default", "bob"));
        assert!(futures_util::poll!(&mut next).is_pending());
        drop(last);
        assert!(next.await.is_some());
        drop(held);
        assert_eq!(places.free(), 3);
    }
}
