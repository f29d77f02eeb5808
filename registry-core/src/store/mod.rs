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

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    future::BoxFuture,
    policy::{Permission, ToolLimits},
    spec::ToolSpec,
};
pub use chats::{
    ChatChange, ChatError, ChatKey, ChatLimits, ChatMessage, ChatQuery, ChatStore, FoundChat, StoredChat,
    StoredTurn, fold,
};
pub use connection::{ConnectionStore, StoredConnection};
pub use conversations::{
    ConversationError, ConversationLimits, ConversationStore, Conversations, StoredResponse,
    StoredTranscript, TranscriptLimits,
};
pub use dead_letters::{DeadLetter, DeadLetters, MemoryDeadLetters};
pub use error::{StoreError, StoreErrorKind, StoreFuture};
pub use key::{KEY_PREFIX, hash_key};
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
    /// SHA-256 of the key in hex. A key is random and long, so that a slow hash would add nothing.
    pub sha256: String,
    /// Whether the `user_id` of a call made with it is believed: one server that calls another.
    pub delegate: bool,
    /// When it was made (UTC).
    pub created_at: Timestamp,
    /// Since when it opens nothing any more (UTC).
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
pub trait Store: Send + Sync {
    /// All that is kept about the tenant's tools, by name.
    fn tools<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<StoredTool>>;

    /// Keeps a tool in place of what was kept under its name, where the revision is still this one, in one step; otherwise false, and
    /// nothing has changed. So a tool that another server has changed meanwhile is not put back to what it was.
    fn put_tool<'a>(&'a self, tenant: &'a str, tool: StoredTool, revision: u64) -> StoreFuture<'a, bool>;

    /// Forgets a tool. None of that name: nothing to do.
    fn remove_tool<'a>(&'a self, tenant: &'a str, tool: &'a str) -> StoreFuture<'a, ()>;

    /// The tenant's personas, by name.
    fn personas<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<Persona>>;

    /// The persona of that name.
    fn persona<'a>(&'a self, tenant: &'a str, name: &'a str) -> StoreFuture<'a, Option<Persona>>;

    /// Keeps a persona in place of the one of that name.
    fn put_persona<'a>(&'a self, tenant: &'a str, persona: Persona) -> StoreFuture<'a, ()>;

    /// Forgets the persona of that name; false if there is none. Users who have it may use none of its modules any more.
    fn remove_persona<'a>(&'a self, tenant: &'a str, name: &'a str) -> StoreFuture<'a, bool>;

    /// The tenants that have users, personas or tools here, by name.
    fn tenants(&self) -> StoreFuture<'_, Vec<String>>;

    /// The tenant's users, by id.
    fn users<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<User>>;

    /// How many users the tenant has.
    fn count_users<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, usize>;

    /// The user of that id.
    fn user<'a>(&'a self, tenant: &'a str, id: &'a str) -> StoreFuture<'a, Option<User>>;

    /// Keeps a user in place of the one of that id.
    fn put_user<'a>(&'a self, tenant: &'a str, user: User) -> StoreFuture<'a, ()>;

    /// Changes a user who is there, where the revision is still this one, in one step; otherwise false, and nothing has changed. So
    /// nothing that was changed meanwhile is put back, and nobody who was removed.
    fn change_user<'a>(&'a self, tenant: &'a str, user: User, revision: u64) -> StoreFuture<'a, bool>;

    /// Forgets the user of that id, revokes all the user's keys, ends the sessions and deletes the conversations, chats, transcripts, files and values of tools that this store
    /// keeps of the user: all of it or nothing.
    fn remove_user<'a>(&'a self, tenant: &'a str, id: &'a str, at: Timestamp)
    -> StoreFuture<'a, RemovedUser>;

    /// The tenant's keys, oldest first, those that were revoked too.
    fn keys<'a>(&'a self, tenant: &'a str) -> StoreFuture<'a, Vec<ApiKey>>;

    /// The keys of one user, oldest first, those that were revoked too.
    fn keys_of<'a>(&'a self, tenant: &'a str, user: &'a str) -> StoreFuture<'a, Vec<ApiKey>>;

    /// The tenant's key of that id, also one that was revoked.
    fn key_of_id<'a>(&'a self, tenant: &'a str, id: &'a str) -> StoreFuture<'a, Option<ApiKey>>;

    /// The key of that hash, of whichever tenant, that has not been revoked.
    fn key<'a>(&'a self, sha256: &'a str) -> StoreFuture<'a, Option<ApiKey>>;

    /// Whether any key, of whichever tenant, still opens anything.
    fn has_keys(&self) -> StoreFuture<'_, bool>;

    /// Keeps a key; false, and nothing is kept, where its user is not known.
    fn put_key(&self, key: ApiKey) -> StoreFuture<'_, bool>;

    /// Revokes the tenant's key of that id; false if there is none that still opens anything.
    fn revoke_key<'a>(&'a self, tenant: &'a str, id: &'a str, at: Timestamp) -> StoreFuture<'a, bool>;

    /// Keeps a session; false, and nothing is kept, where its user is not known. The user's oldest sessions beyond `most` give way, and all that have expired.
    /// Sessions do not raise the revision.
    fn put_session(&self, session: Session, most: usize) -> StoreFuture<'_, bool>;

    /// The session of that hash, of whichever tenant, that has not expired.
    fn session<'a>(&'a self, sha256: &'a str, now: Timestamp) -> StoreFuture<'a, Option<Session>>;

    /// A user's sessions that have not expired, oldest first.
    fn sessions<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<Session>>;

    /// Ends a user's session; false if there is none of that id.
    fn end_session<'a>(&'a self, tenant: &'a str, user: &'a str, id: &'a str) -> StoreFuture<'a, bool>;

    /// A number that every change raises.
    fn revision(&self) -> StoreFuture<'_, u64>;

    /// Waits until the revision is no longer this one. It may return early: whoever waits reads the revision again.
    fn changed(&self, since: u64) -> BoxFuture<'_, ()>;
}
