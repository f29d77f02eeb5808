//! What is kept of conversations.

use std::time::Duration;

use registry_core::store::{ConversationLimits, TranscriptLimits};
use serde::{Deserialize, Serialize};

/// What is kept of conversations: those that clients continue by the id of a response, and what clients have not seen of the others.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConversationSettings {
    /// How long a conversation is kept after its last use, in days; 0 keeps none.
    pub retention_days: u32,
    /// How many conversations of a user are kept.
    pub max_conversations: u32,
    /// How much is kept for a user, in MiB.
    pub max_mebibytes: u32,
    /// Whether transcripts are kept: calls and results that the client has not seen, for when it goes on.
    pub transcripts: bool,
    /// How much is kept of the transcripts of a user, in MiB.
    pub max_transcript_mebibytes: u32,
    /// How much is kept of the transcripts of all users, in MiB.
    pub max_total_transcript_mebibytes: u32,
}

impl ConversationSettings {
    /// The limits of the store.
    pub fn limits(&self) -> ConversationLimits {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        ConversationLimits {
            retention: DAY.saturating_mul(self.retention_days),
            max_user_conversations: usize::try_from(self.max_conversations).unwrap_or(usize::MAX),
            max_user_bytes: u64::from(self.max_mebibytes) << 20,
            transcripts: TranscriptLimits {
                are_kept: self.transcripts,
                max_user_bytes: u64::from(self.max_transcript_mebibytes) << 20,
                max_total_bytes: u64::from(self.max_total_transcript_mebibytes) << 20,
                ..TranscriptLimits::DEFAULT
            },
            ..ConversationLimits::default()
        }
    }

    /// Checks values that parse but are invalid.
    pub(super) fn check(&self) -> Result<(), String> {
        let conversations = "`retention_days = 0` to keep no conversations";
        let transcripts = "`transcripts = false` to keep no transcripts";
        for (key, value, off) in [
            ("max_conversations", self.max_conversations, conversations),
            ("max_mebibytes", self.max_mebibytes, conversations),
            ("max_transcript_mebibytes", self.max_transcript_mebibytes, transcripts),
            ("max_total_transcript_mebibytes", self.max_total_transcript_mebibytes, transcripts),
        ] {
            if value == 0 {
                return Err(format!(
                    "conversations.{key}: 0 leaves room for none; write 1 or more, or {off}"
                ));
            }
        }
        Ok(())
    }
}

impl Default for ConversationSettings {
    fn default() -> Self {
        Self {
            retention_days: 30,
            max_conversations: 2000,
            max_mebibytes: 256,
            transcripts: true,
            max_transcript_mebibytes: 64,
            max_total_transcript_mebibytes: 4096,
        }
    }
}
