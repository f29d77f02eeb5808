//! What the log says of keys that open nothing: somebody tries some, or a client has one that was revoked.

use std::time::Duration;

use parking_lot::Mutex;
use registry_core::store::KEY_PREFIX;
use tokio::time::Instant;

/// So many are said within a time, and how many others there were when the next one is.
const MOST: u32 = 10;
const WITHIN: Duration = Duration::from_secs(60);
/// How many characters of a key are said behind those that all have: they tell one from another, and open nothing.
const SHOWN: usize = 4;

/// The keys that a server has refused.
#[derive(Default)]
pub(in crate::server) struct RefusedKeys(Mutex<Refused>);

#[derive(Default)]
struct Refused {
    began: Option<Instant>,
    said: u32,
    unsaid: u64,
}

impl Refused {
    /// How many have not been said before this one, if this one is to be.
    fn next(&mut self, now: Instant) -> Option<u64> {
        if self.began.is_none_or(|began| now - began >= WITHIN) {
            (self.began, self.said) = (Some(now), 0);
        }
        if self.said == MOST {
            self.unsaid += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.unsaid))
    }
}

impl RefusedKeys {
    /// Logs a key that was refused.
    pub(in crate::server) fn log(&self, key: &str) {
        if let Some(others) = self.0.lock().next(Instant::now()) {
            tracing::warn!(key = shown(key), others, "key_refused");
        }
    }
}

/// The beginning of a key. What is none of this server's may open something elsewhere, so nothing of it is said.
fn shown(key: &str) -> String {
    match key.strip_prefix(KEY_PREFIX) {
        Some(rest) => format!(
            "{KEY_PREFIX}{}…",
            rest.chars().take(SHOWN).filter(char::is_ascii_alphanumeric).collect::<String>()
        ),
        None => "not of this server".to_owned(),
    }
}
