//! A model server that streams as llama.cpp does: a chunk for each token, with the time at which it was sent as its text.

use std::{
    convert::Infallible,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::header,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{Fault, process};

pub(crate) const ROLE: &str = "--upstream";
pub(crate) const MODEL: &str = "tiny";
/// What stands before the time in a chunk.
pub(crate) const BEFORE_TIME: &[u8] = b"\"content\":\"t";

#[derive(Deserialize)]
struct Question {
    max_tokens: usize,
}

/// Microseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) async fn serve(address: &str, interval_ms: &str) -> Result<(), Fault> {
    let interval = Duration::from_millis(interval_ms.parse()?);
    let models = || async { Json(json!({"object": "list", "data": [{"id": MODEL, "object": "model"}]})) };
    let router = Router::new()
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(answer))
        .with_state(interval);
    process::serve(address, router).await
}

async fn answer(State(interval): State<Duration>, Json(question): Json<Question>) -> Response {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let chunks = stream::unfold((0, ticks), move |(sent, mut ticks)| async move {
        let chunk = match sent {
            sent if sent < question.max_tokens => {
                ticks.tick().await;
                chunk(&format!(r#"{{"content":"t{} "}}"#, now()), "null")
            }
            sent if sent == question.max_tokens => chunk("{}", r#""stop""#) + "data: [DONE]\n\n",
            _ => return None,
        };
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), (sent + 1, ticks)))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(chunks)).into_response()
}

/// A chunk in llama.cpp's form.
fn chunk(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"finish_reason\":{finish},\"index\":0,\"delta\":{delta}}}],\"created\":1760000000,\
         \"id\":\"chatcmpl-0123456789abcdef0123456789abcdef\",\"model\":\"{MODEL}\",\"system_fingerprint\":\"b6700-0123abcd\",\
         \"object\":\"chat.completion.chunk\"}}\n\n"
    )
}
