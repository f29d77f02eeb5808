//! One module: asked for its tools, which are kept for the next start.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use registry_core::store::{Kept, MANIFEST_TTL, ManifestCache, ManifestStore, StoreError};
use serde::{Deserialize, Serialize};

use super::{
    ModuleReport,
    client::{Client, Fault},
    intake::{self, Rules},
    manifest::Manifest,
};
use crate::source::{RemoteSource, Summary};

/// How long a module that has failed is not asked again by itself.
pub const RETRY: Duration = Duration::from_secs(30);
/// How long a module that was not there yet is not asked again by a request, in seconds; twice as long after each failure.
const REST: i64 = 1;

/// A module and what is known of it.
pub(super) struct Module {
    pub(super) source: RemoteSource,
    pub(super) client: Arc<Client>,
    pub(super) rules: Rules,
    pub(super) timeout: Duration,
    pub(super) cache: Arc<dyn ManifestCache>,
    pub(super) store: Arc<dyn ManifestStore>,
    pub(super) asking: Asking,
    pub(super) known: Mutex<Known>,
}

/// Who asks, and when.
#[derive(Default)]
pub(super) struct Asking {
    /// Held by whoever asks.
    alone: tokio::sync::Mutex<()>,
    /// How many rounds have begun.
    rounds: AtomicU64,
    /// When it is to be asked again, in seconds since 1970.
    due: AtomicI64,
}

/// What is known of a module beside its tools.
#[derive(Default)]
pub(super) struct Known {
    version: Option<String>,
    /// Why it could not be asked the last time, and when that was.
    failure: Option<(Fault, Timestamp)>,
    /// How often in a row.
    failures: u32,
    fetched_at: Option<Timestamp>,
}

/// A manifest with its time, as it is kept.
#[derive(Serialize, Deserialize)]
struct LastGood {
    fetched_at: Timestamp,
    manifest: String,
}

impl Module {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        self.source.registry.clock().now()
    }

    fn name(&self) -> &str {
        &self.source.remote.name
    }

    pub(super) fn is_due(&self) -> bool {
        self.asking.due.load(Ordering::Acquire) <= self.now().as_second()
    }

    /// Whether a request should ask again: there are no tools yet, and nobody was there, which is found out at once.
    pub(super) fn is_missing(&self) -> bool {
        let now = self.now().as_second();
        let is_due = {
            let known = self.known();
            let rest = REST.checked_shl(known.failures.saturating_sub(1)).unwrap_or(i64::MAX);
            matches!(&known.failure, Some((Fault::Network(_), at)) if at.as_second().saturating_add(rest) <= now)
        };
        is_due && !self.source.has_tools()
    }

    fn due_after(&self, from: Timestamp, pause: Duration) {
        let seconds = |pause: Duration| i64::try_from(pause.as_secs()).unwrap_or(i64::MAX);
        // Not at once again, whatever another server's clock said.
        let soonest = self.now().as_second().saturating_add(seconds(pause.min(RETRY)));
        let due = from.as_second().saturating_add(seconds(pause)).max(soonest);
        self.asking.due.store(due, Ordering::Release);
    }

    /// Takes what the cache has: it is asked for by itself once that is too old.
    pub(super) async fn load(&self) {
        let _alone = self.asking.alone.lock().await;
        let last_good = self.last_good().await;
        if self.take_cached(last_good.as_ref()).await {
            return;
        }
        if let Some(LastGood { fetched_at, manifest }) = last_good
            && let Ok(read) = Manifest::read(manifest.as_bytes())
        {
            self.take(&read, fetched_at).await;
        }
    }

    /// Asks for its tools where that is due: the cache first, as another server may have asked already.
    pub(super) async fn ask_if_due(&self) {
        let _alone = self.asking.alone.lock().await;
        if !self.is_due() {
            return;
        }
        self.asking.rounds.fetch_add(1, Ordering::AcqRel);
        // One that has failed is asked itself, or its fault would be forgotten for an hour.
        let has_failed = self.known().failure.is_some();
        if has_failed || !self.take_cached(self.last_good().await.as_ref()).await {
            self.fetch().await;
        }
    }

    /// Asks the module that has no tools yet, once for all who wait.
    pub(super) async fn ask_if_missing(&self) {
        if !self.is_missing() {
            return;
        }
        let _alone = self.asking.alone.lock().await;
        // Somebody else may have asked meanwhile.
        if self.is_missing() {
            self.asking.rounds.fetch_add(1, Ordering::AcqRel);
            self.fetch().await;
        }
    }

    /// Asks the module itself, once for all who want it at the same time.
    pub(super) async fn refresh(&self) {
        // A round that had begun before may have been answered before, too.
        let wanted = self.asking.rounds.load(Ordering::Acquire) + 1;
        let _alone = self.asking.alone.lock().await;
        if self.asking.rounds.load(Ordering::Acquire) < wanted {
            self.asking.rounds.fetch_add(1, Ordering::AcqRel);
            self.fetch().await;
        }
    }

    async fn last_good(&self) -> Option<LastGood> {
        let text = self.store.kept(self.name(), Kept::LastGood).await.ok()??;
        serde_json::from_str(&text).ok()
    }

    /// Takes a manifest that the cache still holds good.
    async fn take_cached(&self, last_good: Option<&LastGood>) -> bool {
        let Ok(Some(text)) = self.cache.get(self.name()).await else { return false };
        let Ok(manifest) = Manifest::read(text.as_bytes()) else { return false };
        let kept = last_good.filter(|last| last.manifest == text);
        let fetched_at = kept.map_or_else(|| self.now(), |last| last.fetched_at);
        self.due_after(fetched_at, MANIFEST_TTL);
        self.take(&manifest, fetched_at).await;
        true
    }

    async fn fetch(&self) {
        let answer = self.client.manifest(self.timeout).await;
        let read = answer.and_then(|body| {
            let text = String::from_utf8(body).map_err(|_| "the manifest is not UTF-8".to_owned());
            let read = text.and_then(|text| Ok((Manifest::read(text.as_bytes())?, text)));
            read.map_err(Fault::Content)
        });
        match read {
            Ok((manifest, text)) => {
                let fetched_at = self.now();
                self.due_after(fetched_at, MANIFEST_TTL);
                let tools = self.take(&manifest, fetched_at).await;
                tracing::info!(module = self.name(), tools, "module_discovered");
                self.keep_manifest(fetched_at, text).await;
            }
            Err(fault) => self.failed(fault),
        }
    }

    async fn keep_manifest(&self, fetched_at: Timestamp, manifest: String) {
        // Without the cache it is asked for again, which does no harm; whoever keeps the cache tells of it.
        let _ = self.cache.put(self.name(), &manifest).await;
        let text = serde_json::to_string(&LastGood { fetched_at, manifest }).map_err(StoreError::invalid);
        let kept = match text {
            Ok(text) => self.store.keep(self.name(), Kept::LastGood, &text).await,
            Err(error) => Err(error),
        };
        if let Err(cause) = kept {
            tracing::warn!(module = self.name(), %cause, "module_manifest_not_kept");
        }
    }

    /// It keeps the tools it has. The same cause is told once.
    fn failed(&self, fault: Fault) {
        self.due_after(self.now(), RETRY);
        let (module, error) = (self.name(), fault.to_string());
        let mut known = self.known();
        let is_told = known.failure.as_ref().is_some_and(|(known, _)| known.is_like(&fault));
        match fault {
            _ if is_told => {}
            Fault::Status(status, _) => {
                tracing::warn!(module, status = status.as_u16(), "module_manifest_error");
            }
            _ => tracing::warn!(module, error, "module_unreachable"),
        }
        known.failure = Some((fault, self.now()));
        known.failures = known.failures.saturating_add(1);
        drop(known);
        self.source.registry.unreachable(&self.source.remote, &error);
    }

    /// Takes a manifest's tools in place of those there were. Gives their number.
    async fn take(&self, manifest: &Manifest, fetched_at: Timestamp) -> usize {
        let (tools, faults) = intake::take(self.name(), manifest, self.rules);
        {
            let mut known = self.known();
            known.version.clone_from(&manifest.version);
            (known.fetched_at, known.failure, known.failures) = (Some(fetched_at), None, 0);
        }
        let count = self.source.take(tools, faults).await;
        if self.source.is_acceptance_unknown() {
            // The store may be back before the hour is over.
            self.due_after(self.now(), RETRY);
        }
        count
    }

    pub(super) fn report(&self) -> ModuleReport {
        let Summary { tools, breaker, pinned, digest, changes, faults, duplicates } = self.source.summary();
        let (known, now) = (self.known(), self.now());
        let age =
            known.fetched_at.map(|at| u64::try_from(now.duration_since(at).as_secs()).unwrap_or_default());
        ModuleReport {
            name: self.name().to_owned(),
            url: self.source.remote.address.to_string(),
            version: known.version.clone(),
            tools,
            error: known.failure.as_ref().map(|(fault, _)| fault.to_string()),
            fetched_at: known.fetched_at,
            age,
            breaker,
            pinned,
            digest,
            changes,
            faults,
            duplicates,
        }
    }
}
