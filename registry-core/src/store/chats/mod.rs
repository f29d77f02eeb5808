//! Chats that are kept for the people who have them, until they delete them.
//!
//! A chat is a tree of messages. A turn of it that runs is claimed in the store, so that all servers that share it know that it runs, and
//! that it does not any more once its server has not been heard of for a while.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;

use super::{StoreError, StoreResult};

/// What a row takes beside its texts, in bytes.
const ROW_BYTES: u64 = 1024;

/// Names a chat of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatKey<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The user whose it is. Nobody else finds it.
    pub user: &'a str,
    /// The id of the chat.
    pub id: &'a str,
}

/// A chat without its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChat {
    /// Names it. Not to be guessed, such as with [`random_id`](crate::random_id) in it.
    pub id: String,
    /// Its name, for people.
    pub title: String,
    /// Who has given it the name: a word that a store does not look into.
    pub titled_by: String,
    /// Whether it stands before others.
    pub pinned: bool,
    /// When it was begun (UTC).
    pub created_at: Timestamp,
    /// When a message was last added (UTC).
    pub updated_at: Timestamp,
    /// The last message of the branch that is shown; empty in a chat without messages.
    pub leaf: String,
    /// Its settings, as JSON text that a store does not look into.
    pub settings: Arc<str>,
    /// The turn that was last claimed and not ended; it may have ended without a word.
    pub turn: Option<StoredTurn>,
}

impl StoredChat {
    /// The turn that runs: the one whose server was heard of after `since`.
    pub fn running(&self, since: Timestamp) -> Option<&StoredTurn> {
        self.turn.as_ref().filter(|turn| turn.seen_at > since)
    }
}

/// A turn of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTurn {
    /// Names the turn.
    pub id: String,
    /// When its server was last heard of (UTC).
    pub seen_at: Timestamp,
}

/// A message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Names it within its chat.
    pub id: String,
    /// The message that it follows; `None` for the first one of a branch that begins the chat.
    pub parent: Option<String>,
    /// When it was made (UTC): messages are in this order.
    pub created_at: Timestamp,
    /// What is found in it by its words.
    pub text: String,
    /// What is shown of it, as JSON text that a store does not look into.
    pub document: Arc<str>,
    /// What the model gets of it, which may be much larger, in the same way. Empty where it was not read.
    pub context: Arc<str>,
}

impl ChatMessage {
    /// What it counts towards the limits, in bytes: its texts, that which is searched twice, and 1 KiB for the rest.
    pub fn size(&self) -> u64 {
        let bytes = 2 * self.text.len() + self.document.len() + self.context.len();
        ROW_BYTES.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// Which chats are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatQuery {
    /// Only chats that have all of these in their title, or in one message; folded with [`fold`].
    pub words: Vec<String>,
    /// Only those behind this one in the list: whether it is pinned, when it was updated, and its id.
    pub after: Option<(bool, Timestamp, String)>,
    /// So many at most.
    pub limit: usize,
}

/// A text as it is searched, whatever its case. A NUL, for which databases have no place, is a space.
pub fn fold(text: &str) -> String {
    text.to_lowercase().replace('\0', " ")
}

/// A chat of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundChat {
    /// The chat.
    pub chat: StoredChat,
    /// Id and text of the last message that has the words, where they were looked for and one has them.
    pub message: Option<(String, String)>,
}

/// What changes of a chat; `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatChange {
    /// The title, and who has given it.
    pub title: Option<(String, String)>,
    /// The title changes only if it was given by this one.
    pub if_titled_by: Option<String>,
    /// Whether it is pinned.
    pub pinned: Option<bool>,
    /// The last message of the branch that is shown.
    pub leaf: Option<String>,
    /// The settings.
    pub settings: Option<Arc<str>>,
    /// Nothing changes unless the settings are still these: of two changes at once none is lost.
    pub if_settings: Option<Arc<str>>,
    /// Nothing changes if longer settings make all chats of the user take more bytes than this.
    pub max_user_bytes: Option<u64>,
}

/// How much is kept of chats. Beyond it nothing more is taken: chats are deleted by those whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatLimits {
    /// Chats of a user.
    pub max_chats: usize,
    /// The bytes of all chats of a user.
    pub max_user_bytes: u64,
    /// Messages of a chat.
    pub max_messages: usize,
    /// The bytes of a chat.
    pub max_chat_bytes: u64,
    /// Turns of a user that run at once.
    pub max_turns: usize,
    /// For how long a turn runs whose server is not heard of.
    pub turn_patience: Duration,
}

/// Chats of a user.
const MAX_CHATS: usize = 2000;
/// The bytes of all chats of a user.
const MAX_USER_BYTES: u64 = 512 << 20;
/// Messages of a chat.
const MAX_MESSAGES: usize = 4000;
/// The bytes of a chat.
const MAX_CHAT_BYTES: u64 = 64 << 20;
/// Turns of a user that run at once.
const MAX_TURNS: usize = 8;
/// For how long a turn runs whose server is not heard of.
const TURN_PATIENCE: Duration = Duration::from_secs(15);

impl ChatLimits {
    /// 2,000 chats and 512 MiB a user; 4,000 messages and 64 MiB a chat; 8 turns a user, each for 15 s without a word of its server.
    pub const DEFAULT: Self = Self {
        max_chats: MAX_CHATS,
        max_user_bytes: MAX_USER_BYTES,
        max_messages: MAX_MESSAGES,
        max_chat_bytes: MAX_CHAT_BYTES,
        max_turns: MAX_TURNS,
        turn_patience: TURN_PATIENCE,
    };

    /// A turn whose server was last heard of at this time or before runs no more.
    pub fn since(&self, now: Timestamp) -> Timestamp {
        now.checked_sub(self.turn_patience).unwrap_or(Timestamp::MIN)
    }
}

impl Default for ChatLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why something of a chat is not kept. The texts are for the user, but for that of [`Store`](Self::Store).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// There is no such chat, or it belongs to another user.
    #[error("there is no such chat: it was deleted, or belongs to another user")]
    Unknown,
    /// The user has as many chats, or as much in them, as one may have.
    #[error("you have {max} chats or {bytes} bytes in them, which is all that is kept; delete some")]
    TooManyChats {
        /// Chats of a user.
        max: usize,
        /// Bytes of a user.
        bytes: u64,
    },
    /// The chat has as many messages, or as much in them, as one may have.
    #[error(
        "the chat has {max} messages or {bytes} bytes, which is all that is kept of one; begin another one, or delete messages"
    )]
    ChatFull {
        /// Messages of a chat.
        max: usize,
        /// Bytes of a chat.
        bytes: u64,
    },
    /// A turn of the chat runs.
    #[error("a turn of this chat runs; stop it first, or wait for it")]
    TurnRunning,
    /// As many turns of the user run as may.
    #[error("{max} turns of yours run already, which are all that may; wait for one, or stop one")]
    TooManyTurns {
        /// Turns of a user.
        max: usize,
    },
    /// The store failed. The text is for the operator.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps chats by tenant and user. What it acknowledges it has kept.
///
/// [`Store::remove_user`](super::Store::remove_user) of the same store deletes the chats of the user in one step with the user.
#[async_trait]
pub trait ChatStore: Send + Sync {
    /// Keeps a new chat.
    ///
    /// # Errors
    /// [`TooManyChats`](ChatError::TooManyChats) where there is no room for it, and when the store fails.
    async fn begin_chat(
        &self,
        owner: (&str, &str),
        chat: StoredChat,
        limits: &ChatLimits,
    ) -> Result<(), ChatError>;

    /// The chat of that id.
    async fn chat(&self, key: ChatKey<'_>) -> StoreResult<Option<StoredChat>>;

    /// The chats of tenant and user: those that are pinned first, then those that were updated last.
    async fn chats(&self, owner: (&str, &str), query: &ChatQuery) -> StoreResult<Vec<FoundChat>>;

    /// Changes a chat; false if there is none, or if it is not titled by the one who it has to be titled by.
    async fn change_chat(&self, key: ChatKey<'_>, change: ChatChange) -> StoreResult<bool>;

    /// Deletes a chat with its messages; false if there is none.
    async fn delete_chat(&self, key: ChatKey<'_>) -> StoreResult<bool>;

    /// Adds messages to a chat in one step. The last one is the last of the branch that is shown from now on.
    ///
    /// # Errors
    /// [`Unknown`](ChatError::Unknown) without the chat, [`TooManyChats`](ChatError::TooManyChats) and [`ChatFull`](ChatError::ChatFull)
    /// where there is no room for them, and when the store fails.
    async fn add_chat_messages(
        &self,
        key: ChatKey<'_>,
        messages: Vec<ChatMessage>,
        limits: &ChatLimits,
    ) -> Result<(), ChatError>;

    /// Puts a message in place of the one of its id, whether or not there is room for it: whoever does so bounds it. False if there is none.
    async fn put_chat_message(&self, key: ChatKey<'_>, message: ChatMessage) -> StoreResult<bool>;

    /// The messages of a chat, oldest first, without what the model gets of them.
    async fn chat_messages(&self, key: ChatKey<'_>) -> StoreResult<Vec<ChatMessage>>;

    /// The messages of a chat, oldest first, whole.
    async fn whole_chat_messages(&self, key: ChatKey<'_>) -> StoreResult<Vec<ChatMessage>>;

    /// One message of a chat, whole.
    async fn chat_message(&self, key: ChatKey<'_>, id: &str) -> StoreResult<Option<ChatMessage>>;

    /// Deletes messages of a chat, and sets the last message of the branch that is shown.
    async fn delete_chat_messages(&self, key: ChatKey<'_>, ids: &[String], leaf: &str) -> StoreResult<()>;

    /// Claims a chat for a turn.
    ///
    /// # Errors
    /// [`Unknown`](ChatError::Unknown), [`TurnRunning`](ChatError::TurnRunning), [`TooManyTurns`](ChatError::TooManyTurns), and when the
    /// store fails.
    async fn begin_chat_turn(
        &self,
        key: ChatKey<'_>,
        turn: &str,
        now: Timestamp,
        limits: &ChatLimits,
    ) -> Result<(), ChatError>;

    /// Says that a turn runs. Gives whether it has to stop; so it does where it has no chat any more.
    async fn hold_chat_turn(&self, key: ChatKey<'_>, turn: &str, now: Timestamp) -> StoreResult<bool>;

    /// Asks the turn that has claimed a chat to stop; false if there is none.
    async fn stop_chat_turn(&self, key: ChatKey<'_>) -> StoreResult<bool>;

    /// Gives up the claim of a turn.
    async fn end_chat_turn(&self, key: ChatKey<'_>, turn: &str) -> StoreResult<()>;
}
