//! Pictures in the results of tools: what a model gets of them.
//!
//! They are parts of the result, scaled to what models look at, and each API carries them as it can; see
//! [`move_media_behind_results`](toolrack_apis::move_media_behind_results). What a model does not get is described to it: what it is, how large, and why
//! it is not there. What the user has sent is left alone.

mod asking;
mod describe;
mod returned;
mod scale;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use toolrack_apis::{Content, Media, MediaKind, MediaSource, Message, Part};

pub(super) use asking::PictureLimit;
pub(super) use describe::count;
pub(crate) use describe::{has_pictures_of_user, without_pictures, write_within};
pub(super) use returned::text_and_pictures;
pub(super) use scale::BASE64;
use scale::Scaled;

/// How long a picture may wait to be scaled and be scaled. What is too large for that is refused before.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many pictures are scaled at once: each may take [`scale::MAX_MEMORY`].
const AT_ONCE: usize = 2;
/// How many bytes of scaled pictures are kept for the next request with the same, as clients send all of a conversation each time.
const KEPT_BYTES: u64 = 32 << 20;
/// How long they may rest.
const KEPT: Duration = Duration::from_secs(3600);

/// Makes pictures fit for models.
#[derive(Debug, Clone)]
pub(super) struct Pictures {
    /// By a hash of the picture and its bound.
    scaled: Cache<[u8; 32], Scaled>,
    at_once: Arc<Semaphore>,
}

impl Default for Pictures {
    fn default() -> Self {
        let weigh = |_: &[u8; 32], scaled: &Scaled| u32::try_from(scaled.size() + 128).unwrap_or(u32::MAX);
        let scaled = Cache::builder().weigher(weigh).max_capacity(KEPT_BYTES).time_to_idle(KEPT).build();
        Self { scaled, at_once: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Pictures {
    /// Scales the pictures in the results among these messages to `max_edge` pixels. Those before the last `most` are described, and so is
    /// what is no picture.
    pub(super) async fn fit(&self, messages: &mut [Message], most: usize, max_edge: u32) {
        let mut older = count(messages).saturating_sub(most);
        let results = messages.iter_mut().flat_map(|message| &mut message.parts);
        for result in results.filter_map(|part| match &mut part.content {
            Content::Result(result) => Some(result),
            _ => None,
        }) {
            let mut has_changed = false;
            for Part { content, .. } in &mut result.parts {
                let Content::Media(media) = content else { continue };
                if !describe::is_counted(media) {
                    continue;
                }
                let fitted = if older > 0 {
                    older -= 1;
                    Some(Content::Text(describe::as_older(media, most)))
                } else {
                    self.fitted(media, max_edge).await
                };
                if let Some(fitted) = fitted {
                    (*content, has_changed) = (fitted, true);
                }
            }
            if has_changed {
                describe::join_texts(&mut result.parts);
            }
        }
    }

    /// What stands for a medium; `None` for itself.
    async fn fitted(&self, media: &Media, max_edge: u32) -> Option<Content> {
        match (media.kind, &media.source) {
            (MediaKind::Image, MediaSource::Data(_)) => {
                let late = media.description(None, "it could not be scaled in time");
                match self.scaled(media.clone(), max_edge).await {
                    Some(scaled) => scaled.content(media),
                    None => Some(Content::Text(late)),
                }
            }
            // The model server may fetch it.
            (MediaKind::Image, MediaSource::Url(_)) => None,
            _ => Some(Content::Text(media.description(None, "models get pictures and text of results"))),
        }
    }

    /// Scales a picture beside the runtime; `None` where that takes too long.
    async fn scaled(&self, media: Media, max_edge: u32) -> Option<Scaled> {
        let scaling = async {
            let permit = Arc::clone(&self.at_once).acquire_owned().await.ok()?;
            let kept = self.scaled.clone();
            let scale = move || {
                let _permit = permit;
                let MediaSource::Data(data) = &media.source else { return None };
                let said = media.media_type.as_deref().unwrap_or_default();
                let hash = Sha256::new().chain_update(max_edge.to_le_bytes());
                let hash = hash.chain_update(said).chain_update([0]).chain_update(data).finalize();
                Some(kept.get_with(hash.into(), || scale::scale(data, said, max_edge)))
            };
            tokio::task::spawn_blocking(scale).await.ok().flatten()
        };
        tokio::time::timeout(PATIENCE, scaling).await.ok().flatten()
    }
}
