//! What was left out of long results, for the model to read on.
//!
//! It is kept in this process: the store of conversations has what the model was given, which is all that a conversation needs to go on.
//! After a restart, and on another server, the model is told to call the tool again.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use sha2::{Digest, Sha256};

/// How long something is kept that nobody of its user asks for.
const TIME_TO_IDLE: Duration = Duration::from_secs(24 * 3600);
/// The most of a result that is kept, in bytes.
const MAX_RESULT: usize = 4 << 20;
/// How much is kept for a user, in bytes and results; the oldest give way.
const MAX_USER: (usize, usize) = (16 << 20, 256);
/// How much is kept of all users, in KiB; those who were idle longest give way.
const MAX_TOTAL: u64 = 128 << 10;

/// The whole texts of results that were shortened, by their users.
#[derive(Debug, Clone)]
pub(super) struct KeptResults(Cache<String, Arc<[Kept]>>);

#[derive(Debug, Clone)]
struct Kept {
    id: String,
    text: Arc<str>,
}

impl Default for KeptResults {
    fn default() -> Self {
        let size = |user: &String, kept: &Arc<[Kept]>| {
            let bytes = user.len() + kept.iter().map(|kept| kept.id.len() + kept.text.len()).sum::<usize>();
            u32::try_from(bytes >> 10).unwrap_or(u32::MAX).saturating_add(1)
        };
        Self(Cache::builder().weigher(size).max_capacity(MAX_TOTAL).time_to_idle(TIME_TO_IDLE).build())
    }
}

impl KeptResults {
    /// Keeps a result of a user, and gives the id that it is found by: the same for the same text, so that a prompt that is made again is
    /// the same to the byte.
    pub(super) fn keep(&self, user: &str, text: &str) -> String {
        let text = text.get(..text.floor_char_boundary(MAX_RESULT)).unwrap_or_default();
        let digest = Sha256::digest(text);
        let id: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        self.0.entry(user.to_owned()).and_upsert_with(|before| {
            let before = before.map(|entry| entry.into_value()).unwrap_or_default();
            let known = before.iter().find(|kept| kept.id == id).cloned();
            let kept = known.unwrap_or_else(|| Kept { id: id.clone(), text: text.into() });
            let (mut bytes, mut count) = (kept.text.len(), 1);
            let (max_bytes, max_count) = MAX_USER;
            let newest = before.iter().rev().filter(|other| other.id != id).take_while(|other| {
                (bytes, count) = (bytes + other.text.len(), count + 1);
                bytes <= max_bytes && count <= max_count
            });
            let mut all: Vec<Kept> = newest.cloned().collect();
            all.reverse();
            all.push(kept);
            all.into()
        });
        id
    }

    /// A result of a user.
    pub(super) fn get(&self, user: &str, id: &str) -> Option<Arc<str>> {
        let kept = self.0.get(user)?;
        kept.iter().find(|kept| kept.id == id).map(|kept| Arc::clone(&kept.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b11_a_result_is_kept_for_its_user_under_one_id() {
        let results = KeptResults::default();
        let id = results.keep("ada", "long");
        assert_eq!(results.keep("ada", "long"), id);
        assert_eq!(results.get("ada", &id).as_deref(), Some("long"));
        assert_eq!(results.get("bob", &id), None);
        assert_eq!(results.get("ada", "0"), None);
    }

    #[test]
    fn a2_what_is_kept_of_a_user_has_bounds() {
        let results = KeptResults::default();
        let ids: Vec<String> = (0..300).map(|number| results.keep("ada", &number.to_string())).collect();
        let is_kept = |id: &String| results.get("ada", id).is_some();
        assert!(ids[..44].iter().all(|id| !is_kept(id)) && ids[44..].iter().all(is_kept));
        let large = |letter: &str| results.keep("ada", &letter.repeat(5 << 20));
        let ids: Vec<String> = ["a", "b", "c", "d", "e"].map(large).into();
        let kept: Vec<bool> = ids.iter().map(is_kept).collect();
        assert_eq!(kept, [false, true, true, true, true]);
        assert_eq!(results.get("ada", &ids[4]).unwrap().len(), MAX_RESULT);
    }
}
