//! Chats in memory. None of it raises the revision, which is that of registrations, users and keys.

use jiff::Timestamp;

use super::MemoryStore;
use crate::{
    future::BoxFuture,
    store::{
        ChatChange, ChatError, ChatKey, ChatLimits, ChatMessage, ChatQuery, ChatStore, FoundChat,
        StoreFuture, StoredChat, chats::MemoryChats,
    },
};

impl MemoryStore {
    /// Does something with the chats.
    fn with_chats<T: Send + 'static>(&self, run: impl FnOnce(&mut MemoryChats) -> T) -> BoxFuture<'_, T> {
        let done = run(&mut self.state.lock().chats);
        Box::pin(std::future::ready(done))
    }
}

impl ChatStore for MemoryStore {
    fn begin_chat<'a>(
        &'a self,
        owner: (&'a str, &'a str),
        chat: StoredChat,
        limits: &'a ChatLimits,
    ) -> BoxFuture<'a, Result<(), ChatError>> {
        self.with_chats(|chats| chats.begin(owner, chat, limits))
    }

    fn chat<'a>(&'a self, key: ChatKey<'a>) -> StoreFuture<'a, Option<StoredChat>> {
        self.with_chats(|chats| Ok(chats.chat(key)))
    }

    fn chats<'a>(
        &'a self,
        owner: (&'a str, &'a str),
        query: &'a ChatQuery,
    ) -> StoreFuture<'a, Vec<FoundChat>> {
        self.with_chats(|chats| Ok(chats.list(owner, query)))
    }

    fn change_chat<'a>(&'a self, key: ChatKey<'a>, change: ChatChange) -> StoreFuture<'a, bool> {
        self.with_chats(|chats| Ok(chats.change(key, change)))
    }

    fn delete_chat<'a>(&'a self, key: ChatKey<'a>) -> StoreFuture<'a, bool> {
        self.with_chats(|chats| Ok(chats.delete(key)))
    }

    fn delete_chats_of<'a>(&'a self, tenant: &'a str, user: &'a str) -> StoreFuture<'a, usize> {
        self.with_chats(|chats| Ok(chats.delete_of(tenant, user)))
    }

    fn add_chat_messages<'a>(
        &'a self,
        key: ChatKey<'a>,
        messages: Vec<ChatMessage>,
        limits: &'a ChatLimits,
    ) -> BoxFuture<'a, Result<(), ChatError>> {
        self.with_chats(|chats| chats.add(key, messages, limits))
    }

    fn put_chat_message<'a>(&'a self, key: ChatKey<'a>, message: ChatMessage) -> StoreFuture<'a, bool> {
        self.with_chats(|chats| Ok(chats.put(key, message)))
    }

    fn chat_messages<'a>(&'a self, key: ChatKey<'a>) -> StoreFuture<'a, Vec<ChatMessage>> {
        self.with_chats(|chats| {
            let messages = chats.messages(key).into_iter();
            Ok(messages.map(|message| ChatMessage { context: "".into(), ..message }).collect())
        })
    }

    fn whole_chat_messages<'a>(&'a self, key: ChatKey<'a>) -> StoreFuture<'a, Vec<ChatMessage>> {
        self.with_chats(|chats| Ok(chats.messages(key)))
    }

    fn chat_message<'a>(&'a self, key: ChatKey<'a>, id: &'a str) -> StoreFuture<'a, Option<ChatMessage>> {
        self.with_chats(|chats| Ok(chats.message(key, id)))
    }

    fn delete_chat_messages<'a>(
        &'a self,
        key: ChatKey<'a>,
        ids: &'a [String],
        leaf: &'a str,
    ) -> StoreFuture<'a, ()> {
        self.with_chats(|chats| {
            chats.delete_messages(key, ids, leaf);
            Ok(())
        })
    }

    fn begin_chat_turn<'a>(
        &'a self,
        key: ChatKey<'a>,
        turn: &'a str,
        now: Timestamp,
        limits: &'a ChatLimits,
    ) -> BoxFuture<'a, Result<(), ChatError>> {
        self.with_chats(|chats| chats.begin_turn(key, turn, now, limits))
    }

    fn hold_chat_turn<'a>(
        &'a self,
        key: ChatKey<'a>,
        turn: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, bool> {
        self.with_chats(|chats| Ok(chats.hold_turn(key, turn, now)))
    }

    fn stop_chat_turn<'a>(&'a self, key: ChatKey<'a>) -> StoreFuture<'a, bool> {
        self.with_chats(|chats| Ok(chats.stop_turn(key)))
    }

    fn end_chat_turn<'a>(&'a self, key: ChatKey<'a>, turn: &'a str) -> StoreFuture<'a, ()> {
        self.with_chats(|chats| {
            chats.end_turn(key, turn);
            Ok(())
        })
    }
}
