//! One module's tools: asked for, kept, compared with what was accepted, and offered to the registry.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use registry_core::{
    Offer, Registry, RegistryError, Remote, Source,
    store::{Kept, MANIFEST_TTL, ManifestCache, ManifestStore},
};
use serde::{Deserialize, Serialize};

use super::{
    ModuleReport, ToolFault,
    client::Fault,
    intake::{self, Rules, Taken},
    manifest::Manifest,
    peer::{Peer, RemoteTool},
};
use crate::{
    acceptance::{AcceptError, Acceptance, Pins, ToolChange, digest_of},
    remote_call::may_wait,
};

/// How long a module that has failed is not asked again by itself.
pub const RETRY: Duration = Duration::from_secs(30);

/// A module and what is known of it.
pub(super) struct Module {
    pub(super) remote: Remote,
    pub(super) peer: Arc<Peer>,
    pub(super) rules: Rules,
    pub(super) acceptance: Acceptance,
    pub(super) timeout: Duration,
    pub(super) cache: Arc<dyn ManifestCache>,
    pub(super) store: Arc<dyn ManifestStore>,
    pub(super) registry: Registry,
    pub(super) asking: Asking,
    pub(super) known: Mutex<Known>,
}

/// Who asks, and when.
#[derive(Default)]
pub(super) struct Asking {
    /// Held by whoever asks or accepts.
    alone: tokio::sync::Mutex<()>,
    /// How many rounds have begun.
    rounds: AtomicU64,
    /// When it is to be asked again, in seconds since 1970.
    due: AtomicI64,
}

/// What is known of a module now.
#[derive(Default)]
pub(super) struct Known {
    version: Option<String>,
    tools: BTreeMap<String, Taken>,
    offers: BTreeMap<String, Offered>,
    faults: Vec<ToolFault>,
    changes: Vec<ToolChange>,
    /// Those that were told of.
    duplicates: Vec<String>,
    /// Why it could not be asked the last time.
    failure: Option<Fault>,
    fetched_at: Option<Timestamp>,
}

/// An offer that was made, and of what.
struct Offered {
    wire_name: String,
    quarantine: Option<String>,
    offer: Offer,
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
        self.peer.clock.now()
    }

    fn name(&self) -> &str {
        &self.remote.name
    }

    pub(super) fn has_tools(&self) -> bool {
        !self.known().tools.is_empty()
    }

    /// Through how many servers a call of the tool goes, this one not counted.
    pub(super) fn hops(&self, tool: &str) -> Option<u8> {
        self.known().tools.get(tool).map(|taken| taken.hops)
    }

    pub(super) fn is_due(&self) -> bool {
        self.asking.due.load(Ordering::Acquire) <= self.now().as_second()
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
        self.acceptance.read().await;
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
        self.acceptance.read().await;
        // One that has failed is asked itself, or its fault would be forgotten for an hour.
        let has_failed = self.known().failure.is_some();
        if has_failed || !self.take_cached(self.last_good().await.as_ref()).await {
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
            self.acceptance.read().await;
            self.fetch().await;
        }
    }

    /// Accepts its tools as they are known now, where the digest is theirs.
    pub(super) async fn accept(&self, digest: &str) -> Result<(), AcceptError> {
        let _alone = self.asking.alone.lock().await;
        let pins = pins(&self.known().tools);
        self.acceptance.accept(&pins, digest).await?;
        self.offer();
        Ok(())
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
        let answer = self.peer.client.manifest(self.timeout).await;
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
            Err(fault) => self.failed(&fault),
        }
    }

    async fn keep_manifest(&self, fetched_at: Timestamp, manifest: String) {
        // Without the cache it is asked for again, which does no harm; whoever keeps the cache tells of it.
        let _ = self.cache.put(self.name(), &manifest).await;
        let text =
            serde_json::to_string(&LastGood { fetched_at, manifest }).map_err(|error| error.to_string());
        let kept = match text {
            Ok(text) => self.store.keep(self.name(), Kept::LastGood, &text).await,
            Err(error) => Err(error),
        };
        if let Err(cause) = kept {
            tracing::warn!(module = self.name(), cause, "module_manifest_not_kept");
        }
    }

    /// It keeps the tools it has. The same cause is told once.
    fn failed(&self, fault: &Fault) {
        self.due_after(self.now(), RETRY);
        let (module, error) = (self.name(), fault.to_string());
        let mut known = self.known();
        let is_told = known.failure.as_ref().is_some_and(|known| known.is_like(fault));
        match fault {
            _ if is_told => {}
            Fault::Status(status, _) => {
                tracing::warn!(module, status = status.as_u16(), "module_manifest_error");
            }
            Fault::Content(error) => tracing::warn!(module, status = 200, error, "module_manifest_error"),
            Fault::Timeout(_) | Fault::Network(_) => tracing::warn!(module, error, "module_unreachable"),
        }
        known.failure = Some(fault.clone());
    }

    /// Takes a manifest's tools in place of those there were. Gives their number.
    async fn take(&self, manifest: &Manifest, fetched_at: Timestamp) -> usize {
        let (tools, faults) = intake::take(self.name(), manifest, self.rules);
        let (count, pins) = (tools.len(), pins(&tools));
        {
            let mut known = self.known();
            for fault in faults.iter().filter(|fault| !known.faults.contains(fault)) {
                let ToolFault { tool, message: cause, taken } = fault;
                tracing::warn!(module = self.name(), tool, cause, taken, "module_tool_fault");
            }
            known.version.clone_from(&manifest.version);
            known.fetched_at = Some(fetched_at);
            (known.tools, known.faults, known.failure) = (tools, faults, None);
        }
        self.acceptance.accept_new(&pins).await;
        if self.acceptance.is_unknown() {
            // The store may be back before the hour is over.
            self.due_after(self.now(), RETRY);
        }
        self.offer();
        count
    }

    /// Offers the registry what is known; what is the same as before is the same tool.
    fn offer(&self) {
        let mut known = self.known();
        let changes = self.acceptance.changes(&pins(&known.tools));
        for change in changes.iter().filter(|change| !known.changes.contains(change)) {
            let (tool, parts, off) = (&*change.tool, change.parts.join(", "), self.acceptance.is_pinned());
            tracing::warn!(module = self.name(), tool, parts, off, "module_tool_changed");
        }
        let mut before = std::mem::take(&mut known.offers);
        let offer = |(name, taken): (&String, &Taken)| {
            let change = changes.iter().find(|change| change.tool == *name);
            let quarantine = self.acceptance.quarantine(change);
            let same = before.remove(name).filter(|offered| offered.is(taken, quarantine.as_ref()));
            (name.clone(), same.unwrap_or_else(|| Offered::new(taken, quarantine, &self.peer)))
        };
        known.offers = known.tools.iter().map(offer).collect();
        let offers = known.offers.values().map(|offered| offered.offer.clone()).collect();
        let errors = self.registry.offer(self.remote.clone(), offers);
        let duplicates: Vec<_> = errors.iter().map(ToString::to_string).collect();
        duplicates
            .iter()
            .filter(|text| !known.duplicates.contains(text))
            .for_each(|text| tracing::error!("{text}"));
        (known.changes, known.duplicates) = (changes, duplicates);
    }

    pub(super) fn report(&self) -> ModuleReport {
        let is_mine = |error: &RegistryError| match error {
            RegistryError::Duplicate { second: Source::Remote(remote), .. } => *remote == self.remote,
            _ => false,
        };
        let duplicates = self
            .registry
            .duplicates()
            .iter()
            .filter(|error| is_mine(error))
            .map(ToString::to_string)
            .collect();
        let (known, now) = (self.known(), self.now());
        let age =
            known.fetched_at.map(|at| u64::try_from(now.duration_since(at).as_secs()).unwrap_or_default());
        ModuleReport {
            name: self.name().to_owned(),
            url: self.remote.address.to_string(),
            version: known.version.clone(),
            tools: known.tools.len(),
            error: known.failure.as_ref().map(ToString::to_string),
            fetched_at: known.fetched_at,
            age,
            breaker: self.peer.guarded.state(),
            pinned: self.acceptance.is_pinned(),
            digest: digest_of(&pins(&known.tools)),
            changes: known.changes.clone(),
            faults: known.faults.clone(),
            duplicates,
        }
    }
}

impl Offered {
    fn new(taken: &Taken, quarantine: Option<String>, peer: &Arc<Peer>) -> Self {
        let tool = RemoteTool {
            peer: Arc::clone(peer),
            wire_name: taken.wire_name.clone(),
            may_wait: may_wait(&taken.policy),
            quarantine: quarantine.clone(),
        };
        let offer = Offer { spec: taken.spec.clone(), policy: taken.policy, handler: Arc::new(tool) };
        Self { wire_name: taken.wire_name.clone(), quarantine, offer }
    }

    fn is(&self, taken: &Taken, quarantine: Option<&String>) -> bool {
        self.quarantine.as_ref() == quarantine
            && self.wire_name == taken.wire_name
            && self.offer.policy == taken.policy
            && self.offer.spec == taken.spec
    }
}

fn pins(tools: &BTreeMap<String, Taken>) -> Pins {
    tools.iter().map(|(name, taken)| (name.clone(), taken.pin.clone())).collect()
}
