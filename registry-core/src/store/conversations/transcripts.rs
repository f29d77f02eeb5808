//! What the model wrote in a turn, with calls and results that the client did not see, kept until the conversation goes on.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::{ROW_BYTES, TranscriptLimits};

/// What is kept in the shape of a transcript: each shelf has limits of its own, and is searched by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shelf {
    /// Transcripts.
    Transcripts,
    /// Files of results: the messages are the file.
    Files,
}

/// What the model wrote in a turn, with calls and results that the client did not see. It is found by a hash of the conversation that
/// the client did see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTranscript {
    /// The tenant.
    pub tenant: String,
    /// The user whose it is. Nobody else finds it.
    pub user: String,
    /// What it is found by.
    pub key: String,
    /// What it is found by as well: the same as `key` where there is nothing else.
    pub other_key: String,
    /// The messages, as JSON text that a store does not look into.
    pub messages: Arc<str>,
    /// When it was last used (UTC).
    pub used_at: Timestamp,
}

impl StoredTranscript {
    /// What it counts towards the limits, in bytes: its texts, and 1 KiB for the rest.
    pub fn size(&self) -> u64 {
        let Self { tenant, user, key, other_key, messages, used_at: _ } = self;
        let texts = [tenant, user, key, other_key, &**messages].map(|text: &str| text.len());
        texts
            .iter()
            .map(|bytes| u64::try_from(*bytes).unwrap_or(u64::MAX))
            .fold(ROW_BYTES, u64::saturating_add)
    }

    fn has_any(&self, keys: &[String]) -> bool {
        keys.iter().any(|key| *key == self.key || *key == self.other_key)
    }
}

/// The transcripts of all users in memory, by tenant and user.
#[derive(Debug, Default)]
pub(in crate::store) struct MemoryTranscripts {
    by_owner: BTreeMap<(String, String), HashMap<String, StoredTranscript>>,
}

impl MemoryTranscripts {
    pub(in crate::store) fn keep(
        &mut self,
        transcript: StoredTranscript,
        since: Timestamp,
        limits: &TranscriptLimits,
    ) {
        self.retain(|kept| kept.used_at > since);
        let owned = self.by_owner.entry((transcript.tenant.clone(), transcript.user.clone())).or_default();
        let keys = [transcript.key.clone(), transcript.other_key.clone()];
        owned.retain(|_, kept| !kept.has_any(&keys));
        owned.insert(transcript.key.clone(), transcript);
        let beyond = |limits: &TranscriptLimits| {
            beyond(owned.values(), limits.max_user_transcripts, limits.max_user_bytes)
        };
        let beyond = if beyond(limits).is_empty() { Vec::new() } else { beyond(&limits.after_making_room()) };
        beyond.iter().for_each(|(_, _, key)| drop(owned.remove(key)));
    }

    pub(in crate::store) fn find(
        &self,
        tenant: &str,
        user: &str,
        keys: &[String],
        since: Timestamp,
        limits: &TranscriptLimits,
    ) -> Vec<StoredTranscript> {
        let owned = self.by_owner.get(&(tenant.to_owned(), user.to_owned()));
        let keys: HashSet<&String> = keys.iter().collect();
        let is_found = |kept: &&StoredTranscript| {
            kept.used_at > since && (keys.contains(&kept.key) || keys.contains(&kept.other_key))
        };
        let found: Vec<&StoredTranscript> =
            owned.into_iter().flat_map(HashMap::values).filter(is_found).collect();
        let beyond = beyond(found.iter().copied(), u64::MAX, limits.max_read_bytes);
        let beyond: HashSet<&String> = beyond.iter().map(|(_, _, key)| key).collect();
        let is_read = |kept: &&&StoredTranscript| !beyond.contains(&kept.key);
        found.iter().filter(is_read).copied().cloned().collect()
    }

    pub(in crate::store) fn note_use(&mut self, tenant: &str, user: &str, keys: &[String], now: Timestamp) {
        let owned = self.by_owner.get_mut(&(tenant.to_owned(), user.to_owned()));
        let used = owned.into_iter().flat_map(HashMap::values_mut).filter(|kept| kept.has_any(keys));
        used.for_each(|kept| kept.used_at = now);
    }

    pub(in crate::store) fn delete(&mut self, tenant: &str, user: &str, keys: &[String]) {
        if let Some(owned) = self.by_owner.get_mut(&(tenant.to_owned(), user.to_owned())) {
            owned.retain(|_, kept| !kept.has_any(keys));
        }
    }

    /// Gives how many there were.
    pub(in crate::store) fn delete_of(&mut self, tenant: &str, user: &str) -> usize {
        self.by_owner.remove(&(tenant.to_owned(), user.to_owned())).map_or(0, |owned| owned.len())
    }

    pub(in crate::store) fn sweep(&mut self, since: Timestamp, max_total_bytes: u64) {
        self.retain(|kept| kept.used_at > since);
        let beyond = beyond(self.by_owner.values().flat_map(HashMap::values), u64::MAX, max_total_bytes);
        for (tenant, user, key) in beyond {
            if let Some(owned) = self.by_owner.get_mut(&(tenant, user)) {
                owned.remove(&key);
            }
        }
    }

    fn retain(&mut self, keeps: impl Fn(&StoredTranscript) -> bool) {
        self.by_owner.retain(|_, owned| {
            owned.retain(|_, kept| keeps(kept));
            !owned.is_empty()
        });
    }
}

/// Tenant, user and key of the transcripts beyond so many or so many bytes, if those that were used last come first.
fn beyond<'t>(
    transcripts: impl Iterator<Item = &'t StoredTranscript>,
    max: u64,
    max_bytes: u64,
) -> Vec<(String, String, String)> {
    let mut newest: Vec<&StoredTranscript> = transcripts.collect();
    newest.sort_by(|one, other| (other.used_at, &other.key).cmp(&(one.used_at, &one.key)));
    let mut bytes = 0_u64;
    let is_beyond = |(at, kept): (u64, &StoredTranscript)| {
        bytes = bytes.saturating_add(kept.size());
        (at >= max || bytes > max_bytes).then(|| (kept.tenant.clone(), kept.user.clone(), kept.key.clone()))
    };
    (0..).zip(newest).filter_map(is_beyond).collect()
}
