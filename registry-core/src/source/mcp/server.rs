//! One server: reached, looked after, and reached again; its tools come and go with it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    McpServerReport, McpState,
    call::{Link, McpTool},
    intake::{self, Taken},
    listing::{self, Listing},
    session::{Session, Way},
    settings::McpServerSettings,
};
use crate::{
    policy::Effect,
    registry::{Registry, RegistryError},
    source::{Offer, Remote, module::ToolFault},
    tool::Source,
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
    /// Also while it is away.
    offers: BTreeMap<String, (Taken, Offer)>,
    is_offered: bool,
    faults: Vec<ToolFault>,
    duplicates: Vec<String>,
    error: Option<String>,
    /// The fault that was told last.
    told: Option<String>,
}

impl Server {
    pub(super) fn new(
        remote: Remote,
        settings: McpServerSettings,
        way: Way,
        link: Link,
        registry: Registry,
    ) -> Self {
        let known = Known {
            state: McpState::Connecting,
            since: registry.shared.common.clock.now(),
            protocol: None,
            server: None,
            offers: BTreeMap::new(),
            is_offered: false,
            faults: Vec::new(),
            duplicates: Vec::new(),
            error: None,
            told: None,
        };
        Self {
            remote,
            settings,
            way,
            link: Arc::new(link),
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
            (known.state, known.since) = (state, self.registry.shared.common.clock.now());
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
                    self.connected(&session, listing);
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
        let asked = if self.way.is_asked_regularly() { ASKED } else { Duration::MAX };
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
                Ok(listing) => self.take(listing),
                Err(fault) => {
                    self.link.set(None);
                    session.close().await;
                    return Some(fault);
                }
            }
        }
    }

    fn connected(&self, session: &Session, listing: Listing) {
        {
            let mut known = self.known();
            self.turn(&mut known, McpState::Connected);
            known.error = None;
            known.protocol = Some(session.protocol.clone());
            known.server.clone_from(&session.server);
        }
        self.take(listing);
        let (server, protocol, tools) = (self.name(), &*session.protocol, self.known().offers.len());
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

    /// Offers what the server lists in place of what it had; what is the same stays the same tool.
    fn take(&self, listing: Listing) {
        let (tools, faults) = intake::take(self.name(), listing, &self.settings);
        let mut known = self.known();
        for fault in faults.iter().filter(|fault| !known.faults.contains(fault)) {
            let ToolFault { tool, message: cause, .. } = fault;
            tracing::warn!(server = self.name(), tool, cause, "mcp_tool_fault");
        }
        let mut before = std::mem::take(&mut known.offers);
        let mut offers = BTreeMap::new();
        for (name, taken) in tools {
            let offer = match before.remove(&name) {
                Some((same, offer)) if same == taken => offer,
                changed => {
                    if changed.is_some() {
                        // It was something else when somebody looked at it.
                        tracing::warn!(server = self.name(), tool = name, "mcp_tool_changed");
                    }
                    self.offer_of(&taken)
                }
            };
            offers.insert(name, (taken, offer));
        }
        (known.offers, known.faults) = (offers, faults);
        if known.state == McpState::Connected {
            let offers = known.offers.values().map(|(_, offer)| offer.clone()).collect();
            self.offer(&mut known, offers);
        }
    }

    fn offer_of(&self, taken: &Taken) -> Offer {
        let tool = McpTool {
            link: Arc::clone(&self.link),
            wire_name: taken.wire_name.clone(),
            is_repeatable: taken.policy.effect == Effect::Read || taken.policy.idempotent,
        };
        Offer { spec: taken.spec.clone(), policy: taken.policy, handler: Arc::new(tool) }
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
        McpServerReport {
            name: self.name().to_owned(),
            address: self.remote.address.to_string(),
            state: known.state,
            since: known.since,
            protocol: known.protocol.clone(),
            server: known.server.clone(),
            tools: if known.is_offered { known.offers.len() } else { 0 },
            error: known.error.clone(),
            faults: known.faults.clone(),
            duplicates: duplicates.iter().filter(|error| is_mine(error)).map(ToString::to_string).collect(),
        }
    }
}
