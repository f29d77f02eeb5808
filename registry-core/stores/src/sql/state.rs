//! What tools keep between calls.

use super::{Row, SqlStore, Statement, Value, statement};
use async_trait::async_trait;
use registry_core::store::{
    Expected, StateError, StateLimits, StateSpace, StateStore, StoreResult, state_size,
};

/// Where a value is. Users share what has no user: no user's id is empty.
const HERE: &str = "tenant = $1 AND user_id = $2 AND space = $3 AND key = $4";

/// Keeps a value where there is room for it. All writes of statements follow each other, so nothing changes between the two questions.
const PUT: &str =
    "INSERT INTO tool_state (tenant, user_id, space, key, size, value) SELECT $1, $2, $3, $4, $5, $6
    WHERE (SELECT COUNT(*) < $7 AND COALESCE(SUM(size), 0) + $5 <= $8 FROM tool_state
        WHERE tenant = $1 AND user_id = $2 AND space = $3 AND key <> $4)
    AND (SELECT COALESCE(SUM(size), 0) + $5 <= $9 FROM tool_state
        WHERE tenant = $1 AND user_id = $2 AND NOT (space = $3 AND key = $4))";
const REPLACE: &str = "ON CONFLICT (tenant, user_id, space, key) DO UPDATE SET size = excluded.size, value = excluded.value RETURNING key";

fn owner(space: &StateSpace) -> [Value; 3] {
    let StateSpace { tenant, user, name } = space;
    [tenant.as_str().into(), user.as_deref().unwrap_or_default().into(), name.as_str().into()]
}

fn place(space: &StateSpace, key: &str) -> Vec<Value> {
    owner(space).into_iter().chain([key.into()]).collect()
}

fn text(mut row: Row) -> StoreResult<String> {
    row.string()
}

/// Whether a name is empty, under which nothing is kept: what all users share has an empty one in place of the user's.
fn is_nameless(space: &StateSpace, key: &str) -> bool {
    [key, &space.name, &space.tenant, space.user.as_deref().unwrap_or("-")].contains(&"")
}

#[async_trait]
impl StateStore for SqlStore {
    async fn state(&self, space: &StateSpace, key: &str) -> StoreResult<Option<String>> {
        let sql = format!("SELECT value FROM tool_state WHERE {HERE}");
        let find = Statement::new(sql, place(space, key));
        if is_nameless(space, key) { Ok(None) } else { self.read_one(find, text).await }
    }

    async fn put_state(
        &self,
        space: &StateSpace,
        key: &str,
        value: Option<&str>,
        expected: Expected<'_>,
        limits: &StateLimits,
    ) -> Result<bool, StateError> {
        let before = Statement::new(format!("SELECT value FROM tool_state WHERE {HERE}"), place(space, key));
        if is_nameless(space, key) || before.is_about_nothing() {
            let max = limits.max_key_bytes;
            return Err(StateError::InvalidKey { key: key.to_owned(), max });
        }
        let mut values = place(space, key);
        let change = match value {
            None => {
                let mut sql = format!("DELETE FROM tool_state WHERE {HERE}");
                match expected {
                    Expected::Anything => {}
                    Expected::Exactly(None) => sql.push_str(" AND FALSE"),
                    Expected::Exactly(Some(expected)) => {
                        sql.push_str(" AND value = $5");
                        values.push(expected.into());
                    }
                }
                Statement::new(sql, values)
            }
            Some(value) => {
                values.extend([state_size(key, value).into(), value.into(), limits.max_keys.into()]);
                values.extend([limits.max_space_bytes, limits.max_user_bytes].map(Value::from));
                let condition = match expected {
                    Expected::Anything => String::new(),
                    Expected::Exactly(None) => {
                        format!(" AND NOT EXISTS (SELECT 1 FROM tool_state WHERE {HERE})")
                    }
                    Expected::Exactly(Some(expected)) => {
                        values.push(expected.into());
                        format!(" AND EXISTS (SELECT 1 FROM tool_state WHERE {HERE} AND value = $10)")
                    }
                };
                Statement::new(format!("{PUT}{condition} {REPLACE}"), values)
            }
        };
        let mut rows = self.write_all(vec![before, change]).await?.into_iter();
        let before = rows.next().and_then(|mut rows| rows.pop()).map(text).transpose();
        let before = before.map_err(|error| self.named(error))?;
        match expected.is(before.as_deref()) {
            false => Ok(false),
            true if value.is_some() && rows.next().is_none_or(|kept| kept.is_empty()) => {
                Err(StateError::Full { key: key.to_owned() })
            }
            true => Ok(true),
        }
    }

    async fn state_keys(&self, space: &StateSpace) -> StoreResult<Vec<String>> {
        let sql = "SELECT key FROM tool_state WHERE tenant = $1 AND user_id = $2 AND space = $3 ORDER BY key";
        let find = Statement::new(sql, owner(space).into());
        if is_nameless(space, "-") { Ok(Vec::new()) } else { self.read(find, text).await }
    }

    async fn states_of_users(
        &self,
        tenant: &str,
        name: &str,
        key: &str,
        after: &str,
        most: usize,
    ) -> StoreResult<Vec<(String, String)>> {
        // What all share has no user, and so is behind nobody.
        let sql = "SELECT user_id, value FROM tool_state
            WHERE tenant = $1 AND user_id > $2 AND space = $3 AND key = $4 ORDER BY user_id LIMIT $5";
        let read = |mut row: Row| Ok((row.string()?, row.string()?));
        self.read(statement!(sql, tenant, after, name, key, most), read).await
    }
}
