//! Keeps everything in memory, until the process ends.

mod connections;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    ApiKey, ConversationError, ConversationLimits, ConversationStore, Expected, KEY_USE_NOTED, Persona,
    RemovedUser, Session, Shelf, StateError, StateLimits, StateSpace, StateStore, Store, StoreResult,
    StoredConnection, StoredResponse, StoredTool, StoredTranscript, TranscriptLimits, User,
    conversations::{MemoryConversations, MemoryTranscripts},
    state::MemoryState,
};

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
    /// By tenant, user and server.
    connections: BTreeMap<(String, String, String), StoredConnection>,
}

impl State {
    fn shelf(&mut self, shelf: Shelf) -> &mut MemoryTranscripts {
        match shelf {
            Shelf::Transcripts => &mut self.transcripts,
            Shelf::Files => &mut self.files,
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self { state: Mutex::default(), revision: watch::Sender::new(0) }
    }
}

impl MemoryStore {
    fn read<T>(&self, run: impl FnOnce(&State) -> T) -> StoreResult<T> {
        let done = run(&self.state.lock());
        Ok(done)
    }

    fn write<T>(&self, run: impl FnOnce(&mut State) -> T) -> StoreResult<T> {
        let mut state = self.state.lock();
        let done = run(&mut state);
        // Inside of the lock, so that no other change falls between the two.
        self.revision.send_modify(|revision| *revision += 1);
        Ok(done)
    }

    /// A change that the revision does not count.
    fn alter<T>(&self, run: impl FnOnce(&mut State) -> T) -> StoreResult<T> {
        let done = run(&mut self.state.lock());
        Ok(done)
    }

    /// A change where the revision is still this one, and `run` does it.
    fn write_if(&self, revision: u64, run: impl FnOnce(&mut State) -> bool) -> StoreResult<bool> {
        let mut state = self.state.lock();
        let done = self.revision.send_if_modified(|known| {
            let done = *known == revision && run(&mut state);
            *known += u64::from(done);
            done
        });
        Ok(done)
    }
}

fn of_tenant<T: Clone>(rows: &BTreeMap<(String, String), T>, tenant: &str) -> Vec<T> {
    rows.iter().filter(|((of, _), _)| of == tenant).map(|(_, row)| row.clone()).collect()
}

fn key(tenant: &str, name: &str) -> (String, String) {
    (tenant.to_owned(), name.to_owned())
}

#[async_trait]
impl Store for MemoryStore {
    async fn tools(&self, tenant: &str) -> StoreResult<Vec<StoredTool>> {
        self.read(|state| of_tenant(&state.tools, tenant))
    }

    async fn put_tool(&self, tenant: &str, tool: StoredTool, revision: u64) -> StoreResult<bool> {
        self.write_if(revision, |state| {
            state.tools.insert(key(tenant, &tool.tool_name), tool);
            true
        })
    }

    async fn remove_tool(&self, tenant: &str, tool: &str) -> StoreResult<()> {
        self.write(|state| drop(state.tools.remove(&key(tenant, tool))))
    }

    async fn personas(&self, tenant: &str) -> StoreResult<Vec<Persona>> {
        self.read(|state| of_tenant(&state.personas, tenant))
    }

    async fn persona(&self, tenant: &str, name: &str) -> StoreResult<Option<Persona>> {
        self.read(|state| state.personas.get(&key(tenant, name)).cloned())
    }

    async fn put_persona(&self, tenant: &str, persona: Persona) -> StoreResult<()> {
        self.write(|state| drop(state.personas.insert(key(tenant, &persona.name), persona)))
    }

    async fn remove_persona(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        self.write(|state| state.personas.remove(&key(tenant, name)).is_some())
    }

    async fn tenants(&self) -> StoreResult<Vec<String>> {
        self.read(|state| {
            let all = state.users.keys().chain(state.tools.keys()).chain(state.personas.keys());
            all.map(|(tenant, _)| tenant.clone()).collect::<BTreeSet<_>>().into_iter().collect()
        })
    }

    async fn users(&self, tenant: &str) -> StoreResult<Vec<User>> {
        self.read(|state| of_tenant(&state.users, tenant))
    }

    async fn count_users(&self, tenant: &str) -> StoreResult<usize> {
        self.read(|state| state.users.keys().filter(|(of, _)| of == tenant).count())
    }

    async fn user(&self, tenant: &str, id: &str) -> StoreResult<Option<User>> {
        self.read(|state| state.users.get(&key(tenant, id)).cloned())
    }

    async fn put_user(&self, tenant: &str, user: User) -> StoreResult<()> {
        self.write(|state| drop(state.users.insert(key(tenant, &user.id), user)))
    }

    async fn change_user(&self, tenant: &str, user: User, revision: u64) -> StoreResult<bool> {
        self.write_if(revision, |state| {
            let known = state.users.get_mut(&key(tenant, &user.id));
            known.map(|known| *known = user).is_some()
        })
    }

    async fn remove_user(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<RemovedUser> {
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
                chats: 0,
            }
        })
    }

    async fn keys(&self, tenant: &str) -> StoreResult<Vec<ApiKey>> {
        self.read(|state| state.keys.iter().filter(|key| key.tenant == tenant).cloned().collect())
    }

    async fn keys_of(&self, tenant: &str, user: &str) -> StoreResult<Vec<ApiKey>> {
        self.read(|state| {
            let theirs = |key: &&ApiKey| key.tenant == tenant && key.user == user;
            state.keys.iter().filter(theirs).cloned().collect()
        })
    }

    async fn key_of_id(&self, tenant: &str, id: &str) -> StoreResult<Option<ApiKey>> {
        self.read(|state| state.keys.iter().find(|key| key.tenant == tenant && key.id == id).cloned())
    }

    async fn key(&self, sha256: &str, now: Timestamp) -> StoreResult<Option<ApiKey>> {
        self.read(|state| {
            let opens = |key: &&ApiKey| key.sha256 == sha256 && key.is_valid(now);
            state.keys.iter().find(opens).cloned()
        })
    }

    async fn has_keys(&self) -> StoreResult<bool> {
        self.read(|state| state.keys.iter().any(|key| key.revoked_at.is_none()))
    }

    async fn put_key(&self, new: ApiKey) -> StoreResult<bool> {
        self.write(|state| {
            let is_known = state.users.contains_key(&key(&new.tenant, &new.user));
            if is_known {
                state.keys.push(new);
            }
            is_known
        })
    }

    async fn revoke_key(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<bool> {
        self.write(|state| {
            let opens = |key: &&mut ApiKey| key.tenant == tenant && key.id == id && key.revoked_at.is_none();
            state.keys.iter_mut().find(opens).map(|key| key.revoked_at = Some(at)).is_some()
        })
    }

    async fn note_key_use(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<()> {
        let noted_long_ago = |key: &ApiKey| key.last_used_at.is_none_or(|noted| noted < at - KEY_USE_NOTED);
        let due = |key: &&mut ApiKey| key.tenant == tenant && key.id == id && noted_long_ago(key);
        self.alter(|state| {
            if let Some(key) = state.keys.iter_mut().find(due) {
                key.last_used_at = Some(at);
            }
        })
    }

    async fn put_session(&self, session: Session, most: usize) -> StoreResult<bool> {
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
        Ok(is_known)
    }

    async fn session(&self, sha256: &str, now: Timestamp) -> StoreResult<Option<Session>> {
        self.read(|state| {
            let opens = |session: &&Session| session.sha256 == sha256 && session.expires_at > now;
            state.sessions.iter().find(opens).cloned()
        })
    }

    async fn sessions(&self, tenant: &str, user: &str, now: Timestamp) -> StoreResult<Vec<Session>> {
        self.read(|state| {
            let is_theirs = |session: &&Session| {
                session.tenant == tenant && session.user == user && session.expires_at > now
            };
            state.sessions.iter().filter(is_theirs).cloned().collect()
        })
    }

    async fn end_session(&self, tenant: &str, user: &str, id: &str) -> StoreResult<bool> {
        let mut state = self.state.lock();
        let before = state.sessions.len();
        state.sessions.retain(|other| other.tenant != tenant || other.user != user || other.id != id);
        let ended = state.sessions.len() < before;
        Ok(ended)
    }

    async fn revision(&self) -> StoreResult<u64> {
        Ok(*self.revision.borrow())
    }

    async fn changed(&self, since: u64) {
        // The sender is this store, so the channel is never closed.
        let _ = self.revision.subscribe().wait_for(|revision| *revision != since).await;
    }
}

/// None of it raises the revision, which is that of registrations, users and keys.
#[async_trait]
impl ConversationStore for MemoryStore {
    async fn keep_response(
        &self,
        response: StoredResponse,
        now: Timestamp,
        limits: &ConversationLimits,
    ) -> Result<(), ConversationError> {
        self.state.lock().conversations.keep(response, now, limits)
    }

    async fn response(
        &self,
        tenant: &str,
        user: &str,
        id: &str,
        since: Timestamp,
    ) -> StoreResult<Option<StoredResponse>> {
        self.read(|state| state.conversations.response(tenant, user, id, since))
    }

    async fn response_chain(
        &self,
        tenant: &str,
        user: &str,
        id: &str,
        since: Timestamp,
        limits: &ConversationLimits,
    ) -> Result<Vec<Arc<str>>, ConversationError> {
        self.state.lock().conversations.chain(tenant, user, id, since, limits)
    }

    async fn delete_response(&self, tenant: &str, user: &str, id: &str) -> StoreResult<bool> {
        Ok(self.state.lock().conversations.delete(tenant, user, id))
    }

    async fn delete_expired(&self, since: Timestamp) -> StoreResult<()> {
        self.state.lock().conversations.delete_expired(since);
        Ok(())
    }

    async fn keep_transcript(
        &self,
        shelf: Shelf,
        transcript: StoredTranscript,
        since: Timestamp,
        limits: &TranscriptLimits,
    ) -> StoreResult<()> {
        self.state.lock().shelf(shelf).keep(transcript, since, limits);
        Ok(())
    }

    async fn transcripts(
        &self,
        shelf: Shelf,
        tenant: &str,
        user: &str,
        keys: &[String],
        since: Timestamp,
        limits: &TranscriptLimits,
    ) -> StoreResult<Vec<StoredTranscript>> {
        Ok(self.state.lock().shelf(shelf).find(tenant, user, keys, since, limits))
    }

    async fn use_transcripts(
        &self,
        tenant: &str,
        user: &str,
        keys: &[String],
        now: Timestamp,
    ) -> StoreResult<()> {
        self.state.lock().transcripts.note_use(tenant, user, keys, now);
        Ok(())
    }

    async fn delete_transcripts(&self, tenant: &str, user: &str, keys: &[String]) -> StoreResult<()> {
        self.state.lock().transcripts.delete(tenant, user, keys);
        Ok(())
    }

    async fn sweep_transcripts(
        &self,
        shelf: Shelf,
        since: Timestamp,
        max_total_bytes: u64,
    ) -> StoreResult<()> {
        self.state.lock().shelf(shelf).sweep(since, max_total_bytes);
        Ok(())
    }
}

#[async_trait]
impl StateStore for MemoryStore {
    async fn state(&self, space: &StateSpace, key: &str) -> StoreResult<Option<String>> {
        self.read(|state| state.values.get(space, key))
    }

    async fn put_state(
        &self,
        space: &StateSpace,
        key: &str,
        value: Option<&str>,
        expected: Expected<'_>,
        limits: &StateLimits,
    ) -> Result<bool, StateError> {
        self.state.lock().values.put(space, key, value, expected, limits)
    }

    async fn state_keys(&self, space: &StateSpace) -> StoreResult<Vec<String>> {
        self.read(|state| state.values.keys(space))
    }

    async fn states_of_users(
        &self,
        tenant: &str,
        name: &str,
        key: &str,
        after: &str,
        most: usize,
    ) -> StoreResult<Vec<(String, String)>> {
        self.read(|state| state.values.of_users(tenant, name, key, after, most))
    }
}
