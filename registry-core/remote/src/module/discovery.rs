//! One module: asked for its tools, which are kept for the next start.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use registry_core::store::{Kept, MANIFEST_TTL, ManifestCache, ManifestStore, StoreError};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::{
    ModuleReport,
    client::{Client, Fault},
    intake::{self, Rules},
    manifest::Manifest,
};
use crate::source::RemoteSource;

/// How long a module that has failed is not asked again by itself.
pub const RETRY: Duration = Duration::from_secs(30);
/// How long a module that was not there yet is not asked again by a request; twice as long after each failure.
const REST: Duration = Duration::from_secs(1);

/// A module and what is known of it.
pub(super) struct Module {
    pub(super) source: RemoteSource,
    client: Arc<Client>,
    rules: Rules,
    /// How long it may take to say what tools it has.
    timeout: Duration,
    cache: Arc<dyn ManifestCache>,
    store: Arc<dyn ManifestStore>,
    /// Held by whoever asks.
    asking: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
}

/// What is known of a module beside its tools.
#[derive(Default)]
struct Known {
    version: Option<String>,
    /// Why it could not be asked the last time, and when that was.
    failure: Option<(Fault, Timestamp)>,
    /// How often in a row.
    failures: u32,
    fetched_at: Option<Timestamp>,
    /// When it is to be asked again.
    due: Timestamp,
    /// How often it was asked.
    rounds: u64,
}

/// A manifest with its time, as it is kept.
#[derive(Serialize, Deserialize)]
struct LastGood {
    fetched_at: Timestamp,
    manifest: String,
}

fn after(time: Timestamp, pause: Duration) -> Timestamp {
    time.checked_add(pause).unwrap_or(Timestamp::MAX)
}

impl Module {
    pub(super) fn new(
        source: RemoteSource,
        client: Arc<Client>,
        rules: Rules,
        timeout: Duration,
        cache: Arc<dyn ManifestCache>,
        store: Arc<dyn ManifestStore>,
    ) -> Self {
        let (asking, known) = Default::default();
        Self { source, client, rules, timeout, cache, store, asking, known }
    }

    pub(super) fn is_due(&self) -> bool {
        self.known.lock().due <= self.source.now()
    }

    /// Whether a request should ask again: there are no tools yet, and nobody was there, which is found out at once.
    pub(super) fn is_missing(&self) -> bool {
        let is_due = match &*self.known.lock() {
            Known { failure: Some((Fault::Network(_), at)), failures, .. } => {
                let rest = REST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
                after(*at, rest) <= self.source.now()
            }
            _ => false,
        };
        is_due && !self.source.has_tools()
    }

    fn due_after(&self, from: Timestamp, pause: Duration) {
        // Not at once again, whatever another server's clock said.
        let soonest = after(self.source.now(), pause.min(RETRY));
        self.known.lock().due = after(from, pause).max(soonest);
    }

    /// Takes what the cache has: it is asked for by itself once that is too old.
    pub(super) async fn load(&self) {
        let _alone = self.asking.lock().await;
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
        let _alone = self.asking.lock().await;
        if !self.is_due() {
            return;
        }
        // One that has failed is asked itself, or its fault would be forgotten for an hour.
        let has_failed = self.known.lock().failure.is_some();
        if has_failed || !self.take_cached(self.last_good().await.as_ref()).await {
            self.fetch().await;
        }
    }

    /// Asks the module that has no tools yet, once for all who wait.
    pub(super) async fn ask_if_missing(&self) {
        if !self.is_missing() {
            return;
        }
        let _alone = self.asking.lock().await;
        // Somebody else may have asked meanwhile.
        if self.is_missing() {
            self.fetch().await;
        }
    }

    /// Asks the module itself, once for all who want it at the same time.
    pub(super) async fn refresh(&self) {
        // A round that had begun before may have been answered before, too.
        let before = self.known.lock().rounds;
        let _alone = self.asking.lock().await;
        if self.known.lock().rounds == before {
            self.fetch().await;
        }
    }

    async fn last_good(&self) -> Option<LastGood> {
        let text = self.store.kept(self.source.name(), Kept::LastGood).await.ok()??;
        serde_json::from_str(&text).ok()
    }

    /// Takes a manifest that the cache still holds good.
    async fn take_cached(&self, last_good: Option<&LastGood>) -> bool {
        let Ok(Some(text)) = self.cache.get(self.source.name()).await else { return false };
        let Ok(manifest) = Manifest::read(text.as_bytes()) else { return false };
        let kept = last_good.filter(|last| last.manifest == text);
        let fetched_at = kept.map_or_else(|| self.source.now(), |last| last.fetched_at);
        self.due_after(fetched_at, MANIFEST_TTL);
        self.take(&manifest, fetched_at).await;
        true
    }

    async fn fetch(&self) {
        self.known.lock().rounds += 1;
        let answer = self.client.manifest(self.timeout).await;
        let read = answer.and_then(|body| {
            let text = String::from_utf8(body).map_err(|_| "the manifest is not UTF-8".to_owned());
            let read = text.and_then(|text| Ok((Manifest::read(text.as_bytes())?, text)));
            read.map_err(Fault::Content)
        });
        match read {
            Ok((manifest, text)) => {
                let fetched_at = self.source.now();
                self.due_after(fetched_at, MANIFEST_TTL);
                let tools = self.take(&manifest, fetched_at).await;
                tracing::info!(module = self.source.name(), tools, "module_discovered");
                self.keep_manifest(fetched_at, text).await;
            }
            Err(fault) => self.failed(fault),
        }
    }

    async fn keep_manifest(&self, fetched_at: Timestamp, manifest: String) {
        let name = self.source.name();
        // Without the cache it is asked for again, which does no harm; whoever keeps the cache reports it.
        let _ = self.cache.put(name, &manifest).await;
        let kept = match serde_json::to_string(&LastGood { fetched_at, manifest }) {
            Ok(text) => self.store.keep(name, Kept::LastGood, &text).await,
            Err(error) => Err(StoreError::invalid(error)),
        };
        if let Err(cause) = kept {
            tracing::warn!(module = name, %cause, "module_manifest_not_kept");
        }
    }

    /// It keeps the tools it has. The same cause is logged once.
    fn failed(&self, fault: Fault) {
        let (module, error, now) = (self.source.name(), fault.to_string(), self.source.now());
        self.due_after(now, RETRY);
        let mut known = self.known.lock();
        let is_logged = known.failure.as_ref().is_some_and(|(known, _)| known.is_like(&fault));
        match fault {
            _ if is_logged => {}
            Fault::Status(status, _) => {
                tracing::warn!(module, status = status.as_u16(), "module_manifest_error");
            }
            _ => tracing::warn!(module, error, "module_unreachable"),
        }
        known.failure = Some((fault, now));
        known.failures = known.failures.saturating_add(1);
        drop(known);
        self.source.registry.unreachable(&self.source.remote, &error);
    }

    /// Takes a manifest's tools in place of those there were. Gives their number.
    async fn take(&self, manifest: &Manifest, fetched_at: Timestamp) -> usize {
        // Schemas and their patterns are compiled, which is the module's to size.
        let (module, given, rules) = (self.source.name().to_owned(), manifest.clone(), self.rules.clone());
        let intake = spawn_blocking(move || intake::take(&module, &given, &rules).bound_patterns());
        // Fails only where the program ends, or by a panic, which is logged; the tools stay as they are.
        let Ok(intake) = intake.await else { return 0 };
        {
            let mut known = self.known.lock();
            known.version.clone_from(&manifest.version);
            (known.fetched_at, known.failure, known.failures) = (Some(fetched_at), None, 0);
        }
        let count = self.source.take(intake).await;
        if self.source.is_acceptance_unknown() {
            // The store may be back before the hour is over.
            self.due_after(self.source.now(), RETRY);
        }
        count
    }

    pub(super) fn report(&self) -> ModuleReport {
        let (known, now) = (self.known.lock(), self.source.now());
        let age =
            known.fetched_at.map(|at| u64::try_from(now.duration_since(at).as_secs()).unwrap_or_default());
        ModuleReport {
            source: self.source.report(known.failure.as_ref().map(|(fault, _)| fault.to_string())),
            url: self.source.remote.address.to_string(),
            version: known.version.clone(),
            fetched_at: known.fetched_at,
            age,
        }
    }
}
