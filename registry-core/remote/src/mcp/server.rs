//! One server: reached, looked after, and reached again; its tools come and go with it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use registry_core::{Effect, Offer, Registry, RegistryError, Remote, Source};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    McpServerReport, McpState,
    call::{Link, McpTool},
    intake::{self, Taken},
    listing::{self, Listing},
    session::{Introduced, Session, Way},
    settings::McpServerSettings,
};
use crate::{
    acceptance::{AcceptError, Acceptance, Pins, ToolChange, digest_of},
    module::ToolFault,
    remote_call::may_wait,
};

/// How long a server that is gone has its tools, so that one that restarts disturbs nobody.
pub const GRACE: Duration = Duration::from_secs(5);
/// How long is waited before a server is reached again: at first, and at most, with twice as long each time.
pub const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// How long a server has to be there for its earlier faults to be forgotten.
const STEADY: Duration = Duration::from_secs(60);
/// Changes that come together are looked at once.
const SETTLES: Duration = Duration::from_millis(100);
/// How often a server is asked that cannot be seen to go.
const ASKED: Duration = Duration::from_secs(60);

/// A server and what is known of it.
pub(super) struct Server {
    pub(super) remote: Remote,
    pub(super) settings: McpServerSettings,
    pub(super) way: Way,
    pub(super) link: Arc<Link>,
    acceptance: Acceptance,
    /// Held by whoever takes a list of tools, or accepts them.
    alone: tokio::sync::Mutex<()>,
    pub(super) registry: Registry,
    pub(super) stop: CancellationToken,
    /// Whether it has answered once, or failed to.
    pub(super) answered: watch::Sender<bool>,
    known: Mutex<Known>,
}

/// What is known of a server now.
struct Known {
    state: McpState,
    since: Timestamp,
    protocol: Option<String>,
    server: Option<String>,
    restarts: u64,
    /// Also while it is away.
    offers: BTreeMap<String, Offered>,
    is_offered: bool,
    faults: Vec<ToolFault>,
    changes: Vec<ToolChange>,
    duplicates: Vec<String>,
    error: Option<String>,
    /// The fault that was told last.
    told: Option<String>,
}

/// An offer that was made, and of what.
struct Offered {
    taken: Taken,
    quarantine: Option<String>,
    offer: Offer,
}

impl Server {
    pub(super) fn new(
        remote: Remote,
        settings: McpServerSettings,
        way: Way,
        link: Link,
        acceptance: Acceptance,
        registry: Registry,
    ) -> Self {
        let known = Known {
            state: McpState::Connecting,
            since: registry.clock().now(),
            protocol: None,
            server: None,
            restarts: 0,
            offers: BTreeMap::new(),
            is_offered: false,
            faults: Vec::new(),
            changes: Vec::new(),
            duplicates: Vec::new(),
            error: None,
            told: None,
        };
        Self {
            remote,
            settings,
            way,
            link: Arc::new(link),
            acceptance,
            alone: tokio::sync::Mutex::default(),
            registry,
            stop: CancellationToken::new(),
            answered: watch::Sender::new(false),
            known: Mutex::new(known),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self) -> &str {
        &self.remote.name
    }

    fn turn(&self, known: &mut Known, state: McpState) {
        if known.state != state && known.state != McpState::Closed {
            (known.state, known.since) = (state, self.registry.clock().now());
        }
    }

    /// Looks after the server until it is to stop.
    pub(super) async fn run(self: Arc<Self>) {
        let mut pause = PAUSES[0];
        loop {
            let reached = async {
                let mut reaching = std::pin::pin!(self.reach(&mut pause));
                match tokio::time::timeout(GRACE, &mut reaching).await {
                    Ok(session) => session,
                    Err(_) => {
                        self.withdraw();
                        reaching.await
                    }
                }
            };
            let session = tokio::select! {
                session = reached => session,
                () = self.stop.cancelled() => return,
            };
            let since = Instant::now();
            let Some(fault) = self.attend(session).await else { return };
            if since.elapsed() >= STEADY {
                pause = PAUSES[0];
                self.known().told = None;
            }
            self.failed(fault);
        }
    }

    /// Tries until the server is there and has said what tools it has.
    async fn reach(&self, pause: &mut Duration) -> Session {
        loop {
            // One that comes and goes at once is not reached at once again.
            if self.known().error.is_some() {
                tokio::time::sleep(*pause).await;
                *pause = (*pause * 2).min(PAUSES[1]);
            }
            let limit = self.settings.start_timeout;
            let reached = tokio::time::timeout(limit, async {
                let session = self.way.connect(&self.remote.name).await?;
                let listing = listing::list(&session.live.peer).await?;
                Ok((session, listing))
            });
            match reached
                .await
                .unwrap_or_else(|_| Err(format!("it did not answer within {} s", limit.as_secs_f64())))
            {
                Ok((session, listing)) => {
                    self.link.set(Some(session.live.clone()));
                    self.connected(session.introduced.clone(), listing).await;
                    return session;
                }
                Err(fault) => self.failed(fault),
            }
        }
    }

    /// Follows the server's tools while it is there. Gives the fault that ended it; none where it is to stop.
    async fn attend(&self, mut session: Session) -> Option<String> {
        let (peer, wake) = (session.live.peer.clone(), Arc::clone(&session.live.listener.wake));
        let mut following = session.follow(self.stop.clone());
        // What is pinned may be accepted through another server on the same store.
        let is_asked = self.way.is_asked_regularly() || self.acceptance.is_pinned();
        let asked = if is_asked { ASKED } else { Duration::MAX };
        loop {
            tokio::select! {
                () = session.closed() => {
                    self.link.set(None);
                    return Some(session.cause().await);
                }
                // It ends when this is to stop.
                () = &mut following => {
                    self.link.set(None);
                    session.close().await;
                    return None;
                }
                () = wake.notified() => tokio::time::sleep(SETTLES).await,
                () = tokio::time::sleep(asked) => {}
            }
            let listed = tokio::select! {
                listed = tokio::time::timeout(self.settings.timeout, listing::list(&peer)) => listed,
                // The next round says why.
                () = session.closed() => continue,
            };
            match listed.unwrap_or_else(|_| Err("it does not answer any more".to_owned())) {
                Ok(listing) => self.take(listing, None).await,
                Err(fault) => {
                    self.link.set(None);
                    session.close().await;
                    return Some(fault);
                }
            }
        }
    }

    async fn connected(&self, introduced: Introduced, listing: Listing) {
        let protocol = introduced.protocol.clone();
        self.take(listing, Some(introduced)).await;
        let (server, tools) = (self.name(), self.known().offers.len());
        tracing::info!(server, protocol, tools, "mcp_server_connected");
        self.answered.send_replace(true);
    }

    /// The same fault is told once.
    fn failed(&self, fault: String) {
        let fault = self.link.without_secrets(fault);
        let mut known = self.known();
        self.turn(&mut known, McpState::Away);
        if known.told.as_ref() != Some(&fault) {
            let (server, cause) = (self.name(), &*fault);
            tracing::warn!(server, cause, "mcp_server_failed");
            known.told = Some(fault.clone());
        }
        known.error = Some(fault);
        drop(known);
        self.answered.send_replace(true);
    }

    /// Offers what the server lists in place of what it had, over the session that has just begun or the one there is.
    async fn take(&self, listing: Listing, begun: Option<Introduced>) {
        let _alone = self.alone.lock().await;
        let (tools, faults) = intake::take(self.name(), listing, &self.settings);
        {
            let mut known = self.known();
            for fault in faults.iter().filter(|fault| !known.faults.contains(fault)) {
                let ToolFault { tool, message: cause, .. } = fault;
                tracing::warn!(server = self.name(), tool, cause, "mcp_tool_fault");
            }
            known.faults = faults;
        }
        self.acceptance.read().await;
        self.acceptance.accept_new(&pins(&tools)).await;
        self.settle(tools, begun);
    }

    /// Accepts its tools as they are known now, where the digest is theirs.
    pub(super) async fn accept(&self, digest: &str) -> Result<(), AcceptError> {
        let _alone = self.alone.lock().await;
        let tools: BTreeMap<_, _> =
            self.known().offers.iter().map(|(name, offered)| (name.clone(), offered.taken.clone())).collect();
        self.acceptance.accept(&pins(&tools), digest).await?;
        self.settle(tools, None);
        Ok(())
    }

    /// Makes offers of the tools, as far as they are accepted; what is the same stays the same tool.
    fn settle(&self, tools: BTreeMap<String, Taken>, begun: Option<Introduced>) {
        let changes = self.acceptance.changes(&pins(&tools));
        let mut known = self.known();
        for change in changes.iter().filter(|change| !known.changes.contains(change)) {
            // It was something else when somebody looked at it.
            let (tool, parts, off) = (&*change.tool, change.parts.join(", "), self.acceptance.is_pinned());
            tracing::warn!(server = self.name(), tool, parts, off, "mcp_tool_changed");
        }
        let mut before = std::mem::take(&mut known.offers);
        let offer = |(name, taken): (String, Taken)| {
            let change = changes.iter().find(|change| change.tool == name);
            let quarantine = self.acceptance.quarantine(change);
            let same = before.remove(&name);
            let same = same.filter(|offered| offered.taken == taken && offered.quarantine == quarantine);
            (name, same.unwrap_or_else(|| self.offered(taken, quarantine)))
        };
        known.offers = tools.into_iter().map(offer).collect();
        known.changes = changes;
        if let Some(Introduced { protocol, server }) = begun {
            known.restarts += u64::from(known.protocol.is_some());
            self.turn(&mut known, McpState::Connected);
            known.error = None;
            (known.protocol, known.server) = (Some(protocol), server);
        }
        if known.state == McpState::Connected {
            let offers = known.offers.values().map(|offered| offered.offer.clone()).collect();
            self.offer(&mut known, offers);
        }
    }

    fn offered(&self, taken: Taken, quarantine: Option<String>) -> Offered {
        let tool = McpTool {
            link: Arc::clone(&self.link),
            wire_name: taken.wire_name.clone(),
            timeout: self.settings.timeout,
            is_repeatable: taken.policy.effect == Effect::Read || taken.policy.idempotent,
            may_wait: may_wait(&taken.policy),
            quarantine: quarantine.clone(),
        };
        let offer = Offer { spec: taken.spec.clone(), policy: taken.policy, handler: Arc::new(tool) };
        Offered { taken, quarantine, offer }
    }

    fn offer(&self, known: &mut Known, offers: Vec<Offer>) {
        known.is_offered = !offers.is_empty();
        let errors = self.registry.offer(self.remote.clone(), offers);
        let duplicates: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let new = duplicates.iter().filter(|text| !known.duplicates.contains(text));
        new.for_each(|text| tracing::error!("{text}"));
        known.duplicates = duplicates;
    }

    /// Takes its tools away.
    fn withdraw(&self) {
        let mut known = self.known();
        if known.is_offered {
            tracing::warn!(server = self.name(), "mcp_tools_withdrawn");
            self.offer(&mut known, Vec::new());
        }
    }

    /// Leaves the server for good.
    pub(super) fn leave(&self) {
        self.link.set(None);
        let mut known = self.known();
        self.turn(&mut known, McpState::Closed);
        if known.is_offered {
            self.offer(&mut known, Vec::new());
        }
    }

    pub(super) fn report(&self) -> McpServerReport {
        let is_mine = |error: &RegistryError| match error {
            RegistryError::Duplicate { second: Source::Remote(remote), .. } => *remote == self.remote,
            _ => false,
        };
        let duplicates = self.registry.duplicates();
        let known = self.known();
        let pins = known.offers.iter().map(|(name, offered)| (name.clone(), offered.taken.pin.clone()));
        McpServerReport {
            name: self.name().to_owned(),
            address: self.remote.address.to_string(),
            state: known.state,
            since: known.since,
            protocol: known.protocol.clone(),
            server: known.server.clone(),
            tools: if known.is_offered { known.offers.len() } else { 0 },
            restarts: known.restarts,
            breaker: self.link.guarded.state(),
            pinned: self.acceptance.is_pinned(),
            digest: digest_of(&pins.collect()),
            changes: known.changes.clone(),
            error: known.error.clone(),
            faults: known.faults.clone(),
            duplicates: duplicates.iter().filter(|error| is_mine(error)).map(ToString::to_string).collect(),
        }
    }
}

fn pins(tools: &BTreeMap<String, Taken>) -> Pins {
    tools.iter().map(|(name, taken)| (name.clone(), taken.pin.clone())).collect()
}
