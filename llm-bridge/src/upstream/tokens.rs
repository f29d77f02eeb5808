//! How many tokens a request has.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Bytes, to_bytes},
    http::{HeaderMap, HeaderValue, Method, header},
};
use serde_json::{Value, json};
use toolrack_apis::{Provider, Request};

use super::http::{HttpUpstream, json_of};

/// How long a tokenizer may take for a reply.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a tokenizer's reply, in bytes: it has each token of the request.
const MAX_REPLY: usize = 32 * 1024 * 1024;

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

/// Sends a body to an address of the server; `None` where it has no such, or gives no JSON in time.
async fn ask(upstream: &Arc<HttpUpstream>, path: &str, body: Bytes) -> Option<Value> {
    let headers =
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let reply = async {
        let reply = upstream.pass(Method::POST, path, headers, body).await.ok()?;
        let reply = Some(reply).filter(|reply| reply.status().is_success())?;
        json_of(to_bytes(reply.into_body(), MAX_REPLY).await.ok()?).await.ok()
    };
    tokio::time::timeout(TIMEOUT, reply).await.ok()?
}
