//! `/mcp`: the MCP server over streamable HTTP.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Once, PoisonError},
    time::Duration,
};

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::{Method, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolrack_remote::mcp::McpServers;

use super::{
    LAST_BYTES, ServerSettings,
    api_error::ApiError,
    identity::Identity,
    openapi::{JsonRpc, Operation},
    routes::Routes,
};
use crate::mcp::{McpServer, Visitor};

/// The header that names a session of the revisions before 2026-07-28.
const SESSION: &str = "mcp-session-id";
/// The header that names the revision.
const REVISION: &str = "mcp-protocol-version";
/// The first revision without sessions.
const WITHOUT_SESSIONS: &str = "2026-07-28";
/// How long an idle session stays open. A chat may be idle for a while, and few clients open a new session.
const SESSION_KEPT: Duration = Duration::from_secs(3600);
/// Sessions that a user may have open.
const MAX_SESSIONS: usize = 500;

/// The state of the route.
pub(super) struct Mcp {
    server: McpServer,
    config: StreamableHttpServerConfig,
    /// The sessions by tenant and user: they do not exist for other users.
    sessions: Mutex<HashMap<(String, String), Arc<LocalSessionManager>>>,
    stopping: CancellationToken,
    closing: CancellationToken,
    closing_is_watched: Once,
}

impl Mcp {
    /// `stopping` ends the streams on which a client only listens, `closing` the calls.
    ///
    /// # Errors
    /// When the machine has no randomness to give.
    pub(super) fn new(
        settings: &ServerSettings,
        stopping: CancellationToken,
        closing: CancellationToken,
        calls: TaskTracker,
    ) -> Result<Arc<Self>, String> {
        let server = McpServer::new(closing.clone(), calls, |extensions| {
            extensions.get::<Parts>()?.extensions.get::<Identity>().map(visitor)
        })?
        .with_stopping(stopping.clone())
        .with_settings(settings.mcp, answered(settings.mcp_servers.clone()));
        // `Host` and `Origin` are checked before, on every route.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_cancellation_token(CancellationToken::new());
        let (sessions, closing_is_watched) = (Mutex::default(), Once::new());
        Ok(Arc::new(Self { server, config, sessions, stopping, closing, closing_is_watched }))
    }

    fn sessions(&self, visitor: &Visitor) -> Arc<LocalSessionManager> {
        let owner = (visitor.registry.tenant().to_owned(), visitor.context.caller().user.clone());
        let mut all = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let sessions = all.entry(owner).or_insert_with(|| {
            let mut sessions = LocalSessionManager::default();
            sessions.session_config.keep_alive = Some(SESSION_KEPT);
            Arc::new(sessions)
        });
        Arc::clone(sessions)
    }

    /// Ends the streams after the calls and subscriptions had time to finish.
    fn watch_closing(&self) {
        let (closing, streams) = (self.closing.clone(), self.config.cancellation_token.clone());
        self.closing_is_watched.call_once(|| {
            tokio::spawn(async move {
                closing.cancelled().await;
                tokio::time::sleep(LAST_BYTES / 2).await;
                streams.cancel();
            });
        });
    }
}

/// Waits until every MCP server has said what tools it has, or failed to. The modules are waited for on every route.
async fn answered(servers: Option<McpServers>) {
    if let Some(servers) = servers {
        servers.settled(Duration::MAX).await;
    }
}

fn visitor(identity: &Identity) -> Visitor {
    Visitor { registry: identity.registry.clone(), context: identity.context() }
}

/// The methods of the transport: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports>.
pub(super) fn routes(mcp: Arc<Mcp>) -> Routes {
    let serve = move |identity: Extension<Identity>, request: Request| {
        serve(State(Arc::clone(&mcp)), identity, request)
    };
    // The library's errors are plain text without a content type.
    let operation = |method: Method, id: &str, summary: &str| {
        Operation::new(method, "MCP", id, summary)
            .header(REVISION, "The revision of the protocol.")
            .header(SESSION, "The session, in revisions before 2026-07-28.")
            .answers_nothing(400, "A header or the message is not as the protocol wants it; in plain words.")
            .answers_nothing(404, "There is no such session; in plain words.")
            .answers_nothing(405, "The revision has no use for this method; in plain words.")
    };
    let send = operation(Method::POST, "mcp_send", "A message of a client, in the Model Context Protocol")
        .details("Clients speak this through a library: <https://modelcontextprotocol.io>.")
        .takes::<JsonRpc>()
        .answers::<JsonRpc>(200, "The reply.")
        .answers_with(200, "text/event-stream", "Or a stream of messages that ends with it.")
        .answers_nothing(202, "The message was taken.")
        .answers::<JsonRpc>(400, "Or as a reply.")
        .answers::<JsonRpc>(404, "Or there is no such method, as a reply.")
        .answers_nothing(
            406,
            "`Accept` has to name `application/json` and `text/event-stream`; in plain words.",
        )
        .answers_nothing(413, "The message is too large; in plain words.")
        .answers_nothing(
            415,
            "The body is no message, or was not sent as `application/json`; in plain words.",
        )
        .refuses(429, "The user has too many sessions open (`too_many_sessions`).");
    let listen =
        operation(Method::GET, "mcp_listen", "The stream of a session, in revisions before 2026-07-28")
            .answers_with(200, "text/event-stream", "Messages of the server.")
            .answers_nothing(406, "`Accept` has to name `text/event-stream`; in plain words.");
    let end = operation(Method::DELETE, "mcp_end", "Ends a session, in revisions before 2026-07-28")
        .answers_nothing(204, "It is ended.");
    Routes::new().add("/mcp", serve.clone(), send).add("/mcp", serve.clone(), listen).add("/mcp", serve, end)
}

/// Serves one request of an identified caller.
async fn serve(
    State(mcp): State<Arc<Mcp>>,
    Extension(identity): Extension<Identity>,
    request: Request,
) -> Response {
    mcp.watch_closing();
    let visitor = visitor(&identity);
    let sessions = mcp.sessions(&visitor);
    if may_open_session(&request) && sessions.sessions.read().await.len() >= MAX_SESSIONS {
        let message = format!("you have {MAX_SESSIONS} sessions open; close one, or come back later");
        return ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_sessions", message).into_response();
    }
    let server = mcp.server.asked_by(visitor);
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, mcp.config.clone());
    // The stream of notifications in earlier revisions has no end, and would delay the server's stop.
    let listens = request.method() == Method::GET;
    let ends = request.method() == Method::DELETE;
    let mut answer = service.handle(request).await.map(Body::new);
    // The library answers 202, which clients in Python report as a failure.
    if ends && answer.status() == StatusCode::ACCEPTED {
        *answer.status_mut() = StatusCode::NO_CONTENT;
    }
    if !listens {
        return answer;
    }
    let stopping = mcp.stopping.clone();
    answer.map(|body| Body::from_stream(body.into_data_stream().take_until(stopping.cancelled_owned())))
}

/// Whether this can be the `initialize` of a session.
fn may_open_session(request: &Request) -> bool {
    let headers = request.headers();
    let has_sessions =
        headers.get(REVISION).is_none_or(|revision| revision.as_bytes() < WITHOUT_SESSIONS.as_bytes());
    request.method() == Method::POST && has_sessions && !headers.contains_key(SESSION)
}
