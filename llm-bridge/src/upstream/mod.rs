//! The model behind the bridge: a model server, or the built-in demo model.

mod answer;
mod demo;
mod embeddings;
mod error;
mod http;
mod kind;
mod language_model;
mod models;
mod recognize;
mod settings;
mod tokens;

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
pub use kind::{KINDS, ServerKind};
pub use language_model::UpstreamModel;
pub use settings::{UpstreamApi, UpstreamSettings};

use crate::metrics::UpstreamMetrics;
use http::HttpUpstream;

/// The word that stands for the built-in demo model where an address is expected.
pub const DEMO: &str = "demo";

/// How long a server on a usual address may take to say that it is there.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// A model that can be asked.
#[derive(Debug, Clone)]
pub struct Upstream(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    Http(Box<HttpUpstream>),
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
        Self::server(UpstreamSettings { api_key, ..UpstreamSettings::new(base, idle_timeout) })
    }

    /// A server with these settings.
    ///
    /// # Errors
    /// When its URL is no HTTP address.
    pub fn server(settings: UpstreamSettings) -> Result<Self, String> {
        HttpUpstream::new(settings).map(|upstream| Self(Arc::new(Kind::Http(Box::new(upstream)))))
    }

    /// The first server found on the usual local ports; the demo model where there is none.
    pub async fn find(api_key: Option<String>, idle_timeout: Duration) -> Self {
        let mut addresses: Vec<&str> = KINDS.iter().map(|kind| kind.usual).collect();
        addresses.dedup();
        let probes = addresses.into_iter().map(|base| {
            let upstream = Self::http(base, api_key.clone(), idle_timeout).ok();
            async move {
                let upstream = upstream?;
                let models = tokio::time::timeout(PROBE_TIMEOUT, upstream.models()).await.ok()?.ok()?;
                Some((upstream, base, models.len()))
            }
        });
        for (upstream, base, models) in futures_util::future::join_all(probes).await.into_iter().flatten() {
            if models == 0 {
                tracing::info!("{} answers at {base} and has no model; looking further", upstream.kind());
                continue;
            }
            tracing::info!("Found {} at {base}", upstream.kind());
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

    /// The kind of server, as far as that is known: `demo`, the [`id`](ServerKind::id) of a kind, or the API it is asked in.
    pub fn kind(&self) -> &'static str {
        match &*self.0 {
            Kind::Http(upstream) => {
                upstream.recognition().last().map_or(Provider::OpenAi.name(), |known| known.id())
            }
            Kind::Demo => DEMO,
        }
    }

    /// The API that it is asked in, once it is known which that is; the demo model takes OpenAI's definitions.
    pub(crate) async fn api(&self) -> Provider {
        match &*self.0 {
            Kind::Http(upstream) => upstream.recognized().await.wire.api(),
            Kind::Demo => Provider::OpenAi,
        }
    }

    /// What the operator does when the server refuses tools, if its kind is known.
    pub(crate) fn for_tools(&self) -> Option<&'static str> {
        match &*self.0 {
            Kind::Http(upstream) => Some(upstream.recognition().last()?.kind?.for_tools),
            Kind::Demo => None,
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
            let embeds = !models::answers_questions(&entry);
            ListedModel::read(entry).map(|model| ListedModel { embeds, ..model })
        };
        Ok(self.models().await?.into_iter().filter_map(listed).collect())
    }

    /// The name of the first of its models that answers questions.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub(crate) async fn first_model(&self) -> Result<String, UpstreamError> {
        let list = self.models().await?;
        let chats = list.iter().find(|model| models::answers_questions(model)).or_else(|| list.first());
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

    /// How many tokens a request has, with definitions as for [`ask`](Self::ask): by the server's own tokenizer where it has one, otherwise
    /// estimated. Never 0.
    pub(crate) async fn count_tokens(&self, request: &Request, definitions: &str) -> u64 {
        let counted = match &*self.0 {
            Kind::Demo => None,
            Kind::Http(upstream) => tokens::counted(upstream, request, definitions).await,
        };
        counted.unwrap_or_else(|| tokens::estimated(request, definitions)).max(1)
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
