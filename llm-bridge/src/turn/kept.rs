//! What a user's turns leave behind in this process: the whole texts of results that were shortened, for the model to read on, and the
//! files that tools gave.
//!
//! Both are also kept in the store of conversations: the texts [beside the transcript](super::transcript) of their turn, the files for themselves. So
//! they are there after a restart, and on another server. Where a text is gone, the model is told to call the tool again.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use moka::sync::Cache;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How long something is kept that nobody of its user asks for.
const TIME_TO_IDLE: Duration = Duration::from_secs(24 * 3600);
/// The most of a result that is kept, in bytes: as JSON it mostly fits in a transcript.
const MAX_RESULT: usize = 3 << 20;
/// So much room is for the note at the end of what is kept, in bytes.
const NOTE: usize = 80;
/// How that ends.
const NOT_KEPT: &str = " more characters of the result are not kept]";

/// How much is kept.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// In bytes and entries of one user; the oldest give way.
    user: (usize, usize),
    /// In KiB of all users; those who were idle longest give way.
    total: u64,
}

const RESULTS: Bounds = Bounds { user: (16 << 20, 256), total: 128 << 10 };
const FILES: Bounds = Bounds { user: (64 << 20, 256), total: 512 << 10 };

/// What is kept, by its users.
#[derive(Debug, Clone)]
struct Kept<V: Value> {
    by_user: Cache<String, Arc<[Entry<V>]>>,
    bounds: Bounds,
}

#[derive(Debug, Clone)]
struct Entry<V> {
    id: String,
    value: V,
}

/// Something that is kept; cheap to clone.
trait Value: Clone + Send + Sync + fmt::Debug + 'static {
    /// In bytes.
    fn size(&self) -> usize;
}

impl Value for Arc<str> {
    fn size(&self) -> usize {
        self.len()
    }
}

impl<V: Value> Kept<V> {
    fn new(bounds: Bounds) -> Self {
        let size = |user: &String, kept: &Arc<[Entry<V>]>| {
            let bytes = user.len() + kept.iter().map(|kept| kept.id.len() + kept.value.size()).sum::<usize>();
            u32::try_from(bytes >> 10).unwrap_or(u32::MAX).saturating_add(1)
        };
        let by_user = Cache::builder().weigher(size).max_capacity(bounds.total);
        Self { by_user: by_user.time_to_idle(TIME_TO_IDLE).build(), bounds }
    }

    fn keep(&self, user: &str, id: &str, value: impl FnOnce() -> V) {
        self.by_user.entry(user.to_owned()).and_upsert_with(|before| {
            let before = before.map(|entry| entry.into_value()).unwrap_or_default();
            let known = before.iter().find(|kept| kept.id == id).cloned();
            let kept = known.unwrap_or_else(|| Entry { id: id.to_owned(), value: value() });
            let (mut bytes, mut count) = (kept.value.size(), 1);
            let (max_bytes, max_count) = self.bounds.user;
            let newest = before.iter().rev().filter(|other| other.id != id).take_while(|other| {
                (bytes, count) = (bytes + other.value.size(), count + 1);
                bytes <= max_bytes && count <= max_count
            });
            let mut all: Vec<Entry<V>> = newest.cloned().collect();
            all.reverse();
            all.push(kept);
            all.into()
        });
    }

    fn get(&self, user: &str, id: &str) -> Option<V> {
        let kept = self.by_user.get(user)?;
        kept.iter().find(|kept| kept.id == id).map(|kept| kept.value.clone())
    }
}

/// The first bytes of a hash, in hexadecimal digits. The same for the same content, so that what is made again is the same.
fn id_of(hash: &[u8], bytes: usize) -> String {
    hash.iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

/// What is kept of a result: all, or the beginning with a note. Of what it gives, that is all.
fn kept_of(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_RESULT {
        return Cow::Borrowed(text);
    }
    let (kept, rest) = text.split_at(text.floor_char_boundary(MAX_RESULT - NOTE));
    Cow::Owned(format!("{kept}\n[… {}{NOT_KEPT}", rest.chars().count()))
}

/// Whether a kept text is only the beginning of a result.
pub(super) fn is_beginning(text: &str) -> bool {
    text.ends_with(NOT_KEPT)
}

/// The whole texts of results that were shortened, by their users.
#[derive(Debug, Clone)]
pub(super) struct KeptResults(Kept<Arc<str>>);

impl Default for KeptResults {
    fn default() -> Self {
        Self(Kept::new(RESULTS))
    }
}

impl KeptResults {
    /// Keeps a result of a user, and gives the id that it is found by: the same for the same text, so that a prompt that is made again is
    /// the same to the byte.
    pub(super) fn keep(&self, user: &str, text: &str) -> String {
        let text = kept_of(text);
        let id = id_of(&Sha256::digest(text.as_bytes()), 6);
        self.0.keep(user, &id, || text.into());
        id
    }

    /// A result of a user.
    pub(super) fn get(&self, user: &str, id: &str) -> Option<Arc<str>> {
        self.0.get(user, id)
    }
}

/// A file in the result of a tool, also a picture or a sound.
#[derive(PartialEq, Eq, derive_more::Debug)]
pub struct ResultFile {
    /// A name to save it under.
    pub name: String,
    /// The media type, as the tool gave it.
    pub media_type: String,
    /// What is in it.
    #[debug("{} bytes", bytes.len())]
    pub bytes: Vec<u8>,
}

/// A file as the store has it.
#[derive(Serialize, Deserialize)]
struct StoredFile {
    name: String,
    media_type: String,
    base64: String,
}

impl ResultFile {
    /// The file as text.
    pub(super) fn to_stored(&self) -> Option<String> {
        let Self { name, media_type, bytes } = self;
        let (name, media_type, base64) = (name.clone(), media_type.clone(), BASE64_STANDARD.encode(bytes));
        serde_json::to_string(&StoredFile { name, media_type, base64 }).ok()
    }

    /// The file of such a text.
    pub(super) fn of_stored(text: &str) -> Option<Self> {
        let StoredFile { name, media_type, base64 } = serde_json::from_str(text).ok()?;
        Some(Self { name, media_type, bytes: BASE64_STANDARD.decode(base64).ok()? })
    }
}

impl Value for Arc<ResultFile> {
    fn size(&self) -> usize {
        self.bytes.len() + self.name.len() + self.media_type.len()
    }
}

/// The files in results, by their users.
#[derive(Debug, Clone)]
pub(super) struct KeptFiles(Kept<Arc<ResultFile>>);

impl Default for KeptFiles {
    fn default() -> Self {
        Self(Kept::new(FILES))
    }
}

impl KeptFiles {
    /// Keeps a file of a user, and gives the id that it is found by.
    pub(super) fn keep(&self, user: &str, file: ResultFile) -> String {
        let hash = Sha256::new().chain_update(&file.name).chain_update([0]).chain_update(&file.media_type);
        let hash = hash.chain_update([0]).chain_update(&file.bytes).finalize();
        let id = id_of(&hash, 16);
        self.0.keep(user, &id, || Arc::new(file));
        id
    }

    /// A file of a user.
    pub(super) fn get(&self, user: &str, id: &str) -> Option<Arc<ResultFile>> {
        self.0.get(user, id)
    }

    /// Keeps a file again that was read from the store.
    pub(super) fn put_back(&self, user: &str, id: &str, file: Arc<ResultFile>) {
        self.0.keep(user, id, || file);
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
        let ids: Vec<String> = ["a", "b", "c", "d", "ü", "e"].map(large).into();
        let kept: Vec<bool> = ids.iter().map(is_kept).collect();
        assert_eq!(kept, [false, true, true, true, true, true]);
        for id in &ids[1..] {
            let kept = results.get("ada", id).unwrap();
            assert!((MAX_RESULT - NOTE..=MAX_RESULT).contains(&kept.len()) && is_beginning(&kept));
            assert_eq!(results.keep("ada", &kept), *id, "read from the store it is the same");
        }
    }

    #[test]
    fn b19_a_file_is_kept_for_its_user_within_bounds() {
        let files = KeptFiles::default();
        let file = |name: &str, size: usize| ResultFile {
            name: name.into(),
            media_type: "text/plain".into(),
            bytes: vec![7; size],
        };
        let id = files.keep("ada", file("a", 3));
        assert_eq!((id.len(), files.keep("ada", file("a", 3)) == id), (32, true));
        assert_ne!(files.keep("ada", file("b", 3)), id);
        assert_eq!(files.get("ada", &id).unwrap().bytes, [7; 3]);
        let stored = file("ü\0", 3).to_stored().unwrap();
        assert!(!stored.contains('\0'));
        assert_eq!(ResultFile::of_stored(&stored), Some(file("ü\0", 3)));
        assert_eq!(ResultFile::of_stored("{}"), None);
        assert_eq!(files.get("bob", &id), None);
        let large: Vec<String> =
            (1..=3).map(|number| files.keep("ada", file("c", (30 << 20) + number))).collect();
        assert!(files.get("ada", &id).is_none() && files.get("ada", &large[0]).is_none());
        assert!(large[1..].iter().all(|id| files.get("ada", id).is_some()));
    }
}
