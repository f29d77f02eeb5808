//! The models behind the bridge: those of model servers, or the built-in demo model.

pub(crate) mod answer;
mod api;
mod asker;
mod context;
mod demo;
#[cfg(feature = "documents")]
mod embedder;
mod error;
mod estimate;
mod http;
mod kind;
mod language_model;
mod models;
mod omissions;
mod pattern;
mod raw;
mod recognize;
mod report;
mod route;
mod servers;
mod settings;
mod tokens;
mod vectors;
pub(crate) mod via;

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, Method, Response},
};
use serde_json::{Map, Value, json};
use toolrack_apis::{ListedModel, Provider};

pub use answer::Answer;
pub use api::UpstreamApi;
pub(crate) use asker::Asker;
#[cfg(feature = "cli")]
pub(crate) use context::ContextSize;
pub(crate) use context::{ANSWER, Cut};
#[cfg(feature = "documents")]
pub use embedder::{EmbeddingModel, UpstreamEmbedder};
pub use error::UpstreamError;
pub(crate) use estimate::{Estimate, tokens_of};
pub(crate) use http::json_of;
pub(crate) use kind::TriggeredForm;
pub use kind::{KINDS, ServerKind};
pub use language_model::UpstreamModel;
pub use pattern::ModelPattern;
#[cfg(feature = "cli")]
pub(crate) use raw::RawModel;
pub(crate) use raw::{RawQuestion, RawTools};
pub(crate) use report::UpstreamReport;
pub use route::Route;
pub use settings::UpstreamSettings;
pub(crate) use vectors::{read as read_vectors, tokens as vector_tokens};

use crate::metrics::UpstreamMetrics;
use http::HttpUpstream;
use kind::TOOLRACK;
use servers::Servers;

/// The word that stands for the built-in demo model where an address is expected.
pub const DEMO: &str = "demo";

/// How long a server on a usual address may take to say that it is there.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// The models that can be asked.
#[derive(Debug, Clone)]
pub struct Upstream(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    Servers(Servers),
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
        let fault = |fault: String| match fault.split_once(": ") {
            Some((_, fault)) => fault.to_owned(),
            None => fault,
        };
        Self::several([settings]).map_err(fault)
    }

    /// Servers with these settings; a model that several have is asked of the first.
    ///
    /// # Errors
    /// When a URL is not an HTTP address, two have one name, or a `fallback` is not among them. The text begins with the name.
    pub fn several(all: impl IntoIterator<Item = UpstreamSettings>) -> Result<Self, String> {
        Servers::new(all.into_iter().collect()).map(|servers| Self(Arc::new(Kind::Servers(servers))))
    }

    /// The first server found on the usual local ports; the demo model where there is none.
    pub async fn find(api_key: Option<String>, idle_timeout: Duration) -> Self {
        let model_servers = KINDS.iter().filter(|kind| kind.id != TOOLRACK);
        let mut addresses: Vec<&str> = model_servers.map(|kind| kind.usual).collect();
        addresses.dedup();
        Self::first_of(addresses, api_key, idle_timeout).await
    }

    async fn first_of(addresses: Vec<&str>, api_key: Option<String>, idle_timeout: Duration) -> Self {
        let probes = addresses.into_iter().map(|base| {
            let upstream = Self::http(base, api_key.clone(), idle_timeout).ok();
            async move {
                let upstream = upstream?;
                let models = tokio::time::timeout(PROBE_TIMEOUT, upstream.models()).await.ok()?.ok()?;
                Some((upstream, base, models.len()))
            }
        });
        for (upstream, base, models) in futures_util::future::join_all(probes).await.into_iter().flatten() {
            // It may be looking for a model server as well, and find this one.
            if upstream.kind() == TOOLRACK {
                tracing::info!(
                    "Another Toolrack answers at {base}; looking further. To ask it, set `upstream`"
                );
                continue;
            }
            if models == 0 {
                tracing::info!("{} answers at {base} and has no model; looking further", upstream.kind());
                continue;
            }
            tracing::info!("Found {} at {base}", upstream.kind());
            return upstream;
        }
        Self::demo()
    }

    /// What this server is known by to others like it.
    pub(crate) fn id(&self) -> Arc<str> {
        match &*self.0 {
            Kind::Servers(servers) => Arc::clone(&servers.id),
            Kind::Demo => DEMO.into(),
        }
    }

    /// The addresses, or `demo`.
    pub fn address(&self) -> String {
        self.join(|server| server.base.as_str())
    }

    /// Whether it is the built-in demo model.
    pub fn is_demo(&self) -> bool {
        matches!(&*self.0, Kind::Demo)
    }

    /// The kinds of the servers, as far as they are known: `demo`, the [`id`](ServerKind::id) of a kind, or the API it is asked in.
    pub fn kind(&self) -> String {
        self.join(|server| server.recognition().last().map_or(Provider::OpenAi.name(), |known| known.id()))
    }

    /// The API that the server is asked in; that of OpenAI where there are several, which may differ, and for the demo model.
    pub(crate) async fn api(&self) -> Provider {
        match &*self.0 {
            Kind::Servers(servers) => match servers.only() {
                Some(server) => server.recognized().await.wire.api(),
                None => Provider::OpenAi,
            },
            Kind::Demo => Provider::OpenAi,
        }
    }

    fn join<'a>(&'a self, word: impl Fn(&'a HttpUpstream) -> &'a str) -> String {
        match &*self.0 {
            Kind::Servers(servers) => servers.iter().map(|http| word(http)).collect::<Vec<_>>().join(", "),
            Kind::Demo => DEMO.to_owned(),
        }
    }

    /// The models, as OpenAI's API lists them. A server that is away does not take those of the others away.
    ///
    /// # Errors
    /// When no server can be reached or lists them.
    pub async fn models(&self) -> Result<Vec<Value>, UpstreamError> {
        match &*self.0 {
            Kind::Demo => {
                Ok(vec![json!({"id": demo::NAME, "object": "model", "created": 0, "owned_by": "toolrack"})])
            }
            Kind::Servers(servers) => servers.models().await,
        }
    }

    /// What is known of each server, which is asked for its models.
    pub(crate) async fn reports(&self) -> Vec<UpstreamReport> {
        match &*self.0 {
            Kind::Servers(servers) => servers.reports().await,
            Kind::Demo => vec![UpstreamReport {
                name: DEMO.to_owned(),
                address: DEMO.to_owned(),
                kind: Some(DEMO.to_owned()),
                models: Some(1),
                error: None,
                fallback: None,
            }],
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

    /// The size of a model's context in tokens, as far as requests have made it known. No server is asked.
    pub(crate) fn known_context(&self, model: &str) -> Option<u64> {
        match &*self.0 {
            Kind::Servers(servers) => servers.iter().find_map(|server| server.contexts.known(model)),
            Kind::Demo => None,
        }
    }

    /// Where a model is asked: at the server that lists it, at `SERVER` for `SERVER/MODEL`, or at the one whose patterns fit it most
    /// closely. `None` is the first model that answers questions.
    ///
    /// # Errors
    /// When no server has the model, or, without a model, none can be asked.
    pub async fn route(&self, model: Option<&str>) -> Result<Route, UpstreamError> {
        match &*self.0 {
            Kind::Demo => Ok(Route::default()),
            Kind::Servers(servers) => servers.targets(model).await.map(Route::through),
        }
    }

    /// Passes a request on to the server of its model, with the server's key, and gives the reply as it comes; one without a model, or
    /// without JSON, goes to the first. A path of OpenAI's API begins with `/v1/`.
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
            Kind::Servers(servers) => servers.pass(method, path, headers, body).await,
        }
    }

    /// Has a model continue a text, by a request in OpenAI's form without the model.
    ///
    /// # Errors
    /// When no server can be reached, or it refuses.
    pub(crate) async fn complete(
        &self,
        model: &str,
        mut request: Map<String, Value>,
    ) -> Result<Answer, UpstreamError> {
        let mut route = self.route(Some(model)).await?;
        loop {
            request.insert("model".to_owned(), route.model().into());
            match route.complete(&request).await {
                Err(error) if route.fall_back(&error) => {}
                answer => return answer,
            }
        }
    }

    /// Whether every user may say how models are loaded, at each server.
    pub(crate) fn users_load(&self) -> bool {
        match &*self.0 {
            Kind::Servers(servers) => servers.iter().all(|server| server.settings.users_load),
            Kind::Demo => true,
        }
    }

    /// Asks for the vectors of texts; gives the reply as it came.
    pub(crate) async fn embeddings(&self, request: &Value) -> Result<Vec<u8>, UpstreamError> {
        match &*self.0 {
            Kind::Demo => Err(UpstreamError::failed("the built-in demo model makes no vectors of texts")),
            Kind::Servers(_) => {
                let model = request.get("model").and_then(Value::as_str);
                self.route(model).await?.embeddings(request).await
            }
        }
    }

    /// How the servers have answered; the demo model is none.
    pub(crate) fn metrics(&self) -> Option<&UpstreamMetrics> {
        match &*self.0 {
            Kind::Servers(servers) => Some(&servers.metrics),
            Kind::Demo => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{Json, Router, routing::get};
    use tokio::net::TcpListener;

    use super::*;

    /// A server with one model; its address.
    async fn server(via: Option<&'static str>) -> String {
        let list = || async { Json(json!({"data": [{"id": "m", "owned_by": "llamacpp"}]})) };
        let mut router = Router::new().route("/v1/models", get(list));
        if let Some(id) = via {
            router = router.layer(axum::middleware::map_response(
                move |mut response: Response<Body>| async move {
                    response.headers_mut().insert(via::VIA, id.parse().unwrap());
                    response
                },
            ));
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async { axum::serve(listener, router).await });
        format!("http://{address}/v1")
    }

    #[tokio::test]
    async fn u29_it_is_known_of_each_model_server_whether_it_answers() {
        let (base, idle) = (server(None).await, Duration::from_secs(5));
        let named = |name: &str, url: &str| UpstreamSettings {
            name: name.to_owned(),
            api_key: Some("hush".to_owned()),
            fallback: (name == "away").then(|| "here".to_owned()),
            ..UpstreamSettings::new(url, idle)
        };
        let all = [named("here", &base), named("away", "http://127.0.0.1:1/v1?key=hush")];
        let reports = Upstream::several(all).unwrap().reports().await;
        let [here, away] = reports.as_slice() else { panic!("{reports:?}") };
        let known = (here.address.as_str(), here.kind.as_deref(), here.models, &here.error);
        assert_eq!(known, (base.as_str(), Some("llama.cpp"), Some(1), &None));
        assert_eq!((away.address.as_str(), away.models), ("http://127.0.0.1:1/v1", None));
        assert_eq!((&away.kind, away.fallback.as_deref()), (&None, Some("here")));
        assert!(
            away.error.as_ref().unwrap().contains("cannot reach the model server at http://127.0.0.1:1/v1")
        );
        assert!(!format!("{reports:?}").contains("hush"), "{reports:?}");
    }

    #[tokio::test]
    async fn b14_another_toolrack_is_not_found_by_itself() {
        let (sibling, model_server) = (server(Some("b")).await, server(None).await);
        let idle = Duration::from_secs(5);
        let found = Upstream::first_of(vec![&sibling, &model_server], None, idle).await;
        assert_eq!((found.address(), found.kind()), (model_server, "llama.cpp".to_owned()));
        assert!(Upstream::first_of(vec![&sibling], None, idle).await.is_demo());
        // It is asked where it is set.
        let set = Upstream::http(&sibling, None, idle).unwrap();
        assert_eq!(set.models().await.unwrap().len(), 1);
        assert_eq!(set.kind(), "toolrack");
    }
}
