//! Keeps the manifests of modules for an hour, so that a start does not have to ask every module, and for good what must not be
//! forgotten with them.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::StoreFuture;

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
pub trait ManifestCache: Send + Sync {
    /// The manifest, where it was put in within [`MANIFEST_TTL`].
    fn get<'a>(&'a self, module: &'a str) -> StoreFuture<'a, Option<String>>;

    /// Keeps a manifest in place of the one before.
    fn put<'a>(&'a self, module: &'a str, manifest: &'a str) -> StoreFuture<'a, ()>;
}

/// Keeps what must not be forgotten of modules, as JSON texts by their names. What it acknowledges it has kept. That it cannot be read
/// is not taken for nothing.
pub trait ManifestStore: Send + Sync {
    /// What was kept last.
    fn kept<'a>(&'a self, module: &'a str, what: Kept) -> StoreFuture<'a, Option<String>>;

    /// Keeps a text in place of the one before.
    fn keep<'a>(&'a self, module: &'a str, what: Kept, text: &'a str) -> StoreFuture<'a, ()>;
}

/// Keeps all of it in memory, until the process ends.
#[derive(Debug, Default)]
pub struct MemoryManifests {
    /// With the time until which each is kept.
    by_module: Mutex<HashMap<String, (Instant, String)>>,
    kept: Mutex<HashMap<(String, Kept), String>>,
}

impl ManifestCache for MemoryManifests {
    fn get<'a>(&'a self, module: &'a str) -> StoreFuture<'a, Option<String>> {
        let known = self.by_module.lock().get(module).cloned();
        let fresh = known.filter(|(until, _)| Instant::now() < *until).map(|(_, manifest)| manifest);
        Box::pin(std::future::ready(Ok(fresh)))
    }

    fn put<'a>(&'a self, module: &'a str, manifest: &'a str) -> StoreFuture<'a, ()> {
        let now = Instant::now();
        let mut by_module = self.by_module.lock();
        by_module.retain(|_, (until, _)| now < *until);
        by_module.insert(module.to_owned(), (now + MANIFEST_TTL, manifest.to_owned()));
        Box::pin(std::future::ready(Ok(())))
    }
}

impl ManifestStore for MemoryManifests {
    fn kept<'a>(&'a self, module: &'a str, what: Kept) -> StoreFuture<'a, Option<String>> {
        let kept = self.kept.lock();
        let text = kept.get(&(module.to_owned(), what)).cloned();
        Box::pin(std::future::ready(Ok(text)))
    }

    fn keep<'a>(&'a self, module: &'a str, what: Kept, text: &'a str) -> StoreFuture<'a, ()> {
        let mut kept = self.kept.lock();
        kept.insert((module.to_owned(), what), text.to_owned());
        Box::pin(std::future::ready(Ok(())))
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
