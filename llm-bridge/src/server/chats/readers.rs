//! Who reads the events of a turn: so many at once, and what is large is made once for all of them.

use std::{collections::HashMap, sync::Arc};

use axum::{body::Bytes, http::StatusCode};
use parking_lot::{Mutex, MutexGuard};

use super::{
    message::Shown,
    running::{ChatId, frame},
};
use crate::server::requests::api_error::ApiError;

/// How many may read the events of a chat's turn at once.
const MAX_READERS: usize = 16;

/// The readers of all turns, by chat.
#[derive(Debug, Clone, Default)]
pub(super) struct Readers(Arc<Mutex<HashMap<ChatId, usize>>>);

/// One that reads, as long as it does.
#[derive(Debug)]
pub(super) struct Reader {
    readers: Readers,
    chat: ChatId,
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, HashMap<ChatId, usize>> {
        self.0.lock()
    }

    /// Another reader of a chat's turn.
    ///
    /// # Errors
    /// 429 where there are as many as may be.
    pub(super) fn enter(&self, chat: ChatId) -> Result<Reader, ApiError> {
        let mut all = self.lock();
        let readers = all.entry(chat.clone()).or_default();
        if *readers >= MAX_READERS {
            let message = format!(
                "{MAX_READERS} requests read the turn of this chat already; close some, or read the chat itself from time to time"
            );
            let many = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message);
            return Err(many.retry_after(1));
        }
        *readers += 1;
        drop(all);
        Ok(Reader { readers: self.clone(), chat })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut all = self.readers.lock();
        if let Some(readers) = all.get_mut(&self.chat) {
            *readers -= 1;
            if *readers == 0 {
                all.remove(&self.chat);
            }
        }
    }
}

/// A frame with a whole message, with its position.
#[derive(Debug)]
pub(super) struct Shared {
    event: &'static str,
    made: tokio::sync::Mutex<Option<(u64, Bytes)>>,
}

impl Shared {
    pub(super) fn new(event: &'static str) -> Self {
        Self { event, made: tokio::sync::Mutex::default() }
    }

    /// The frame at this position or a later one: the one that is there, or that of the message as it is now, made beside the runtime.
    pub(super) async fn at_least(
        &self,
        least: u64,
        now: impl FnOnce() -> (Shown, u64),
    ) -> Option<(u64, Bytes)> {
        let mut made = self.made.lock().await;
        if let Some(made) = made.as_ref().filter(|(position, _)| *position >= least) {
            return Some(made.clone());
        }
        let ((shown, position), event) = (now(), self.event);
        let bytes = tokio::task::spawn_blocking(move || frame(Some(position), event, &shown)).await.ok()?;
        *made = Some((position, bytes.into()));
        made.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(user: &str) -> ChatId {
        ChatId { tenant: "default".into(), user: user.into(), id: "chat_1".into() }
    }

    #[test]
    fn a25_so_many_read_a_turn_and_no_more() {
        let readers = Readers::default();
        let mut held: Vec<Reader> = (0..MAX_READERS).map(|_| readers.enter(chat("ada")).unwrap()).collect();
        let refused = readers.enter(chat("ada")).unwrap_err();
        assert!(format!("{refused:?}").contains("close some"), "{refused:?}");
        let other = readers.enter(chat("eve")).unwrap();
        held.pop();
        held.push(readers.enter(chat("ada")).unwrap());
        drop((held, other));
        assert!(readers.lock().is_empty());
    }
}
