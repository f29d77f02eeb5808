//! `POST /v1/chat/completions`: <https://platform.openai.com/docs/api-reference/chat/create>.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{App, body::JsonBody, error};
use crate::{
    chat::{Turn, TurnEvent, UpstreamError},
    provider::openai::{ChatRequest, StreamReply, WholeReply, error_body},
};

/// How long the status of a streamed answer waits for the model server's first word.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// How often a silent stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(super) async fn completions(State(app): State<App>, JsonBody(body): JsonBody) -> Response {
    let bad = |param: &str, message: &str| {
        error(StatusCode::BAD_REQUEST, "invalid_request_error", message, Some(param))
    };
    let request = match ChatRequest::from_json(body) {
        Ok(request) => request,
        Err(fault) => return bad(fault.param, &fault.message),
    };
    let (stream, include_usage) = (request.stream, request.include_usage);
    let turn = match app.backend.start(request, app.settings.caller.clone()) {
        Ok(turn) => turn,
        Err(fault) => return bad(fault.param, &fault.message),
    };
    if stream { streamed(turn, include_usage, app.closing).await } else { whole(turn, app.closing).await }
}

async fn whole(mut turn: Turn, closing: CancellationToken) -> Response {
    let mut reply = WholeReply::default();
    loop {
        let event = tokio::select! {
            event = turn.next() => event,
            () = closing.cancelled() => return closed(),
        };
        match event {
            Some(TurnEvent::Failed(failure)) => return failed(&failure),
            Some(event) => reply.take(event),
            None => return Json(reply.into_json()).into_response(),
        }
    }
}

async fn streamed(mut turn: Turn, include_usage: bool, closing: CancellationToken) -> Response {
    let mut reply = StreamReply::new(include_usage);
    let mut chunks = VecDeque::new();
    // A model server that refuses does so at once; its refusal is the status of the reply.
    let first = tokio::time::timeout(FIRST_WORD, async {
        while chunks.is_empty() {
            match turn.next().await {
                Some(TurnEvent::Failed(failure)) => return Err(failure),
                Some(event) => chunks.extend(reply.chunks(event)),
                None => break,
            }
        }
        Ok(())
    });
    if let Ok(Err(failure)) = first.await {
        return failed(&failure);
    }
    let state = Streaming { turn, reply, chunks, ended: false, closing };
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
    turn: Turn,
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
                event = self.turn.next() => event,
                () = self.closing.cancelled() => {
                    self.ended = true;
                    return Some(error_body("server_stopping", CLOSED, None).to_string());
                }
            };
            match event {
                Some(TurnEvent::Failed(failure)) => {
                    self.ended = true;
                    return Some(error_body("upstream_error", &failure.to_string(), None).to_string());
                }
                Some(event) => self.chunks.extend(self.reply.chunks(event)),
                None => {
                    self.ended = true;
                    return Some("[DONE]".to_owned());
                }
            }
        }
    }
}

const CLOSED: &str = "the server was stopped before the answer was finished";

fn closed() -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, "server_stopping", CLOSED, None)
}

/// A model server's failure as the status of the reply. Its own refusals of the request pass through; that it refuses us is not the
/// client's fault.
fn failed(failure: &UpstreamError) -> Response {
    let status = match failure {
        UpstreamError::Status { status: 401 | 403 | 407, .. } => StatusCode::BAD_GATEWAY,
        // A server that is busy or still loading its model is worth another try.
        UpstreamError::Status { status, .. } if (400..500).contains(status) || *status == 503 => {
            StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY)
        }
        UpstreamError::Stalled(_) => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    error(status, "upstream_error", &failure.to_string(), None)
}
