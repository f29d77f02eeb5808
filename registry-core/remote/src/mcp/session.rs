//! One connection to a server, over whatever transport.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use registry_core::BoxFuture;
use reqwest::{
    StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
    redirect,
};
use rmcp::{
    RoleClient,
    model::{ProtocolVersion, SubscriptionFilter},
    service::{
        ClientInitializeError, ClientLifecycleMode, Peer, RunningService, serve_client_with_lifecycle_and_ct,
    },
    transport::{
        IntoTransport, StreamableHttpClientTransport, common::http_header::EVENT_STREAM_MIME_TYPE,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use toolrack_http::build_client;

use super::{
    Connector, McpServerSettings,
    asked::Asked,
    bounded_http::BoundedHttp,
    call::Live,
    headers,
    lines::Lines,
    listener::Listener,
    oauth::Bearer,
    process::{self, Process},
    settings::{McpTransport, parse_url},
};
use crate::{
    settings::find_key,
    text::{cause_of, shown},
};

/// How long a connection has to close.
const CLOSES: Duration = Duration::from_secs(2);
/// How long a server that was not reached may take to say whether it wants a key.
const HINTS: Duration = Duration::from_secs(5);
/// How long a subscription may take to stand.
const SUBSCRIBES: Duration = Duration::from_secs(10);
/// How long is waited before a subscription that ended is made again: at first, and at most.
const RESUBSCRIBES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// How a server is reached, and how it is greeted.
pub(super) struct Endpoint {
    transport: Transport,
    /// Whether the server takes nothing but the handshake of the earlier revisions: being asked for a newer one, some end the
    /// connection.
    is_legacy: AtomicBool,
}

/// A transport, checked and with all that it needs.
enum Transport {
    Command {
        program: String,
        settings: Arc<McpServerSettings>,
        env: BTreeMap<String, OsString>,
    },
    Http {
        http: reqwest::Client,
        config: StreamableHttpClientTransportConfig,
    },
    InProcess(Connector),
    /// What it needs is not there, such as a variable of the environment.
    Incomplete(String),
}

/// What a server says of itself when a connection begins.
#[derive(Clone)]
pub(super) struct Introduced {
    /// The protocol's revision.
    pub(super) protocol: String,
    /// What it calls itself, and its version.
    pub(super) server: Option<String>,
}

/// A connection. When it is dropped it is closed, and the program behind it killed.
pub(super) struct Session {
    pub(super) live: Live,
    pub(super) introduced: Introduced,
    /// Whether it reports changes only to those who subscribe.
    has_subscriptions: bool,
    /// Ends when the connection does; none once it has.
    closed: Option<BoxFuture<'static, ()>>,
    stop: CancellationToken,
    process: Option<Process>,
}

impl Endpoint {
    /// Without what the settings name and the environment has not, the server is one that cannot be reached.
    ///
    /// # Errors
    /// What is wrong with the settings, or with the system's TLS.
    pub(super) fn new(settings: &Arc<McpServerSettings>) -> Result<Self, String> {
        let transport = match settings.transport()? {
            McpTransport::Command(program) => match process::environment(settings) {
                Ok(env) => {
                    Transport::Command { program: program.to_owned(), settings: Arc::clone(settings), env }
                }
                Err(fault) => Transport::Incomplete(fault),
            },
            McpTransport::Http(url) => {
                let url = parse_url(url)?;
                let http = build_client(|| {
                    // The operator has not said that we may go wherever a server sends us, nor that it gets the key there. Without
                    // idle connections, as one whose last answer was not read to its end stalls.
                    reqwest::Client::builder()
                        .redirect(redirect::Policy::none())
                        .referer(false)
                        .pool_max_idle_per_host(0)
                });
                let http = http.map_err(|error| format!("the system's TLS cannot be set up: {error}"))?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                // The registry bounds the calls.
                config.max_concurrent_requests = usize::from(u16::MAX);
                let key = find_key(settings.key.as_ref(), settings.key_env.as_deref());
                match key.and_then(|key| Ok((key, headers::find(settings)?))) {
                    Ok((key, headers)) => {
                        config.auth_header = key.map(|key| key.as_str().to_owned());
                        config.custom_headers = headers;
                        Transport::Http { http, config }
                    }
                    Err(fault) => Transport::Incomplete(fault),
                }
            }
            McpTransport::InProcess(connector) => Transport::InProcess(Arc::clone(connector)),
        };
        Ok(Self { transport, is_legacy: AtomicBool::new(false) })
    }

    /// The whole URL, where it is at one. It may have a secret in its query.
    pub(super) fn url(&self) -> Option<&str> {
        match &self.transport {
            Transport::Http { config, .. } => Some(&config.uri),
            _ => None,
        }
    }

    /// Whether it is a program or at an address, and not a part of this process.
    pub(super) fn is_outside(&self) -> bool {
        !matches!(self.transport, Transport::InProcess(_))
    }

    /// Whether nobody notices by itself that the server is gone.
    pub(super) fn is_asked_regularly(&self) -> bool {
        matches!(self.transport, Transport::Http { .. })
    }

    /// Connects, in whichever revision of the protocol the server speaks.
    ///
    /// # Errors
    /// Why that failed.
    pub(super) async fn connect(
        &self,
        server: &Arc<str>,
        bearer: Option<Arc<Bearer>>,
    ) -> Result<Session, String> {
        if self.is_legacy.swap(false, Ordering::Relaxed) {
            let session = self.transport.connect(server, ClientLifecycleMode::Initialize, bearer).await?;
            self.is_legacy.store(true, Ordering::Relaxed);
            return Ok(session);
        }
        let auto = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        match self.transport.connect(server, auto, bearer.clone()).await {
            // The library greets both ways only where it is told in the protocol's form that the first is not known.
            Err(Unreached::NotGreeted(_)) => {}
            reached => return reached.map_err(String::from),
        }
        let session = self.transport.connect(server, ClientLifecycleMode::Initialize, bearer).await?;
        self.is_legacy.store(true, Ordering::Relaxed);
        Ok(session)
    }
}

/// Why there is no connection.
enum Unreached {
    /// Nobody was there.
    Away(String),
    /// Somebody was, and what began came to nothing.
    NotGreeted(String),
    /// Somebody was, who does not let us in.
    ShutOut(String),
}

impl From<Unreached> for String {
    fn from(unreached: Unreached) -> Self {
        match unreached {
            Unreached::Away(fault) | Unreached::NotGreeted(fault) | Unreached::ShutOut(fault) => fault,
        }
    }
}

impl Transport {
    async fn connect(
        &self,
        server: &Arc<str>,
        lifecycle: ClientLifecycleMode,
        bearer: Option<Arc<Bearer>>,
    ) -> Result<Session, Unreached> {
        let opened = match self {
            Self::Command { program, settings, env } => {
                let started = Process::start(server, program, settings, env);
                let (process, output, input) = started.map_err(|error| {
                    Unreached::Away(format!("`{}` cannot be started: {error}", shown(program)))
                })?;
                open(Lines::new(output, input), lifecycle, Some(process)).await
            }
            Self::Http { http, config } => {
                let bounded = BoundedHttp { http: http.clone(), bearer: bearer.clone() };
                let transport = StreamableHttpClientTransport::with_client(bounded, config.clone());
                return match (open(transport, lifecycle, None).await, bearer) {
                    (Err(fault), None) => Err(with_hint(fault, http, config).await),
                    (Err(fault), Some(bearer)) if bearer.is_refused() => Err(Unreached::ShutOut(fault)),
                    (opened, _) => opened.map_err(Unreached::NotGreeted),
                };
            }
            Self::Incomplete(fault) => return Err(Unreached::Away(fault.clone())),
            Self::InProcess(connect) => {
                let (input, output) =
                    tokio::io::split(connect().map_err(|error| Unreached::Away(cause_of(error)))?);
                open(Lines::new(input, output), lifecycle, None).await
            }
        };
        opened.map_err(Unreached::NotGreeted)
    }
}

async fn open<E: std::error::Error + Send + Sync + 'static, A>(
    transport: impl IntoTransport<RoleClient, E, A>,
    lifecycle: ClientLifecycleMode,
    process: Option<Process>,
) -> Result<Session, String> {
    let (listener, stop) = (Listener::default(), CancellationToken::new());
    let transport = Asked::new(transport.into_transport());
    let opened =
        serve_client_with_lifecycle_and_ct(listener.clone(), transport, lifecycle, stop.clone()).await;
    let running = match opened {
        Ok(running) => running,
        Err(ClientInitializeError::ConnectionClosed(_)) => return Err(ended(process).await),
        Err(error) => return Err(why(error)),
    };
    Ok(Session::new(running, listener, stop, process))
}

/// What made a handshake fail. Where both were tried, the one that every server knows.
fn why(error: ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => why(*fallback),
        error => cause_of(error),
    }
}

/// What to do where a server wants a key, or another one, or speaks an older transport. The client library gives no status with its
/// errors, so the server is asked once more.
async fn with_hint(
    fault: String,
    http: &reqwest::Client,
    config: &StreamableHttpClientTransportConfig,
) -> Unreached {
    let headers = config.custom_headers.iter();
    let headers = headers.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut request = http.get(&*config.uri).headers(headers).header(ACCEPT, "text/event-stream");
    if let Some(key) = &config.auth_header {
        request = request.bearer_auth(key);
    }
    let Ok(Ok(answer)) = tokio::time::timeout(HINTS, request.send()).await else {
        return Unreached::NotGreeted(fault);
    };
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match (answer.status(), &config.auth_header) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, Some(_)) => {
            Unreached::ShutOut(format!("the server does not take its key: {fault}"))
        }
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, None) => Unreached::ShutOut(format!(
            "the server asks for a key; name its variable under `key_env`: {fault}"
        )),
        // A server of streamable HTTP has a stream for those alone that have been greeted.
        (StatusCode::OK, _) if kind.starts_with(EVENT_STREAM_MIME_TYPE) => Unreached::NotGreeted(format!(
            "the address speaks the transport of before 2025-03-26 (HTTP+SSE), which is not supported; look for one that ends in \
             /mcp, or let a program translate, as `npx mcp-remote` does under `command`: {fault}"
        )),
        _ => Unreached::NotGreeted(fault),
    }
}

/// Why the other side is gone.
async fn ended(process: Option<Process>) -> String {
    match process {
        None => "it closed the connection".to_owned(),
        Some(process) => match process.end().await {
            Some(status) => format!("the program ended ({status})"),
            None => "the program closed its standard output".to_owned(),
        },
    }
}

impl Session {
    fn new(
        running: RunningService<RoleClient, Listener>,
        listener: Listener,
        stop: CancellationToken,
        process: Option<Process>,
    ) -> Self {
        let peer = running.peer().clone();
        let info = peer.peer_info();
        let tools = info.as_ref().and_then(|info| info.capabilities.tools.clone());
        let reports_changes = tools.is_some_and(|tools| tools.list_changed == Some(true));
        let named = info.as_ref().and_then(|info| info.server_info.as_ref());
        Self {
            introduced: Introduced {
                protocol: info.as_ref().map(|info| shown(info.protocol_version.as_str())).unwrap_or_default(),
                server: named.map(|server| shown(&format!("{} {}", server.name, server.version))),
            },
            has_subscriptions: reports_changes
                && info.is_some_and(|info| !info.protocol_version.has_initialize()),
            live: Live { peer, listener },
            closed: Some(Box::pin(async move {
                let _ = running.waiting().await;
            })),
            stop,
            process,
        }
    }

    /// Waits for the connection to end.
    pub(super) async fn closed(&mut self) {
        if let Some(closed) = &mut self.closed {
            closed.as_mut().await;
            self.closed = None;
        }
    }

    /// Why the connection ended, once it has.
    pub(super) async fn cause(mut self) -> String {
        ended(self.process.take()).await
    }

    /// Closes the connection, so that the server can end in peace.
    pub(super) async fn close(mut self) {
        self.stop.cancel();
        let _ = tokio::time::timeout(CLOSES, self.closed()).await;
        if let Some(process) = self.process.take() {
            process.end().await;
        }
    }

    /// Subscribes to changes where the server has such, again and again, and wakes whoever looks after it. Ends when that one
    /// leaves: a server that is still subscribed to waits for its subscriber before it ends.
    pub(super) fn follow(&self, leaving: CancellationToken) -> BoxFuture<'static, ()> {
        let (peer, wake) = (self.live.peer.clone(), Arc::clone(&self.live.listener.wake));
        if self.has_subscriptions {
            Box::pin(follow(peer, wake, leaving))
        } else {
            Box::pin(leaving.cancelled_owned())
        }
    }
}

async fn follow(peer: Peer<RoleClient>, wake: Arc<Notify>, leaving: CancellationToken) {
    let [first, most] = RESUBSCRIBES;
    let mut pause = first;
    loop {
        let since = Instant::now();
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let subscribed = tokio::time::timeout(SUBSCRIBES, peer.listen(filter)).await;
        // What has changed between the list and this is not heard; and a server that takes no subscription may be gone.
        wake.notify_one();
        if let Ok(Ok(mut subscription)) = subscribed {
            loop {
                tokio::select! {
                    change = subscription.next() => match change {
                        Ok(Some(_)) => wake.notify_one(),
                        _ => break,
                    },
                    () = leaving.cancelled() => {
                        let _ = subscription.cancel().await;
                        return;
                    }
                }
            }
        }
        // Asking for its tools shows whether the server is gone.
        wake.notify_one();
        pause = if since.elapsed() > most { first } else { pause };
        if leaving.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
        pause = (pause * 2).min(most);
    }
}
