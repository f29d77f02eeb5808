//! Places of each user, for work of which only a few are done at once.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How much of some work is done for one user at once: what is more waits for the user's own, and holds up nobody else.
#[derive(Debug, Clone)]
pub struct UserPlaces {
    each: usize,
    users: Arc<Mutex<ByUser>>,
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
        Self { each, users: Arc::default() }
    }

    /// Waits for a place of a user of a tenant, which is held as long as what this gives.
    pub async fn enter(&self, tenant: &str, user: &str) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        self.of(tenant, user).acquire_owned().await.ok()
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
}
