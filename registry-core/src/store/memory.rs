//! Keeps everything in memory, until the process ends.

mod chats;
mod connections;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    ApiKey, ConversationError, ConversationLimits, ConversationStore, Expected, Persona, RemovedUser,
    Session, StateError, StateLimits, StateSpace, StateStore, Store, StoreFuture, StoredConnection,
    StoredResponse, StoredTool, StoredTranscript, TranscriptLimits, User,
    chats::MemoryChats,
    conversations::{MemoryConversations, MemoryTranscripts},
    state::MemoryState,
};
use crate::future::BoxFuture;

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    revision: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// By tenant and name.
    tools: BTreeMap<(String, String), StoredTool>,
    /// By tenant and name.
    personas: BTreeMap<(String, String), Persona>,
    /// By tenant and id.
    users: BTreeMap<(String, String), User>,
    keys: Vec<ApiKey>,
    /// Oldest first.
    sessions: Vec<Session>,
    conversations: MemoryConversations,
    transcripts: MemoryTranscripts,
    files: MemoryTranscripts,
    values: MemoryState,
    chats: MemoryChats,
    /// By tenant, user and server.
    connections: BTreeMap<(String, String, String), StoredConnection>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self { state: Mutex::default(), revision: watch::Sender::new(0) }
    }
}

impl MemoryStore {
    fn read<T: Send + 'static>(&self, run: impl FnOnce(&State) -> T) -> StoreFuture<'_, T> {
        let done = run(&self.state.lock());
        Box::pin(std::future::ready(Ok(done)))
    }

    fn write<T: Send + 'static>(&self, run: impl FnOnce(&mut State) -> T) -> StoreFuture<'_, T> {
        let mut state = self.state.lock();
        let done = run(&mut state);
        // Inside of the lock, so that no other change falls between the two.
        self.revision.send_modify(|revision| *revision += 1);
        Box::pin(std::future::ready(Ok(done)))
    }

    /// A change that the revision does not count.
    fn alter<T: Send + 'static>(&self, run: impl FnOnce(&mut State) -> T) -> StoreFuture<'_, T> {
        let done = run(&mut self.state.lock());
        Box::pin(std::future::ready(Ok(done)))
    }

    /// A change where the revision is still this one, and `run` does it.
    fn write_if(&self, revision: u64, run: impl FnOnce(&mut State) -> bool) -> StoreFuture<'_, bool> {
        let mut state = self.state.lock();
        let done = self.revision.send_if_modified(|known| {
            let done = *known == revision && run(&mut state);
            *known += u64::from(done);
            done
        });
        Box::pin(std::future::ready(Ok(done)))
    }
}

fn of_tenant<T: Clone>(rows: &BTreeMap<(String, String), T>, tenant: &str) -> Vec<T> {
    rows.iter().filter(|((of, _), _)| of == tenant).map(|(_, row)| row.clone()).collect()
}

fn key(tenant: &str, name: &str) -> (String, String) {
    (tenant.to_owned(), name.to_owned())
}

impl Store for MemoryStore {
    fn tools<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<StoredTool>> {
        self.read(|state| of_tenant(&state.tools, tenant))
    }

    fn put_tool<'a>(&'a self, tenant: &'a str, tool: StoredTool, revision: u64) -> StoreFuture<'a, bool> {
        self.write_if(revision, |state| {
            state.tools.insert(key(tenant, &tool.tool_name), tool);
            true
        })
    }

    fn remove_tool<'a>(&'a self, tenant: &'a str, tool: &'a str) -> StoreFuture<'a, ()> {
        self.write(|state| drop(state.tools.remove(&key(tenant, tool))))
    }

    fn personas<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<Persona>> {
        self.read(|state| of_tenant(&state.personas, tenant))
    }

    fn persona<'a>(&'a self, tenant: &'a str, name: &'a str) -> StoreFuture<'a, Option<Persona>> {
        self.read(|state| state.personas.get(&key(tenant, name)).cloned())
    }

    fn put_persona<'a>(&'a self, tenant: &'a str, persona: Persona) -> StoreFuture<'a, ()> {
        self.write(|state| drop(state.personas.insert(key(tenant, &persona.name), persona)))
    }

    fn remove_persona<'a>(&'a self, tenant: &'a str, name: &'a str) -> StoreFuture<'a, bool> {
        self.write(|state| state.personas.remove(&key(tenant, name)).is_some())
    }

    fn tenants(&self) -> StoreFuture<'_, Vec<String>> {
        self.read(|state| {
            let all = state.users.keys().chain(state.tools.keys()).chain(state.personas.keys());
            all.map(|(tenant, _)| tenant.clone()).collect::<BTreeSet<_>>().into_iter().collect()
        })
    }

    fn users<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<User>> {
        self.read(|state| of_tenant(&state.users, tenant))
    }

    fn count_users<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, usize> {
        self.read(|state| state.users.keys().filter(|(of, _)| of == tenant).count())
    }

    fn user<'a>(&'a self, tenant: &'a str, id: &'a str) -> StoreFuture<'a, Option<User>> {
        self.read(|state| state.users.get(&key(tenant, id)).cloned())
    }

    fn put_user<'a>(&'a self, tenant: &'a str, user: User) -> StoreFuture<'a, ()> {
        self.write(|state| drop(state.users.insert(key(tenant, &user.id), user)))
    }

    fn change_user<'a>(&'a self, tenant: &'a str, user: User, revision: u64) -> StoreFuture<'a, bool> {
        self.write_if(revision, |state| {
            let known = state.users.get_mut(&key(tenant, &user.id));
            known.map(|known| *known = user).is_some()
        })
    }

    fn remove_user<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a str,
        at: Timestamp,
    ) -> StoreFuture<'a, RemovedUser> {
        self.write(|state| {
            let opens =
                |key: &&mut ApiKey| key.tenant == tenant && key.user == id && key.revoked_at.is_none();
            state.keys.iter_mut().filter(opens).for_each(|key| key.revoked_at = Some(at));
            state.sessions.retain(|session| session.tenant != tenant || session.user != id);
            state.connections.retain(|(of, user, _), _| of != tenant || user != id);
            RemovedUser {
                was_known: state.users.remove(&key(tenant, id)).is_some(),
                responses: state.conversations.delete_of(tenant, id),
                transcripts: state.transcripts.delete_of(tenant, id),
                files: state.files.delete_of(tenant, id),
                values: state.values.delete_of(tenant, id),
                chats: state.chats.delete_of(tenant, id),
            }
        })
    }

    fn keys<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<ApiKey>> {
        self.read(|state| state.keys.iter().filter(|key| key.tenant == tenant).cloned().collect())
    }

    fn keys_of<'a>(&'a self, tenant: &'a str, user: &'a str) -> StoreFuture<'a, Vec<ApiKey>> {
        self.read(|state| {
            let theirs = |key: &&ApiKey| key.tenant == tenant && key.user == user;
            state.keys.iter().filter(theirs).cloned().collect()
        })
    }

    fn key_of_id<'a>(&'a self, tenant: &'a str, id: &'a str) -> StoreFuture<'a, Option<ApiKey>> {
        self.read(|state| state.keys.iter().find(|key| key.tenant == tenant && key.id == id).cloned())
    }

    fn key<'a>(&'a self, sha256: &'a str) -> StoreFuture<'a, Option<ApiKey>> {
        self.read(|state| {
            let opens = |key: &&ApiKey| key.sha256 == sha256 && key.revoked_at.is_none();
            state.keys.iter().find(opens).cloned()
        })
    }

    fn has_keys(&self) -> StoreFuture<'_, bool> {
        self.read(|state| state.keys.iter().any(|key| key.revoked_at.is_none()))
    }

    fn put_key(&self, new: ApiKey) -> StoreFuture<'_, bool> {
        self.write(|state| {
            let is_known = state.users.contains_key(&key(&new.tenant, &new.user));
            if is_known {
                state.keys.push(new);
            }
            is_known
        })
    }

    fn revoke_key<'a>(&'a self, tenant: &'a str, id: &'a str, at: Timestamp) -> StoreFuture<'a, bool> {
        self.write(|state| {
            let opens = |key: &&mut ApiKey| key.tenant == tenant && key.id == id && key.revoked_at.is_none();
            state.keys.iter_mut().find(opens).map(|key| key.revoked_at = Some(at)).is_some()
        })
    }

    fn put_session(&self, session: Session, most: usize) -> StoreFuture<'_, bool> {
        let mut state = self.state.lock();
        let is_known = state.users.contains_key(&key(&session.tenant, &session.user));
        if is_known {
            let now = session.created_at;
            let (tenant, user) = (session.tenant.clone(), session.user.clone());
            let is_own = |other: &Session| other.tenant == tenant && other.user == user;
            state.sessions.retain(|other| other.expires_at > now);
            state.sessions.push(session);
            let mut surplus =
                state.sessions.iter().filter(|other| is_own(other)).count().saturating_sub(most);
            state.sessions.retain(|other| {
                let goes = surplus > 0 && is_own(other);
                surplus -= usize::from(goes);
                !goes
            });
        }
        Box::pin(std::future::ready(Ok(is_known)))
    }

    fn session<'a>(&'a self, sha256: &'a str, now: Timestamp) -> StoreFuture<'a, Option<Session>> {
        self.read(|state| {
            let opens = |session: &&Session| session.sha256 == sha256 && session.expires_at > now;
            state.sessions.iter().find(opens).cloned()
        })
    }

    fn sessions<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<Session>> {
        self.read(|state| {
            let is_theirs = |session: &&Session| {
                session.tenant == tenant && session.user == user && session.expires_at > now
            };
            state.sessions.iter().filter(is_theirs).cloned().collect()
        })
    }

    fn end_session<'a>(&'a self, tenant: &'a str, user: &'a str, id: &'a str) -> StoreFuture<'a, bool> {
        let mut state = self.state.lock();
        let before = state.sessions.len();
        state.sessions.retain(|other| other.tenant != tenant || other.user != user || other.id != id);
        let ended = state.sessions.len() < before;
        Box::pin(std::future::ready(Ok(ended)))
    }

    fn revision(&self) -> StoreFuture<'_, u64> {
        Box::pin(std::future::ready(Ok(*self.revision.borrow())))
    }

    fn changed(&self, since: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // The sender is this store, so the channel is never closed.
            let _ = self.revision.subscribe().wait_for(|revision| *revision != since).await;
        })
    }
}

/// None of it raises the revision, which is that of registrations, users and keys.
impl ConversationStore for MemoryStore {
    fn keep_response<'a>(
        &'a self,
        response: StoredResponse,
        now: Timestamp,
        limits: &'a ConversationLimits,
    ) -> BoxFuture<'a, Result<(), ConversationError>> {
        Box::pin(std::future::ready(self.state.lock().conversations.keep(response, now, limits)))
    }

    fn response<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        id: &'a str,
        since: Timestamp,
    ) -> StoreFuture<'a, Option<StoredResponse>> {
        self.read(|state| state.conversations.response(tenant, user, id, since))
    }

    fn response_chain<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        id: &'a str,
        since: Timestamp,
        limits: &'a ConversationLimits,
    ) -> BoxFuture<'a, Result<Vec<Arc<str>>, ConversationError>> {
        let chain = self.state.lock().conversations.chain(tenant, user, id, since, limits);
        Box::pin(std::future::ready(chain))
    }

    fn delete_response<'a>(&'a self, tenant: &'a str, user: &'a str, id: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(std::future::ready(Ok(self.state.lock().conversations.delete(tenant, user, id))))
    }

    fn delete_conversations_of<'a>(&'a self, tenant: &'a str, user: &'a str) -> StoreFuture<'a, usize> {
        Box::pin(std::future::ready(Ok(self.state.lock().conversations.delete_of(tenant, user))))
    }

    fn delete_expired(&self, since: Timestamp) -> StoreFuture<'_, ()> {
        self.state.lock().conversations.delete_expired(since);
        Box::pin(std::future::ready(Ok(())))
    }

    fn keep_transcript<'a>(
        &'a self,
        transcript: StoredTranscript,
        since: Timestamp,
        limits: &'a TranscriptLimits,
    ) -> StoreFuture<'a, ()> {
        self.state.lock().transcripts.keep(transcript, since, limits);
        Box::pin(std::future::ready(Ok(())))
    }

    fn transcripts<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        keys: &'a [String],
        since: Timestamp,
        limits: &'a TranscriptLimits,
    ) -> StoreFuture<'a, Vec<StoredTranscript>> {
        self.read(|state| state.transcripts.find(tenant, user, keys, since, limits))
    }

    fn use_transcripts<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        keys: &'a [String],
        now: Timestamp,
    ) -> StoreFuture<'a, ()> {
        self.state.lock().transcripts.note_use(tenant, user, keys, now);
        Box::pin(std::future::ready(Ok(())))
    }

    fn delete_transcripts<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        keys: &'a [String],
    ) -> StoreFuture<'a, ()> {
        self.state.lock().transcripts.delete(tenant, user, keys);
        Box::pin(std::future::ready(Ok(())))
    }

    fn sweep_transcripts(&self, since: Timestamp, max_total_bytes: u64) -> StoreFuture<'_, ()> {
        self.state.lock().transcripts.sweep(since, max_total_bytes);
        Box::pin(std::future::ready(Ok(())))
    }

    fn keep_file<'a>(
        &'a self,
        file: StoredTranscript,
        since: Timestamp,
        limits: &'a TranscriptLimits,
    ) -> StoreFuture<'a, ()> {
        self.state.lock().files.keep(file, since, limits);
        Box::pin(std::future::ready(Ok(())))
    }

    fn file<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        key: &'a str,
        since: Timestamp,
    ) -> StoreFuture<'a, Option<Arc<str>>> {
        self.read(|state| {
            let limits = &TranscriptLimits::FILES;
            let found = state.files.find(tenant, user, &[key.to_owned()], since, limits);
            found.into_iter().next().map(|file| file.messages)
        })
    }

    fn sweep_files(&self, since: Timestamp, max_total_bytes: u64) -> StoreFuture<'_, ()> {
        self.state.lock().files.sweep(since, max_total_bytes);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl StateStore for MemoryStore {
    fn state<'a>(&'a self, space: &'a StateSpace, key: &'a str) -> StoreFuture<'a, Option<String>> {
        self.read(|state| state.values.get(space, key))
    }

    fn put_state<'a>(
        &'a self,
        space: &'a StateSpace,
        key: &'a str,
        value: Option<&'a str>,
        expected: Expected<'a>,
        limits: &'a StateLimits,
    ) -> BoxFuture<'a, Result<bool, StateError>> {
        let put = self.state.lock().values.put(space, key, value, expected, limits);
        Box::pin(std::future::ready(put))
    }

    fn state_keys<'a>(&'a self, space: &'a StateSpace) -> StoreFuture<'a, Vec<String>> {
        self.read(|state| state.values.keys(space))
    }

    fn states_of_users<'a>(
        &'a self,
        tenant: &'a str,
        name: &'a str,
        key: &'a str,
        after: &'a str,
        most: usize,
    ) -> StoreFuture<'a, Vec<(String, String)>> {
        self.read(|state| state.values.of_users(tenant, name, key, after, most))
    }

    fn delete_state_of<'a>(&'a self, tenant: &'a str, user: &'a str) -> StoreFuture<'a, usize> {
        Box::pin(std::future::ready(Ok(self.state.lock().values.delete_of(tenant, user))))
    }
}
