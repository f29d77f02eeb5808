//! What users have let this server do for them elsewhere: the tokens of their accounts on other servers.

use jiff::Timestamp;

use super::StoreFuture;

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
pub trait ConnectionStore: Send + Sync {
    /// The user's connection to the server.
    fn connection<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        server: &'a str,
    ) -> StoreFuture<'a, Option<StoredConnection>>;

    /// The user's connections, by server.
    fn connections<'a>(&'a self, tenant: &'a str, user: &'a str) -> StoreFuture<'a, Vec<StoredConnection>>;

    /// The connections of everybody, by server, the oldest first.
    fn all_connections(&self) -> StoreFuture<'_, Vec<StoredConnection>>;

    /// Keeps a connection in place of what was kept of it.
    fn put_connection(&self, connection: StoredConnection) -> StoreFuture<'_, ()>;

    /// Keeps a connection where what is kept of it is sealed as `before`, in one step; otherwise false, and nothing has changed. So of two
    /// servers that renew it one does.
    fn change_connection<'a>(
        &'a self,
        connection: StoredConnection,
        before: &'a str,
    ) -> StoreFuture<'a, bool>;

    /// Forgets a connection; false if there is none.
    fn remove_connection<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        server: &'a str,
    ) -> StoreFuture<'a, bool>;
}
