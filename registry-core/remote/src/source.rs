//! A source of tools outside of this process: what it has now, what of that was accepted, and what the registry is offered.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use registry_core::{Effect, Offer, Registry, RegistryError, Remote, Source, ToolPolicy, ToolSpec};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    acceptance::{AcceptError, Acceptance, Pin, Pins, ToolChange, digest_of},
    breaker::BreakerState,
    log::log_source,
    tool::{Peer, RemoteTool, may_wait},
};

/// A tool of a source, as it is offered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AcceptedTool {
    pub(crate) spec: ToolSpec,
    pub(crate) policy: ToolPolicy,
    /// What the source itself calls it.
    pub(crate) wire_name: String,
    /// Through how many servers a call goes, this one not counted.
    pub(crate) hops: u8,
    pub(crate) pin: Pin,
}

/// A tool that was not taken, or not as it says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct ToolFault {
    /// The name it gives itself.
    pub tool: String,
    /// What is wrong.
    pub message: String,
    /// Whether it is there all the same.
    pub taken: bool,
}

pub(crate) struct RemoteSource {
    pub(crate) remote: Remote,
    pub(crate) registry: Registry,
    peer: Arc<Peer>,
    acceptance: Acceptance,
    /// Held by whoever takes a list of tools, or accepts them.
    turn: tokio::sync::Mutex<()>,
    catalog: Mutex<Catalog>,
}

/// What is known of a source's tools now.
#[derive(Default)]
struct Catalog {
    entries: BTreeMap<String, Entry>,
    presence: Presence,
    faults: Vec<ToolFault>,
    changes: Vec<ToolChange>,
    /// Those that were notified of.
    duplicates: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Present,
    /// The tools are kept for when the source is back.
    Withdrawn,
    /// The source was left for good.
    Closed,
}

/// An offer that was made, and of what.
struct Entry {
    tool: AcceptedTool,
    quarantine: Option<String>,
    offer: Offer,
}

/// The report of a source's tools.
pub(crate) struct Summary {
    pub(crate) tools: usize,
    pub(crate) breaker: BreakerState,
    pub(crate) pinned: bool,
    pub(crate) digest: String,
    pub(crate) changes: Vec<ToolChange>,
    pub(crate) faults: Vec<ToolFault>,
    pub(crate) duplicates: Vec<String>,
}

impl RemoteSource {
    /// A source whose name is known from now on, though its tools are not.
    pub(crate) fn new(registry: &Registry, peer: Arc<Peer>, acceptance: Acceptance) -> Self {
        let remote = peer.remote.clone();
        if !registry.has_source(&remote.name) {
            registry.offer(remote.clone(), Vec::new());
        }
        let (turn, catalog) = Default::default();
        Self { remote, registry: registry.clone(), peer, acceptance, turn, catalog }
    }

    fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_tools(&self) -> bool {
        !self.catalog().entries.is_empty()
    }

    /// Through how many servers a call of the tool goes, this one not counted.
    pub(crate) fn hops(&self, tool: &str) -> Option<u8> {
        self.catalog().entries.get(tool).map(|entry| entry.tool.hops)
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.acceptance.is_pinned()
    }

    /// Whether nobody knows what was accepted, as the store could not be read.
    pub(crate) fn is_acceptance_unknown(&self) -> bool {
        self.acceptance.is_unknown()
    }

    /// Takes the tools that the source has now in place of those it had. Gives their number.
    pub(crate) async fn take(&self, tools: BTreeMap<String, AcceptedTool>, faults: Vec<ToolFault>) -> usize {
        let _turn = self.turn.lock().await;
        {
            let mut catalog = self.catalog();
            for fault in faults.iter().filter(|fault| !catalog.faults.contains(fault)) {
                let ToolFault { tool, message: cause, taken } = fault;
                log_source!(warn, self.remote, tool, cause, taken, "tool_fault");
            }
            catalog.faults = faults;
            if catalog.presence == Presence::Withdrawn {
                catalog.presence = Presence::Present;
            }
        }
        self.acceptance.read().await;
        self.acceptance.accept_new(&pins(&tools)).await;
        let count = tools.len();
        self.settle(tools);
        count
    }

    /// Accepts the tools as they are known now, where the digest is theirs.
    pub(crate) async fn accept(&self, digest: &str) -> Result<(), AcceptError> {
        let _turn = self.turn.lock().await;
        let entries = |catalog: &Catalog| -> BTreeMap<_, _> {
            catalog.entries.iter().map(|(name, entry)| (name.clone(), entry.tool.clone())).collect()
        };
        let tools = entries(&self.catalog());
        self.acceptance.accept(&pins(&tools), digest).await?;
        self.settle(tools);
        Ok(())
    }

    /// Makes offers of the tools, as far as they are accepted; what is the same stays the same tool.
    fn settle(&self, tools: BTreeMap<String, AcceptedTool>) {
        let changes = self.acceptance.changes(&pins(&tools));
        let mut catalog = self.catalog();
        for change in changes.iter().filter(|change| !catalog.changes.contains(change)) {
            let (tool, parts, off) = (&*change.tool, change.parts.join(", "), self.is_pinned());
            log_source!(warn, self.remote, tool, parts, off, "tool_changed");
        }
        let mut before = std::mem::take(&mut catalog.entries);
        let entry = |(name, tool): (String, AcceptedTool)| {
            let change = changes.iter().find(|change| change.tool == name);
            let quarantine = self.acceptance.quarantine(change);
            let same = before.remove(&name);
            let same = same.filter(|entry| entry.tool == tool && entry.quarantine == quarantine);
            (name, same.unwrap_or_else(|| self.entry(tool, quarantine)))
        };
        catalog.entries = tools.into_iter().map(entry).collect();
        catalog.changes = changes;
        if catalog.presence == Presence::Present {
            let offers = catalog.entries.values().map(|entry| entry.offer.clone()).collect();
            self.offer(&mut catalog, offers);
        }
    }

    fn entry(&self, tool: AcceptedTool, quarantine: Option<String>) -> Entry {
        let handler = RemoteTool {
            peer: Arc::clone(&self.peer),
            wire_name: tool.wire_name.clone(),
            is_repeatable: tool.policy.effect == Effect::Read || tool.policy.idempotent,
            may_wait: may_wait(&tool.policy),
            quarantine: quarantine.clone(),
        };
        let offer = Offer { spec: tool.spec.clone(), policy: tool.policy, handler: Arc::new(handler) };
        Entry { tool, quarantine, offer }
    }

    fn offer(&self, catalog: &mut Catalog, offers: Vec<Offer>) {
        let errors = self.registry.offer(self.remote.clone(), offers);
        let duplicates: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let new = duplicates.iter().filter(|text| !catalog.duplicates.contains(text));
        new.for_each(|text| tracing::error!("{text}"));
        catalog.duplicates = duplicates;
    }

    /// Takes the tools out of the registry until the source is back.
    pub(crate) fn withdraw(&self) {
        let mut catalog = self.catalog();
        if catalog.presence == Presence::Present {
            if !catalog.entries.is_empty() {
                log_source!(warn, self.remote, "tools_withdrawn");
            }
            catalog.presence = Presence::Withdrawn;
            self.offer(&mut catalog, Vec::new());
        }
    }

    /// Takes the tools out of the registry for good.
    pub(crate) fn close(&self) {
        let mut catalog = self.catalog();
        if catalog.presence != Presence::Closed {
            catalog.presence = Presence::Closed;
            self.offer(&mut catalog, Vec::new());
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        let is_mine = |error: &&RegistryError| match error {
            RegistryError::Duplicate { second: Source::Remote(remote), .. } => *remote == self.remote,
            _ => false,
        };
        let duplicates = self.registry.duplicates();
        let duplicates = duplicates.iter().filter(is_mine).map(ToString::to_string).collect();
        let catalog = self.catalog();
        let pins = catalog.entries.iter().map(|(name, entry)| (name.clone(), entry.tool.pin.clone()));
        Summary {
            tools: if catalog.presence == Presence::Present { catalog.entries.len() } else { 0 },
            breaker: self.peer.breaker.state(),
            pinned: self.is_pinned(),
            digest: digest_of(&pins.collect()),
            changes: catalog.changes.clone(),
            faults: catalog.faults.clone(),
            duplicates,
        }
    }
}

fn pins(tools: &BTreeMap<String, AcceptedTool>) -> Pins {
    tools.iter().map(|(name, tool)| (name.clone(), tool.pin.clone())).collect()
}
