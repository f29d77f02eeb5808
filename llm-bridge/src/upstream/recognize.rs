//! Finds out which kind of server stands at an address.

use std::{sync::Arc, time::Duration};

use axum::http::HeaderMap;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::Instant;
use toolrack_apis::{Wire, openai::OpenAiWire};

use super::{
    api::{UpstreamApi, root_of},
    error::UpstreamError,
    http::{HttpUpstream, json_of, read_capped},
    kind::{KINDS, ModelList, ServerKind, Sign},
    settings::UpstreamSettings,
    via::carried,
};

/// How long a server may take to be recognised.
const TIMEOUT: Duration = Duration::from_secs(3);
/// When a server that took longer is looked at again.
const AGAIN: Duration = Duration::from_secs(60);

/// What is known of a server.
#[derive(derive_more::Debug)]
#[debug("Recognized({:?})", self.id())]
pub(super) struct Recognized {
    /// Its kind, if it is one of the table.
    pub(super) kind: Option<&'static ServerKind>,
    /// Where its imitation of OpenAI's API is.
    pub(super) openai_base: String,
    /// The API it is asked in.
    pub(super) api: UpstreamApi,
    /// The wire of that API.
    pub(super) wire: Box<dyn Wire>,
    /// The address that the wire's paths are below.
    pub(super) wire_base: String,
    /// How it lists its models.
    pub(super) list: ModelList,
    /// When it is looked at again; `None` for never.
    until: Option<Instant>,
}

impl Recognized {
    fn new(kind: Option<&'static ServerKind>, openai_base: String, settings: &UpstreamSettings) -> Self {
        let api = settings.api.or(kind.map(|kind| kind.api)).unwrap_or(UpstreamApi::OpenAi);
        let list = api.list().or(kind.map(|kind| kind.list)).unwrap_or(ModelList::OpenAi);
        Self {
            kind,
            api,
            wire: api.wire(settings, settings.num_ctx, false),
            wire_base: api.base(&openai_base).to_owned(),
            openai_base,
            list,
            until: None,
        }
    }

    /// The kind in one word, or the API.
    pub(super) fn id(&self) -> &'static str {
        self.kind.map_or(self.wire.api().name(), |kind| kind.id)
    }
}

/// What was found out, and whether it still holds.
#[derive(Debug, Default)]
pub(super) struct Recognition {
    last: Option<Arc<Recognized>>,
    is_stale: bool,
}

impl Recognition {
    /// What was found last.
    pub(super) fn last(&self) -> Option<&Arc<Recognized>> {
        self.last.as_ref()
    }

    /// What holds now.
    fn current(&self) -> Option<Arc<Recognized>> {
        let fresh = |known: &&Arc<Recognized>| known.until.is_none_or(|until| Instant::now() < until);
        self.last.as_ref().filter(fresh).filter(|_| !self.is_stale).cloned()
    }

    /// Another server may stand at the address when it answers again.
    pub(super) fn forget(&mut self) {
        self.is_stale = true;
    }
}

/// A reply to a short question.
#[derive(Default)]
struct Reply {
    is_success: bool,
    headers: HeaderMap,
    /// Its body; null where that is not JSON.
    body: Value,
}

impl Reply {
    fn is_list(&self) -> bool {
        self.is_success && self.body.get("data").is_some()
    }

    /// Whether a sign is in a list of models.
    fn has(&self, sign: &Sign) -> bool {
        match sign {
            Sign::Header { name, begins } => {
                let value = self.headers.get(*name).and_then(|value| value.to_str().ok());
                value.is_some_and(|value| value.starts_with(begins))
            }
            Sign::OwnedBy(owner) => {
                let models = self.body.get("data").and_then(Value::as_array);
                let owned = |model: &Value| model.get("owned_by").and_then(Value::as_str) == Some(owner);
                models.is_some_and(|models| models.iter().any(owned))
            }
            Sign::Json { .. } => false,
        }
    }
}

impl HttpUpstream {
    /// What is known of the server. It is asked once, and again after it could not be reached.
    pub(super) async fn recognized(self: &Arc<Self>) -> Arc<Recognized> {
        if let Some(known) = self.recognition().current() {
            return known;
        }
        // In a task of its own: a turn that nobody reads would keep all others waiting.
        let this = Arc::clone(self);
        let found = tokio::spawn(carried(async move { this.recognize_alone().await })).await;
        found.unwrap_or_else(|_| Arc::new(self.unknown()))
    }

    fn unknown(&self) -> Recognized {
        Recognized::new(None, self.base.clone(), &self.settings)
    }

    async fn recognize_alone(&self) -> Arc<Recognized> {
        let _alone = self.recognizing.lock().await;
        if let Some(known) = self.recognition().current() {
            return known;
        }
        let found = match tokio::time::timeout(TIMEOUT, self.recognize()).await {
            Ok(Ok(found)) => Arc::new(found),
            // Nobody is there; the request itself says so.
            Ok(Err(_)) => return Arc::new(self.unknown()),
            Err(_) => Arc::new(Recognized { until: Some(Instant::now() + AGAIN), ..self.unknown() }),
        };
        let mut recognition = self.recognition();
        let is_news = recognition.last().is_none_or(|last| last.id() != found.id());
        *recognition = Recognition { last: Some(Arc::clone(&found)), is_stale: false };
        drop(recognition);
        if is_news {
            self.report(&found);
        }
        found
    }

    fn report(&self, found: &Recognized) {
        let (base, api) = (&self.base, found.wire.api());
        let name = found.kind.map_or("an unknown kind of server", |kind| kind.name);
        tracing::info!(
            upstream = self.settings.name,
            "The model server at {base} is {name}, asked in the API `{api}`"
        );
        let settings = &self.settings;
        if !found.api.has_context_settings() && (settings.num_ctx.is_some() || settings.keep_alive.is_some())
        {
            tracing::warn!(
                upstream = self.settings.name,
                "`num_ctx` and `keep_alive` are for Ollama and are not sent to {name}; give it the size of the context when you start it"
            );
        }
    }

    async fn recognize(&self) -> Result<Recognized, UpstreamError> {
        let mut base = self.base.clone();
        let mut list = self.look(format!("{base}/models")).await?;
        if !list.is_list() && !base.ends_with("/v1") {
            let below = format!("{base}/v1");
            let other = self.look(format!("{below}/models")).await?;
            if other.is_list() {
                (base, list) = (below, other);
            }
        }
        let listed = KINDS.iter().find(|kind| kind.signs.iter().any(|sign| list.has(sign)));
        let kind = match listed {
            Some(kind) => Some(kind),
            None => self.probe(root_of(&base)).await,
        };
        Ok(Recognized::new(kind, base, &self.settings))
    }

    /// The first kind that one of its own addresses gives away.
    async fn probe(&self, root: &str) -> Option<&'static ServerKind> {
        let probes = KINDS.iter().flat_map(|kind| kind.signs.iter().map(move |sign| (kind, sign)));
        let probes = probes.filter_map(|(kind, sign)| match sign {
            Sign::Json { path, pointer, begins } => Some(async move {
                let reply = self.look(format!("{root}{path}")).await.ok()?;
                let text = reply.body.pointer(pointer).and_then(Value::as_str)?;
                (reply.is_success && text.starts_with(begins)).then_some(kind)
            }),
            _ => None,
        });
        join_all(probes).await.into_iter().flatten().next()
    }

    /// Looks at an address, whatever the status.
    async fn look(&self, url: String) -> Result<Reply, UpstreamError> {
        let response = self.send_raw(self.authorized(&OpenAiWire, self.client.get(url))).await?;
        Ok(Reply {
            is_success: response.status().is_success(),
            headers: response.headers().clone(),
            body: json_of(read_capped(response).await?).await.unwrap_or_default(),
        })
    }
}
