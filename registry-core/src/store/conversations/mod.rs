//! Conversations that the server keeps: the responses that a client continues by their ids.
//!
//! A response without a predecessor begins a conversation, and one that continues another belongs to the same conversation, also where two
//! continue the same response. A conversation expires, gives way to newer ones and is deleted as a whole, so that a response that is found has
//! all of its predecessors, unless one of them was deleted by its id.

mod error;
mod kept;
mod limits;
mod memory;
mod transcripts;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreResult;
pub use error::ConversationError;
pub use kept::Conversations;
pub use limits::{ConversationLimits, TranscriptLimits};
pub(super) use memory::MemoryConversations;
pub(super) use transcripts::MemoryTranscripts;
pub use transcripts::{Shelf, StoredTranscript};

/// What a row takes beside its texts, in bytes: counted so that very many small responses reach a limit too.
const ROW_BYTES: u64 = 1024;

/// A response of a model, as part of a conversation that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// Names the response. Made by the caller, and not to be guessed, such as with [`random_id`](crate::random_id) in it.
    pub id: String,
    /// The tenant.
    pub tenant: String,
    /// The user whose it is. Nobody else finds it.
    pub user: String,
    /// The response that this one continues.
    pub previous: Option<String>,
    /// The model.
    pub model: String,
    /// What the request and its answer added to the conversation, as JSON text. A store does not look into it.
    pub messages: Arc<str>,
    /// The response as the client was given it, as JSON text that a store does not look into; empty for one that was kept before
    /// responses were.
    pub given: Arc<str>,
    /// When it was made (UTC).
    pub created_at: Timestamp,
}

impl StoredResponse {
    /// What it counts towards the limits, in bytes: its texts, and 1 KiB for the rest.
    ///
    /// ```
    /// # use registry_core::store::StoredResponse;
    /// let response = StoredResponse {
    ///     id: "resp_1".into(),
    ///     tenant: "default".into(),
    ///     user: "ada".into(),
    ///     previous: None,
    ///     model: "qwen3".into(),
    ///     messages: "[]".into(),
    ///     given: "{}".into(),
    ///     created_at: jiff::Timestamp::UNIX_EPOCH,
    /// };
    /// assert_eq!(response.size(), 1024 + 25);
    /// ```
    pub fn size(&self) -> u64 {
        let Self { id, tenant, user, previous, model, messages, given, created_at: _ } = self;
        let previous = previous.as_deref().unwrap_or_default();
        let texts = [id, tenant, user, previous, model, messages, given];
        let bytes = texts.iter().map(|text| u64::try_from(text.len()).unwrap_or(u64::MAX));
        bytes.fold(ROW_BYTES, u64::saturating_add)
    }
}

/// Keeps conversations, transcripts and the files of results by tenant and user. [`Conversations`] is for those who use one. What it acknowledges it has kept.
///
/// A conversation is used when a response is added to it. `since` is a time: conversations that were last used then or earlier have expired, and
/// are treated as if they were not there.
///
/// [`Store::remove_user`](super::Store::remove_user) of the same store deletes the conversations, transcripts and files of the user in one step with the user.
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// Keeps a response at the time `now`, in one step. Conversations of the user beyond the limits are deleted, those that were not used for
    /// longest first, but never the one of this response. Some that have expired are deleted, of whichever user.
    ///
    /// # Errors
    /// [`Unknown`](ConversationError::Unknown) if `previous` is not there, [`Full`](ConversationError::Full) if the conversation alone would
    /// reach the user's limit; [`Store`](ConversationError::Store) if the store fails, or has a response of that id already.
    async fn keep_response(
        &self,
        response: StoredResponse,
        now: Timestamp,
        limits: &ConversationLimits,
    ) -> Result<(), ConversationError>;

    /// The response of that id.
    async fn response(
        &self,
        tenant: &str,
        user: &str,
        id: &str,
        since: Timestamp,
    ) -> StoreResult<Option<StoredResponse>>;

    /// The messages of the responses from the first of the conversation to the one of that id, in this order.
    ///
    /// # Errors
    /// [`Unknown`](ConversationError::Unknown) if it or one before it is not there, [`TooLong`](ConversationError::TooLong) if they are beyond
    /// the limits of a chain; [`Store`](ConversationError::Store) if the store fails.
    async fn response_chain(
        &self,
        tenant: &str,
        user: &str,
        id: &str,
        since: Timestamp,
        limits: &ConversationLimits,
    ) -> Result<Vec<Arc<str>>, ConversationError>;

    /// Deletes the response of that id; false if there is none. Those that continue it cannot be continued any more.
    async fn delete_response(&self, tenant: &str, user: &str, id: &str) -> StoreResult<bool>;

    /// Deletes conversations that have expired, of all tenants.
    async fn delete_expired(&self, since: Timestamp) -> StoreResult<()>;

    /// Keeps a transcript, or a file, in place of those on the shelf that were kept under either of its keys. Those of the user beyond the
    /// limits are deleted, the ones that were not used for longest first, and some that were last used at `since` or before, of whichever user.
    async fn keep_transcript(
        &self,
        shelf: Shelf,
        transcript: StoredTranscript,
        since: Timestamp,
        limits: &TranscriptLimits,
    ) -> StoreResult<()>;

    /// The transcripts that are kept under these keys on a shelf, in any order: those that were used last, up to the bytes that are read at once.
    async fn transcripts(
        &self,
        shelf: Shelf,
        tenant: &str,
        user: &str,
        keys: &[String],
        since: Timestamp,
        limits: &TranscriptLimits,
    ) -> StoreResult<Vec<StoredTranscript>>;

    /// Notes that the transcripts that are kept under these keys were used at the time `now`.
    async fn use_transcripts(
        &self,
        tenant: &str,
        user: &str,
        keys: &[String],
        now: Timestamp,
    ) -> StoreResult<()>;

    /// Deletes the transcripts that are kept under these keys.
    async fn delete_transcripts(&self, tenant: &str, user: &str, keys: &[String]) -> StoreResult<()>;

    /// Deletes what has expired on a shelf, of all tenants, and what is beyond the bytes that all may have.
    async fn sweep_transcripts(
        &self,
        shelf: Shelf,
        since: Timestamp,
        max_total_bytes: u64,
    ) -> StoreResult<()>;
}
