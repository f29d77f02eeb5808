//! Connections to the accounts that users have elsewhere.

use registry_core::store::{ConnectionStore, StoreError, StoreFuture, StoredConnection};

use super::{Row, SqlStore, Statement, link::Value};

const COLUMNS: &str = "SELECT tenant, user_id, server, sealed, created_at FROM connections";
/// Which one.
const HERE: &str = "tenant = $1 AND user_id = $2 AND server = $3";

fn read(mut row: Row) -> Result<StoredConnection, StoreError> {
    Ok(StoredConnection {
        tenant: row.text()?.to_string(),
        user: row.text()?.to_string(),
        server: row.text()?.to_string(),
        sealed: row.text()?.to_string(),
        created_at: row.time()?,
    })
}

/// Deletes the user's connections, and gives a row for each.
pub(super) fn delete_of(tenant: &str, user: &str) -> Statement {
    let sql = "DELETE FROM connections WHERE tenant = $1 AND user_id = $2 RETURNING server";
    Statement::new(sql, vec![tenant.into(), user.into()])
}

fn values(connection: StoredConnection) -> Vec<Value> {
    let StoredConnection { tenant, user, server, sealed, created_at } = connection;
    vec![tenant.into(), user.into(), server.into(), sealed.into(), created_at.into()]
}

impl ConnectionStore for SqlStore {
    fn connection<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        server: &'a str,
    ) -> StoreFuture<'a, Option<StoredConnection>> {
        let sql = format!("{COLUMNS} WHERE {HERE}");
        let find = Statement::new(sql, vec![tenant.into(), user.into(), server.into()]);
        Box::pin(async move { Ok(self.read(find, read).await?.pop()) })
    }

    fn connections<'a>(&'a self, tenant: &'a str, user: &'a str) -> StoreFuture<'a, Vec<StoredConnection>> {
        let sql = format!("{COLUMNS} WHERE tenant = $1 AND user_id = $2 ORDER BY server");
        let find = Statement::new(sql, vec![tenant.into(), user.into()]);
        Box::pin(self.read(find, read))
    }

    fn all_connections(&self) -> StoreFuture<'_, Vec<StoredConnection>> {
        let sql = format!("{COLUMNS} ORDER BY server, created_at, tenant, user_id");
        Box::pin(self.read(Statement::new(sql, Vec::new()), read))
    }

    fn put_connection(&self, connection: StoredConnection) -> StoreFuture<'_, ()> {
        let sql = "INSERT INTO connections (tenant, user_id, server, sealed, created_at) VALUES ($1, $2, $3, $4, $5) \
                   ON CONFLICT (tenant, user_id, server) DO UPDATE SET sealed = excluded.sealed, created_at = excluded.created_at";
        let put = Statement::new(sql, values(connection));
        Box::pin(async move { self.run(put).await.map(drop) })
    }

    fn change_connection<'a>(
        &'a self,
        connection: StoredConnection,
        before: &'a str,
    ) -> StoreFuture<'a, bool> {
        let sql = format!(
            "UPDATE connections SET sealed = $4, created_at = $5 WHERE {HERE} AND sealed = $6 RETURNING server"
        );
        let mut values = values(connection);
        values.push(before.into());
        let change = Statement::new(sql, values);
        Box::pin(async move { Ok(!self.run(change).await?.is_empty()) })
    }

    fn remove_connection<'a>(
        &'a self,
        tenant: &'a str,
        user: &'a str,
        server: &'a str,
    ) -> StoreFuture<'a, bool> {
        let sql = format!("DELETE FROM connections WHERE {HERE} RETURNING server");
        let remove = Statement::new(sql, vec![tenant.into(), user.into(), server.into()]);
        Box::pin(async move { Ok(!self.run(remove).await?.is_empty()) })
    }
}
