//! A store of chats that may fail, or take its time.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use registry_core::{
    BoxFuture,
    store::{
        ChatChange, ChatError, ChatKey, ChatLimits, ChatMessage, ChatQuery, ChatStore, FoundChat,
        MemoryStore, StoreError, StoreResult, StoredChat,
    },
};

type Before = dyn Fn(&'static str) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync;

/// Does what it is asked when `before`, which gets the name of the method, lets it.
pub struct Chats {
    kept: Arc<MemoryStore>,
    before: Box<Before>,
}

impl Chats {
    pub fn new(
        kept: Arc<MemoryStore>,
        before: impl Fn(&'static str) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { kept, before: Box::new(before) })
    }
}

#[async_trait]
impl ChatStore for Chats {
    async fn begin_chat(
        &self,
        owner: (&str, &str),
        chat: StoredChat,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        self.kept.begin_chat(owner, chat, limits).await
    }

    async fn chat(&self, key: ChatKey<'_>) -> StoreResult<Option<StoredChat>> {
        self.kept.chat(key).await
    }

    async fn chats(&self, owner: (&str, &str), query: &ChatQuery) -> StoreResult<Vec<FoundChat>> {
        self.kept.chats(owner, query).await
    }

    async fn change_chat(&self, key: ChatKey<'_>, change: ChatChange) -> StoreResult<bool> {
        (self.before)("change_chat").await?;
        self.kept.change_chat(key, change).await
    }

    async fn delete_chat(&self, key: ChatKey<'_>) -> StoreResult<bool> {
        self.kept.delete_chat(key).await
    }

    async fn add_chat_messages(
        &self,
        key: ChatKey<'_>,
        messages: Vec<ChatMessage>,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        (self.before)("add_chat_messages").await?;
        self.kept.add_chat_messages(key, messages, limits).await
    }

    async fn put_chat_message(&self, key: ChatKey<'_>, message: ChatMessage) -> StoreResult<bool> {
        (self.before)("put_chat_message").await?;
        self.kept.put_chat_message(key, message).await
    }

    async fn chat_messages(&self, key: ChatKey<'_>) -> StoreResult<Vec<ChatMessage>> {
        self.kept.chat_messages(key).await
    }

    async fn whole_chat_messages(&self, key: ChatKey<'_>) -> StoreResult<Vec<ChatMessage>> {
        self.kept.whole_chat_messages(key).await
    }

    async fn chat_message(&self, key: ChatKey<'_>, id: &str) -> StoreResult<Option<ChatMessage>> {
        self.kept.chat_message(key, id).await
    }

    async fn delete_chat_messages(&self, key: ChatKey<'_>, ids: &[String], leaf: &str) -> StoreResult<()> {
        self.kept.delete_chat_messages(key, ids, leaf).await
    }

    async fn begin_chat_turn(
        &self,
        key: ChatKey<'_>,
        turn: &str,
        now: Timestamp,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        self.kept.begin_chat_turn(key, turn, now, limits).await
    }

    async fn hold_chat_turn(&self, key: ChatKey<'_>, turn: &str, now: Timestamp) -> StoreResult<bool> {
        (self.before)("hold_chat_turn").await?;
        self.kept.hold_chat_turn(key, turn, now).await
    }

    async fn stop_chat_turn(&self, key: ChatKey<'_>) -> StoreResult<bool> {
        self.kept.stop_chat_turn(key).await
    }

    async fn end_chat_turn(&self, key: ChatKey<'_>, turn: &str) -> StoreResult<()> {
        (self.before)("end_chat_turn").await?;
        self.kept.end_chat_turn(key, turn).await
    }
}
