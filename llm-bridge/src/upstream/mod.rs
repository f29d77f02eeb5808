//! The model behind the bridge: a model server, or the built-in demo model.

mod answer;
mod demo;
mod embeddings;
mod error;
mod http;
mod language_model;

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, Method, Response},
};
use serde_json::{Value, json};
use toolrack_apis::{ListedModel, Provider, Request};

pub use answer::Answer;
pub(crate) use embeddings::read as read_vectors;
pub use embeddings::{EmbeddingModel, UpstreamEmbedder};
pub use error::UpstreamError;
pub use language_model::UpstreamModel;

use crate::metrics::UpstreamMetrics;
use http::HttpUpstream;

/// The word that stands for the built-in demo model where an address is expected.
pub const DEMO: &str = "demo";

/// The addresses where model servers listen when nobody says otherwise, and whose they are.
pub const USUAL_ADDRESSES: [(&str, &str); 4] = [
    ("http://127.0.0.1:11434/v1", "Ollama"),
    ("http://127.0.0.1:8080/v1", "llama.cpp"),
    ("http://127.0.0.1:1234/v1", "LM Studio"),
    ("http://127.0.0.1:8000/v1", "vLLM"),
];

/// How long a server on a usual address may take to say that it is there.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// A model that can be asked.
#[derive(Debug, Clone)]
pub struct Upstream(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    Http(HttpUpstream),
    Demo,
}

impl Upstream {
    /// The built-in demo model.
    pub fn demo() -> Self {
        Self(Arc::new(Kind::Demo))
    }

    /// A server that speaks the OpenAI API below `base`, such as `http://127.0.0.1:8080/v1`. `idle_timeout` is how long it may send
    /// nothing while it answers.
    ///
    /// # Errors
    /// When `base` is no HTTP address.
    pub fn http(base: &str, api_key: Option<String>, idle_timeout: Duration) -> Result<Self, String> {
        HttpUpstream::new(base, api_key, idle_timeout).map(|upstream| Self(Arc::new(Kind::Http(upstream))))
    }

    /// The first server found on the usual local ports, with its name; the demo model where there is none.
    pub async fn find(api_key: Option<String>, idle_timeout: Duration) -> Self {
        let probes = USUAL_ADDRESSES.map(|(base, name)| {
            let upstream = Self::http(base, api_key.clone(), idle_timeout).ok();
            async move {
                let upstream = upstream?;
                let models = tokio::time::timeout(PROBE_TIMEOUT, upstream.models()).await.ok()?.ok()?;
                Some((upstream, name, base, models.len()))
            }
        });
        for (upstream, name, base, models) in
            futures_util::future::join_all(probes).await.into_iter().flatten()
        {
            if models == 0 {
                tracing::info!("{name} answers at {base} and has no model; looking further");
                continue;
            }
            tracing::info!("Found {name} at {base}");
            return upstream;
        }
        Self::demo()
    }

    /// The address, or `demo`.
    pub fn address(&self) -> &str {
        match &*self.0 {
            Kind::Http(upstream) => &upstream.base,
            Kind::Demo => DEMO,
        }
    }

    /// Whether it is the built-in demo model.
    pub fn is_demo(&self) -> bool {
        matches!(&*self.0, Kind::Demo)
    }

    /// The API that it is asked in; the demo model takes OpenAI's definitions.
    pub(crate) fn api(&self) -> Provider {
        match &*self.0 {
            Kind::Http(upstream) => upstream.wire().api(),
            Kind::Demo => Provider::OpenAi,
        }
    }

    /// The models it has, as OpenAI's API lists them.
    ///
    /// # Errors
    /// When it cannot be reached or does not list them.
    pub async fn models(&self) -> Result<Vec<Value>, UpstreamError> {
        match &*self.0 {
            Kind::Demo => {
                Ok(vec![json!({"id": demo::NAME, "object": "model", "created": 0, "owned_by": "toolrack"})])
            }
            Kind::Http(upstream) => upstream.models().await,
        }
    }

    /// The same, read. Entries without a name are left out.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub(crate) async fn listed(&self) -> Result<Vec<ListedModel>, UpstreamError> {
        let listed = |entry: Value| {
            let embeds = !answers_questions(&entry);
            ListedModel::read(entry).map(|model| ListedModel { embeds, ..model })
        };
        Ok(self.models().await?.into_iter().filter_map(listed).collect())
    }

    /// The name of the first of its models that answers questions.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub(crate) async fn first_model(&self) -> Result<String, UpstreamError> {
        let models = self.models().await?;
        let chats = models.iter().find(|model| answers_questions(model)).or_else(|| models.first());
        let name = chats.and_then(|model| model.get("id")).and_then(Value::as_str);
        Ok(name.unwrap_or("default").to_owned())
    }

    /// Asks for an answer to a request, with the definitions of the server's tools in the form of [`api`](Self::api): separated by
    /// commas, without brackets.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub async fn ask(&self, request: &Request, definitions: &str) -> Result<Answer, UpstreamError> {
        match &*self.0 {
            Kind::Demo => Ok(Answer::demo(request, definitions)),
            Kind::Http(upstream) => upstream.ask(request, definitions).await,
        }
    }

    /// Passes a request on as it is, with the server's key, and gives the reply as it comes. A path of OpenAI's API begins with `/v1/`.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses this server.
    pub(crate) async fn pass(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, UpstreamError> {
        match &*self.0 {
            Kind::Demo => Err(UpstreamError::failed("the built-in demo model answers chats only")),
            Kind::Http(upstream) => upstream.pass(method, path, headers, body).await,
        }
    }

    /// Asks for the vectors of texts; gives the reply as it came.
    pub(crate) async fn embeddings(&self, request: &Value) -> Result<Vec<u8>, UpstreamError> {
        match &*self.0 {
            Kind::Demo => Err(UpstreamError::failed("the built-in demo model makes no vectors of texts")),
            Kind::Http(upstream) => upstream.embeddings(request).await,
        }
    }

    /// How the server has answered; the demo model is none.
    pub(crate) fn metrics(&self) -> Option<&UpstreamMetrics> {
        match &*self.0 {
            Kind::Http(upstream) => Some(&upstream.metrics),
            Kind::Demo => None,
        }
    }
}

/// Whether a model of a list is one that answers questions. Lists say so in a field of their own (LM Studio's `type`), or not at all,
/// and then only the name does.
fn answers_questions(model: &Value) -> bool {
    const OTHERS: [&str; 8] = ["embed", "rerank", "bge-", "minilm", "whisper", "tts", "clip", "e5-"];
    if let Some(kind) = model.get("type").and_then(Value::as_str) {
        return !kind.contains("embed");
    }
    let name = model.get("id").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    !OTHERS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g7_a_model_of_vectors_answers_no_questions() {
        for (model, answers) in [
            (json!({"id": "qwen3:8b"}), true),
            (json!({"id": "nomic-embed-text:latest"}), false),
            (json!({"id": "bge-m3"}), false),
            (json!({"id": "x", "type": "embeddings"}), false),
            (json!({"id": "x", "type": "vlm"}), true),
            (json!({"id": "embedded-coder", "type": "llm"}), true),
            (json!({}), true),
        ] {
            assert_eq!(answers_questions(&model), answers, "{model}");
        }
    }
}
