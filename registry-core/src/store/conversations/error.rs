//! Why a conversation cannot be kept or continued.

use crate::store::StoreError;

/// Why a conversation cannot be kept or continued. The texts are for the user, but for that of [`Store`](Self::Store).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConversationError {
    /// There is none of that id among the user's responses, or one before it is missing.
    #[error(
        "there is no such response: it was deleted or has expired, or belongs to another user; send the messages of the whole conversation instead"
    )]
    Unknown,
    /// Too much comes before.
    #[error(
        "the conversation is too long to be continued: more than {responses} responses or {bytes} bytes; begin a new one with the messages that are needed"
    )]
    TooLong {
        /// The largest number of responses in a chain.
        responses: usize,
        /// The largest number of bytes in a chain.
        bytes: u64,
    },
    /// The response is too large to be kept.
    #[error("the response has {bytes} bytes, and none of more than {max} is kept")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The largest one that is kept.
        max: u64,
    },
    /// The conversation has as much as is kept for one user.
    #[error(
        "the conversation has all of the {max} bytes that are kept for a user; begin a new one, or delete responses of this one"
    )]
    Full {
        /// What is kept for one user.
        max: u64,
    },
    /// No conversations are kept here.
    #[error("this server keeps no conversations; send the messages of the whole conversation instead")]
    Disabled,
    /// The store failed. The text is for the operator.
    #[error(transparent)]
    Store(#[from] StoreError),
}
