//! Connections to the accounts that users have elsewhere.

use async_trait::async_trait;
use registry_core::store::{ConnectionStore, StoreResult, StoredConnection};

use super::{Row, SqlStore, Statement, Value, statement};

const COLUMNS: &str = "SELECT tenant, user_id, server, sealed, created_at FROM connections";
/// Which one.
const HERE: &str = "tenant = $1 AND user_id = $2 AND server = $3";

fn read(mut row: Row) -> StoreResult<StoredConnection> {
    Ok(StoredConnection {
        tenant: row.string()?,
        user: row.string()?,
        server: row.string()?,
        sealed: row.string()?,
        created_at: row.time()?,
    })
}

fn values(connection: StoredConnection) -> Vec<Value> {
    let StoredConnection { tenant, user, server, sealed, created_at } = connection;
    vec![tenant.into(), user.into(), server.into(), sealed.into(), created_at.into()]
}

#[async_trait]
impl ConnectionStore for SqlStore {
    async fn connection(
        &self,
        tenant: &str,
        user: &str,
        server: &str,
    ) -> StoreResult<Option<StoredConnection>> {
        let sql = format!("{COLUMNS} WHERE {HERE}");
        self.read_one(statement!(sql, tenant, user, server), read).await
    }

    async fn connections(&self, tenant: &str, user: &str) -> StoreResult<Vec<StoredConnection>> {
        let sql = format!("{COLUMNS} WHERE tenant = $1 AND user_id = $2 ORDER BY server");
        self.read(statement!(sql, tenant, user), read).await
    }

    async fn all_connections(&self) -> StoreResult<Vec<StoredConnection>> {
        let sql = format!("{COLUMNS} ORDER BY server, created_at, tenant, user_id");
        self.read(statement!(sql), read).await
    }

    async fn put_connection(&self, connection: StoredConnection) -> StoreResult<()> {
        let sql = "INSERT INTO connections (tenant, user_id, server, sealed, created_at) VALUES ($1, $2, $3, $4, $5) \
                   ON CONFLICT (tenant, user_id, server) DO UPDATE SET sealed = excluded.sealed, created_at = excluded.created_at";
        self.run(Statement::new(sql, values(connection))).await.map(drop)
    }

    async fn change_connection(&self, connection: StoredConnection, before: &str) -> StoreResult<bool> {
        let sql = format!(
            "UPDATE connections SET sealed = $4, created_at = $5 WHERE {HERE} AND sealed = $6 RETURNING server"
        );
        let mut values = values(connection);
        values.push(before.into());
        self.takes_effect(Statement::new(sql, values)).await
    }

    async fn remove_connection(&self, tenant: &str, user: &str, server: &str) -> StoreResult<bool> {
        let sql = format!("DELETE FROM connections WHERE {HERE} RETURNING server");
        self.takes_effect(statement!(sql, tenant, user, server)).await
    }
}
