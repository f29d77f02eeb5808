//! Connections in memory.

use async_trait::async_trait;

use super::MemoryStore;
use crate::store::{ConnectionStore, StoreResult, StoredConnection};

fn key(tenant: &str, user: &str, server: &str) -> (String, String, String) {
    (tenant.to_owned(), user.to_owned(), server.to_owned())
}

fn key_of(connection: &StoredConnection) -> (String, String, String) {
    key(&connection.tenant, &connection.user, &connection.server)
}

#[async_trait]
impl ConnectionStore for MemoryStore {
    async fn connection(
        &self,
        tenant: &str,
        user: &str,
        server: &str,
    ) -> StoreResult<Option<StoredConnection>> {
        self.read(|state| state.connections.get(&key(tenant, user, server)).cloned())
    }

    async fn connections(&self, tenant: &str, user: &str) -> StoreResult<Vec<StoredConnection>> {
        self.read(|state| {
            let of_user = state.connections.values();
            of_user.filter(|kept| kept.tenant == tenant && kept.user == user).cloned().collect()
        })
    }

    async fn all_connections(&self) -> StoreResult<Vec<StoredConnection>> {
        self.read(|state| {
            let mut all: Vec<_> = state.connections.values().cloned().collect();
            all.sort_by(|one, other| (&one.server, one.created_at).cmp(&(&other.server, other.created_at)));
            all
        })
    }

    async fn put_connection(&self, connection: StoredConnection) -> StoreResult<()> {
        self.alter(|state| drop(state.connections.insert(key_of(&connection), connection)))
    }

    async fn change_connection(&self, connection: StoredConnection, before: &str) -> StoreResult<bool> {
        self.alter(|state| match state.connections.get_mut(&key_of(&connection)) {
            Some(kept) if kept.sealed == before => {
                *kept = connection;
                true
            }
            _ => false,
        })
    }

    async fn remove_connection(&self, tenant: &str, user: &str, server: &str) -> StoreResult<bool> {
        self.alter(|state| state.connections.remove(&key(tenant, user, server)).is_some())
    }
}
