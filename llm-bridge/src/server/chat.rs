//! `POST /v1/chat/completions`: <https://platform.openai.com/docs/api-reference/chat/create>.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    Extension, Json,
    extract::State,
    http::{Method, StatusCode},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolrack_apis::openai::{BadRequest, ChatRequest, error_body};

use super::{
    App,
    api_error::ApiError,
    body::JsonBody,
    identity::Identity,
    models::explained,
    openapi::{ChatCompletion, ChatCompletionRequest, Operation},
    reply::{StreamReply, WholeReply},
};
use crate::chat::{Turn, TurnEvent, Upstream, UpstreamError};

/// How long the status of a streamed answer waits for the model server's first word.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// How often a silent stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(super) fn operation() -> Operation {
    Operation::new(Method::POST, "Chat", "create_chat_completion", "An answer of the model, which may call tools on the way")
        .details(
            "The server's tools are added to the client's, and calls of them are run here. With `stream` the answer comes as \
             server-sent events of `chat.completion.chunk` and a last `[DONE]`; what is called on the way is in their field \
             `x_toolrack`. A failure after the first word is an event with an `error`.",
        )
        .reads::<ChatCompletionRequest>()
        .answers::<ChatCompletion>(200, "The answer.")
        .answers_with(200, "text/event-stream", "")
        .refuses("4XX", "What the model server says to the request (`upstream_error`).")
        .refuses(502, "The model server does not answer, or refuses this server (`upstream_error`).")
        .refuses(503, "The model server is busy (`upstream_error`), or this one is being stopped (`server_stopping`).")
        .refuses(504, "The model server has fallen silent (`upstream_error`).")
}

pub(super) async fn completions(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let bad = |fault: BadRequest| ApiError::invalid(fault.param, fault.message);
    let request = ChatRequest::from_json(body).map_err(bad)?;
    let (stream, include_usage) = (request.stream, request.include_usage);
    let backend = app.backend.for_request(identity.registry.clone(), identity.standing());
    let turn = backend.start(request, identity.caller).map_err(bad)?;
    let events = Events { turn, upstream: app.backend.upstream().clone(), over: false };
    Ok(match stream {
        true => streamed(events, include_usage, app.closing).await,
        false => whole(events, app.closing).await,
    })
}

/// A turn's events up to its last.
struct Events {
    turn: Turn,
    upstream: Upstream,
    over: bool,
}

impl Events {
    /// The next event; `None` after the last one of a turn that has come to its end.
    async fn next(&mut self) -> Result<Option<TurnEvent>, Failure> {
        match self.turn.next().await {
            Some(TurnEvent::Failed(failure)) => {
                self.over = true;
                let message = explained(&failure, &self.upstream);
                Err(Failure { status: status_of(&failure), message })
            }
            None if !self.over => {
                self.over = true;
                Err(Failure { status: StatusCode::BAD_GATEWAY, message: NO_ANSWER.to_owned() })
            }
            event => {
                self.over |= matches!(event, Some(TurnEvent::Finished { .. }));
                Ok(event)
            }
        }
    }
}

/// Why there is no answer, or no more of it.
struct Failure {
    status: StatusCode,
    message: String,
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        ApiError::new(self.status, "upstream_error", self.message).into_response()
    }
}

async fn whole(mut events: Events, closing: CancellationToken) -> Response {
    let mut reply = WholeReply::default();
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = closing.cancelled() => return closed(),
        };
        match event {
            Ok(Some(event)) => reply.take(event),
            Ok(None) => return Json(reply.into_json()).into_response(),
            Err(failure) => return failure.into_response(),
        }
    }
}

async fn streamed(mut events: Events, include_usage: bool, closing: CancellationToken) -> Response {
    let mut reply = StreamReply::new(include_usage);
    let mut chunks = VecDeque::new();
    // A model server that refuses does so at once; its refusal is the status of the reply.
    let first = tokio::time::timeout(FIRST_WORD, async {
        while chunks.is_empty() {
            match events.next().await? {
                Some(event) => chunks.extend(reply.chunks(event)),
                None => break,
            }
        }
        Ok::<_, Failure>(())
    });
    if let Ok(Err(failure)) = first.await {
        return failure.into_response();
    }
    let state = Streaming { events, reply, chunks, ended: false, closing };
    let stream = stream::unfold(state, |mut state| async move {
        let data = state.next().await?;
        Some((Ok::<_, Infallible>(Event::default().data(data)), state))
    });
    let mut response = Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response();
    // Proxies would hold the stream back until it is whole.
    response.headers_mut().insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    response
}

struct Streaming {
    events: Events,
    reply: StreamReply,
    chunks: VecDeque<Value>,
    ended: bool,
    closing: CancellationToken,
}

impl Streaming {
    /// The data of the next event.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(chunk) = self.chunks.pop_front() {
                return Some(chunk.to_string());
            }
            if self.ended {
                return None;
            }
            let event = tokio::select! {
                event = self.events.next() => event,
                () = self.closing.cancelled() => {
                    self.ended = true;
                    return Some(error_body("server_stopping", CLOSED, None).to_string());
                }
            };
            match event {
                Ok(Some(event)) => self.chunks.extend(self.reply.chunks(event)),
                Err(failure) => {
                    self.ended = true;
                    return Some(error_body("upstream_error", &failure.message, None).to_string());
                }
                Ok(None) => {
                    self.ended = true;
                    return Some("[DONE]".to_owned());
                }
            }
        }
    }
}

const NO_ANSWER: &str = "the turn ended without an answer; the server's log says why";
const CLOSED: &str = "the server was stopped before the answer was finished";

fn closed() -> Response {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_stopping", CLOSED).into_response()
}

/// A model server's failure as the status of the reply. Its own refusals of the request pass through; that it refuses us is not the
/// client's fault.
fn status_of(failure: &UpstreamError) -> StatusCode {
    match failure {
        UpstreamError::Status { status: 401 | 403 | 407, .. } => StatusCode::BAD_GATEWAY,
        // A server that is busy or still loading its model is worth another try.
        UpstreamError::Status { status, .. } if (400..500).contains(status) || *status == 503 => {
            StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY)
        }
        UpstreamError::Stalled(_) => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    }
}

#[cfg(test)]
mod tests {
    use registry_core::{Caller, Permission, Registry};
    use serde_json::json;

    use super::*;
    use crate::chat::{Backend, ChatSettings};

    /// A turn that ends before its first word.
    async fn dead() -> Events {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let upstream = Upstream::http("http://127.0.0.1:9/v1", None, FIRST_WORD).unwrap();
        let backend = Backend::new(registry, upstream.clone(), ChatSettings::default());
        backend.stop().await;
        let body = json!({"messages": [{"role": "user", "content": "Go."}]});
        let request = ChatRequest::from_json(body).map_err(|bad| bad.message).unwrap();
        let turn = backend.start(request, Caller::new("ada", Permission::User)).map_err(|bad| bad.message);
        Events { turn: turn.unwrap(), upstream, over: false }
    }

    #[tokio::test]
    async fn a_turn_that_dies_is_no_answer() {
        let closing = CancellationToken::new();
        assert_eq!(whole(dead().await, closing.clone()).await.status(), StatusCode::BAD_GATEWAY);
        assert_eq!(streamed(dead().await, false, closing).await.status(), StatusCode::BAD_GATEWAY);
    }
}
