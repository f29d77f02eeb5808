//! Whole chats, which may be large, are read a few at once: the store has few that read, and others need them for each call.

use registry_core::store::{ChatMessage, StoreResult};
use tokio::sync::Semaphore;

use super::Access;
use crate::server::api_error::ApiError;

/// How many are read at once.
const AT_ONCE: usize = 2;
static READERS: Semaphore = Semaphore::const_new(AT_ONCE);

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

    async fn read(
        &self,
        read: impl Future<Output = StoreResult<Vec<ChatMessage>>>,
    ) -> Result<Vec<ChatMessage>, ApiError> {
        let closed = |_| ApiError::internal("the server is being stopped");
        let (tenant, user) = self.owner();
        let _own = self.turns.reading.enter(tenant, user).await;
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
