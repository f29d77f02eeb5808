//! A store of chats that may fail, or take its time.

use std::sync::Arc;

use jiff::Timestamp;
use registry_core::{
    BoxFuture,
    store::{
        ChatChange, ChatError, ChatKey, ChatLimits, ChatMessage, ChatQuery, ChatStore, FoundChat,
        MemoryStore, StoreError, StoreFuture, StoredChat,
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

impl ChatStore for Chats {
    fn begin_chat<'a>(
        &'a self,
        owner: (&'a str, &'a str),
        chat: StoredChat,
        limits: &'a ChatLimits,
    ) -> BoxFuture<'a, Result<(), ChatError>> {
        self.kept.begin_chat(owner, chat, limits)
    }

    fn chat<'a>(&'a self, key: ChatKey<'a>) -> StoreFuture<'a, Option<StoredChat>> {
        self.kept.chat(key)
    }

    fn chats<'a>(
        &'a self,
        owner: (&'a str, &'a str),
        query: &'a ChatQuery,
    ) -> StoreFuture<'a, Vec<FoundChat>> {
        self.kept.chats(owner, query)
    }

    fn change_chat<'a>(&'a self, key: ChatKey<'a>, change: ChatChange) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            (self.before)("change_chat").await?;
            self.kept.change_chat(key, change).await
        })
    }

    fn delete_chat<'a>(&'a self, key: ChatKey<'a>) -> StoreFuture<'a, bool> {
        self.kept.delete_chat(key)
    }

    fn delete_chats_of<'a>(&'a self, tenant: &'a str, user: &'a str) -> StoreFuture<'a, usize> {
        self.kept.delete_chats_of(tenant, user)
    }

    fn add_chat_messages<'a>(
        &'a self,
        key: ChatKey<'a>,
        messages: Vec<ChatMessage>,
        limits: &'a ChatLimits,
    ) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async move {
            (self.before)("add_chat_messages").await?;
            self.kept.add_chat_messages(key, messages, limits).await
        })
    }

    fn put_chat_message<'a>(&'a self, key: ChatKey<'a>, message: ChatMessage) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            (self.before)("put_chat_message").await?;
            self.kept.put_chat_message(key, message).await
        })
    }

    fn chat_messages<'a>(&'a self, key: ChatKey<'a>) -> StoreFuture<'a, Vec<ChatMessage>> {
        self.kept.chat_messages(key)
    }

    fn whole_chat_messages<'a>(&'a self, key: ChatKey<'a>) -> StoreFuture<'a, Vec<ChatMessage>> {
        self.kept.whole_chat_messages(key)
    }

    fn chat_message<'a>(&'a self, key: ChatKey<'a>, id: &'a str) -> StoreFuture<'a, Option<ChatMessage>> {
        self.kept.chat_message(key, id)
    }

    fn delete_chat_messages<'a>(
        &'a self,
        key: ChatKey<'a>,
        ids: &'a [String],
        leaf: &'a str,
    ) -> StoreFuture<'a, ()> {
        self.kept.delete_chat_messages(key, ids, leaf)
    }

    fn begin_chat_turn<'a>(
        &'a self,
        key: ChatKey<'a>,
        turn: &'a str,
        now: Timestamp,
        limits: &'a ChatLimits,
    ) -> BoxFuture<'a, Result<(), ChatError>> {
        self.kept.begin_chat_turn(key, turn, now, limits)
    }

    fn hold_chat_turn<'a>(
        &'a self,
        key: ChatKey<'a>,
        turn: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            (self.before)("hold_chat_turn").await?;
            self.kept.hold_chat_turn(key, turn, now).await
        })
    }

    fn stop_chat_turn<'a>(&'a self, key: ChatKey<'a>) -> StoreFuture<'a, bool> {
        self.kept.stop_chat_turn(key)
    }

    fn end_chat_turn<'a>(&'a self, key: ChatKey<'a>, turn: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            (self.before)("end_chat_turn").await?;
            self.kept.end_chat_turn(key, turn).await
        })
    }
}
