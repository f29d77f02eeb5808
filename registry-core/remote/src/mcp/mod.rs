//! Servers of the Model Context Protocol as sources of tools: programs spoken with over standard input and output, and addresses
//! over streamable HTTP, in the revision 2026-07-28 and those before it.
//!
//! [`McpServers`] reaches them in the background, [offers](registry_core::Registry::offer) the registry what tools they have as
//! `server.tool`, and follows them as they change, go and come back:
//!
//! ```no_run
//! use std::{collections::BTreeMap, sync::Arc, time::Duration};
//!
//! use registry_core::{Registry, store::MemoryManifests};
//! use toolrack_remote::mcp::{McpServerSettings, McpServers};
//!
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::builder().build()?;
//! let files = McpServerSettings::command("npx", ["-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"]);
//! let store = Arc::new(MemoryManifests::default());
//! let servers = McpServers::start(&registry, BTreeMap::from([("files".to_owned(), files)]), store)?;
//! servers.settled(Duration::from_secs(5)).await;
//! for report in servers.reports() {
//!     println!("{}: {} tools", report.source.name, report.source.tools);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What a server says is data of a stranger. It cannot loosen a check: see `docs/mcp-servers.md`.

mod asked;
mod bounded;
mod bounded_http;
mod call;
mod headers;
mod intake;
mod lenient;
mod lines;
mod listener;
mod listing;
pub mod oauth;
mod process;
mod reply;
mod report;
mod retry_after;
mod server;
mod session;
mod sessions;
mod settings;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use registry_core::{Registry, Remote, RemoteKind, store::ManifestStore};
use tokio::task::JoinSet;

use self::{
    call::Link, oauth::Connections, server::Server, session::Endpoint, sessions::Sessions, settings::wrong,
};
pub use self::{
    reply::{APPROVAL_PENDING, APPROVAL_WAIT, MAX_REPLY, READS},
    report::{McpServerReport, McpState},
    server::{GRACE, PAUSES},
    settings::{Connector, McpServerSettings},
};
use crate::{
    acceptance::AcceptError,
    settings::SettingsError,
    source::{RemoteSource, SourceSettings},
};

/// How long servers have to end in peace.
const ENDS: Duration = Duration::from_secs(5);

/// The MCP servers of a registry. Cheap to clone; when the last clone is dropped they are left, programs are killed, and their
/// tools go.
#[derive(Clone, derive_more::Debug)]
#[debug("McpServers({} servers)", shared.servers.len())]
pub struct McpServers {
    shared: Arc<Shared>,
}

struct Shared {
    servers: Vec<Arc<Server>>,
    /// They end when this is dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Shared {
    fn leave(&self) {
        self.servers.iter().for_each(|server| server.leave());
    }
}

impl McpServers {
    /// Begins to reach the servers, for a registry and those of its other tenants. It waits for none of them. To be called in a
    /// Tokio runtime. The store keeps what was accepted of their tools, above all of those that are pinned.
    ///
    /// # Errors
    /// What is wrong with a server's settings, or with the system's TLS. Then none is reached.
    pub fn start(
        registry: &Registry,
        settings: BTreeMap<String, McpServerSettings>,
        store: Arc<dyn ManifestStore>,
    ) -> Result<Self, SettingsError> {
        Self::start_with(registry, settings, store, None)
    }

    /// The same with servers on which users have accounts: with `auth` in their settings.
    ///
    /// # Errors
    /// The same, and where a server has `auth` and there are no connections for it.
    pub fn start_with(
        registry: &Registry,
        settings: BTreeMap<String, McpServerSettings>,
        store: Arc<dyn ManifestStore>,
        connections: Option<Connections>,
    ) -> Result<Self, SettingsError> {
        let mut servers = Vec::with_capacity(settings.len());
        for (name, settings) in settings {
            settings.check(&name)?;
            if !settings.enabled {
                continue;
            }
            let settings = Arc::new(settings);
            let endpoint = Arc::new(Endpoint::new(&settings).map_err(wrong(&name))?);
            let account = connections.as_ref().and_then(|all| Some((all.clone(), all.account(&name)?)));
            if account.is_none() && settings.auth.is_some() {
                return Err(wrong(&name)(
                    "this host keeps no accounts of users, which `auth` asks for".to_owned(),
                ));
            }
            let sessions = account.map(|(connections, account)| {
                let (name, limit) = (Arc::from(name.as_str()), settings.start_timeout.min(settings.timeout));
                Arc::new(Sessions::new(name, Arc::clone(&endpoint), connections, account, limit))
            });
            let (name, address): (Arc<str>, Arc<str>) = (name.into(), settings.address().into());
            let link = Link::new(Arc::clone(&name), endpoint.url(), &address, sessions.clone());
            let link = Arc::new(link);
            let source = SourceSettings {
                remote: Remote { kind: RemoteKind::Mcp, name, address },
                breaker: settings.breaker,
                concurrency: settings.concurrency,
                timeout: settings.timeout,
                pin: settings.pin,
            };
            let source = RemoteSource::new(registry, Arc::clone(&store), link.clone(), source);
            servers.push(Arc::new(Server::new(source, settings, endpoint, link, sessions)));
        }
        let mut tasks = JoinSet::new();
        for server in &servers {
            match server.is_outside() {
                // Whatever it sends is parsed there, and holds up nobody but other servers.
                true => tasks.spawn_on(Arc::clone(server).run(), &bounded::threads()),
                false => tasks.spawn(Arc::clone(server).run()),
            };
        }
        Ok(Self { shared: Arc::new(Shared { servers, tasks: Mutex::new(tasks) }) })
    }

    /// Waits until every server has said what tools it has, or failed to, but no longer than this. Gives whether all had.
    pub async fn settled(&self, within: Duration) -> bool {
        let all = async {
            for server in &self.shared.servers {
                // The sender is the server's own.
                let _ = server.answered.subscribe().wait_for(|answered| *answered).await;
            }
        };
        tokio::time::timeout(within, all).await.is_ok()
    }

    /// What is known of every server, by name; nobody is asked.
    pub fn reports(&self) -> Vec<McpServerReport> {
        self.shared.servers.iter().map(|server| server.report()).collect()
    }

    /// Accepts a server's tools as they are known here, where they are those that somebody has looked at: those of the digest in
    /// the server's [report](Self::reports).
    ///
    /// # Errors
    /// When there is no such server, its tools have another digest by now, or the store did not keep it. Then nothing has changed.
    pub async fn accept(&self, server: &str, digest: &str) -> Result<McpServerReport, AcceptError> {
        let known = self.shared.servers.iter().find(|known| known.source.name() == server);
        let known =
            known.ok_or_else(|| AcceptError::Unknown { kind: "MCP server", name: server.to_owned() })?;
        known.source.accept(digest).await?;
        Ok(known.report())
    }

    /// Leaves the servers, and gives programs a little time to end by themselves.
    pub async fn close(&self) {
        let tasks = std::mem::take(&mut *self.shared.tasks.lock());
        self.shared.leave();
        let _ = tokio::time::timeout(ENDS, tasks.join_all()).await;
    }
}
