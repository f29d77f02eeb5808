//! Whole chats, which may be large, are read a few at once: the store has few that read, and others need them for each call.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use registry_core::store::{ChatMessage, StoreFuture};
use tokio::sync::Semaphore;

use super::Access;
use crate::server::api_error::ApiError;

/// How many are read at once.
const AT_ONCE: usize = 2;
static READERS: Semaphore = Semaphore::const_new(AT_ONCE);

/// The users who read whole chats, each one at a time.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading(Arc<Mutex<ByUser>>);

/// By tenant and user.
type ByUser = HashMap<(String, String), Weak<Semaphore>>;

impl Reading {
    fn of(&self, owner: (&str, &str)) -> Arc<Semaphore> {
        let owner = (owner.0.to_owned(), owner.1.to_owned());
        let mut users = self.0.lock();
        if let Some(there) = users.get(&owner).and_then(Weak::upgrade) {
            return there;
        }
        users.retain(|_, there| there.strong_count() > 0);
        let new = Arc::new(Semaphore::new(1));
        users.insert(owner, Arc::downgrade(&new));
        new
    }
}

impl Access {
    /// All messages of a chat, to be shown.
    ///
    /// # Errors
    /// As those of [`whole_messages`](Self::whole_messages).
    pub(super) async fn messages(&self, id: &str) -> Result<Vec<ChatMessage>, ApiError> {
        self.read(self.store.chat_messages(self.key(id))).await
    }

    /// All messages of a chat, with what the model gets of them. Until the request is answered they are in memory up to three times, as the
    /// database gives them, as they are kept here and as they are decoded, which counts like the body of a request.
    ///
    /// # Errors
    /// 503 where the user, or all together, have as much under way as may be.
    pub(super) async fn whole_messages(&self, id: &str) -> Result<Vec<ChatMessage>, ApiError> {
        self.read(self.store.whole_chat_messages(self.key(id))).await
    }

    async fn read(&self, read: StoreFuture<'_, Vec<ChatMessage>>) -> Result<Vec<ChatMessage>, ApiError> {
        let closed = |_| ApiError::internal("the server is being stopped");
        let own = self.turns.reading.of(self.owner());
        let _own = own.acquire().await.map_err(closed)?;
        let _reader = READERS.acquire().await.map_err(closed)?;
        let all = read.await?;
        self.identity.hold(3 * all.iter().map(bytes).sum::<usize>())?;
        Ok(all)
    }
}

/// How much is read of a message.
pub(super) fn bytes(message: &ChatMessage) -> usize {
    message.document.len() + message.context.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a25_each_user_reads_one_chat_at_a_time() {
        let reading = Reading::default();
        let (ada, eve) = (reading.of(("default", "ada")), reading.of(("default", "eve")));
        let held = ada.try_acquire().unwrap();
        assert!(reading.of(("default", "ada")).try_acquire().is_err());
        assert!(eve.try_acquire().is_ok() && reading.of(("acme", "ada")).try_acquire().is_ok());
        drop(held);
        drop((ada, eve));
        let _other = reading.of(("default", "bob"));
        assert_eq!(reading.0.lock().len(), 1);
    }
}
