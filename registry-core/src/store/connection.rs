//! What users have let this server do for them elsewhere: the tokens of their accounts on other servers.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreResult;

/// A user's account on another server. What opens it is sealed by whoever keeps it: a store cannot read it.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
pub struct StoredConnection {
    /// The tenant of the user; empty for what all tenants share.
    pub tenant: String,
    /// The user whose it is; empty for what all users share.
    pub user: String,
    /// The name of the other server here.
    pub server: String,
    /// What opens it, sealed.
    #[debug(skip)]
    pub sealed: String,
    /// When it was made (UTC).
    pub created_at: Timestamp,
}

/// Keeps connections.
#[async_trait]
pub trait ConnectionStore: Send + Sync {
    /// The user's connection to the server.
    async fn connection(
        &self,
        tenant: &str,
        user: &str,
        server: &str,
    ) -> StoreResult<Option<StoredConnection>>;

    /// The user's connections, by server.
    async fn connections(&self, tenant: &str, user: &str) -> StoreResult<Vec<StoredConnection>>;

    /// The connections of everybody, by server, the oldest first.
    async fn all_connections(&self) -> StoreResult<Vec<StoredConnection>>;

    /// Keeps a connection in place of what was kept of it.
    async fn put_connection(&self, connection: StoredConnection) -> StoreResult<()>;

    /// Keeps a connection where what is kept of it is sealed as `before`, in one step; otherwise false, and nothing has changed. So of two
    /// servers that renew it one does.
    async fn change_connection(&self, connection: StoredConnection, before: &str) -> StoreResult<bool>;

    /// Forgets a connection; false if there is none.
    async fn remove_connection(&self, tenant: &str, user: &str, server: &str) -> StoreResult<bool>;
}
