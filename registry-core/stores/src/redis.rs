//! Redis: a fast first answer on limits, and manifests that several servers share.
//!
//! Nothing depends on it. Where it does not answer, the store behind it is asked, as if it were not there.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use redis::{
    Client, FromRedisValue,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use registry_core::{
    guard::limits::{Charge, Limit, Limited, Usage},
    store::{MANIFEST_TTL, ManifestCache, StoreError, StoreResult},
};

/// How long an answer may take; a store behind it is not much slower.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long it is not asked after it did not answer.
const REST: Duration = Duration::from_secs(1);
/// How long a limit is known to be reached at most, so that what is wrong, as after a call that was taken back while Redis was away,
/// is soon forgotten.
const REMEMBERED: Duration = Duration::from_secs(60);

/// A connection to Redis, that is made when it is needed and again when it was lost. Clones share it.
#[derive(Clone, derive_more::Debug)]
#[debug("Redis")]
pub struct Redis {
    shared: Arc<Shared>,
}

struct Shared {
    connection: ConnectionManager,
    /// Whether the last answer came, so that one warning is given for each time that it is away.
    answers: AtomicBool,
    /// Until when it is not asked.
    resting: Mutex<Option<Instant>>,
}

impl Redis {
    /// The server at `redis://HOST:PORT/NUMBER`. It need not be there yet. To be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the URL is none.
    pub fn new(url: &str) -> StoreResult<Self> {
        let invalid = |error| StoreError::invalid(format!("the URL of Redis is not understood: {error}"));
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let client = Client::open(url).map_err(invalid)?;
        let connection = ConnectionManager::new_lazy_with_config(client, config).map_err(invalid)?;
        let shared = Shared { connection, answers: AtomicBool::new(true), resting: Mutex::new(None) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Asks, unless it is resting.
    async fn ask<T: FromRedisValue>(&self, command: &redis::Cmd) -> StoreResult<T> {
        let resting = *self.shared.resting.lock();
        if resting.is_some_and(|until| Instant::now() < until) {
            return Err(no_answer());
        }
        let mut connection = self.shared.connection.clone();
        let asked = tokio::time::timeout(2 * PATIENCE, command.query_async(&mut connection)).await;
        let answer = match asked {
            Ok(answer) => answer.map_err(|error| StoreError::unavailable(error).of("Redis")),
            Err(_) => Err(no_answer()),
        };
        let answers = answer.is_ok();
        let answered = self.shared.answers.swap(answers, Ordering::Relaxed);
        if let Err(cause) = &answer {
            *self.shared.resting.lock() = Some(Instant::now() + REST);
            if answered {
                tracing::warn!(%cause, "redis_gone");
            }
        } else if !answered {
            tracing::info!("redis_back");
        }
        answer
    }
}

fn no_answer() -> StoreError {
    StoreError::unavailable("no answer").of("Redis")
}

/// Counts calls in a store, and has Redis remember which limits are reached, for all servers.
///
/// The store is the authority: whatever may be made has been counted there. Redis only says sooner that a limit is reached.
#[derive(Debug)]
pub struct RedisUsage<U> {
    redis: Redis,
    authority: U,
}

/// A limit that is reached, as Redis remembers it.
#[derive(Serialize, Deserialize)]
struct Reached {
    daily: bool,
    free_at: Timestamp,
}

/// Remembers that a limit is reached, unless a call was taken back since the store was asked.
const REMEMBER: &str = "if (redis.call('GET', KEYS[2]) or '') == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end";
/// Forgets it, and has whoever is just asking the store not remember what it says.
const FORGET: &str =
    "redis.call('DEL', KEYS[1]); redis.call('INCR', KEYS[2]); redis.call('PEXPIRE', KEYS[2], ARGV[1])";

impl<U: Usage> RedisUsage<U> {
    /// Asks `redis` first, and then `authority`.
    pub fn new(redis: Redis, authority: U) -> Self {
        Self { redis, authority }
    }

    /// Where it is remembered that the limit is reached, and where calls that were taken back are counted. A limit that the operator
    /// has changed is another one.
    fn keys(charge: &Charge) -> [String; 2] {
        let Charge { tenant, user, tool, cooldown, daily_limit, .. } = charge;
        // Written as JSON, so that no name can pass for two.
        let call =
            serde_json::json!([&**tenant, user, &**tool, cooldown.as_nanos().to_string(), daily_limit]);
        [format!("toolrack:limited:{call}"), format!("toolrack:refunds:{call}")]
    }

    /// What is remembered, and how many calls were taken back lately.
    async fn remembered(&self, keys: &[String; 2]) -> StoreResult<(Option<Reached>, String)> {
        let (reached, refunds): (Option<String>, Option<String>) =
            self.redis.ask(redis::cmd("MGET").arg(keys)).await?;
        // What is not understood was written by another version: it is not believed.
        let reached = reached.and_then(|reached| serde_json::from_str(&reached).ok());
        Ok((reached, refunds.unwrap_or_default()))
    }

    async fn remember(&self, keys: &[String; 2], refunds: &str, charge: &Charge, limited: &Limited) {
        let left = Duration::try_from(limited.free_at.duration_since(charge.at)).unwrap_or_default();
        let millis = left.min(REMEMBERED).as_millis();
        let reached = Reached { daily: matches!(limited.limit, Limit::Daily(_)), free_at: limited.free_at };
        if let (1.., Ok(reached)) = (millis, serde_json::to_string(&reached)) {
            let mut command = redis::cmd("EVAL");
            command.arg(REMEMBER).arg(2).arg(keys).arg(refunds).arg(reached).arg(millis.to_string());
            // It was a favour to the next one who asks.
            let _: Result<(), StoreError> = self.redis.ask(&command).await;
        }
    }
}

#[async_trait]
impl<U: Usage> Usage for RedisUsage<U> {
    async fn charge(&self, charge: &Charge) -> StoreResult<Option<Limited>> {
        let keys = Self::keys(charge);
        let remembered = self.remembered(&keys).await.ok();
        if let Some((Some(reached), _)) = &remembered
            && charge.at < reached.free_at
        {
            let limit = match reached.daily {
                true => Limit::Daily(charge.daily_limit),
                false => Limit::Cooldown(charge.cooldown),
            };
            return Ok(Some(Limited { limit, free_at: reached.free_at }));
        }
        let limited = self.authority.charge(charge).await?;
        if let (Some(limited), Some((_, refunds))) = (&limited, remembered) {
            self.remember(&keys, &refunds, charge, limited).await;
        }
        Ok(limited)
    }

    async fn refund(&self, charge: &Charge) -> StoreResult<()> {
        self.authority.refund(charge).await?;
        let mut command = redis::cmd("EVAL");
        command.arg(FORGET).arg(2).arg(&Self::keys(charge)).arg(REMEMBERED.as_millis().to_string());
        // Where it fails, what is remembered is soon forgotten.
        let _: Result<(), StoreError> = self.redis.ask(&command).await;
        Ok(())
    }
}

/// Keeps manifests in Redis, for all servers: `module_manifest:NAME` for an hour.
#[derive(Debug, Clone)]
pub struct RedisManifests(Redis);

impl RedisManifests {
    /// Keeps them in this Redis.
    pub fn new(redis: Redis) -> Self {
        Self(redis)
    }
}

fn manifest_key(module: &str) -> String {
    format!("module_manifest:{module}")
}

#[async_trait]
impl ManifestCache for RedisManifests {
    async fn get(&self, module: &str) -> StoreResult<Option<String>> {
        self.0.ask(redis::cmd("GET").arg(manifest_key(module))).await
    }

    async fn put(&self, module: &str, manifest: &str) -> StoreResult<()> {
        let mut command = redis::cmd("SET");
        command.arg(manifest_key(module)).arg(manifest).arg("EX").arg(MANIFEST_TTL.as_secs());
        self.0.ask(&command).await
    }
}
