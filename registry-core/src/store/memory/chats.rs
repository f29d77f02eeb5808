//! Chats in memory. None of it raises the revision, which is that of registrations, users and keys.

use async_trait::async_trait;
use jiff::Timestamp;

use super::MemoryStore;
use crate::store::{
    ChatChange, ChatError, ChatKey, ChatLimits, ChatMessage, ChatQuery, ChatStore, FoundChat, StoreResult,
    StoredChat, chats::MemoryChats,
};

impl MemoryStore {
    /// Does something with the chats.
    fn with_chats<T>(&self, run: impl FnOnce(&mut MemoryChats) -> T) -> T {
        run(&mut self.state.lock().chats)
    }
}

#[async_trait]
impl ChatStore for MemoryStore {
    async fn begin_chat(
        &self,
        owner: (&str, &str),
        chat: StoredChat,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        self.with_chats(|chats| chats.begin(owner, chat, limits))
    }

    async fn chat(&self, key: ChatKey<'_>) -> StoreResult<Option<StoredChat>> {
        self.with_chats(|chats| Ok(chats.chat(key)))
    }

    async fn chats(&self, owner: (&str, &str), query: &ChatQuery) -> StoreResult<Vec<FoundChat>> {
        self.with_chats(|chats| Ok(chats.list(owner, query)))
    }

    async fn change_chat(&self, key: ChatKey<'_>, change: ChatChange) -> StoreResult<bool> {
        self.with_chats(|chats| Ok(chats.change(key, change)))
    }

    async fn delete_chat(&self, key: ChatKey<'_>) -> StoreResult<bool> {
        self.with_chats(|chats| Ok(chats.delete(key)))
    }

    async fn add_chat_messages(
        &self,
        key: ChatKey<'_>,
        messages: Vec<ChatMessage>,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        self.with_chats(|chats| chats.add(key, messages, limits))
    }

    async fn put_chat_message(&self, key: ChatKey<'_>, message: ChatMessage) -> StoreResult<bool> {
        self.with_chats(|chats| Ok(chats.put(key, message)))
    }

    async fn chat_messages(&self, key: ChatKey<'_>) -> StoreResult<Vec<ChatMessage>> {
        self.with_chats(|chats| {
            let messages = chats.messages(key).into_iter();
            Ok(messages.map(|message| ChatMessage { context: "".into(), ..message }).collect())
        })
    }

    async fn whole_chat_messages(&self, key: ChatKey<'_>) -> StoreResult<Vec<ChatMessage>> {
        self.with_chats(|chats| Ok(chats.messages(key)))
    }

    async fn chat_message(&self, key: ChatKey<'_>, id: &str) -> StoreResult<Option<ChatMessage>> {
        self.with_chats(|chats| Ok(chats.message(key, id)))
    }

    async fn delete_chat_messages(&self, key: ChatKey<'_>, ids: &[String], leaf: &str) -> StoreResult<()> {
        self.with_chats(|chats| {
            chats.delete_messages(key, ids, leaf);
            Ok(())
        })
    }

    async fn begin_chat_turn(
        &self,
        key: ChatKey<'_>,
        turn: &str,
        now: Timestamp,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        self.with_chats(|chats| chats.begin_turn(key, turn, now, limits))
    }

    async fn hold_chat_turn(&self, key: ChatKey<'_>, turn: &str, now: Timestamp) -> StoreResult<bool> {
        self.with_chats(|chats| Ok(chats.hold_turn(key, turn, now)))
    }

    async fn stop_chat_turn(&self, key: ChatKey<'_>) -> StoreResult<bool> {
        self.with_chats(|chats| Ok(chats.stop_turn(key)))
    }

    async fn end_chat_turn(&self, key: ChatKey<'_>, turn: &str) -> StoreResult<()> {
        self.with_chats(|chats| {
            chats.end_turn(key, turn);
            Ok(())
        })
    }
}
