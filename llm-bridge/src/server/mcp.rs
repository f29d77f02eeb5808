//! `/mcp`: the MCP server over streamable HTTP.

mod accepted;
mod batch;
mod come_over;
mod ids;
mod open;
mod sessions;

use std::{
    pin::Pin,
    sync::{Arc, Once},
    task::{Context, Poll, Waker},
    time::Duration,
};

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header::CONTENT_TYPE, request::Parts},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolrack_remote::mcp::McpServers;

use self::{
    batch::Form,
    ids::RunningIds,
    open::{GIVES_WAY_AFTER, MAX_SESSIONS, OpenSessions, Opening},
    sessions::Sessions,
};
use super::{
    ServerSettings,
    apis::fronts::read_bytes,
    callers::identity::Identity,
    openapi::{JsonRpc, Operation},
    requests::{
        api_error::ApiError,
        body::{VALUE_BYTES, check_values, decode},
    },
    routes::Routes,
    transport::lifecycle::LAST_BYTES,
};
use crate::{
    mcp::{McpServer, TakesAnswerAlone, Visitor},
    takeover::{Elsewhere, Takeover},
    traces,
};

/// The header that names a session of the revisions before 2026-07-28.
const SESSION: &str = "mcp-session-id";
/// The header that names the revision.
const REVISION: &str = "mcp-protocol-version";
/// The first revision without sessions.
const WITHOUT_SESSIONS: &str = "2026-07-28";
/// The largest message, in bytes; as the library has it.
const MAX_MESSAGE: usize = 4 << 20;
/// The largest first message of a session, in bytes: what it says of the client is kept as long as the session.
const MAX_OPENING: usize = 64 << 10;

/// The state of the route.
pub(super) struct Mcp {
    server: McpServer,
    config: StreamableHttpServerConfig,
    sessions: OpenSessions,
    running: RunningIds,
    stopping: CancellationToken,
    closing: CancellationToken,
    closing_is_watched: Once,
    takeover: Option<Takeover>,
    /// Held while a session of the program before is opened here.
    coming_over: AsyncMutex<()>,
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
        let takeover = settings.takeover.clone();
        let traces = settings.traces.clone();
        let server = McpServer::new(closing.clone(), calls, move |extensions| {
            let Parts { extensions, headers, .. } = extensions.get::<Parts>()?;
            let session = session_of(headers).map(Into::into);
            let Visitor { registry, context, .. } = visitor(extensions.get::<Identity>()?);
            let context = match traces::of_request(traces.as_ref(), headers) {
                Some(trace) => context.with_trace(trace),
                None => context,
            };
            Some(Visitor { registry, context, session })
        })
        .with_stopping(stopping.clone())
        .with_settings(settings.mcp.clone(), answered(settings.mcp_servers.clone()))
        .succeeding(takeover.clone());
        // `Host` and `Origin` are checked before, on every route.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_sse_retry(None)
            .with_cancellation_token(CancellationToken::new());
        let (sessions, closing_is_watched) = (OpenSessions::default(), Once::new());
        let coming_over = AsyncMutex::default();
        let messages = takeover.as_ref().and_then(Takeover::messages);
        let mcp = Arc::new(Self {
            server,
            config,
            sessions,
            running: RunningIds::default(),
            stopping,
            closing,
            closing_is_watched,
            takeover,
            coming_over,
        });
        if let Some(messages) = messages {
            tokio::spawn(come_over::take_messages(messages, Arc::downgrade(&mcp)));
        }
        Ok(mcp)
    }

    /// Makes room for a session of a user.
    async fn make_room(&self, opening: &Opening, sessions: &LocalSessionManager) -> Result<(), ApiError> {
        while !opening.is_allowed(sessions).await {
            if !self.sessions.give_way(sessions, GIVES_WAY_AFTER).await {
                let message = format!("you have {MAX_SESSIONS} sessions open; close one, or come back later");
                return Err(too_many(message));
            }
        }
        match self.sessions.make_room().await {
            true => Ok(()),
            false => Err(too_many("all sessions that there may be have running calls; come back later")),
        }
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

fn too_many(message: impl Into<String>) -> ApiError {
    let refused = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_sessions", message);
    refused.retry_after(GIVES_WAY_AFTER.as_secs())
}

/// Waits until every MCP server has said what tools it has, or failed to. The modules are waited for on every route.
async fn answered(servers: Option<McpServers>) {
    if let Some(servers) = servers {
        servers.settled(Duration::MAX).await;
    }
}

fn visitor(identity: &Identity) -> Visitor {
    Visitor { registry: identity.registry.clone(), context: identity.context(), session: None }
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
            "`Accept` names neither `application/json` nor `text/event-stream`; in plain words.",
        )
        .refuses(413, "The message is larger than 4 MiB.")
        .answers_nothing(415, "The body was not sent as `application/json`; in plain words.")
        .refuses(429, "The user has too many sessions open (`too_many_sessions`).")
        .retry_after(429);
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
    mut request: Request,
) -> Response {
    mcp.watch_closing();
    let visitor = visitor(&identity);
    let (sessions, opening) = mcp.sessions.of(&visitor, may_open_session(&request));
    if let Some(opening) = &opening
        && let Err(refused) = mcp.make_room(opening, &sessions).await
    {
        return refused.into_response();
    }
    if opening.is_none()
        && let Some(id) = session_of(request.headers())
    {
        let under_way = mcp.sessions.heard(id);
        if request.method() == Method::DELETE {
            mcp.sessions.closed(id);
        }
        request.extensions_mut().insert(under_way);
    }
    let mut config = mcp.config.clone();
    if let Some(takeover) = &mcp.takeover {
        config.session_store = Some(Arc::new(Sessions::of(takeover, &visitor)));
    }
    let server = mcp.server.asked_by(visitor.clone());
    let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&sessions), config);
    // The stream of notifications in earlier revisions has no end, and would delay the server's stop.
    let listens = request.method() == Method::GET;
    let ends = request.method() == Method::DELETE;
    let is_json_alone = accepted::complete(&mut request);
    if is_json_alone {
        request.extensions_mut().insert(TakesAnswerAlone);
    }
    let (mut request, message) = match received(request, opening.is_some()).await {
        Ok(received) => received,
        Err(error) => return error.into_response(),
    };
    mcp.pass_back(request.headers(), &message).await;
    if listens && mcp.is_stream_of_another_program(request.headers()) {
        let message =
            "Not Found: the server was replaced, and this stream cannot be resumed; begin another session";
        return (StatusCode::NOT_FOUND, message).into_response();
    }
    let (_coming_over, session) = mcp.coming_over(&mut request, &visitor).await;
    let (service, caller) = (&service, &identity);
    let running = &mcp.running;
    let handle = move |mut request: Request, message: Bytes| async move {
        let mut taken = Vec::new();
        let read = ids::of(caller, &message).await?;
        if let Some((session, (id, names))) = session_of(request.headers()).zip(read) {
            let (holds, sent) = match running.take(caller, session, &names).await {
                Ok(held) => held,
                Err(other) => return Ok(batch::refusal(-32600, Some(&id), &other.in_use())),
            };
            request.extensions_mut().insert(holds);
            taken = sent;
        }
        let service = service.clone();
        let handling = Box::pin(async move { service.handle(request).await });
        let answer = match begun(caller, message, handling).await? {
            (Poll::Ready(answer), _) => answer.map(Body::new),
            (Poll::Pending, handling) => handling.await.map(Body::new),
        };
        Ok::<Response, ApiError>(ids::until_sent(answer, taken))
    };
    let form = match request.method() == Method::POST {
        true => form_of(&identity, request.headers(), &message).await,
        false => Ok(Form::One),
    };
    let answer = match form {
        Ok(Form::One) => handle(request, message).await,
        Ok(Form::Batch(messages)) => {
            batch::answers(request.into_parts().0, messages, |bytes| identity.hold(bytes), handle).await
        }
        Ok(Form::Wrong(code, message)) => Ok(batch::refusal(code, None, &message)),
        Err(error) => Err(error),
    };
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(error) => return error.into_response(),
    };
    if opening.is_some()
        && let Some(id) = session_of(answer.headers())
    {
        mcp.sessions.opened(&sessions, id.into());
    }
    if let Some((takeover, id)) = mcp.takeover.as_ref().zip(session) {
        takeover.came_over(&id, if listens { Elsewhere::Nothing } else { Elsewhere::Stream });
    }
    // The library answers 202, which clients in Python report as a failure.
    if ends && answer.status() == StatusCode::ACCEPTED {
        *answer.status_mut() = StatusCode::NO_CONTENT;
    }
    if is_json_alone {
        return accepted::as_json(answer).await;
    }
    if !listens {
        return answer;
    }
    let stopping = mcp.stopping.clone();
    answer.map(|body| Body::from_stream(body.into_data_stream().take_until(stopping.cancelled_owned())))
}

/// A request with its whole body, and that body once more; empty where it is no message. What opens a session stays with it.
async fn received(request: Request, opens: bool) -> Result<(Request, Bytes), ApiError> {
    if request.method() != Method::POST {
        return Ok((request, Bytes::new()));
    }
    let (parts, body) = request.into_parts();
    let body = read_bytes(Request::from_parts(parts.clone(), body)).await?;
    let (most, what) = match opens {
        true => (
            MAX_OPENING,
            format!("the first message of a session is larger than the limit of {} KiB", MAX_OPENING >> 10),
        ),
        false => (MAX_MESSAGE, format!("the message is larger than the limit of {} MiB", MAX_MESSAGE >> 20)),
    };
    if body.len() > most {
        let too_large = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", what);
        return Err(too_large.param("body"));
    }
    Ok((Request::from_parts(parts, Body::from(body.clone())), body))
}

/// What the body of a request is, which is found out beside the runtime.
async fn form_of(identity: &Identity, headers: &HeaderMap, message: &Bytes) -> Result<Form, ApiError> {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    // Of other kinds the library says what it takes.
    if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
        return Ok(Form::One);
    }
    let revision = headers.get(REVISION).and_then(|revision| revision.to_str().ok());
    let (message, revision) = (message.clone(), revision.map(str::to_owned));
    decode(identity.sender(), message.len(), move || {
        check_values(&message).map(|_| batch::form(&message, revision.as_deref()))
    })
    .await?
}

/// Begins to handle a message: the library decodes it when it is first polled, which is done beside the runtime.
async fn begun<H: Future + Send + Unpin + 'static>(
    identity: &Identity,
    message: Bytes,
    mut handling: H,
) -> Result<(Poll<H::Output>, H), ApiError>
where
    H::Output: Send + 'static,
{
    let size = message.len();
    let begin = move || {
        let values = check_values(&message)?;
        let polled = Pin::new(&mut handling).poll(&mut Context::from_waker(Waker::noop()));
        Ok::<_, ApiError>((values, polled, handling))
    };
    let (values, polled, handling) = decode(identity.sender(), size, begin).await??;
    identity.hold(values * VALUE_BYTES)?;
    Ok((polled, handling))
}

/// The session that a request or an answer names.
fn session_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

/// Whether this can be the `initialize` of a session.
fn may_open_session(request: &Request) -> bool {
    let headers = request.headers();
    let has_sessions =
        headers.get(REVISION).is_none_or(|revision| revision.as_bytes() < WITHOUT_SESSIONS.as_bytes());
    request.method() == Method::POST && has_sessions && !headers.contains_key(SESSION)
}
