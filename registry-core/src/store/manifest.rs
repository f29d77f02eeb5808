//! Keeps the manifests of modules for an hour, so that a start does not have to ask every module.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::StoreError;
use crate::execute::BoxFuture;

/// How long a manifest is kept.
pub const MANIFEST_TTL: Duration = Duration::from_secs(3600);

/// Keeps manifests, as JSON texts, by the names of their modules. What it has forgotten is asked for anew.
pub trait ManifestCache: Send + Sync {
    /// The manifest, where it was put in within [`MANIFEST_TTL`].
    ///
    /// # Errors
    /// A text for the operator. Whoever asks does without.
    fn get<'a>(&'a self, module: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// Keeps a manifest in place of the one before.
    ///
    /// # Errors
    /// A text for the operator.
    fn put<'a>(&'a self, module: &'a str, manifest: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Keeps manifests in memory.
#[derive(Debug, Default)]
pub struct MemoryManifests {
    /// With the time until which each is kept.
    by_module: Mutex<HashMap<String, (Instant, String)>>,
}

impl ManifestCache for MemoryManifests {
    fn get<'a>(&'a self, module: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let known = self.by_module.lock().unwrap_or_else(PoisonError::into_inner).get(module).cloned();
        let fresh = known.filter(|(until, _)| Instant::now() < *until).map(|(_, manifest)| manifest);
        Box::pin(std::future::ready(Ok(fresh)))
    }

    fn put<'a>(&'a self, module: &'a str, manifest: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let now = Instant::now();
        let mut by_module = self.by_module.lock().unwrap_or_else(PoisonError::into_inner);
        by_module.retain(|_, (until, _)| now < *until);
        by_module.insert(module.to_owned(), (now + MANIFEST_TTL, manifest.to_owned()));
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
}
