//! A store of chats in memory that may fail, or take its time.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::ready,
    sync::Arc,
};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use registry_core::{
    BoxFuture,
    store::{
        ChatChange, ChatError, ChatKey, ChatLimits, ChatMessage, ChatQuery, ChatStore, FoundChat, StoreError,
        StoreResult, StoredChat, StoredTurn, fold,
    },
};

type Before = dyn Fn(&'static str) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync;

/// Does what it is asked when `before`, which gets the name of the method, lets it.
pub struct Chats {
    kept: Mutex<Kept>,
    before: Box<Before>,
}

impl Chats {
    /// One that does all it is asked.
    pub fn in_memory() -> Arc<Self> {
        Self::new(|_| Box::pin(ready(Ok(()))))
    }

    pub fn new(
        before: impl Fn(&'static str) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { kept: Mutex::default(), before: Box::new(before) })
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
        self.kept.lock().begin(owner, chat, limits)
    }

    async fn chat(&self, key: ChatKey<'_>) -> StoreResult<Option<StoredChat>> {
        Ok(self.kept.lock().chat(key))
    }

    async fn chats(&self, owner: (&str, &str), query: &ChatQuery) -> StoreResult<Vec<FoundChat>> {
        (self.before)("chats").await?;
        Ok(self.kept.lock().list(owner, query))
    }

    async fn change_chat(&self, key: ChatKey<'_>, change: ChatChange) -> StoreResult<bool> {
        (self.before)("change_chat").await?;
        Ok(self.kept.lock().change(key, change))
    }

    async fn delete_chat(&self, key: ChatKey<'_>) -> StoreResult<bool> {
        Ok(self.kept.lock().delete(key))
    }

    async fn add_chat_messages(
        &self,
        key: ChatKey<'_>,
        messages: Vec<ChatMessage>,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        (self.before)("add_chat_messages").await?;
        self.kept.lock().add(key, messages, limits)
    }

    async fn put_chat_message(&self, key: ChatKey<'_>, message: ChatMessage) -> StoreResult<bool> {
        (self.before)("put_chat_message").await?;
        Ok(self.kept.lock().put(key, message))
    }

    async fn chat_messages(&self, key: ChatKey<'_>) -> StoreResult<Vec<ChatMessage>> {
        let messages = self.kept.lock().messages(key).into_iter();
        Ok(messages.map(|message| ChatMessage { context: "".into(), ..message }).collect())
    }

    async fn whole_chat_messages(&self, key: ChatKey<'_>) -> StoreResult<Vec<ChatMessage>> {
        Ok(self.kept.lock().messages(key))
    }

    async fn chat_message(&self, key: ChatKey<'_>, id: &str) -> StoreResult<Option<ChatMessage>> {
        (self.before)("chat_message").await?;
        Ok(self.kept.lock().message(key, id))
    }

    async fn delete_chat_messages(&self, key: ChatKey<'_>, ids: &[String], leaf: &str) -> StoreResult<()> {
        self.kept.lock().delete_messages(key, ids, leaf);
        Ok(())
    }

    async fn begin_chat_turn(
        &self,
        key: ChatKey<'_>,
        turn: &str,
        now: Timestamp,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        self.kept.lock().begin_turn(key, turn, now, limits)
    }

    async fn hold_chat_turn(&self, key: ChatKey<'_>, turn: &str, now: Timestamp) -> StoreResult<bool> {
        (self.before)("hold_chat_turn").await?;
        Ok(self.kept.lock().hold_turn(key, turn, now))
    }

    async fn stop_chat_turn(&self, key: ChatKey<'_>) -> StoreResult<bool> {
        Ok(self.kept.lock().stop_turn(key))
    }

    async fn end_chat_turn(&self, key: ChatKey<'_>, turn: &str) -> StoreResult<()> {
        (self.before)("end_chat_turn").await?;
        self.kept.lock().end_turn(key, turn);
        Ok(())
    }
}

#[derive(Debug)]
struct Chat {
    chat: StoredChat,
    is_stopping: bool,
    /// Oldest first.
    messages: Vec<ChatMessage>,
}

impl Chat {
    fn size(&self) -> u64 {
        self.messages.iter().map(ChatMessage::size).sum()
    }
}

/// The chats of all users, by tenant and user, and by id.
#[derive(Debug, Default)]
struct Kept(BTreeMap<(String, String), BTreeMap<String, Chat>>);

impl Kept {
    fn of(&self, (tenant, user): (&str, &str)) -> Option<&BTreeMap<String, Chat>> {
        self.0.get(&(tenant.to_owned(), user.to_owned()))
    }

    fn get(&self, key: ChatKey<'_>) -> Option<&Chat> {
        self.of((key.tenant, key.user))?.get(key.id)
    }

    fn get_mut(&mut self, key: ChatKey<'_>) -> Option<&mut Chat> {
        self.0.get_mut(&(key.tenant.to_owned(), key.user.to_owned()))?.get_mut(key.id)
    }

    fn check_user(
        &self,
        owner: (&str, &str),
        more: (usize, u64),
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        let chats = self.of(owner);
        let number = chats.map_or(0, BTreeMap::len) + more.0;
        let bytes: u64 = chats.into_iter().flatten().map(|(_, chat)| chat.size()).sum();
        let ChatLimits { max_chats, max_user_bytes, .. } = *limits;
        match number > max_chats || bytes.saturating_add(more.1) > max_user_bytes {
            true => Err(ChatError::TooManyChats { max: max_chats, bytes: max_user_bytes }),
            false => Ok(()),
        }
    }

    fn begin(&mut self, owner: (&str, &str), chat: StoredChat, limits: &ChatLimits) -> Result<(), ChatError> {
        self.check_user(owner, (1, 0), limits)?;
        let (id, chat) = (chat.id.clone(), Chat { chat, is_stopping: false, messages: Vec::new() });
        self.0.entry((owner.0.to_owned(), owner.1.to_owned())).or_default().insert(id, chat);
        Ok(())
    }

    fn chat(&self, key: ChatKey<'_>) -> Option<StoredChat> {
        Some(self.get(key)?.chat.clone())
    }

    fn list(&self, owner: (&str, &str), query: &ChatQuery) -> Vec<FoundChat> {
        let place = |chat: &StoredChat| (chat.pinned, chat.updated_at, chat.id.clone());
        let has_all = |text: &str| {
            let text = fold(text);
            query.words.iter().all(|word| text.contains(word.as_str()))
        };
        let found = |chat: &Chat| {
            let is_behind = query.after.as_ref().is_none_or(|after| place(&chat.chat) < *after);
            let message = chat.messages.iter().rfind(|message| has_all(&message.text));
            let message = message.filter(|_| !query.words.is_empty());
            (is_behind && (has_all(&chat.chat.title) || message.is_some())).then(|| FoundChat {
                chat: chat.chat.clone(),
                message: message.map(|message| (message.id.clone(), message.text.clone())),
            })
        };
        let mut all: Vec<FoundChat> =
            self.of(owner).into_iter().flat_map(BTreeMap::values).filter_map(found).collect();
        all.sort_by_key(|found| std::cmp::Reverse(place(&found.chat)));
        all.truncate(query.limit);
        all
    }

    fn change(&mut self, key: ChatKey<'_>, change: ChatChange) -> bool {
        let Some(Chat { chat, .. }) = self.get_mut(key) else { return false };
        let ChatChange { title, if_titled_by, pinned, leaf, settings, if_settings, .. } = change;
        if if_titled_by.is_some_and(|by| by != chat.titled_by)
            || if_settings.is_some_and(|settings| settings != chat.settings)
        {
            return false;
        }
        if let Some((title, by)) = title {
            (chat.title, chat.titled_by) = (title, by);
        }
        chat.pinned = pinned.unwrap_or(chat.pinned);
        chat.leaf = leaf.unwrap_or_else(|| std::mem::take(&mut chat.leaf));
        chat.settings = settings.unwrap_or_else(|| chat.settings.clone());
        true
    }

    fn delete(&mut self, key: ChatKey<'_>) -> bool {
        let owner = (key.tenant.to_owned(), key.user.to_owned());
        self.0.get_mut(&owner).is_some_and(|chats| chats.remove(key.id).is_some())
    }

    fn add(
        &mut self,
        key: ChatKey<'_>,
        messages: Vec<ChatMessage>,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        let chat = self.get(key).ok_or(ChatError::Unknown)?;
        let bytes: u64 = messages.iter().map(ChatMessage::size).sum();
        let ChatLimits { max_messages, max_chat_bytes, .. } = *limits;
        if chat.messages.len() + messages.len() > max_messages
            || chat.size().saturating_add(bytes) > max_chat_bytes
        {
            return Err(ChatError::ChatFull { max: max_messages, bytes: max_chat_bytes });
        }
        self.check_user((key.tenant, key.user), (0, bytes), limits)?;
        let Chat { chat, messages: all, .. } = self.get_mut(key).ok_or(ChatError::Unknown)?;
        if let Some(last) = messages.last() {
            (chat.leaf, chat.updated_at) = (last.id.clone(), last.created_at);
        }
        all.extend(messages);
        all.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(())
    }

    fn put(&mut self, key: ChatKey<'_>, message: ChatMessage) -> bool {
        let messages = self.get_mut(key).map(|chat| &mut chat.messages);
        let known = messages.into_iter().flatten().find(|known| known.id == message.id);
        known.map(|known| *known = message).is_some()
    }

    fn messages(&self, key: ChatKey<'_>) -> Vec<ChatMessage> {
        self.get(key).map(|chat| chat.messages.clone()).unwrap_or_default()
    }

    fn message(&self, key: ChatKey<'_>, id: &str) -> Option<ChatMessage> {
        self.get(key)?.messages.iter().find(|message| message.id == id).cloned()
    }

    fn delete_messages(&mut self, key: ChatKey<'_>, ids: &[String], leaf: &str) {
        let ids: BTreeSet<&String> = ids.iter().collect();
        if let Some(Chat { chat, messages, .. }) = self.get_mut(key) {
            messages.retain(|message| !ids.contains(&message.id));
            leaf.clone_into(&mut chat.leaf);
        }
    }

    fn begin_turn(
        &mut self,
        key: ChatKey<'_>,
        turn: &str,
        now: Timestamp,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        let since = limits.since(now);
        if self.get(key).ok_or(ChatError::Unknown)?.chat.running(since).is_some() {
            return Err(ChatError::TurnRunning);
        }
        let chats = self.of((key.tenant, key.user)).into_iter().flat_map(BTreeMap::values);
        if chats.filter(|chat| chat.chat.running(since).is_some()).count() >= limits.max_turns {
            return Err(ChatError::TooManyTurns { max: limits.max_turns });
        }
        let chat = self.get_mut(key).ok_or(ChatError::Unknown)?;
        chat.chat.turn = Some(StoredTurn { id: turn.to_owned(), seen_at: now });
        chat.is_stopping = false;
        Ok(())
    }

    fn hold_turn(&mut self, key: ChatKey<'_>, turn: &str, now: Timestamp) -> bool {
        let Some(chat) = self.get_mut(key) else { return true };
        match chat.chat.turn.as_mut().filter(|claimed| claimed.id == turn) {
            Some(claimed) => {
                claimed.seen_at = now;
                chat.is_stopping
            }
            None => true,
        }
    }

    fn stop_turn(&mut self, key: ChatKey<'_>) -> bool {
        let Some(chat) = self.get_mut(key).filter(|chat| chat.chat.turn.is_some()) else { return false };
        chat.is_stopping = true;
        true
    }

    fn end_turn(&mut self, key: ChatKey<'_>, turn: &str) {
        let Some(chat) = self.get_mut(key) else { return };
        chat.chat.turn.take_if(|claimed| claimed.id == turn);
    }
}
