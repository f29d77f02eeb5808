//! A source of tools outside of this process: what it has now, what of that was accepted, and what the registry is offered.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use registry_core::{
    Effect, Offer, Registry, RegistryError, Remote, RemoteKind, Source, ToolPolicy, ToolSpec,
    schema::{check_input_among, patterns_in},
    store::ManifestStore,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    acceptance::{AcceptError, Acceptance, ToolChange, ToolDifference},
    breaker::{Breaker, BreakerState},
    log::log_source,
    pin::{Pin, Pins, digest_of},
    settings::BreakerSettings,
    slots::Slots,
    text::shown,
    tool::{Peer, Protocol, RemoteTool, may_wait},
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

/// What is taken of a source's list of tools, by the names that they have here, and what is wrong with some.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    pub(crate) tools: BTreeMap<String, AcceptedTool>,
    pub(crate) faults: Vec<ToolFault>,
}

impl Intake {
    /// Adds a tool, or why it is not taken.
    pub(crate) fn add(&mut self, wire_name: &str, tool: Result<AcceptedTool, String>) {
        match tool {
            Ok(tool) => drop(self.tools.insert(tool.spec.tool_name.clone(), tool)),
            Err(message) => self.fault(wire_name, message, false),
        }
    }

    /// Takes out the tools whose patterns are too large beside all others of the source.
    pub(crate) fn bound_patterns(mut self) -> Self {
        let all = self.tools.values().map(|tool| patterns_in(&tool.spec.input_schema)).sum();
        let mut faults = Vec::new();
        self.tools.retain(|_, tool| {
            let schema = &tool.spec.input_schema;
            let fault = if patterns_in(schema) == 0 { None } else { check_input_among(schema, all).err() };
            faults.extend(fault.iter().map(|fault| (tool.wire_name.clone(), fault.clone())));
            fault.is_none()
        });
        for (wire_name, fault) in faults {
            self.fault(&wire_name, format!("beside the source's {all} patterns, {fault}"), false);
        }
        self
    }

    pub(crate) fn fault(&mut self, wire_name: &str, message: impl Into<String>, taken: bool) {
        self.faults.push(ToolFault { tool: shown(wire_name), message: message.into(), taken });
    }
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
    /// Those that were logged.
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

/// What is known of a source and its tools, whatever its protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceReport {
    /// Its name, the prefix of its tools.
    pub name: String,
    /// How many tools it has here now, those that are off or left out for another's name too.
    pub tools: usize,
    /// Why it could not be reached or asked for its tools the last time.
    pub error: Option<String>,
    /// Whether it is called.
    pub breaker: BreakerState,
    /// Whether tools that are new or changed are off until they are accepted.
    pub pinned: bool,
    /// Names the tools as they are now, to accept just these.
    pub digest: String,
    /// The tools that are not as they were accepted.
    pub changes: Vec<ToolChange>,
    /// What of them has changed, before and after.
    pub differences: Vec<ToolDifference>,
    /// The tools that were left out, or are not as they say.
    pub faults: Vec<ToolFault>,
    /// The tools that are left out because another has their name, each with both places.
    pub duplicates: Vec<String>,
}

impl SourceReport {
    /// How many tools are off until somebody accepts them.
    pub fn quarantined(&self) -> usize {
        if self.pinned { self.changes.len() } else { 0 }
    }
}

/// What a source is made of beside its protocol.
pub(crate) struct SourceSettings {
    pub(crate) remote: Remote,
    pub(crate) breaker: BreakerSettings,
    pub(crate) concurrency: usize,
    /// How long one answer may take.
    pub(crate) timeout: Duration,
    pub(crate) pin: bool,
}

impl RemoteSource {
    /// A source whose name is known from now on, though its tools are not.
    pub(crate) fn new(
        registry: &Registry,
        store: Arc<dyn ManifestStore>,
        protocol: Arc<dyn Protocol>,
        settings: SourceSettings,
    ) -> Self {
        let SourceSettings { remote, breaker, concurrency, timeout, pin } = settings;
        if !registry.has_source(&remote.name) {
            registry.offer(remote.clone(), Vec::new());
        }
        let Remote { kind, name, .. } = &remote;
        // A module's name has no colon.
        let key = if *kind == RemoteKind::Mcp { format!("mcp:{name}") } else { name.to_string() };
        let acceptance = Acceptance::new(store, key, format!("the {kind} {name}"), pin);
        let breaker = Breaker::new(breaker, Arc::clone(registry.clock()));
        let slots = Slots::new(concurrency);
        let peer = Arc::new(Peer { remote: remote.clone(), protocol, breaker, slots, timeout });
        let (turn, catalog) = Default::default();
        Self { remote, registry: registry.clone(), peer, acceptance, turn, catalog }
    }

    pub(crate) fn name(&self) -> &str {
        &self.remote.name
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.registry.clock().now()
    }

    pub(crate) fn has_tools(&self) -> bool {
        !self.catalog.lock().entries.is_empty()
    }

    /// Through how many servers a call of the tool goes, this one not counted.
    pub(crate) fn hops(&self, tool: &str) -> Option<u8> {
        self.catalog.lock().entries.get(tool).map(|entry| entry.tool.hops)
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.acceptance.is_pinned()
    }

    /// Whether nobody knows what was accepted, as the store could not be read.
    pub(crate) fn is_acceptance_unknown(&self) -> bool {
        self.acceptance.is_unknown()
    }

    /// Takes the tools that the source has now in place of those it had. Gives their number.
    pub(crate) async fn take(&self, Intake { tools, mut faults }: Intake) -> usize {
        faults.sort_unstable();
        let _turn = self.turn.lock().await;
        {
            let mut catalog = self.catalog.lock();
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
        let tools = entries(&self.catalog.lock());
        self.acceptance.accept(&pins(&tools), digest).await?;
        self.settle(tools);
        Ok(())
    }

    /// Makes offers of the tools, as far as they are accepted; what is the same stays the same tool.
    fn settle(&self, tools: BTreeMap<String, AcceptedTool>) {
        let changes = self.acceptance.changes(&pins(&tools));
        let mut catalog = self.catalog.lock();
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
        let mut catalog = self.catalog.lock();
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
        let mut catalog = self.catalog.lock();
        if catalog.presence != Presence::Closed {
            catalog.presence = Presence::Closed;
            self.offer(&mut catalog, Vec::new());
        }
    }

    pub(crate) fn report(&self, error: Option<String>) -> SourceReport {
        let is_mine = |error: &&RegistryError| match error {
            RegistryError::Duplicate { second: Source::Remote(remote), .. } => *remote == self.remote,
            _ => false,
        };
        let duplicates = self.registry.duplicates();
        let duplicates = duplicates.iter().filter(is_mine).map(ToString::to_string).collect();
        let catalog = self.catalog.lock();
        let pins = catalog.entries.iter().map(|(name, entry)| (name.clone(), entry.tool.pin.clone()));
        let pins: Pins = pins.collect();
        SourceReport {
            name: self.name().to_owned(),
            tools: if catalog.presence == Presence::Present { catalog.entries.len() } else { 0 },
            error,
            breaker: self.peer.breaker.state(),
            pinned: self.is_pinned(),
            digest: digest_of(&pins),
            changes: catalog.changes.clone(),
            differences: self.acceptance.differences(&pins),
            faults: catalog.faults.clone(),
            duplicates,
        }
    }
}

fn pins(tools: &BTreeMap<String, AcceptedTool>) -> Pins {
    tools.iter().map(|(name, tool)| (name.clone(), tool.pin.clone())).collect()
}
