//! Keeps the manifests of modules for an hour, so that a start does not have to ask every module, and for good what must not be
//! forgotten with them.

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::StoreResult;

/// How long a manifest is kept.
pub const MANIFEST_TTL: Duration = Duration::from_secs(3600);

/// What is kept of a module without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kept {
    /// The last manifest that was good, for a start while the module is away.
    LastGood,
    /// What was accepted of its tools.
    Accepted,
}

impl Kept {
    /// The word for it in keys.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Keeps manifests, as JSON texts, by the names of their modules. What it has forgotten, or cannot give, is asked for anew.
#[async_trait]
pub trait ManifestCache: Send + Sync {
    /// The manifest, where it was put in within [`MANIFEST_TTL`].
    async fn get(&self, module: &str) -> StoreResult<Option<String>>;

    /// Keeps a manifest in place of the one before.
    async fn put(&self, module: &str, manifest: &str) -> StoreResult<()>;
}

/// Keeps what must not be forgotten of modules, as JSON texts by their names. What it acknowledges it has kept. That it cannot be read
/// is not taken for nothing.
#[async_trait]
pub trait ManifestStore: Send + Sync {
    /// What was kept last.
    async fn kept(&self, module: &str, what: Kept) -> StoreResult<Option<String>>;

    /// Keeps a text in place of the one before.
    async fn keep(&self, module: &str, what: Kept, text: &str) -> StoreResult<()>;
}

/// Keeps all of it in memory, until the process ends.
#[derive(Debug, Default)]
pub struct MemoryManifests {
    /// With the time until which each is kept.
    by_module: Mutex<HashMap<String, (Instant, String)>>,
    kept: Mutex<HashMap<(String, Kept), String>>,
}

#[async_trait]
impl ManifestCache for MemoryManifests {
    async fn get(&self, module: &str) -> StoreResult<Option<String>> {
        let known = self.by_module.lock().get(module).cloned();
        let fresh = known.filter(|(until, _)| Instant::now() < *until).map(|(_, manifest)| manifest);
        Ok(fresh)
    }

    async fn put(&self, module: &str, manifest: &str) -> StoreResult<()> {
        let now = Instant::now();
        let mut by_module = self.by_module.lock();
        by_module.retain(|_, (until, _)| now < *until);
        by_module.insert(module.to_owned(), (now + MANIFEST_TTL, manifest.to_owned()));
        Ok(())
    }
}

#[async_trait]
impl ManifestStore for MemoryManifests {
    async fn kept(&self, module: &str, what: Kept) -> StoreResult<Option<String>> {
        let kept = self.kept.lock();
        let text = kept.get(&(module.to_owned(), what)).cloned();
        Ok(text)
    }

    async fn keep(&self, module: &str, what: Kept, text: &str) -> StoreResult<()> {
        let mut kept = self.kept.lock();
        kept.insert((module.to_owned(), what), text.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_manifest_is_kept_for_an_hour() {
        let cache = MemoryManifests::default();
        cache.put("mail", "{}").await.unwrap();
        assert_eq!(cache.get("mail").await.unwrap().as_deref(), Some("{}"));
        assert_eq!(cache.get("calendar").await.unwrap(), None);
        tokio::time::advance(MANIFEST_TTL).await;
        assert_eq!(cache.get("mail").await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_is_kept_without_an_end() {
        let cache = MemoryManifests::default();
        cache.keep("mail", Kept::LastGood, "{}").await.unwrap();
        tokio::time::advance(100 * MANIFEST_TTL).await;
        assert_eq!(cache.kept("mail", Kept::LastGood).await.unwrap().as_deref(), Some("{}"));
        assert_eq!(cache.kept("mail", Kept::Accepted).await.unwrap(), None);
        assert_eq!(cache.kept("calendar", Kept::LastGood).await.unwrap(), None);
    }
}
