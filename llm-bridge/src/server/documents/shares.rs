//! What each user has of the limits of uploaded files, and which file gives way to another.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

/// How many files of one user are in memory at once.
const TAKEN_OF_A_USER: usize = 4;
/// A file gives way to one of a user who has so many fewer.
const MORE: usize = 2;

/// What users have of the limits, by tenant and id.
pub(super) type Users = Arc<Mutex<HashMap<(String, String), Held>>>;

/// What a user has of them.
#[derive(Debug)]
pub(super) struct Held {
    /// How many files are in memory, or wait for that.
    files: usize,
    /// Those that come in or wait to be read, the youngest last: each is told by this to give way.
    waiting: Vec<Arc<Notify>>,
    /// Whether one is read.
    reading: Arc<Semaphore>,
}

impl Default for Held {
    fn default() -> Self {
        Self { files: 0, waiting: Vec::new(), reading: Arc::new(Semaphore::new(1)) }
    }
}

/// A file's share of the user's limit.
pub(super) struct UserPlace {
    users: Users,
    user: (String, String),
    pub(super) reading: Arc<Semaphore>,
    pub(super) given_up: Arc<Notify>,
}

impl UserPlace {
    /// `None` when the limit is reached.
    pub(super) fn take(users: &Users, user: (String, String)) -> Option<Self> {
        let mut all = users.lock();
        let held = all.entry(user.clone()).or_default();
        if held.files >= TAKEN_OF_A_USER {
            return None;
        }
        held.files += 1;
        let reading = Arc::clone(&held.reading);
        Some(Self { users: Arc::clone(users), user, reading, given_up: Arc::default() })
    }

    /// From here on it gives way to others.
    pub(super) fn may_give_way(&self) {
        if let Some(held) = self.users.lock().get_mut(&self.user) {
            held.waiting.push(Arc::clone(&self.given_up));
        }
    }

    /// From here on it does not.
    pub(super) fn stays(&self) {
        if let Some(held) = self.users.lock().get_mut(&self.user) {
            held.waiting.retain(|waiting| !Arc::ptr_eq(waiting, &self.given_up));
        }
    }

    /// Has the youngest file give way that waits for anything, of the user who has most, if that is [`MORE`] than this one's has besides.
    pub(super) fn make_way(&self) {
        let mut all = self.users.lock();
        let besides = all.get(&self.user).map_or(0, |held| held.files.saturating_sub(1));
        let who_wait = all.values_mut().filter(|held| !held.waiting.is_empty());
        let most = who_wait.max_by_key(|held| held.files).filter(|held| held.files >= besides + MORE);
        if let Some(youngest) = most.and_then(|held| held.waiting.pop()) {
            youngest.notify_one();
        }
    }
}

impl Drop for UserPlace {
    fn drop(&mut self) {
        self.stays();
        let mut all = self.users.lock();
        if let Some(held) = all.get_mut(&self.user) {
            held.files -= 1;
            // One that is read to no end is still the user's.
            if held.files == 0 && held.reading.available_permits() > 0 {
                all.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_no_user_has_all_places() {
        let users = Arc::default();
        let take = |tenant: &str, user: &str| UserPlace::take(&users, (tenant.to_owned(), user.to_owned()));
        let mut held: Vec<UserPlace> =
            (0..TAKEN_OF_A_USER).map(|_| take("default", "ada").unwrap()).collect();
        assert!(take("default", "ada").is_none());
        held.extend([take("acme", "ada").unwrap(), take("default", "bob").unwrap()]);
        held.remove(0);
        held.push(take("default", "ada").unwrap());
        assert!(take("default", "ada").is_none());
        drop(held);
        assert!(users.lock().is_empty());
    }
}
