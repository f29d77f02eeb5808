//! How many tokens a request has.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Bytes, to_bytes},
    http::{HeaderMap, HeaderValue, Method, header},
};
use serde_json::{Value, json};
use toolrack_apis::{Content, MediaSource, Part, Provider, Request, ToolInput};

use super::http::HttpUpstream;

/// How long a tokenizer may take for a reply.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a tokenizer's reply, in bytes: it has each token of the request.
const MAX_REPLY: usize = 32 * 1024 * 1024;
/// About how many bytes of text a token has.
const BYTES: usize = 4;
/// As how many bytes of text a picture or another file counts.
const MEDIA: usize = 1000 * BYTES;

/// Counts with the server's own tokenizer; `None` where it has none, or cannot count this.
pub(super) async fn counted(
    upstream: &Arc<HttpUpstream>,
    request: &Request,
    definitions: &str,
) -> Option<u64> {
    // Ollama has no tokenizer to ask.
    let known = upstream.recognized().await;
    let wire = &*known.wire;
    if wire.api() != Provider::OpenAi {
        return None;
    }
    let body = Bytes::from(wire.request(request, definitions).http.into_body());
    // llama.cpp: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    if let Some(template) = ask(upstream, "/apply-template", body.clone()).await {
        let content = template.get("prompt")?.as_str()?;
        let text = json!({"content": content, "add_special": true, "parse_special": true}).to_string();
        let tokens = ask(upstream, "/tokenize", text.into()).await?;
        return u64::try_from(tokens.get("tokens")?.as_array()?.len()).ok();
    }
    // vLLM: https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html#tokenizer-api
    ask(upstream, "/tokenize", body).await?.get("count")?.as_u64()
}

async fn ask(upstream: &Arc<HttpUpstream>, path: &str, body: Bytes) -> Option<Value> {
    send(upstream, Method::POST, path, body).await
}

/// The JSON at an address of the server, of at most 32 MiB and in 10 s; with a body it is sent there.
#[cfg(feature = "cli")]
pub(super) async fn look(upstream: &Arc<HttpUpstream>, path: &str, body: Option<&Value>) -> Option<Value> {
    match body {
        Some(body) => send(upstream, Method::POST, path, body.to_string().into()).await,
        None => send(upstream, Method::GET, path, Bytes::new()).await,
    }
}

async fn send(upstream: &Arc<HttpUpstream>, method: Method, path: &str, body: Bytes) -> Option<Value> {
    let headers =
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let reply = async {
        let reply = upstream.pass(method, path, headers, body).await.ok()?;
        let reply = Some(reply).filter(|reply| reply.status().is_success())?;
        serde_json::from_slice(&to_bytes(reply.into_body(), MAX_REPLY).await.ok()?).ok()
    };
    tokio::time::timeout(TIMEOUT, reply).await.ok()?
}

/// Estimates: a token for every four bytes of text, and a thousand for a picture or another file.
pub(super) fn estimated(request: &Request, definitions: &str) -> u64 {
    let messages: usize = request.messages.iter().map(|message| bytes_of(&message.parts)).sum();
    let tools = request.tools.iter().map(|tool| {
        let schema = match &tool.input {
            ToolInput::Json { schema, .. } => schema,
            ToolInput::Text { format } => format,
        };
        let schema = schema.as_ref().map_or(0, |schema| schema.to_string().len());
        tool.name.len() + tool.description.as_deref().map_or(0, str::len) + schema
    });
    let bytes = messages + tools.sum::<usize>() + definitions.len();
    u64::try_from(bytes.div_ceil(BYTES)).unwrap_or(u64::MAX)
}

fn bytes_of(parts: &[Part]) -> usize {
    let bytes = |part: &Part| match &part.content {
        Content::Text(text) => text.len(),
        Content::Reasoning(reasoning) => reasoning.text.len(),
        Content::Call(call) => call.name.len() + call.arguments.len(),
        Content::Result(result) => bytes_of(&result.parts),
        Content::Media(media) => match &media.source {
            MediaSource::Text(text) => text.len(),
            _ => MEDIA,
        },
        _ => BYTES,
    };
    parts.iter().map(bytes).sum()
}
