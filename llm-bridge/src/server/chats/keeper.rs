//! Keeps the answer of a turn that runs, and the claim of the turn on its chat.

use std::{sync::Arc, time::Duration};

use registry_core::{
    clock::Clock,
    store::{ChatStore, StoreError},
};
use tokio::time::timeout;

use super::{message::Kept, running::ChatId};

/// How long one attempt may take, how many there are for the end of an answer, and how long is waited between them.
const PATIENCE: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// Keeps the answer of a turn.
pub(super) struct Keeper {
    pub(super) chat: ChatId,
    pub(super) store: Arc<dyn ChatStore>,
    pub(super) clock: Arc<dyn Clock>,
    /// The name under which the turn has claimed its chat.
    pub(super) claim: String,
}

impl Keeper {
    /// Says that the turn runs, and asks whether it has to stop. A store that does not answer stops nothing.
    pub(super) async fn has_to_stop(&self) -> bool {
        let hold = self.store.hold_chat_turn(self.chat.key(), &self.claim, self.clock.now());
        match timeout(PATIENCE, hold).await {
            Ok(Ok(stops)) => stops,
            Ok(Err(cause)) => {
                tracing::warn!(%cause, "chat_turn_not_held");
                false
            }
            Err(_) => false,
        }
    }

    /// Keeps an answer; false where the store does not take it now.
    pub(super) async fn keep(&self, kept: &Kept) -> bool {
        let message = match kept.stored() {
            Ok(message) => message,
            Err(error) => {
                tracing::error!(%error, "an answer cannot be written");
                return true;
            }
        };
        let put = self.store.put_chat_message(self.chat.key(), message);
        let cause = match timeout(PATIENCE, put).await {
            // Without the message the user has deleted it.
            Ok(Ok(_)) => return true,
            Ok(Err(cause)) => cause,
            Err(_) => StoreError::unavailable("it does not answer in time"),
        };
        tracing::warn!(%cause, "chat_answer_not_kept");
        false
    }

    /// Keeps an answer that has ended, and gives up the claim.
    pub(super) async fn keep_end(&self, kept: &Kept) {
        for attempt in 1..=ATTEMPTS {
            if self.keep(kept).await {
                break;
            }
            tokio::time::sleep(PAUSE * attempt).await;
        }
        let end = self.store.end_chat_turn(self.chat.key(), &self.claim);
        match timeout(PATIENCE, end).await {
            Ok(Ok(())) => {}
            Ok(Err(cause)) => tracing::warn!(%cause, "chat_turn_not_ended"),
            Err(_) => tracing::warn!("chat_turn_not_ended"),
        }
    }
}
