//! The HTTP server, one file for each group of routes.

mod access;
mod admin;
mod answering;
mod api_error;
mod approvals;
mod body;
mod chat;
mod connections;
mod conversations;
mod counts;
mod document_reading;
mod documents;
mod execute;
mod fronts;
mod health;
mod identity;
mod key;
mod markdown;
mod mcp;
mod mcp_servers;
mod metrics;
mod models;
mod modules;
mod name;
mod ollama;
mod openapi;
mod origins;
mod page;
mod passed;
mod personas;
mod public_url;
mod query;
mod responses;
mod routes;
mod schedule;
mod serving;
mod timeouts;
mod tools;
mod unrouted;
mod webhooks;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Extension, Router, extract::DefaultBodyLimit, middleware, response::IntoResponse};
use registry_core::{
    Caller, Permission,
    store::{Conversations, Store},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolrack_http::webhook::Webhooks;
use toolrack_stores::schedule::Schedule;
use tower_http::catch_panic::CatchPanicLayer;

pub use access::Access;
use api_error::ApiError;
use connections::Connections;
pub use documents::Upload;
use identity::Identities;
use openapi::Document;
pub use origins::AllowedOrigin;
pub use public_url::PublicUrl;
use routes::Routes;
use toolrack_remote::module::Modules;
use unrouted::RouteList;

use crate::{mcp::McpSettings, metrics::Metrics, turn::Backend};

/// The largest request that is read, in bytes: a conversation with pictures in it.
const MAX_BODY: usize = 32 * 1024 * 1024;
/// The default grace period of open answers when the server stops.
pub const GRACE: Duration = Duration::from_secs(10);

/// The default time that a request may take to come.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The default time for which a client may take nothing of what is sent to it.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

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
    /// The MCP servers whose tools are in the registry.
    pub mcp_servers: Option<toolrack_remote::mcp::McpServers>,
    /// How the tools are offered to MCP clients.
    pub mcp: McpSettings,
    /// The conversations that are kept for clients of OpenAI's Responses, with what clients of any API have not seen of theirs; `None`
    /// for none.
    pub conversations: Option<Conversations>,
    /// The documents that tools search.
    pub documents: Option<toolrack_documents::Documents>,
    /// Who may add documents.
    pub upload: Upload,
    /// The model that extracts names and relations from new documents, with a request for each passage; `None` to extract nothing.
    pub extracting: Option<registry_core::model::Model>,
    /// This server's name as a module of another.
    pub module_name: String,
    /// The scheduled calls that this server makes.
    pub schedule: Option<Schedule>,
    /// The grace period of open answers when the server stops.
    pub grace: Duration,
    /// How long the head of a request may take to come, and how long its body, which gets a second more for every 16 KiB. A connection
    /// without a request is kept as long.
    pub request_timeout: Duration,
    /// How long a client may take nothing of what is sent to it before its connection is closed.
    pub write_timeout: Duration,
}

impl ServerSettings {
    /// Settings for a server on loopback with a chat, tools and users.
    pub fn new(caller: Caller, store: Arc<dyn Store>) -> Self {
        Self {
            caller,
            level_with_keys: None,
            access: Access::default(),
            public_url: None,
            store,
            webhooks: None,
            modules: None,
            metrics: Metrics::default(),
            mcp_servers: None,
            mcp: McpSettings::default(),
            conversations: None,
            documents: None,
            upload: Upload::default(),
            extracting: None,
            module_name: "toolrack".to_owned(),
            schedule: None,
            grace: GRACE,
            request_timeout: REQUEST_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
        }
    }
}

/// The state of the routes.
#[derive(Debug, Clone)]
struct App {
    backend: Backend,
    webhooks: Option<Webhooks>,
    modules: Modules,
    metrics: Metrics,
    mcp_servers: Option<toolrack_remote::mcp::McpServers>,
    documents: documents::DocumentAccess,
    conversations: Option<Conversations>,
    public_url: Option<PublicUrl>,
    /// This server's name in its manifest.
    module_name: Arc<str>,
    /// Cancelled when the grace period is over.
    closing: CancellationToken,
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
    let mcp = mcp::Mcp::new(&settings, stopping, closing.clone(), backend.tasks())?;
    let with_tools = Routes::new().merge(mcp::routes(mcp));
    if let Some(schedule) = settings.schedule.clone() {
        let owners = schedule::Owners(Arc::clone(&identities));
        backend.spawn(schedule::run(schedule, owners, Arc::clone(&settings), closing.clone()));
    }
    let modules = settings.modules.clone().map_or_else(|| modules::none(backend.registry()), Ok)?;
    let documents = documents::DocumentAccess::new(&backend, &settings, &closing);
    let app = App {
        backend,
        webhooks: settings.webhooks.clone(),
        modules,
        metrics: settings.metrics.clone(),
        mcp_servers: settings.mcp_servers.clone(),
        documents,
        conversations: settings.conversations.clone(),
        public_url: settings.public_url.clone(),
        module_name: settings.module_name.as_str().into(),
        closing,
    };
    let with_tools = with_tools
        .merge(chat::routes())
        .merge(responses::routes())
        .merge(counts::routes())
        .add("/execute", execute::execute, execute::execute_operation())
        .add("/api/tools", tools::list, tools::list_operation())
        .add("/api/tools", tools::register, tools::register_operation())
        .add("/api/tools/{name}", tools::switch, tools::switch_operation())
        .add("/api/tools/{name}", tools::remove, tools::remove_operation())
        .add("/api/modules", modules::list, modules::list_operation())
        .add("/api/modules/{module}/execute", modules::execute, modules::execute_operation())
        .behind(|router| router.route_layer(middleware::from_fn_with_state(app.clone(), modules::found)));
    let with_key = with_tools
        .add("/api/mcp-servers", mcp_servers::list, mcp_servers::list_operation())
        .add("/api/mcp-servers/{server}/accept", mcp_servers::accept, mcp_servers::accept_operation())
        .add("/api/documents", documents::list, documents::list_operation())
        .add("/api/documents", documents::add, documents::add_operation())
        .add("/api/documents", documents::remove, documents::remove_operation())
        .merge(models::routes())
        .merge(ollama::routes())
        .merge(passed::routes())
        .add("/manifest", modules::manifest, modules::manifest_operation())
        .add("/metrics", metrics::scrape, metrics::operation())
        .add("/api/modules/{module}/accept", modules::accept, modules::accept_operation())
        .add("/refresh-tools", modules::refresh, modules::refresh_operation())
        .add("/api/approvals", approvals::list, approvals::list_operation())
        .add("/api/approvals/{id}", approvals::answer, approvals::answer_operation())
        .add("/api/personas", personas::list, personas::list_operation())
        .add("/api/personas", personas::add, personas::add_operation())
        .add("/api/personas/{name}", personas::change, personas::change_operation())
        .add("/api/personas/{name}", personas::remove, personas::remove_operation())
        .add("/api/users/{id}/personas", personas::assign, personas::assign_operation())
        .add("/api/dead-letters", webhooks::list, webhooks::list_operation())
        .add("/api/dead-letters/{id}", webhooks::redeliver, webhooks::redeliver_operation())
        .add("/api/render", markdown::render, markdown::operation())
        .behind_key(Arc::clone(&identities));
    // The page and the server's health need no key: a browser cannot send one with its first request.
    let (router, operations) = page::routes()
        .add("/healthz", health::health, health::operation())
        .add("/openapi.json", openapi::serve, openapi::serve_operation())
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
    Ok(routes.layer(middleware::from_fn_with_state(settings, access::check_origin)).with_state(app))
}

/// Checks that it is safe to serve on an address.
///
/// # Errors
/// When the tools would be open to the network, or the store fails.
pub async fn check_address(settings: &ServerSettings, address: SocketAddr) -> Result<(), String> {
    settings.access.check_address(address, settings.store.has_keys().await?)
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
    let (closing, grace) = (CancellationToken::new(), settings.grace);
    let router = routes(backend.clone(), settings, stop.clone(), closing.clone())?;
    let (stopping, closed) = (stop.clone(), closing.clone());
    tokio::spawn(async move {
        stopping.cancelled().await;
        tracing::info!("Stopping; open answers have {} s", grace.as_secs());
        tokio::time::sleep(grace).await;
        closing.cancel();
    });
    let listener = Connections { listener, write_timeout };
    tokio::select! {
        () = serving::serve(listener, router, request_timeout, stop) => {}
        // Does not wait for a client that reads nothing.
        () = async { closed.cancelled().await; tokio::time::sleep(LAST_BYTES).await } => {}
    }
    // A call can outlive its connection.
    closed.cancel();
    backend.stop().await;
    Ok(())
}
