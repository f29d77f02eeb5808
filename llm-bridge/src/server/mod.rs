//! The HTTP server, one file for each group of routes.

mod access;
mod accounts;
mod admin;
mod answering;
mod api_error;
mod approval_rules;
mod approvals;
mod audit;
mod backup;
mod body;
mod chat;
mod chats;
mod configured;
mod connected_accounts;
mod connections;
mod conversations;
mod counts;
mod dev;
mod doctor;
#[cfg_attr(not(feature = "documents"), path = "documents/none.rs")]
mod documents;
mod erasure;
mod execute;
mod files;
mod fronts;
mod handover;
mod harmless;
mod health;
mod identity;
mod jobs;
mod key;
mod mcp;
mod mcp_servers;
mod mcp_sessions;
mod metrics;
mod models;
mod modules;
mod name;
mod ollama;
mod openapi;
mod origins;
#[cfg_attr(not(feature = "page"), path = "no_page.rs")]
mod page;
mod passed;
mod personas;
mod protected_resource;
mod public_url;
mod query;
mod questions;
mod responses;
mod routes;
mod schedule;
mod seats;
mod serving;
mod session;
mod sign_in;
mod timeouts;
mod tools;
mod traces;
mod turns;
mod unrouted;
mod users;
mod via;
mod webhooks;
mod written;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Extension, Router, extract::DefaultBodyLimit, middleware, response::IntoResponse};
use registry_core::{
    Caller, Permission,
    store::{ChatStore, Conversations, Store},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolrack_http::webhook::Webhooks;
use toolrack_stores::schedule::Schedule;
use tower_http::catch_panic::CatchPanicLayer;

pub use access::Access;
use api_error::ApiError;
#[cfg(feature = "cli")]
pub(crate) use audit::origin_filter;
pub use audit::{AuditChain, AuditFault, AuditReading, AuditVerdict, GivenHeads, VerifyAudit};
pub use backup::{BackupFault, BackupFile, MakeBackup};
pub use configured::{Configured, SettingOrigin};
use connections::Connections;
pub use doctor::{Examination, ExamineModel};
#[cfg(all(feature = "cli", feature = "documents"))]
pub(crate) use documents::uploads_of;
pub use documents::{Documents, Upload, UploadLimits};
pub use erasure::{ErasePerson, Erased};
use identity::Identities;
use openapi::Document;
pub use origins::AllowedOrigin;
pub use public_url::PublicUrl;
use routes::Routes;
pub use seats::MAX_CONNECTIONS;
use toolrack_remote::module::Modules;
use unrouted::RouteList;

pub use crate::takeover::Takeover;
use crate::{
    mcp::McpSettings,
    metrics::Metrics,
    sign_in::SignIn,
    traces::Traces,
    turn::{Backend, TurnsElsewhere},
};

/// The largest request that is read, in bytes: a conversation with pictures in it.
const MAX_BODY: usize = 32 * 1024 * 1024;
/// The default grace period of open answers when the server stops.
pub const GRACE: Duration = Duration::from_secs(10);

/// The default time that a request may take to come.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The default time for which a client may take nothing of what is sent to it.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long what runs may go on here after another program has taken over.
const FINISH: Duration = Duration::from_secs(600);

/// How long a program that takes over waits for the tools of other servers, which the program before has already.
const REMOTE_TOOLS: Duration = Duration::from_secs(2);

/// How long the last bytes of cancelled answers may take.
const LAST_BYTES: Duration = Duration::from_secs(1);

/// The settings of a server.
#[derive(Clone, derive_more::Debug)]
#[debug("ServerSettings({access:?})")]
pub struct ServerSettings {
    /// The caller of requests without a key.
    pub caller: Caller,
    /// The highest level of this caller once a user has a key; `None` for no limit.
    pub level_with_keys: Option<Permission>,
    /// Authentication of requests.
    pub access: Access,
    /// The people who may sign in; `None` for users with keys only.
    pub sign_in: Option<Arc<SignIn>>,
    /// The address at which clients reach this server; `None` for the one that they name.
    pub public_url: Option<PublicUrl>,
    /// The store of users and keys.
    pub store: Arc<dyn Store>,
    /// The webhooks, for the list of dead letters.
    pub webhooks: Option<Webhooks>,
    /// The modules whose tools are in the registry.
    pub modules: Option<Modules>,
    /// The metrics.
    pub metrics: Metrics,
    /// Where traces of requests go; `None` for nowhere.
    pub traces: Option<Traces>,
    /// The MCP servers whose tools are in the registry.
    pub mcp_servers: Option<toolrack_remote::mcp::McpServers>,
    /// The accounts of users on those servers; `None` where no server has such.
    pub connections: Option<toolrack_remote::mcp::oauth::Connections>,
    /// How the tools are offered to MCP clients.
    pub mcp: McpSettings,
    /// The conversations that are kept for clients of OpenAI's Responses, with what clients of any API have not seen of theirs; `None`
    /// for none.
    pub conversations: Option<Conversations>,
    /// Where the chats of the page are kept; `None` for nowhere.
    #[debug(skip)]
    pub chats: Option<Arc<dyn ChatStore>>,
    /// The documents that tools search.
    pub documents: Option<Documents>,
    /// Who may add documents.
    pub upload: Upload,
    /// How much a user may add of them.
    pub upload_limits: UploadLimits,
    /// The model that extracts names and relations from new documents, with a request for each passage; `None` to extract nothing.
    pub extracting: Option<registry_core::model::Model>,
    /// This server's name as a module of another.
    pub module_name: String,
    /// The scheduled calls that this server makes.
    pub schedule: Option<Schedule>,
    /// The audit, for admins to read; `None` where it cannot be read.
    #[debug(skip)]
    pub audit: Option<AuditReading>,
    /// The grace period of open answers when the server stops.
    pub grace: Duration,
    /// How long the head of a request may take to come, and how long its body, which gets a second more for every 16 KiB. A connection
    /// without a request is kept as long.
    pub request_timeout: Duration,
    /// How long a client may take nothing of what is sent to it before its connection is closed.
    pub write_timeout: Duration,
    /// How many connections there may be at once; a quarter of them may have requests of one user under way. For health and admins there
    /// are some more.
    pub max_connections: usize,
    /// Asks models what they can do, for admins; `None` where that is not possible.
    #[debug(skip)]
    pub doctor: Option<Arc<dyn ExamineModel>>,
    /// Erases what is kept of a person, for admins; `None` where that is not possible.
    #[debug(skip)]
    pub eraser: Option<Arc<dyn ErasePerson>>,
    /// Makes backups, for the operator; `None` where that is not possible.
    #[debug(skip)]
    pub backup: Option<Arc<dyn MakeBackup>>,
    /// Where the turns of other servers with the same store are; `None` for a server that is alone.
    pub elsewhere: Option<TurnsElsewhere>,
    /// The settings that the server was configured with, for admins to read.
    pub configured: Arc<[Configured]>,
    /// What this server takes over from the one before, and hands on, under `toolrack dev`.
    pub takeover: Option<Takeover>,
}

impl ServerSettings {
    /// Settings for a server on loopback with a chat, tools and users.
    pub fn new(caller: Caller, store: Arc<dyn Store>) -> Self {
        Self {
            caller,
            level_with_keys: None,
            access: Access::default(),
            sign_in: None,
            public_url: None,
            store,
            webhooks: None,
            modules: None,
            metrics: Metrics::default(),
            traces: None,
            mcp_servers: None,
            connections: None,
            mcp: McpSettings::default(),
            conversations: None,
            chats: None,
            documents: None,
            upload: Upload::default(),
            upload_limits: UploadLimits::default(),
            extracting: None,
            module_name: "toolrack".to_owned(),
            schedule: None,
            audit: None,
            grace: GRACE,
            request_timeout: REQUEST_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
            max_connections: MAX_CONNECTIONS,
            doctor: None,
            eraser: None,
            backup: None,
            elsewhere: None,
            configured: Arc::default(),
            takeover: None,
        }
    }
}

/// The state of the routes.
#[derive(Clone, derive_more::Debug)]
struct App {
    backend: Backend,
    webhooks: Option<Webhooks>,
    modules: Modules,
    #[debug(skip)]
    schedule: Option<Schedule>,
    #[debug(skip)]
    audit: Option<AuditReading>,
    metrics: Metrics,
    traces: Option<Traces>,
    mcp_servers: Option<toolrack_remote::mcp::McpServers>,
    /// How the tools are offered to MCP clients.
    mcp: McpSettings,
    documents: documents::DocumentAccess,
    conversations: Option<Conversations>,
    #[debug(skip)]
    chats: Option<Arc<dyn ChatStore>>,
    /// The turns of chats that run here.
    chat_turns: chats::Turns,
    public_url: Option<PublicUrl>,
    sign_in: Option<Arc<SignIn>>,
    /// This server's name in its manifest.
    module_name: Arc<str>,
    #[debug(skip)]
    doctor: Option<doctor::Doctor>,
    #[debug(skip)]
    eraser: Option<Arc<dyn ErasePerson>>,
    backup: Option<backup::Backups>,
    elsewhere: Option<TurnsElsewhere>,
    configured: Arc<[Configured]>,
    /// Cancelled when the grace period is over.
    closing: CancellationToken,
    /// Whether `toolrack dev` has started this program.
    dev: bool,
}

/// The routes and their background tasks. `closing` cancels open answers.
///
/// # Errors
/// When the system's random numbers or TLS are not available.
pub fn router(
    backend: Backend,
    settings: ServerSettings,
    closing: CancellationToken,
) -> Result<Router, String> {
    routes(backend, settings, closing.clone(), closing)
}

/// The same; `stopping` ends streams without an end of their own, before `closing` cancels answers.
fn routes(
    backend: Backend,
    settings: ServerSettings,
    stopping: CancellationToken,
    closing: CancellationToken,
) -> Result<Router, String> {
    let settings = Arc::new(settings);
    let backend = match &settings.conversations {
        Some(conversations) => backend.with_conversations(conversations.clone()),
        None => backend,
    };
    let identities = Arc::new(Identities::new(Arc::clone(&settings), backend.registry().clone()));
    let mcp = mcp::Mcp::new(&settings, stopping.clone(), closing.clone(), backend.tasks())?;
    let with_tools = Routes::new().merge(mcp::routes(mcp));
    if let Some(schedule) = settings.schedule.clone() {
        let owners = schedule::Owners(Arc::clone(&identities));
        let run = schedule::run(schedule, owners, Arc::clone(&settings), stopping.clone(), closing.clone());
        backend.spawn(run);
    }
    if let Some(elsewhere) = settings.elsewhere.clone() {
        // Nothing waits for it: a server that hands over tells to its end what still runs.
        tokio::spawn(elsewhere.follow(backend.live_turns().clone(), closing.clone()));
    }
    let modules = settings.modules.clone().map_or_else(|| modules::none(backend.registry()), Ok)?;
    let documents = documents::DocumentAccess::new(&backend, &settings, &stopping);
    let id = backend.upstream().id();
    let app = App {
        backend,
        webhooks: settings.webhooks.clone(),
        modules,
        schedule: settings.schedule.clone(),
        audit: settings.audit.clone(),
        metrics: settings.metrics.clone(),
        traces: settings.traces.clone(),
        mcp_servers: settings.mcp_servers.clone(),
        mcp: settings.mcp,
        documents,
        conversations: settings.conversations.clone(),
        chats: settings.chats.clone(),
        chat_turns: chats::Turns::default(),
        public_url: settings.public_url.clone(),
        sign_in: settings.sign_in.clone(),
        module_name: settings.module_name.as_str().into(),
        doctor: settings.doctor.clone().map(doctor::Doctor::new),
        eraser: settings.eraser.clone(),
        backup: settings.backup.clone().map(backup::Backups::new),
        elsewhere: settings.elsewhere.clone(),
        configured: Arc::clone(&settings.configured),
        closing,
        dev: settings.takeover.is_some(),
    };
    let with_tools = with_tools
        .merge(chat::routes())
        .merge(chats::routes())
        .merge(responses::routes())
        .merge(counts::routes())
        .add("/execute", execute::execute, execute::execute_operation())
        .merge(tools::routes())
        .merge(written::routes())
        .add("/api/modules", modules::list, modules::list_operation())
        .add("/api/modules/{module}/execute", modules::execute, modules::execute_operation())
        .behind(|router| router.route_layer(middleware::from_fn_with_state(app.clone(), modules::found)));
    let with_key = with_tools
        .add("/api/mcp-servers", mcp_servers::list, mcp_servers::list_operation())
        .add("/api/mcp-servers/{server}/accept", mcp_servers::accept, mcp_servers::accept_operation())
        .add("/api/files/{*file}", files::read, files::operation())
        .merge(documents::routes())
        .merge(models::routes())
        .merge(ollama::routes())
        .merge(passed::routes())
        .add("/manifest", modules::manifest, modules::manifest_operation())
        .add("/metrics", metrics::scrape, metrics::operation())
        .add("/api/traces/{id}", traces::read, traces::operation())
        .add("/api/modules/{module}/accept", modules::accept, modules::accept_operation())
        .add("/refresh-tools", modules::refresh, modules::refresh_operation())
        .add("/api/approvals", approvals::list, approvals::list_operation())
        .add("/api/approvals/{id}", approvals::answer, approvals::answer_operation())
        .merge(approval_rules::routes())
        .add("/api/questions", questions::list, questions::list_operation())
        .add("/api/questions/{id}", questions::read, questions::read_operation())
        .add("/api/questions/{id}", questions::answer, questions::answer_operation())
        .add("/api/personas", personas::list, personas::list_operation())
        .add("/api/personas", personas::add, personas::add_operation())
        .add("/api/personas/{name}", personas::change, personas::change_operation())
        .add("/api/personas/{name}", personas::remove, personas::remove_operation())
        .add("/api/users/{id}/personas", personas::assign, personas::assign_operation())
        .merge(users::routes())
        .add("/api/users/{id}/erase", erasure::erase, erasure::operation())
        .add("/api/backup", backup::make, backup::operation())
        .add("/api/audit", audit::list, audit::list_operation())
        .add("/api/audit/export", audit::export, audit::export_operation())
        .add("/api/audit/verify", audit::verify, audit::verify_operation())
        .add("/api/audit/verify", audit::verify_given, audit::verify_given_operation())
        .add("/api/turns", turns::list, turns::list_operation())
        .add("/api/turns/{id}", turns::stop, turns::stop_operation())
        .add("/api/doctor", doctor::read, doctor::read_operation())
        .add("/api/doctor", doctor::ask, doctor::ask_operation())
        .add("/api/doctor", doctor::stop, doctor::stop_operation())
        .add("/api/doctor/settings", doctor::write, doctor::write_operation())
        .add("/api/settings", configured::list, configured::operation())
        .add("/api/jobs", jobs::list, jobs::list_operation())
        .add("/api/jobs/{id}", jobs::remove, jobs::remove_operation())
        .add("/api/webhooks", webhooks::endpoints, webhooks::endpoints_operation())
        .add("/api/dead-letters", webhooks::list, webhooks::list_operation())
        .add("/api/dead-letters/{id}", webhooks::redeliver, webhooks::redeliver_operation())
        .merge(dev::routes(settings.takeover.as_ref(), stopping))
        .merge(sign_in::session_routes(&identities))
        .merge(accounts::own_routes(settings.connections.as_ref()))
        .merge(connected_accounts::routes())
        .behind_key(Arc::clone(&identities));
    // The page and the server's health need no key: a browser cannot send one with its first request.
    let (router, operations) = page::routes()
        .add("/healthz", health::health, health::operation())
        .add("/openapi.json", openapi::serve, openapi::serve_operation())
        .merge(protected_resource::routes(settings.sign_in.as_deref()))
        .merge(sign_in::routes(&identities))
        .merge(accounts::routes(settings.connections.as_ref(), &identities))
        .merge(with_key)
        .into_parts();
    let list = RouteList::new(&operations);
    let document = Document::new(operations).map_err(|error| error.to_string())?;
    let routes = router
        .fallback(unrouted::not_found)
        .method_not_allowed_fallback(unrouted::method_not_allowed)
        .layer(Extension(document))
        .layer(Extension(list))
        .layer(middleware::from_fn_with_state(identities, access::check_host))
        .layer(middleware::from_fn_with_state(settings.request_timeout, timeouts::limit_body))
        .layer(middleware::from_fn(fronts::errors_in_shape))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(CatchPanicLayer::custom(|_| {
            ApiError::internal("the server failed; see its log").into_response()
        }));
    // Around all of it, so that pages of allowed origins can read errors as well, whatever name they call the server.
    let routes = match origins::cors(&settings.access.allowed_origins) {
        Some(cors) => routes.layer(cors),
        None => routes,
    };
    let routes = routes.layer(middleware::from_fn_with_state(settings, access::check_origin));
    let routes = routes.layer(middleware::map_response(harmless::in_browsers));
    Ok(routes.layer(middleware::from_fn_with_state(id, via::check)).with_state(app))
}

/// Checks that it is safe to serve on an address.
///
/// # Errors
/// When the tools would be open to the network, or the store fails.
pub async fn check_address(settings: &ServerSettings, address: SocketAddr) -> Result<(), String> {
    settings.access.check_address(address, settings.sign_in.is_some() || settings.store.has_keys().await?)
}

/// Serves until `stop` is cancelled, then waits for open answers for the grace period.
///
/// # Errors
/// When the address is not safe to serve on without a key, or the listener fails.
pub async fn serve(
    listener: TcpListener,
    backend: Backend,
    settings: ServerSettings,
    stop: CancellationToken,
) -> Result<(), String> {
    let address: SocketAddr = listener.local_addr().map_err(|error| error.to_string())?;
    check_address(&settings, address).await?;
    let (request_timeout, write_timeout) = (settings.request_timeout, settings.write_timeout);
    let max_connections = settings.max_connections;
    let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
    let router = routes(backend.clone(), settings.clone(), stopping.clone(), closing.clone())?;
    let leaving = backend.registry().clone();
    tokio::spawn({
        let ends = end(stop, stopping.clone(), settings.grace, settings.takeover.clone());
        let closing = closing.clone();
        async move {
            ends.await;
            // What a tool asks then is for the server after this one.
            leaving.leave_questions();
            closing.cancel();
        }
    });
    if let Some(takeover) = settings.takeover.clone() {
        tokio::spawn(announce(takeover, settings.clone(), backend.clone()));
    }
    let takeover = settings.takeover;
    let listener = Connections { listener, write_timeout, takeover: takeover.clone() };
    let finished = async {
        serving::serve(listener, router, request_timeout, max_connections, stopping).await;
        // A call of a client that has gone goes on.
        if takeover.as_ref().is_some_and(Takeover::is_succeeded) {
            backend.finished().await;
        }
    };
    tokio::select! {
        () = finished => {}
        // Does not wait for a client that reads nothing.
        () = async { closing.cancelled().await; tokio::time::sleep(LAST_BYTES).await } => {}
    }
    // A call can outlive its connection.
    backend.registry().leave_questions();
    closing.cancel();
    backend.stop().await;
    Ok(())
}

/// Says when to accept no more connections, and ends when what runs is to be cancelled.
async fn end(
    stop: CancellationToken,
    stopping: CancellationToken,
    grace: Duration,
    takeover: Option<Takeover>,
) {
    let succeeded = async {
        match &takeover {
            Some(takeover) => takeover.succeeded().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = succeeded => {
            stopping.cancel();
            // What runs goes on until then.
            let _ = tokio::time::timeout(FINISH, stop.cancelled()).await;
        }
    }
    stopping.cancel();
    tracing::info!("Stopping; open answers have {} s", grace.as_secs());
    tokio::time::sleep(grace).await;
}

/// Says that this server can take over, when it has the tools that the one before has.
async fn announce(takeover: Takeover, settings: ServerSettings, backend: Backend) {
    if takeover.succeeds() {
        let settled = async {
            if let Some(modules) = &settings.modules {
                modules.ready().await;
            }
            if let Some(servers) = &settings.mcp_servers {
                servers.settled(REMOTE_TOOLS).await;
            }
        };
        let _ = tokio::time::timeout(REMOTE_TOOLS, settled).await;
    }
    let tools = backend.registry().list_all(false);
    takeover.ready(tools.iter().map(|tool| tool.name().to_owned()).collect()).await;
}
