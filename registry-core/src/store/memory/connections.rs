//! Connections in memory.

use super::MemoryStore;
use crate::store::{ConnectionStore, StoreFuture, StoredConnection};

fn key(tenant: &str, user: &str, server: &str) -> (String, String, String) {
    (tenant.to_owned(), user.to_owned(), server.to_owned())
}

fn key_of(connection: &StoredConnection) -> (String, String, String) {
    key(&connection.tenant, &connection.user, &connection.server)
}

impl ConnectionStore for MemoryStore {
    fn connection<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        server: &'a str,
    ) -> StoreFuture<'a, Option<StoredConnection>> {
        self.read(|state| state.connections.get(&key(tenant, user, server)).cloned())
    }

    fn connections<'a>(&'a self, tenant: &'a str, user: &'a str) -> StoreFuture<'a, Vec<StoredConnection>> {
        self.read(|state| {
            let of_user = state.connections.values();
            of_user.filter(|kept| kept.tenant == tenant && kept.user == user).cloned().collect()
        })
    }

    fn all_connections(&self) -> StoreFuture<'_, Vec<StoredConnection>> {
        self.read(|state| {
            let mut all: Vec<_> = state.connections.values().cloned().collect();
            all.sort_by(|one, other| (&one.server, one.created_at).cmp(&(&other.server, other.created_at)));
            all
        })
    }

    fn put_connection(&self, connection: StoredConnection) -> StoreFuture<'_, ()> {
        self.alter(|state| drop(state.connections.insert(key_of(&connection), connection)))
    }

    fn change_connection<'a>(
        &'a self,
        connection: StoredConnection,
        before: &'a str,
    ) -> StoreFuture<'a, bool> {
        self.alter(|state| match state.connections.get_mut(&key_of(&connection)) {
            Some(kept) if kept.sealed == before => {
                *kept = connection;
                true
            }
            _ => false,
        })
    }

    fn remove_connection<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        server: &'a str,
    ) -> StoreFuture<'a, bool> {
        self.alter(|state| state.connections.remove(&key(tenant, user, server)).is_some())
    }
}
