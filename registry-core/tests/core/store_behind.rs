//! A store with something before it: what a test does when the tools in it are read or changed. All else goes on.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use registry_core::store::{
    ApiKey, MemoryStore, Persona, RemovedUser, Session, Store, StoreResult, StoredTool, User,
};

/// What the store is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked<'a> {
    /// The tools of this tenant.
    Tools(&'a str),
    Put,
    Remove,
}

/// What comes before the answer, or in its place.
#[async_trait]
pub(crate) trait Before: Send + Sync {
    async fn before(&self, asked: Asked<'_>) -> StoreResult<()>;
}

#[derive(Default)]
pub(crate) struct StoreBehind<B> {
    pub(crate) kept: Arc<MemoryStore>,
    pub(crate) before: B,
}

#[async_trait]
impl<B: Before> Store for StoreBehind<B> {
    async fn tools(&self, tenant: &str) -> StoreResult<Vec<StoredTool>> {
        self.before.before(Asked::Tools(tenant)).await?;
        self.kept.tools(tenant).await
    }

    async fn put_tool(&self, tenant: &str, tool: StoredTool, revision: u64) -> StoreResult<bool> {
        self.before.before(Asked::Put).await?;
        self.kept.put_tool(tenant, tool, revision).await
    }

    async fn remove_tool(&self, tenant: &str, tool: &str) -> StoreResult<()> {
        self.before.before(Asked::Remove).await?;
        self.kept.remove_tool(tenant, tool).await
    }

    async fn personas(&self, tenant: &str) -> StoreResult<Vec<Persona>> {
        self.kept.personas(tenant).await
    }

    async fn persona(&self, tenant: &str, name: &str) -> StoreResult<Option<Persona>> {
        self.kept.persona(tenant, name).await
    }

    async fn put_persona(&self, tenant: &str, persona: Persona) -> StoreResult<()> {
        self.kept.put_persona(tenant, persona).await
    }

    async fn remove_persona(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        self.kept.remove_persona(tenant, name).await
    }

    async fn tenants(&self) -> StoreResult<Vec<String>> {
        self.kept.tenants().await
    }

    async fn users(&self, tenant: &str) -> StoreResult<Vec<User>> {
        self.kept.users(tenant).await
    }

    async fn count_users(&self, tenant: &str) -> StoreResult<usize> {
        self.kept.count_users(tenant).await
    }

    async fn user(&self, tenant: &str, id: &str) -> StoreResult<Option<User>> {
        self.kept.user(tenant, id).await
    }

    async fn put_user(&self, tenant: &str, user: User) -> StoreResult<()> {
        self.kept.put_user(tenant, user).await
    }

    async fn change_user(&self, tenant: &str, user: User, revision: u64) -> StoreResult<bool> {
        self.kept.change_user(tenant, user, revision).await
    }

    async fn remove_user(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<RemovedUser> {
        self.kept.remove_user(tenant, id, at).await
    }

    async fn keys(&self, tenant: &str) -> StoreResult<Vec<ApiKey>> {
        self.kept.keys(tenant).await
    }

    async fn keys_of(&self, tenant: &str, user: &str) -> StoreResult<Vec<ApiKey>> {
        self.kept.keys_of(tenant, user).await
    }

    async fn key_of_id(&self, tenant: &str, id: &str) -> StoreResult<Option<ApiKey>> {
        self.kept.key_of_id(tenant, id).await
    }

    async fn key(&self, sha256: &str, now: Timestamp) -> StoreResult<Option<ApiKey>> {
        self.kept.key(sha256, now).await
    }

    async fn has_keys(&self) -> StoreResult<bool> {
        self.kept.has_keys().await
    }

    async fn put_key(&self, key: ApiKey) -> StoreResult<bool> {
        self.kept.put_key(key).await
    }

    async fn revoke_key(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<bool> {
        self.kept.revoke_key(tenant, id, at).await
    }

    async fn note_key_use(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<()> {
        self.kept.note_key_use(tenant, id, at).await
    }

    async fn put_session(&self, session: Session, most: usize) -> StoreResult<bool> {
        self.kept.put_session(session, most).await
    }

    async fn session(&self, sha256: &str, now: Timestamp) -> StoreResult<Option<Session>> {
        self.kept.session(sha256, now).await
    }

    async fn sessions(&self, tenant: &str, user: &str, now: Timestamp) -> StoreResult<Vec<Session>> {
        self.kept.sessions(tenant, user, now).await
    }

    async fn end_session(&self, tenant: &str, user: &str, id: &str) -> StoreResult<bool> {
        self.kept.end_session(tenant, user, id).await
    }

    async fn revision(&self) -> StoreResult<u64> {
        self.kept.revision().await
    }

    async fn changed(&self, since: u64) {
        self.kept.changed(since).await
    }
}
