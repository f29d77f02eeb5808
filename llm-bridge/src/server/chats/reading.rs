//! Messages of chats, which may be large.

use std::sync::Arc;

use registry_core::store::ChatMessage;

use super::Access;
use crate::server::requests::api_error::ApiError;

impl Access {
    /// All messages of a chat, to be shown.
    ///
    /// # Errors
    /// As those of [`whole_messages`](Self::whole_messages).
    pub(super) async fn messages(&self, id: &str) -> Result<Vec<ChatMessage>, ApiError> {
        let (store, chat) = (Arc::clone(&self.store), self.chat_id(id));
        self.identity.read(async move { store.chat_messages(chat.key()).await }, in_memory).await
    }

    /// All messages of a chat, with what the model gets of them.
    ///
    /// # Errors
    /// 503 where the user, or all together, have as much under way as may be.
    pub(super) async fn whole_messages(&self, id: &str) -> Result<Vec<ChatMessage>, ApiError> {
        let (store, chat) = (Arc::clone(&self.store), self.chat_id(id));
        self.identity.read(async move { store.whole_chat_messages(chat.key()).await }, in_memory).await
    }

    /// A message of a chat with what the model gets of it, if it is there.
    ///
    /// # Errors
    /// The same.
    pub(super) async fn message(&self, id: &str, message: String) -> Result<Option<ChatMessage>, ApiError> {
        let (store, chat) = (Arc::clone(&self.store), self.chat_id(id));
        let read = async move { store.chat_message(chat.key(), &message).await };
        self.identity.read(read, |found| in_memory(found.as_slice())).await
    }
}

/// Until the request is answered they are in memory up to three times, as the database gives them, as they are kept here and as they are
/// decoded.
fn in_memory<M: AsRef<[ChatMessage]> + ?Sized>(messages: &M) -> usize {
    3 * messages.as_ref().iter().map(bytes).sum::<usize>()
}

/// How much is read of a message.
pub(super) fn bytes(message: &ChatMessage) -> usize {
    message.document.len() + message.context.len()
}
