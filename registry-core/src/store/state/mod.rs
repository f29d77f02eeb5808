//! What tools keep between calls.

mod memory;

use async_trait::async_trait;

use crate::store::{StoreError, StoreResult};

pub(super) use memory::MemoryState;

/// Whose values they are, and what they are kept under.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateSpace {
    /// The tenant.
    pub tenant: String,
    /// The user; `None` for values that all users of the tenant share.
    pub user: Option<String>,
    /// `tool:NAME` for one tool, `name:NAME` for all tools that use that name.
    pub name: String,
}

const MAX_KEY: usize = 256;
const MAX_VALUE: usize = 64 << 10;
const MAX_KEYS: usize = 1000;
const MAX_OF_TOOL: u64 = 1 << 20;
const MAX_OF_USER: u64 = 16 << 20;

/// What may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateLimits {
    /// The longest key, in bytes.
    pub max_key_bytes: usize,
    /// The longest value as JSON, in bytes.
    pub max_value_bytes: usize,
    /// Keys of one space.
    pub max_keys: usize,
    /// Keys and values of one space together, in bytes.
    pub max_space_bytes: u64,
    /// Keys and values of all spaces of one user, or of those that a tenant's users share, in bytes.
    pub max_user_bytes: u64,
}

impl StateLimits {
    /// What tools may keep.
    pub const DEFAULT: Self = Self {
        max_key_bytes: MAX_KEY,
        max_value_bytes: MAX_VALUE,
        max_keys: MAX_KEYS,
        max_space_bytes: MAX_OF_TOOL,
        max_user_bytes: MAX_OF_USER,
    };
}

/// What has to be kept under a key for a change to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected<'a> {
    /// Whatever it is.
    Anything,
    /// Exactly this JSON text; `None` for nothing at all.
    Exactly(Option<&'a str>),
}

impl Expected<'_> {
    /// Whether this is what is kept.
    pub fn is(&self, kept: Option<&str>) -> bool {
        match self {
            Self::Anything => true,
            Self::Exactly(expected) => *expected == kept,
        }
    }
}

/// Why a value could not be read or kept.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The key is empty, longer than it may be, or has control characters.
    #[error("the key {key:?} cannot be used: a key has 1 to {max} bytes and no control characters")]
    InvalidKey {
        /// The key, shortened.
        key: String,
        /// The longest key, in bytes.
        max: usize,
    },
    /// The value is longer than it may be.
    #[error("the value of {key:?} has {bytes} bytes as JSON, and may have {max}")]
    TooLarge {
        /// The key.
        key: String,
        /// Its length, in bytes.
        bytes: usize,
        /// The longest value, in bytes.
        max: usize,
    },
    /// There is no room for more; remove something first.
    #[error("there is no room to keep {key:?}: remove other values first")]
    Full {
        /// The key.
        key: String,
    },
    /// What is kept is not of the type that is asked for, or what is to be kept cannot be written as JSON.
    #[error("the value of {key:?} is not of the expected type: {cause}")]
    Type {
        /// The key.
        key: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Others change the same value so often that an update did not come through.
    #[error("{key:?} is changed by too many others at once; try again")]
    Contended {
        /// The key.
        key: String,
    },
    /// The context belongs to no registry, so there is nowhere to keep anything.
    #[error("there is no store here: the context was made without a registry; in a test, use `TestHost`")]
    NoStore,
    /// The store has failed.
    #[error("what the tool keeps could not be read or written")]
    Store(#[from] StoreError),
}

/// Keeps small JSON values for tools. What it acknowledges it has kept.
///
/// Tools use it through [`ToolContext::store`](crate::ToolContext::store), which checks keys and the length of values.
#[async_trait]
pub trait StateStore: Send + Sync {
    /// The value under a key, as JSON.
    async fn state(&self, space: &StateSpace, key: &str) -> StoreResult<Option<String>>;

    /// Keeps a value under a key, or removes it where `value` is `None`, in one step; false, and nothing has changed, where something
    /// else than expected is kept there.
    ///
    /// # Errors
    /// [`StateError::Full`] where the limits leave no room, and when the store fails.
    async fn put_state(
        &self,
        space: &StateSpace,
        key: &str,
        value: Option<&str>,
        expected: Expected<'_>,
        limits: &StateLimits,
    ) -> Result<bool, StateError>;

    /// The keys of a space, in the order of their bytes.
    async fn state_keys(&self, space: &StateSpace) -> StoreResult<Vec<String>>;

    /// What a tenant's users have under a key of the spaces of one name, each with the user, in the order of their ids: of those behind
    /// `after`, at most so many.
    async fn states_of_users(
        &self,
        tenant: &str,
        name: &str,
        key: &str,
        after: &str,
        most: usize,
    ) -> StoreResult<Vec<(String, String)>>;
}

/// How much room a key and its value take, in bytes.
pub fn state_size(key: &str, value: &str) -> u64 {
    u64::try_from(key.len().saturating_add(value.len())).unwrap_or(u64::MAX)
}
