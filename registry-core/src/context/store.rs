//! What a tool keeps between calls: [`ToolContext::store`].

use std::{sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::ToolContext;
use crate::{
    store::{Expected, StateError, StateLimits, StateSpace, StateStore},
    text::cut,
};

/// How often an update is tried while others change the same value.
const MAX_TRIES: u64 = 64;
/// How much of a key that cannot be used is repeated, in bytes.
const MAX_SHOWN: usize = 64;
const LIMITS: StateLimits = StateLimits::DEFAULT;

/// Small JSON values that last between calls and, where the host has a database, between starts of the program.
///
/// Each tool has values of its own for each user, and they are deleted with the user. Keys have up to 256 bytes, values 64 KiB as
/// JSON; a tool may keep 1000 keys and 1 MiB for a user.
///
/// ```
/// use registry_core::{prelude::*, testing::TestHost};
///
/// /// Count a call of this user.
/// #[tool]
/// async fn count_up(ctx: &ToolContext) -> Result<u64, ToolError> {
///     Ok(ctx.store().update("calls", |calls: Option<u64>| calls.unwrap_or(0) + 1).await?)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let host = TestHost::new().build();
/// host.call("count_up", json!({})).await;
/// assert_eq!(host.call("count_up", json!({})).await.for_model(), "2");
/// # }
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("ToolStore({space:?})")]
#[must_use]
pub struct ToolStore {
    store: Option<Arc<dyn StateStore>>,
    space: StateSpace,
}

impl ToolContext {
    /// What this tool keeps for this user; see [`ToolStore`].
    pub fn store(&self) -> ToolStore {
        let tool = self.call.as_ref().map_or("", |call| &call.tool);
        let space = StateSpace {
            tenant: self.tenant().to_owned(),
            user: Some(self.caller().user.clone()),
            name: format!("tool:{tool}"),
        };
        ToolStore { store: self.registry().map(|registry| registry.state_store()), space }
    }
}

impl ToolStore {
    /// The values under a name, in place of those of this tool: all tools that use the name share them, such as one that keeps notes and
    /// one that lists them.
    pub fn named(mut self, name: &str) -> Self {
        self.space.name = format!("name:{name}");
        self
    }

    /// The values that all users of the tenant share, in place of those of this user.
    pub fn for_all_users(mut self) -> Self {
        self.space.user = None;
        self
    }

    /// The value under a key; `None` where there is none.
    ///
    /// # Errors
    /// When the value is of another type, the key cannot be used, or the store fails.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StateError> {
        let kept = self.kept(key).await?;
        kept.map(|kept| read(key, &kept)).transpose()
    }

    /// Keeps a value under a key, in place of the one before.
    ///
    /// # Errors
    /// When there is no room, key or value cannot be kept, or the store fails.
    pub async fn set<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<(), StateError> {
        let value = write(key, value)?;
        self.open(key)?.put_state(&self.space, key, Some(&value), Expected::Anything, &LIMITS).await.map(drop)
    }

    /// Removes what is under a key. Nothing there: nothing to do.
    ///
    /// # Errors
    /// When the key cannot be used, or the store fails.
    pub async fn remove(&self, key: &str) -> Result<(), StateError> {
        self.open(key)?.put_state(&self.space, key, None, Expected::Anything, &LIMITS).await.map(drop)
    }

    /// Changes a value in one step, whoever else changes it: `change` gets the value that is there and gives the new one, which is
    /// returned. It is called again where another call was faster.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`set`](Self::set), and [`StateError::Contended`] where others are faster all the time.
    pub async fn update<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        mut change: impl FnMut(Option<T>) -> T,
    ) -> Result<T, StateError> {
        let store = self.open(key)?;
        for tries in 0..MAX_TRIES {
            let kept = store.state(&self.space, key).await?;
            let changed = change(kept.as_deref().map(|kept| read(key, kept)).transpose()?);
            let value = write(key, &changed)?;
            let expected = Expected::Exactly(kept.as_deref());
            if store.put_state(&self.space, key, Some(&value), expected, &LIMITS).await? {
                return Ok(changed);
            }
            tokio::time::sleep(Duration::from_millis(tries)).await;
        }
        Err(StateError::Contended { key: key.to_owned() })
    }

    /// The keys, in order.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn keys(&self) -> Result<Vec<String>, StateError> {
        let store = self.store.as_deref().ok_or(StateError::NoStore)?;
        Ok(store.state_keys(&self.space).await?)
    }

    async fn kept(&self, key: &str) -> Result<Option<String>, StateError> {
        Ok(self.open(key)?.state(&self.space, key).await?)
    }

    /// The store, for a key that can be used.
    fn open(&self, key: &str) -> Result<&dyn StateStore, StateError> {
        for text in [key, &self.space.name] {
            if text.is_empty() || text.len() > LIMITS.max_key_bytes || text.contains(char::is_control) {
                let key = cut(text.to_owned(), MAX_SHOWN);
                return Err(StateError::InvalidKey { key, max: LIMITS.max_key_bytes });
            }
        }
        self.store.as_deref().ok_or(StateError::NoStore)
    }
}

fn wrong_type(key: &str, cause: &serde_json::Error) -> StateError {
    StateError::Type { key: key.to_owned(), cause: cause.to_string() }
}

fn read<T: DeserializeOwned>(key: &str, kept: &str) -> Result<T, StateError> {
    serde_json::from_str(kept).map_err(|cause| wrong_type(key, &cause))
}

fn write<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<String, StateError> {
    let json = serde_json::to_string(value).map_err(|cause| wrong_type(key, &cause))?;
    match json.len() {
        bytes if bytes > LIMITS.max_value_bytes => {
            Err(StateError::TooLarge { key: key.to_owned(), bytes, max: LIMITS.max_value_bytes })
        }
        _ => Ok(json),
    }
}
