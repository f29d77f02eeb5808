//! Where what has to last is kept: registrations and switches, personas, users and keys.
//!
//! A [`Registry`](crate::Registry) never waits for a store to be read: it has all of it in memory and is notified of
//! changes. Conversations ([`ConversationStore`]), chats ([`ChatStore`]), the values of tools ([`StateStore`]), counters ([`Usage`](crate::guard::limits::Usage)), approvals
//! ([`Approvals`](crate::guard::approval::Approvals)) and the audit ([`AuditSink`](crate::guard::audit::AuditSink)) are
//! traits of their own, which the same store usually implements.

mod chats;
mod connection;
mod conversations;
mod dead_letters;
mod error;
mod key;
mod manifest;
mod memory;
mod persona;
mod session;
mod state;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    policy::{Permission, ToolLimits},
    spec::ToolSpec,
};
pub use chats::{
    ChatChange, ChatError, ChatKey, ChatLimits, ChatMessage, ChatQuery, ChatStore, FoundChat, StoredChat,
    StoredTurn, fold,
};
pub use connection::{ConnectionStore, StoredConnection};
pub use conversations::{
    ConversationError, ConversationLimits, ConversationStore, Conversations, Shelf, StoredResponse,
    StoredTranscript, TranscriptLimits,
};
pub use dead_letters::{DeadLetter, DeadLetters, MemoryDeadLetters};
pub use error::{StoreError, StoreErrorKind, StoreResult};
pub use key::{KEY_PREFIX, KEY_USE_NOTED, hash_key};
pub use manifest::{Kept, MANIFEST_TTL, ManifestCache, ManifestStore, MemoryManifests};
pub use memory::MemoryStore;
pub use persona::Persona;
pub use session::{SESSION_PREFIX, Session};
pub use state::{Expected, StateError, StateLimits, StateSpace, StateStore, state_size};

/// What is kept about one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredTool {
    /// The tool's name.
    pub tool_name: String,
    /// Whether the operator has it switched on.
    pub enabled: bool,
    /// What the operator has set in place of its own limits.
    #[serde(default, skip_serializing_if = "ToolLimits::is_empty")]
    pub limits: ToolLimits,
    /// The spec, for a tool that was registered at run time; `None` for the switch of one that is compiled or configured.
    pub spec: Option<ToolSpec>,
    /// When it was registered (UTC).
    pub created_at: Timestamp,
}

/// Somebody who is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Names the user within the tenant.
    pub id: String,
    /// How far the user is trusted. A level that is unknown is a guest's.
    #[serde(deserialize_with = "level_or_guest")]
    pub level: Permission,
    /// The names of the user's personas, the default one first; without any the user may use all modules.
    #[serde(default)]
    pub personas: Vec<String>,
    /// When the user was added (UTC).
    pub created_at: Timestamp,
}

fn level_or_guest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Permission, D::Error> {
    let level = String::deserialize(deserializer)?;
    Ok(level.parse().unwrap_or_else(|fault: String| {
        tracing::warn!("{fault}; it counts as guest");
        Permission::Guest
    }))
}

/// A key by which a client says who it is. The key itself is never kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Names the key; no secret.
    pub id: String,
    /// The tenant it opens.
    pub tenant: String,
    /// The user whose it is.
    pub user: String,
    /// What its user calls it, such as the device it is on; may be empty.
    #[serde(default)]
    pub name: String,
    /// SHA-256 of the key in hex. A key is random and long, so that a slow hash would add nothing.
    pub sha256: String,
    /// Whether the `user_id` of a call made with it is believed: one server that calls another.
    pub delegate: bool,
    /// When it was made (UTC).
    pub created_at: Timestamp,
    /// Until when it opens anything (UTC); `None` is until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// When it was last used (UTC), to [a minute](KEY_USE_NOTED); `None` if it never was.
    #[serde(default)]
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked (UTC).
    pub revoked_at: Option<Timestamp>,
}

/// What has gone with a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedUser {
    /// Whether the user was there. Somebody whom a key that delegates names has no entry, but may have conversations.
    pub was_known: bool,
    /// How many responses the user's conversations had.
    pub responses: usize,
    /// How many transcripts were kept of the user's turns.
    pub transcripts: usize,
    /// How many files of results were kept for the user.
    pub files: usize,
    /// How many values tools kept for the user.
    pub values: usize,
    /// How many chats the user had.
    pub chats: usize,
}

/// Keeps registrations and switches, personas, users, keys and sessions. What it acknowledges it has kept.
///
/// Every change raises the revision, also one that another server makes. Every method fails when the store does.
#[async_trait]
pub trait Store: Send + Sync {
    /// Whether it answers now and takes what is written, as far as can be seen without a change.
    async fn check(&self) -> StoreResult<()> {
        self.revision().await.map(drop)
    }

    /// All that is kept about the tenant's tools, by name.
    async fn tools(&self, tenant: &str) -> StoreResult<Vec<StoredTool>>;

    /// Keeps a tool in place of what was kept under its name, where the revision is still this one, in one step; otherwise false, and
    /// nothing has changed. So a tool that another server has changed meanwhile is not put back to what it was.
    async fn put_tool(&self, tenant: &str, tool: StoredTool, revision: u64) -> StoreResult<bool>;

    /// Forgets a tool. None of that name: nothing to do.
    async fn remove_tool(&self, tenant: &str, tool: &str) -> StoreResult<()>;

    /// The tenant's personas, by name.
    async fn personas(&self, tenant: &str) -> StoreResult<Vec<Persona>>;

    /// So many of these, from behind a name on; the empty one is before all.
    async fn personas_after(&self, tenant: &str, name: &str, most: usize) -> StoreResult<Vec<Persona>> {
        let mut personas = self.personas(tenant).await?;
        personas.retain(|persona| *persona.name > *name);
        personas.truncate(most);
        Ok(personas)
    }

    /// The persona of that name.
    async fn persona(&self, tenant: &str, name: &str) -> StoreResult<Option<Persona>>;

    /// Keeps a persona in place of the one of that name.
    async fn put_persona(&self, tenant: &str, persona: Persona) -> StoreResult<()>;

    /// Forgets the persona of that name; false if there is none. Users who have it may use none of its modules any more.
    async fn remove_persona(&self, tenant: &str, name: &str) -> StoreResult<bool>;

    /// The tenants that have users, personas or tools here, by name.
    async fn tenants(&self) -> StoreResult<Vec<String>>;

    /// The tenant's users, by id.
    async fn users(&self, tenant: &str) -> StoreResult<Vec<User>>;

    /// How many users the tenant has.
    async fn count_users(&self, tenant: &str) -> StoreResult<usize>;

    /// The user of that id.
    async fn user(&self, tenant: &str, id: &str) -> StoreResult<Option<User>>;

    /// Keeps a user in place of the one of that id.
    async fn put_user(&self, tenant: &str, user: User) -> StoreResult<()>;

    /// Changes a user who is there, where the revision is still this one, in one step; otherwise false, and nothing has changed. So
    /// nothing that was changed meanwhile is put back, and nobody who was removed.
    async fn change_user(&self, tenant: &str, user: User, revision: u64) -> StoreResult<bool>;

    /// Forgets the user of that id, revokes all the user's keys, ends the sessions and deletes the conversations, chats, transcripts, files and values of tools that this store
    /// keeps of the user: all of it or nothing.
    async fn remove_user(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<RemovedUser>;

    /// The tenant's keys, oldest first, those that were revoked or have expired too.
    async fn keys(&self, tenant: &str) -> StoreResult<Vec<ApiKey>>;

    /// The keys of one user, oldest first, those that were revoked or have expired too.
    async fn keys_of(&self, tenant: &str, user: &str) -> StoreResult<Vec<ApiKey>>;

    /// The tenant's key of that id, also one that was revoked or has expired.
    async fn key_of_id(&self, tenant: &str, id: &str) -> StoreResult<Option<ApiKey>>;

    /// The key of that hash, of whichever tenant, unless it was revoked or has expired.
    async fn key(&self, sha256: &str, now: Timestamp) -> StoreResult<Option<ApiKey>>;

    /// Whether there is any key, of whichever tenant, that was not revoked. One that has expired counts: whoever gives keys out still wants them asked for.
    async fn has_keys(&self) -> StoreResult<bool>;

    /// Keeps a key; false, and nothing is kept, where its user is not known.
    async fn put_key(&self, key: ApiKey) -> StoreResult<bool>;

    /// Revokes the tenant's key of that id; false if there is none, or it was revoked before.
    async fn revoke_key(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<bool>;

    /// Notes that a key was used, unless that was noted less than [a minute](KEY_USE_NOTED) before. It does not raise the revision. No such key:
    /// nothing to do.
    async fn note_key_use(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<()>;

    /// Keeps a session; false, and nothing is kept, where its user is not known. The user's oldest sessions beyond `most` give way, and all that have expired.
    /// Sessions do not raise the revision.
    async fn put_session(&self, session: Session, most: usize) -> StoreResult<bool>;

    /// The session of that hash, of whichever tenant, that has not expired.
    async fn session(&self, sha256: &str, now: Timestamp) -> StoreResult<Option<Session>>;

    /// A user's sessions that have not expired, oldest first.
    async fn sessions(&self, tenant: &str, user: &str, now: Timestamp) -> StoreResult<Vec<Session>>;

    /// Ends a user's session; false if there is none of that id.
    async fn end_session(&self, tenant: &str, user: &str, id: &str) -> StoreResult<bool>;

    /// A number that every change raises.
    async fn revision(&self) -> StoreResult<u64>;

    /// Waits until the revision is no longer this one. It may return early: whoever waits reads the revision again.
    async fn changed(&self, since: u64);
}
