//! How much is kept of conversations, and for how long.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::ConversationError;

/// How much is kept of conversations, and for how long. Sizes are those of [`StoredResponse::size`](super::StoredResponse::size).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationLimits {
    /// How long a conversation is kept after it was last used; zero keeps none.
    pub retention: Duration,
    /// The largest response that is kept, in bytes.
    pub max_response_bytes: u64,
    /// How many responses may be continued at once: as many as a conversation has turns.
    pub max_chain_responses: usize,
    /// How many bytes their messages may have.
    pub max_chain_bytes: u64,
    /// How many conversations are kept for a user; the ones that were not used for longest give way.
    pub max_user_conversations: usize,
    /// How many bytes all conversations of a user may have; the ones that were not used for longest give way.
    pub max_user_bytes: u64,
    /// How much is kept of transcripts, which are kept as long as conversations.
    pub transcripts: TranscriptLimits,
}

const MAX_FILE: u64 = 48 << 20;
const MAX_FILES: u64 = 1000;
const MAX_FILES_OF_USER: u64 = 128 << 20;
const MAX_FILES_OF_ALL: u64 = 2 << 30;

/// How much is kept of transcripts. Sizes are those of [`StoredTranscript::size`](super::StoredTranscript::size); the transcripts that
/// were not used for longest give way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptLimits {
    /// Whether any are kept.
    pub are_kept: bool,
    /// The largest transcript that is kept, in bytes.
    pub max_bytes: u64,
    /// How many bytes are put back into one conversation at most.
    pub max_read_bytes: u64,
    /// How many transcripts are kept for a user.
    pub max_user_transcripts: u64,
    /// How many bytes the transcripts of a user may have.
    pub max_user_bytes: u64,
    /// How many bytes the transcripts of all users may have, but for what has come since the last sweep: a sixteenth more.
    pub max_total_bytes: u64,
}

impl TranscriptLimits {
    /// 4 MiB a transcript, 16 MiB in one conversation; 5,000 transcripts and 64 MiB a user; 4 GiB in all.
    pub const DEFAULT: Self = Self {
        are_kept: true,
        max_bytes: 4 << 20,
        max_read_bytes: 16 << 20,
        max_user_transcripts: 5000,
        max_user_bytes: 64 << 20,
        max_total_bytes: 4 << 30,
    };

    /// Of the files of results: 48 MiB a file, which is more than a result may have; 1,000 files and 128 MiB a user; 2 GiB in all.
    pub const FILES: Self = Self {
        are_kept: true,
        max_bytes: MAX_FILE,
        max_read_bytes: MAX_FILE,
        max_user_transcripts: MAX_FILES,
        max_user_bytes: MAX_FILES_OF_USER,
        max_total_bytes: MAX_FILES_OF_ALL,
    };

    /// The limits of a user to which a store goes down where they are exceeded, so that it need not do so for each transcript.
    #[must_use]
    pub fn after_making_room(&self) -> Self {
        let left = |most: u64| most - most / 8;
        let max_user_transcripts = left(self.max_user_transcripts);
        Self { max_user_transcripts, max_user_bytes: left(self.max_user_bytes), ..*self }
    }
}

impl Default for TranscriptLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl ConversationLimits {
    /// What was last used at this time or before has expired.
    pub fn since(&self, now: Timestamp) -> Timestamp {
        let retention = SignedDuration::try_from(self.retention).unwrap_or(SignedDuration::MAX);
        now.checked_sub(retention).unwrap_or(Timestamp::MIN)
    }

    /// Whether a chain of so many responses and bytes may be continued.
    ///
    /// # Errors
    /// [`TooLong`](ConversationError::TooLong) if not.
    pub fn check_chain(&self, responses: usize, bytes: u64) -> Result<(), ConversationError> {
        let Self { max_chain_responses, max_chain_bytes, .. } = *self;
        if responses > max_chain_responses || bytes > max_chain_bytes {
            return Err(ConversationError::TooLong {
                responses: max_chain_responses,
                bytes: max_chain_bytes,
            });
        }
        Ok(())
    }
}

impl Default for ConversationLimits {
    /// 30 days; 4 MiB a response; chains of 1,000 responses and 32 MiB; 2,000 conversations and 256 MiB a user; transcripts as [`TranscriptLimits::DEFAULT`].
    fn default() -> Self {
        Self {
            retention: Duration::from_secs(30 * 24 * 3600),
            max_response_bytes: 4 << 20,
            max_chain_responses: 1000,
            max_chain_bytes: 32 << 20,
            max_user_conversations: 2000,
            max_user_bytes: 256 << 20,
            transcripts: TranscriptLimits::DEFAULT,
        }
    }
}
