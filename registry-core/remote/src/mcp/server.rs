//! One server: reached, looked after, and reached again; its tools come and go with it.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::{sync::watch, task::spawn_blocking, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    McpServerReport, McpServerSettings, McpState,
    call::Link,
    intake,
    listing::{self, Listing},
    oauth::Bearer,
    session::{Endpoint, Introduced, Session},
    sessions::Sessions,
};
use crate::source::RemoteSource;

/// How long a server that is gone has its tools, so that one that restarts disturbs nobody.
pub const GRACE: Duration = Duration::from_secs(5);
/// How long is waited before a server is reached again: at first, and at most, with twice as long each time.
pub const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// How long a server has to be there for its earlier faults to be forgotten.
const STEADY: Duration = Duration::from_secs(60);
/// Changes that come together are looked at once. Twice as long is waited each time that nothing has changed, up to [`ASKED`].
const SETTLES: Duration = Duration::from_millis(100);
/// How long is waited after a list that failed before the server is asked again. After the last it is given up, with the calls that run
/// there.
const RETRIES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
/// How often a server is asked that cannot be seen to go.
const ASKED: Duration = Duration::from_secs(60);

/// A server and what is known of it.
pub(super) struct Server {
    pub(super) source: RemoteSource,
    settings: Arc<McpServerSettings>,
    endpoint: Arc<Endpoint>,
    link: Arc<Link>,
    /// Of users with accounts there.
    sessions: Option<Arc<Sessions>>,
    stop: CancellationToken,
    /// Whether it has answered once, or failed to.
    pub(super) answered: watch::Sender<bool>,
    known: Mutex<Known>,
}

/// What is known of a server beside its tools.
struct Known {
    state: McpState,
    since: Timestamp,
    protocol: Option<String>,
    server: Option<String>,
    restarts: u64,
    error: Option<String>,
    /// The fault that was logged last.
    logged: Option<String>,
}

impl Server {
    pub(super) fn new(
        source: RemoteSource,
        settings: Arc<McpServerSettings>,
        endpoint: Arc<Endpoint>,
        link: Arc<Link>,
        sessions: Option<Arc<Sessions>>,
    ) -> Self {
        let known = Known {
            state: McpState::Connecting,
            since: source.now(),
            protocol: None,
            server: None,
            restarts: 0,
            error: None,
            logged: None,
        };
        Self {
            source,
            settings,
            endpoint,
            link,
            sessions,
            stop: CancellationToken::new(),
            answered: watch::Sender::new(false),
            known: Mutex::new(known),
        }
    }

    /// Whether it is a program or at an address, and not a part of this process.
    pub(super) fn is_outside(&self) -> bool {
        self.endpoint.is_outside()
    }

    fn turn(&self, known: &mut Known, state: McpState) {
        if known.state != state && known.state != McpState::Closed {
            (known.state, known.since) = (state, self.source.now());
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
                        self.source.withdraw();
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
                self.known.lock().logged = None;
            }
            self.failed(fault);
        }
    }

    /// Tries until the server is there and has said what tools it has.
    async fn reach(&self, pause: &mut Duration) -> Session {
        loop {
            // One that comes and goes at once is not reached at once again.
            if self.known.lock().error.is_some() {
                self.pause(*pause).await;
                *pause = (*pause * 2).min(PAUSES[1]);
            }
            let limit = self.settings.start_timeout;
            let reached = tokio::time::timeout(limit, async {
                let lister = match &self.sessions {
                    Some(sessions) => sessions.lister().await,
                    None => None,
                };
                let reached = async {
                    let session = self.endpoint.connect(&self.source.remote.name, lister.clone()).await?;
                    let listing = listing::list(&session.live.peer).await?;
                    Ok((session, listing))
                };
                reached.await.map_err(|fault: String| self.explained(lister.as_deref(), fault))
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

    /// Waits, but no longer than until somebody lets this server in.
    async fn pause(&self, pause: Duration) {
        match &self.sessions {
            Some(sessions) => drop(tokio::time::timeout(pause, sessions.account.authorized.notified()).await),
            None => tokio::time::sleep(pause).await,
        }
    }

    /// A fault of a server, with what to do where users have accounts there.
    fn explained(&self, lister: Option<&Bearer>, fault: String) -> String {
        match (&self.sessions, lister) {
            (_, Some(lister)) => lister.without_tokens(fault),
            (Some(sessions), None) => format!("{} ({fault})", sessions.connections.nobody(&sessions.account)),
            (None, None) => fault,
        }
    }

    /// Follows the server's tools while it is there. Gives the fault that ended it; none where it is to stop.
    async fn attend(&self, mut session: Session) -> Option<String> {
        let (peer, wake) = (session.live.peer.clone(), Arc::clone(&session.live.listener.wake));
        let mut following = session.follow(self.stop.clone());
        // What is pinned may be accepted through another server on the same store.
        let is_asked = self.endpoint.is_asked_regularly() || self.source.is_pinned();
        let asked = if is_asked { ASKED } else { Duration::MAX };
        let (mut settles, mut looked, mut before) = (SETTLES, Instant::now(), None);
        let mut retries = RETRIES.into_iter();
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
                () = wake.notified() => {
                    settles = if looked.elapsed() >= ASKED { SETTLES } else { settles };
                    tokio::time::sleep(settles).await;
                }
                () = tokio::time::sleep(asked) => {}
            }
            looked = Instant::now();
            let listed = tokio::select! {
                listed = tokio::time::timeout(self.settings.timeout, listing::list(&peer)) => listed,
                // The next round says why.
                () = session.closed() => continue,
            };
            let fault = match listed {
                Ok(Ok(listing)) => {
                    retries = RETRIES.into_iter();
                    let is_same = before.replace(listing.digest()) == Some(listing.digest());
                    settles = if is_same { (settles * 2).min(ASKED) } else { SETTLES };
                    if !is_same || self.source.is_pinned() {
                        self.take(listing).await;
                    }
                    continue;
                }
                Ok(Err(fault)) => {
                    // It has too much to do, which another connection would not mend.
                    let pause = if fault.contains("HTTP 429") { Some(ASKED) } else { retries.next() };
                    if let Some(pause) = pause {
                        tokio::select! {
                            () = session.closed() => {}
                            () = self.stop.cancelled() => {}
                            () = tokio::time::sleep(pause) => wake.notify_one(),
                        }
                        continue;
                    }
                    fault
                }
                Err(_) => "it does not answer any more".to_owned(),
            };
            self.link.set(None);
            session.close().await;
            return Some(fault);
        }
    }

    async fn connected(&self, introduced: Introduced, listing: Listing) {
        let Introduced { protocol, server: title } = introduced;
        let tools = self.take(listing).await;
        {
            let mut known = self.known.lock();
            known.restarts += u64::from(known.protocol.is_some());
            self.turn(&mut known, McpState::Connected);
            known.error = None;
            (known.protocol, known.server) = (Some(protocol.clone()), title);
        }
        tracing::info!(server = self.source.name(), protocol, tools, "mcp_server_connected");
        self.answered.send_replace(true);
    }

    /// The same fault is logged once.
    fn failed(&self, fault: String) {
        let fault = self.link.without_secrets(fault);
        let mut known = self.known.lock();
        self.turn(&mut known, McpState::Away);
        if known.logged.as_ref() != Some(&fault) {
            let (server, cause) = (self.source.name(), &*fault);
            tracing::warn!(server, cause, "mcp_server_failed");
            known.logged = Some(fault.clone());
        }
        known.error = Some(fault);
        drop(known);
        self.answered.send_replace(true);
    }

    /// Offers what the server lists in place of what it had. Gives the number of its tools.
    async fn take(&self, listing: Listing) -> usize {
        // Schemas and their patterns are compiled, which is the server's to size.
        let (server, settings) = (self.source.name().to_owned(), self.settings.clone());
        let intake = spawn_blocking(move || intake::take(&server, listing, &settings).bound_patterns());
        // Fails only where the program ends, or by a panic, which is logged; the tools stay as they are.
        let Ok(intake) = intake.await else { return 0 };
        self.source.take(intake).await
    }

    /// Leaves the server for good.
    pub(super) fn leave(&self) {
        self.stop.cancel();
        self.link.set(None);
        if let Some(sessions) = &self.sessions {
            sessions.leave();
        }
        self.turn(&mut self.known.lock(), McpState::Closed);
        self.source.close();
    }

    pub(super) fn report(&self) -> McpServerReport {
        let known = self.known.lock();
        McpServerReport {
            source: self.source.report(known.error.clone()),
            address: self.source.remote.address.to_string(),
            state: known.state,
            since: known.since,
            protocol: known.protocol.clone(),
            server: known.server.clone(),
            restarts: known.restarts,
        }
    }
}
