//! What several servers share in Redis.

use std::sync::Arc;

use toolrack_stores::{Redis, RedisManifests, RedisUsage, SqlStore};

use super::store::Shared;

/// Counted calls, which the database keeps as well, and the manifests of modules.
pub(super) fn open(url: &str, sql: &Arc<SqlStore>) -> Result<Shared, String> {
    let redis = Redis::new(url).map_err(|fault| fault.to_string())?;
    Ok((Arc::new(RedisUsage::new(redis.clone(), sql.clone())), Arc::new(RedisManifests::new(redis))))
}
