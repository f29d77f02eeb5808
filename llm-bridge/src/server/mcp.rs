//! `/mcp`: the registry for clients of the Model Context Protocol, over streamable HTTP.

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
    response::Response,
};
use futures_util::StreamExt;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{LAST_BYTES, error, identity::Identity};
use crate::mcp::{McpServer, Visitor};

/// The header that names a session of the revisions before 2026-07-28.
const SESSION: &str = "mcp-session-id";
/// The header that names the revision.
const REVISION: &str = "mcp-protocol-version";
/// The first revision without sessions.
const WITHOUT_SESSIONS: &str = "2026-07-28";
/// How long a session that nothing is asked in stays open. A chat may be left for a while, and few clients begin anew.
const SESSION_KEPT: Duration = Duration::from_secs(3600);
/// Sessions that a user may have open.
const MAX_SESSIONS: usize = 500;

/// What requests to the route share.
pub(super) struct Mcp {
    server: McpServer,
    config: StreamableHttpServerConfig,
    /// The sessions of each user, by tenant and user: to another's key they are unknown.
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
        stopping: CancellationToken,
        closing: CancellationToken,
        calls: TaskTracker,
    ) -> Result<Arc<Self>, String> {
        let server = McpServer::new(closing.clone(), calls, |extensions| {
            extensions.get::<Parts>()?.extensions.get::<Identity>().map(visitor)
        })?
        .with_stopping(stopping.clone());
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

    /// Ends the streams somewhat after the calls and subscriptions, which then have said their last word.
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

fn visitor(identity: &Identity) -> Visitor {
    Visitor { registry: identity.registry.clone(), context: identity.context() }
}

/// Serves one request. Who asks is what the key's check has found.
pub(super) async fn serve(
    State(mcp): State<Arc<Mcp>>,
    Extension(identity): Extension<Identity>,
    request: Request,
) -> Response {
    mcp.watch_closing();
    let visitor = visitor(&identity);
    let sessions = mcp.sessions(&visitor);
    if may_open_session(&request) && sessions.sessions.read().await.len() >= MAX_SESSIONS {
        let message = format!("you have {MAX_SESSIONS} sessions open; close one, or come back later");
        return error(StatusCode::TOO_MANY_REQUESTS, "too_many_sessions", &message, None);
    }
    let server = mcp.server.asked_by(visitor);
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, mcp.config.clone());
    // What a client of the earlier revisions hears unasked. It has no end, and would hold the server up for all of its grace.
    let listens = request.method() == Method::GET;
    let answer = service.handle(request).await.map(Body::new);
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
