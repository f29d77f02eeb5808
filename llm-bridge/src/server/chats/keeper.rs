//! Keeps the answer of a turn that runs, and the claim of the turn on its chat.

use std::{convert::Infallible, sync::Arc, time::Duration};

use registry_core::{
    clock::Clock,
    store::{ChatMessage, ChatStore, StoreError},
};
use tokio::{
    sync::{Notify, Semaphore},
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};

use super::{
    kept_message::Kept,
    running::{ChatId, Live},
};

/// How often the answer is kept at most, while it grows.
const KEPT_EVERY: Duration = Duration::from_secs(1);
/// How often a turn says that it runs, and asks whether it has to stop.
const HELD_EVERY: Duration = Duration::from_secs(2);
/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long is tried to keep an answer that has ended: longer than a database takes to start again.
const TRIED_FOR: Duration = Duration::from_secs(300);
/// The same where there is no room to hold it as long.
const TRIED_WITHOUT_ROOM: Duration = Duration::from_secs(3);
/// How long is waited before the second attempt, and then before each at most.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How many bytes of answers may be held so.
const MAX_UNKEPT: usize = 256 << 20;

/// Room for answers that have ended while the store does not take them, in bytes.
#[derive(Debug, Clone)]
pub(super) struct Unkept(Arc<Semaphore>);

impl Default for Unkept {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_UNKEPT)))
    }
}

/// Keeps the answer of a turn.
pub(super) struct Keeper {
    pub(super) chat: ChatId,
    pub(super) store: Arc<dyn ChatStore>,
    pub(super) clock: Arc<dyn Clock>,
    /// The name under which the turn has claimed its chat.
    pub(super) claim: String,
}

impl Keeper {
    /// Says again and again that the turn runs, until it has to stop.
    pub(super) async fn hold_until_told_to_stop(&self) {
        loop {
            sleep(HELD_EVERY).await;
            if self.has_to_stop().await {
                return;
            }
        }
    }

    /// Keeps the answer again and again as it grows, and at once where it is `to_be_kept`.
    pub(super) async fn keep_as_it_grows(&self, live: &Live, to_be_kept: &Notify) -> Infallible {
        let (mut kept, mut pause) = (0, KEPT_EVERY);
        loop {
            let _ = timeout(pause, to_be_kept.notified()).await;
            let began = Instant::now();
            let (shown, position) = live.so_far();
            if position != kept {
                self.keep(Kept { shown, said: Vec::new(), found: Vec::new() }).await;
                kept = position;
            }
            // A long answer takes longer to be kept, and is kept less often.
            pause = KEPT_EVERY.max(began.elapsed() * 10);
        }
    }

    /// Says that the turn runs, and asks whether it has to stop. A store that does not answer stops nothing.
    async fn has_to_stop(&self) -> bool {
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

    async fn keep(&self, kept: Kept) {
        if let Some(message) = written(kept).await {
            self.put(message).await;
        }
    }

    /// Keeps a message; false where the store does not take it now.
    async fn put(&self, message: ChatMessage) -> bool {
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

    /// Keeps a message as soon as the store takes it; false where it takes too long.
    async fn put_at_last(&self, message: ChatMessage, unkept: &Unkept) -> bool {
        if self.put(message.clone()).await {
            return true;
        }
        let room = unkept.0.try_acquire_many(u32::try_from(message.size()).unwrap_or(u32::MAX));
        let tried_for = if room.is_ok() { TRIED_FOR } else { TRIED_WITHOUT_ROOM };
        let (began, mut pause) = (Instant::now(), PAUSE);
        while began.elapsed() < tried_for {
            sleep(pause).await;
            if self.put(message.clone()).await {
                return true;
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
        false
    }

    /// Keeps an answer that has ended, and gives up the claim.
    pub(super) async fn keep_end(&self, kept: Kept, unkept: &Unkept) {
        if let Some(message) = written(kept).await
            && !self.put_at_last(message, unkept).await
        {
            tracing::error!(chat = self.chat.id, "chat_answer_lost");
        }
        let end = self.store.end_chat_turn(self.chat.key(), &self.claim);
        match timeout(PATIENCE, end).await {
            Ok(Ok(())) => {}
            Ok(Err(cause)) => tracing::warn!(%cause, "chat_turn_not_ended"),
            Err(_) => tracing::warn!("chat_turn_not_ended"),
        }
    }
}

/// The message for the store, made beside the runtime.
async fn written(kept: Kept) -> Option<ChatMessage> {
    let stored = spawn_blocking(move || kept.stored()).await.ok()?;
    stored.inspect_err(|error| tracing::error!(%error, "an answer cannot be written")).ok()
}

#[cfg(test)]
#[allow(unreachable_pub)]
#[path = "../../../tests/bridge/support/chats.rs"]
mod kept_in_memory;

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use jiff::Timestamp;
    use registry_core::clock::SystemClock;

    use super::*;
    use crate::server::chats::message::{By, Shown};

    #[tokio::test]
    async fn a25_an_answer_is_written_beside_the_runtime() {
        let chat = ChatId { tenant: "default".into(), user: "ada".into(), id: "chat_1".into() };
        let store = kept_in_memory::Chats::in_memory();
        let keeper = Keeper { chat, store, clock: Arc::new(SystemClock), claim: "msg_1:turn_1".into() };
        let shown = Shown::begun("msg_1".into(), None, By::Assistant, Timestamp::now());
        let (kept, unkept) = (Kept { shown, said: Vec::new(), found: Vec::new() }, Unkept::default());
        let mut keeping = std::pin::pin!(keeper.keep_end(kept, &unkept));
        assert!(keeping.as_mut().now_or_never().is_none(), "the store takes it at once");
        keeping.await;
    }
}
