//! Registrations and switches, personas, users, keys and sessions.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::{Row, SqlStore, Statement, Value, erasure::OF_A_USER, statement};
use registry_core::{
    clock::{Clock, SystemClock},
    store::{
        ApiKey, KEY_USE_NOTED, Persona, RemovedUser, Session, Store, StoreError, StoreResult, StoredTool,
        User,
    },
};

const KEY_COLUMNS: &str = "SELECT id, tenant, user_id, name, sha256, delegate, created_at, expires_at, last_used_at, revoked_at \
                           FROM api_keys";

const SESSION_COLUMNS: &str = "SELECT id, tenant, user_id, sha256, created_at, expires_at FROM sessions";

impl SqlStore {
    /// Writes a statement and raises the revision with it, whether or not it changed a row. Gives the statement's rows.
    async fn change(&self, statement: Statement) -> StoreResult<Vec<Row>> {
        Ok(self.change_all(vec![statement]).await?.pop().unwrap_or_default())
    }

    /// The same with several, all or none. Gives the rows of each, in their order.
    pub(super) async fn change_all(&self, mut statements: Vec<Statement>) -> StoreResult<Vec<Vec<Row>>> {
        statements.push(statement!("UPDATE revision SET number = number + 1"));
        let rows = self.write_all(statements).await;
        self.shared.nudge.send_replace(());
        rows.map(|mut rows| {
            rows.pop();
            rows
        })
    }

    /// A change to what is said of some revision. The second statement raises that, and where it gives no row nothing has changed.
    async fn change_if(&self, change: Statement, revise: Statement) -> StoreResult<bool> {
        // No other change falls between the two: statements are written one transaction after the other.
        let revised = self.write_statements(vec![change, revise]).await?;
        self.shared.nudge.send_replace(());
        Ok(!revised.is_empty())
    }
}

fn document<T: DeserializeOwned>(mut row: Row) -> StoreResult<T> {
    serde_json::from_str(&row.text()?).map_err(StoreError::corrupt)
}

fn api_key(mut row: Row) -> StoreResult<ApiKey> {
    Ok(ApiKey {
        id: row.string()?,
        tenant: row.string()?,
        user: row.string()?,
        name: row.string()?,
        sha256: row.string()?,
        delegate: row.int()? != 0,
        created_at: row.time()?,
        expires_at: row.time_if_any()?,
        last_used_at: row.time_if_any()?,
        revoked_at: row.time_if_any()?,
    })
}

fn session(mut row: Row) -> StoreResult<Session> {
    Ok(Session {
        id: row.string()?,
        tenant: row.string()?,
        user: row.string()?,
        sha256: row.string()?,
        created_at: row.time()?,
        expires_at: row.time()?,
    })
}

#[async_trait]
impl Store for SqlStore {
    async fn check(&self) -> StoreResult<()> {
        self.revision().await?;
        // Written for real, behind all that waits to be written: a full disk takes an empty transaction. The count of nobody's calls
        // is swept with the others.
        let write = "INSERT INTO call_counts (tenant, user_id, tool, day, calls, last, before, until) \
                     VALUES ('', '', '', 0, 0, $1, '', $1) ON CONFLICT (tenant, user_id, tool) \
                     DO UPDATE SET last = excluded.last, until = excluded.until";
        self.write_all(vec![statement!(write, SystemClock.now())]).await.map(drop)
    }

    async fn tools(&self, tenant: &str) -> StoreResult<Vec<StoredTool>> {
        let sql = "SELECT document FROM tools WHERE tenant = $1 ORDER BY name";
        // One that this program cannot read, such as a newer one's, keeps none of the others from being known.
        let readable = |row: Row| {
            let tool = document::<StoredTool>(row);
            Ok(tool.map_err(|cause| tracing::error!(%cause, "a stored tool cannot be read")).ok())
        };
        let rows = self.read(statement!(sql, tenant), readable).await?;
        Ok(rows.into_iter().flatten().collect())
    }

    async fn put_tool(&self, tenant: &str, tool: StoredTool, revision: u64) -> StoreResult<bool> {
        let put = "INSERT INTO tools (tenant, name, document) \
                   SELECT $1, $2, $3 WHERE $4 = (SELECT number FROM revision) \
                   ON CONFLICT (tenant, name) DO UPDATE SET document = excluded.document";
        let revise = "UPDATE revision SET number = number + 1 WHERE number = $1 RETURNING number";
        let seen = Value::Int(revision.cast_signed());
        let document = serde_json::to_string(&tool).map_err(StoreError::invalid)?;
        let put = statement!(put, tenant, tool.tool_name, document, seen.clone());
        self.change_if(put, statement!(revise, seen)).await
    }

    async fn remove_tool(&self, tenant: &str, tool: &str) -> StoreResult<()> {
        let sql = "DELETE FROM tools WHERE tenant = $1 AND name = $2";
        self.change(statement!(sql, tenant, tool)).await.map(drop)
    }

    async fn personas(&self, tenant: &str) -> StoreResult<Vec<Persona>> {
        let sql = "SELECT document FROM personas WHERE tenant = $1 ORDER BY name";
        self.read(statement!(sql, tenant), document).await
    }

    async fn personas_after(&self, tenant: &str, name: &str, most: usize) -> StoreResult<Vec<Persona>> {
        let sql = "SELECT document FROM personas WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3";
        self.read(statement!(sql, tenant, name, most), document).await
    }

    async fn persona(&self, tenant: &str, name: &str) -> StoreResult<Option<Persona>> {
        let sql = "SELECT document FROM personas WHERE tenant = $1 AND name = $2";
        self.read_one(statement!(sql, tenant, name), document).await
    }

    async fn put_persona(&self, tenant: &str, persona: Persona) -> StoreResult<()> {
        let sql = "INSERT INTO personas (tenant, name, document) VALUES ($1, $2, $3) \
                   ON CONFLICT (tenant, name) DO UPDATE SET document = excluded.document";
        let document = serde_json::to_string(&persona).map_err(StoreError::invalid)?;
        self.change(statement!(sql, tenant, persona.name, document)).await.map(drop)
    }

    async fn remove_persona(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        let sql = "DELETE FROM personas WHERE tenant = $1 AND name = $2 RETURNING name";
        Ok(!self.change(statement!(sql, tenant, name)).await?.is_empty())
    }

    async fn tenants(&self) -> StoreResult<Vec<String>> {
        let sql = "SELECT tenant FROM users UNION SELECT tenant FROM tools UNION SELECT tenant FROM personas ORDER BY tenant";
        self.read(statement!(sql), |mut row| row.string()).await
    }

    async fn users(&self, tenant: &str) -> StoreResult<Vec<User>> {
        let sql = "SELECT document FROM users WHERE tenant = $1 ORDER BY id";
        self.read(statement!(sql, tenant), document).await
    }

    async fn count_users(&self, tenant: &str) -> StoreResult<usize> {
        let count = statement!("SELECT COUNT(*) FROM users WHERE tenant = $1", tenant);
        Ok(self.read_one(count, |mut row| row.count()).await?.unwrap_or_default())
    }

    async fn user(&self, tenant: &str, id: &str) -> StoreResult<Option<User>> {
        let sql = "SELECT document FROM users WHERE tenant = $1 AND id = $2";
        self.read_one(statement!(sql, tenant, id), document).await
    }

    async fn put_user(&self, tenant: &str, user: User) -> StoreResult<()> {
        let sql = "INSERT INTO users (tenant, id, document) VALUES ($1, $2, $3) \
                   ON CONFLICT (tenant, id) DO UPDATE SET document = excluded.document";
        let document = serde_json::to_string(&user).map_err(StoreError::invalid)?;
        self.change(statement!(sql, tenant, user.id, document)).await.map(drop)
    }

    async fn change_user(&self, tenant: &str, user: User, revision: u64) -> StoreResult<bool> {
        let change = "UPDATE users SET document = $1 \
                      WHERE tenant = $2 AND id = $3 AND $4 = (SELECT number FROM revision)";
        let revise = "UPDATE revision SET number = number + 1 WHERE number = $1 \
                      AND EXISTS (SELECT 1 FROM users WHERE tenant = $2 AND id = $3) RETURNING number";
        let seen = Value::Int(revision.cast_signed());
        let document = serde_json::to_string(&user).map_err(StoreError::invalid)?;
        let who: [Value; 2] = [tenant.into(), user.id.into()];
        let [of, id] = who.clone();
        let change = statement!(change, document, of, id, seen.clone());
        let [of, id] = who;
        self.change_if(change, statement!(revise, seen, of, id)).await
    }

    async fn remove_user(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<RemovedUser> {
        let revoke =
            "UPDATE api_keys SET revoked_at = $1 WHERE tenant = $2 AND user_id = $3 AND revoked_at = ''";
        let revoke = vec![statement!(revoke, at, tenant, id)];
        let deleted = self.delete_of(tenant, id, revoke, &OF_A_USER).await?;
        Ok(RemovedUser {
            was_known: deleted("users") > 0,
            responses: deleted("responses"),
            transcripts: deleted("transcripts"),
            files: deleted("files"),
            values: deleted("tool_state"),
            chats: deleted("chats"),
        })
    }

    async fn keys(&self, tenant: &str) -> StoreResult<Vec<ApiKey>> {
        let sql = format!("{KEY_COLUMNS} WHERE tenant = $1 ORDER BY created_at, position");
        self.read(statement!(sql, tenant), api_key).await
    }

    async fn keys_of(&self, tenant: &str, user: &str) -> StoreResult<Vec<ApiKey>> {
        let sql = format!("{KEY_COLUMNS} WHERE tenant = $1 AND user_id = $2 ORDER BY created_at, position");
        self.read(statement!(sql, tenant, user), api_key).await
    }

    async fn key_of_id(&self, tenant: &str, id: &str) -> StoreResult<Option<ApiKey>> {
        let sql = format!("{KEY_COLUMNS} WHERE tenant = $1 AND id = $2");
        self.read_one(statement!(sql, tenant, id), api_key).await
    }

    async fn key(&self, sha256: &str, now: Timestamp) -> StoreResult<Option<ApiKey>> {
        let valid = "revoked_at = '' AND (expires_at = '' OR expires_at > $2)";
        let sql = format!("{KEY_COLUMNS} WHERE sha256 = $1 AND {valid}");
        self.read_one(statement!(sql, sha256, now), api_key).await
    }

    async fn has_keys(&self) -> StoreResult<bool> {
        let sql = "SELECT id FROM api_keys WHERE revoked_at = '' LIMIT 1";
        Ok(!self.read(statement!(sql), |mut row| row.text()).await?.is_empty())
    }

    async fn put_key(&self, key: ApiKey) -> StoreResult<bool> {
        let sql = "INSERT INTO api_keys \
                   (id, tenant, user_id, name, sha256, delegate, created_at, expires_at, last_used_at, revoked_at) \
                   SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 \
                   WHERE EXISTS (SELECT 1 FROM users WHERE tenant = $2 AND id = $3) RETURNING id";
        let ApiKey {
            id,
            tenant,
            user,
            name,
            sha256,
            delegate,
            created_at,
            expires_at,
            last_used_at,
            revoked_at,
        } = key;
        let put = statement!(
            sql,
            id,
            tenant,
            user,
            name,
            sha256,
            delegate,
            created_at,
            expires_at,
            last_used_at,
            revoked_at
        );
        Ok(!self.change(put).await?.is_empty())
    }

    async fn revoke_key(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<bool> {
        let sql = "UPDATE api_keys SET revoked_at = $1 WHERE tenant = $2 AND id = $3 AND revoked_at = '' RETURNING id";
        Ok(!self.change(statement!(sql, at, tenant, id)).await?.is_empty())
    }

    async fn note_key_use(&self, tenant: &str, id: &str, at: Timestamp) -> StoreResult<()> {
        let sql = "UPDATE api_keys SET last_used_at = $1 WHERE tenant = $2 AND id = $3 AND last_used_at < $4";
        self.run(statement!(sql, at, tenant, id, at - KEY_USE_NOTED)).await.map(drop)
    }

    async fn put_session(&self, session: Session, most: usize) -> StoreResult<bool> {
        let expire = statement!("DELETE FROM sessions WHERE expires_at <= $1", session.created_at);
        let put = "INSERT INTO sessions (sha256, id, tenant, user_id, created_at, expires_at) \
                   SELECT $1, $2, $3, $4, $5, $6 \
                   WHERE EXISTS (SELECT 1 FROM users WHERE tenant = $3 AND id = $4) RETURNING id";
        let trim = "DELETE FROM sessions WHERE sha256 IN (SELECT sha256 FROM sessions WHERE tenant = $1 AND user_id = $2 \
                    ORDER BY created_at DESC, sha256 LIMIT 1000 OFFSET $3)";
        let Session { id, tenant, user, sha256, created_at, expires_at } = session;
        let trim = statement!(trim, tenant.as_str(), user.as_str(), most);
        let put = statement!(put, sha256, id, tenant, user, created_at, expires_at);
        let rows = self.write_all(vec![expire, put, trim]).await?;
        Ok(rows.get(1).is_some_and(|kept| !kept.is_empty()))
    }

    async fn session(&self, sha256: &str, now: Timestamp) -> StoreResult<Option<Session>> {
        let sql = format!("{SESSION_COLUMNS} WHERE sha256 = $1 AND expires_at > $2");
        self.read_one(statement!(sql, sha256, now), session).await
    }

    async fn sessions(&self, tenant: &str, user: &str, now: Timestamp) -> StoreResult<Vec<Session>> {
        let sql = format!(
            "{SESSION_COLUMNS} WHERE tenant = $1 AND user_id = $2 AND expires_at > $3 ORDER BY created_at, sha256"
        );
        self.read(statement!(sql, tenant, user, now), session).await
    }

    async fn end_session(&self, tenant: &str, user: &str, id: &str) -> StoreResult<bool> {
        let sql = "DELETE FROM sessions WHERE tenant = $1 AND user_id = $2 AND id = $3 RETURNING id";
        self.takes_effect(statement!(sql, tenant, user, id)).await
    }

    async fn revision(&self) -> StoreResult<u64> {
        let number = self.read_one(statement!("SELECT number FROM revision"), |mut row| row.count()).await?;
        number.ok_or_else(|| self.named(StoreError::corrupt("the table `revision` is empty")))
    }

    async fn changed(&self, since: u64) {
        let mut nudge = self.shared.nudge.subscribe();
        let mut failing = false;
        loop {
            match self.revision().await {
                Ok(revision) if revision != since => return,
                Ok(_) => failing = false,
                // It may come back. Whoever waits gets nothing wrong meanwhile.
                Err(cause) if !failing => {
                    failing = true;
                    tracing::warn!(%cause, "store_not_watched");
                }
                Err(_) => {}
            }
            // Either the time is up or something may have changed; the sender lives as long as `self`.
            let _ = tokio::time::timeout(self.shared.database.poll(), nudge.changed()).await;
        }
    }
}
