//! The model servers, and which of them has a model.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, Method, Response},
};
use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use tokio::task::spawn_blocking;
use toolrack_apis::MAX_MODEL;

use super::{
    error::{UpstreamError, is_about_server},
    http::HttpUpstream,
    models::{answers_questions, name_of},
    report::UpstreamReport,
    route::Target,
    settings::UpstreamSettings,
    via::{carried, new_id},
};
use crate::metrics::UpstreamMetrics;

/// How long the list of one of several servers is taken for granted: every request looks through them all.
const KNOWN_FOR: Duration = Duration::from_secs(5);
/// What Ollama's clients add to the names of models.
const LATEST: &str = ":latest";
/// How many models of a server are known, and looked through for each request; no name is longer than a request's may be.
const MAX_MODELS: usize = 10_000;
/// A failure that took longer than this is remembered likewise, so that not every request waits for it.
const LONG: Duration = Duration::from_secs(1);

/// The model servers, in the order in which they are looked through.
#[derive(Debug)]
pub(super) struct Servers {
    /// What this server is known by to others like it.
    pub(super) id: Arc<str>,
    all: Vec<Arc<Server>>,
    pub(super) metrics: UpstreamMetrics,
}

/// A model server with its list of models.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) http: Arc<HttpUpstream>,
    list: Mutex<List>,
    /// Held by whoever asks for the list.
    listing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct List {
    /// The models, as far as the server has listed them.
    models: Arc<Vec<Value>>,
    /// When it was asked for them, and how that failed.
    asked: Option<(Instant, Option<UpstreamError>)>,
}

impl Server {
    /// Its models, without those that it is not to be asked for; those of the last list, if that is no older than `known_for`.
    async fn models(self: &Arc<Self>, known_for: Duration) -> Result<Arc<Vec<Value>>, UpstreamError> {
        // In a task of its own: a turn that nobody reads would keep all others waiting.
        let this = Arc::clone(self);
        let listed = tokio::spawn(carried(async move { this.list(known_for).await }));
        listed.await.unwrap_or_else(|_| Err(no_server()))
    }

    async fn list(&self, known_for: Duration) -> Result<Arc<Vec<Value>>, UpstreamError> {
        let _alone = self.listing.lock().await;
        {
            let list = self.last_list();
            if let Some((at, failure)) = &list.asked
                && at.elapsed() < known_for
            {
                return failure.clone().map_or_else(|| Ok(Arc::clone(&list.models)), Err);
            }
        }
        let began = Instant::now();
        let listed = self.http.models().await;
        let mut list = self.last_list();
        match listed {
            Ok(mut models) => {
                let is_wanted = |name: &str| name.len() <= MAX_MODEL && self.is_for(name);
                models.retain(|model| name_of(model).is_none_or(is_wanted));
                if models.len() > MAX_MODELS {
                    tracing::warn!(
                        upstream = self.name(),
                        listed = models.len(),
                        kept = MAX_MODELS,
                        "models_left_out"
                    );
                    models.truncate(MAX_MODELS);
                }
                *list = List { models: Arc::new(models), asked: Some((Instant::now(), None)) };
                Ok(Arc::clone(&list.models))
            }
            Err(failure) => {
                let is_long = began.elapsed() > LONG;
                list.asked = is_long.then(|| (Instant::now(), Some(failure.clone())));
                Err(failure)
            }
        }
    }

    fn last_list(&self) -> MutexGuard<'_, List> {
        self.list.lock()
    }

    /// Whether it had a model when it listed them last.
    fn had(&self, model: &str) -> bool {
        listed(&self.last_list().models, model).is_some()
    }

    /// The server for a model, and the model's name there, to which an Ollama's client may have added.
    async fn chosen(self: &Arc<Self>, model: &str) -> (Arc<Self>, String) {
        let models = if model.ends_with(LATEST) { self.models(KNOWN_FOR).await.ok() } else { None };
        let name = models.as_ref().and_then(|models| listed(models, model)).unwrap_or(model);
        (Arc::clone(self), name.to_owned())
    }

    fn name(&self) -> &str {
        &self.http.settings.name
    }

    /// Whether it may be asked for a model.
    fn is_for(&self, model: &str) -> bool {
        let patterns = &self.http.settings.models;
        patterns.is_empty() || patterns.iter().any(|pattern| pattern.fit(model).is_some())
    }

    /// How closely one of its patterns fits a model.
    fn fit(&self, model: &str) -> Option<usize> {
        self.http.settings.models.iter().filter_map(|pattern| pattern.fit(model)).max()
    }
}

/// The model that a request is for.
#[derive(Deserialize)]
struct Asked {
    model: Option<String>,
}

impl Asked {
    /// Reads it. `None` for a form, whose model is not read.
    async fn read(body: Bytes) -> Result<Option<String>, UpstreamError> {
        let read = move || serde_json::from_slice::<Self>(&body).ok();
        Ok(beside(read).await?.and_then(|asked| asked.model))
    }
}

/// The same request for another model.
async fn naming(model: String, body: Bytes) -> Result<Bytes, UpstreamError> {
    let written = move || {
        let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(&body)?;
        fields.insert("model".to_owned(), to_raw_value(&model)?);
        serde_json::to_vec(&fields).map(Bytes::from)
    };
    beside(written)
        .await?
        .map_err(|error| UpstreamError::failed(format!("the request cannot be read: {error}")))
}

/// Works beside the runtime: the body of a request is as large as a client likes.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, UpstreamError> {
    spawn_blocking(work).await.map_err(|_| UpstreamError::failed("this server is being stopped"))
}

fn no_server() -> UpstreamError {
    UpstreamError::failed("there is no model server")
}

fn without_latest(model: &str) -> &str {
    model.strip_suffix(LATEST).unwrap_or(model)
}

/// The name of a model in a list where a client calls it by another: what is `NAME` to others is `NAME:latest` in Ollama's lists, and to its clients.
fn listed<'m>(models: &'m [Value], model: &str) -> Option<&'m str> {
    let names = || models.iter().filter_map(name_of);
    let is_meant = |name: &&'m str| without_latest(name) == without_latest(model);
    names().find(|name| *name == model).or_else(|| names().find(is_meant))
}

impl Servers {
    /// Servers, each with a name of its own.
    ///
    /// # Errors
    /// When a URL is not an HTTP address, two have one name, or a `fallback` is not there.
    pub(super) fn new(all: Vec<UpstreamSettings>) -> Result<Self, String> {
        let metrics = UpstreamMetrics::new().map_err(|error| format!("metrics: {error}"))?;
        let names: HashSet<String> = all.iter().map(|settings| settings.name.clone()).collect();
        if names.len() != all.len() {
            return Err("two upstreams have the same name; give each its own".to_owned());
        }
        let id = new_id();
        let start = |settings: UpstreamSettings| {
            let name = settings.name.clone();
            if let Some(other) = settings.fallback.as_ref().filter(|other| !names.contains(*other)) {
                return Err(format!(
                    "{name}: fallback: there is no upstream `{other}`; write the name of another"
                ));
            }
            let http = HttpUpstream::new(settings, Arc::clone(&id), metrics.clone())
                .map_err(|fault| format!("{name}: {fault}"))?;
            Ok(Arc::new(Server { http: Arc::new(http), list: Mutex::default(), listing: Default::default() }))
        };
        let all = all.into_iter().map(start).collect::<Result<_, String>>()?;
        Ok(Self { id, all, metrics })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<HttpUpstream>> {
        self.all.iter().map(|server| &server.http)
    }

    /// The server, where there is one only.
    pub(super) fn only(&self) -> Option<&Arc<HttpUpstream>> {
        match self.all.as_slice() {
            [only] => Some(&only.http),
            _ => None,
        }
    }

    /// Passes a request on to the server of its model, and to those that it falls back to where that is away.
    pub(super) async fn pass(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, UpstreamError> {
        if let Some(only) = self.only().filter(|only| only.settings.name == UpstreamSettings::DEFAULT_NAME) {
            return only.pass(method, path, headers, body).await;
        }
        let asked = Asked::read(body.clone()).await?;
        let (first, model) = match &asked {
            Some(asked) => self.choose(asked).await?,
            None => (self.all.first().cloned().ok_or_else(no_server)?, String::new()),
        };
        let mut targets = self.with_fallbacks(Target { server: first, model }).into_iter();
        loop {
            let Some(Target { server, model }) = targets.next() else { return Err(no_server()) };
            let is_renamed = asked.as_ref().is_some_and(|asked| *asked != model);
            let sent = if is_renamed { naming(model, body.clone()).await? } else { body.clone() };
            let passed = server.http.pass(method.clone(), path, headers.clone(), sent).await;
            let reason = match &passed {
                Ok(response) if is_about_server(response.status().as_u16()) => response.status().to_string(),
                Err(error) if error.is_about_server() => error.to_string(),
                _ => return passed,
            };
            let Some(next) = targets.as_slice().first() else { return passed };
            tracing::warn!(reason, "the upstream {} does not answer; asking {next}", server.name());
        }
    }

    async fn lists(&self) -> Vec<(&Arc<Server>, Result<Arc<Vec<Value>>, UpstreamError>)> {
        let known_for = if self.all.len() > 1 { KNOWN_FOR } else { Duration::ZERO };
        join_all(self.all.iter().map(async |server| (server, server.models(known_for).await))).await
    }

    /// The models of all that can be asked, each once.
    ///
    /// # Errors
    /// When none of them can be asked.
    pub(super) async fn models(&self) -> Result<Vec<Value>, UpstreamError> {
        let (mut all, mut seen, mut failure, mut is_listed) = (Vec::new(), HashSet::new(), None, false);
        for (server, models) in self.lists().await {
            match models {
                Ok(models) => {
                    is_listed = true;
                    let is_new =
                        |model: &&Value| name_of(model).is_none_or(|name| seen.insert(name.to_owned()));
                    all.extend(models.iter().filter(is_new).cloned());
                }
                Err(error) => {
                    if self.all.len() > 1 {
                        tracing::warn!(upstream = server.name(), %error, "the models of this upstream are not listed");
                    }
                    failure.get_or_insert(error);
                }
            }
        }
        match failure {
            Some(error) if !is_listed => Err(error),
            _ => Ok(all),
        }
    }

    /// What is known of each, in their order; each is asked for its models.
    pub(super) async fn reports(&self) -> Vec<UpstreamReport> {
        let lists = self.lists().await.into_iter();
        lists
            .map(|(server, models)| {
                let HttpUpstream { base, settings, .. } = &*server.http;
                let kind = server.http.recognition().last().and_then(|known| known.kind);
                // What stands behind a `?` may be a key.
                let address = base.split(['?', '#']).next().unwrap_or_default();
                UpstreamReport {
                    name: settings.name.clone(),
                    address: address.to_owned(),
                    kind: kind.map(|kind| kind.name.to_owned()),
                    models: models.as_ref().ok().map(|models| models.len()),
                    error: models.err().map(|error| error.to_string().replace(base.as_str(), address)),
                    fallback: settings.fallback.clone(),
                }
            })
            .collect()
    }

    /// The servers to ask for a model: the one that has it, and those it falls back to. `None` is the first model that answers
    /// questions.
    ///
    /// # Errors
    /// When no server has the model, or, without a model, none can be asked.
    pub(super) async fn targets(&self, model: Option<&str>) -> Result<Vec<Target>, UpstreamError> {
        let (server, model) = match model {
            Some(model) => self.choose(model).await?,
            None => {
                let models = self.models().await?;
                let first = models.iter().find(|model| answers_questions(model)).or_else(|| models.first());
                self.choose(first.and_then(name_of).unwrap_or("default")).await?
            }
        };
        Ok(self.with_fallbacks(Target { server, model }))
    }

    /// A server and those that it falls back to, each once.
    fn with_fallbacks(&self, first: Target) -> Vec<Target> {
        let mut targets = vec![first];
        while let Some(last) = targets.last()
            && let Some(name) = &last.server.http.settings.fallback
            && let Some(next) = self.named(name)
            && !targets.iter().any(|target| target.server.name() == name)
        {
            let model = last.server.http.settings.fallback_model.as_ref().unwrap_or(&last.model).clone();
            targets.push(Target { server: Arc::clone(next), model });
        }
        targets
    }

    fn named(&self, name: &str) -> Option<&Arc<Server>> {
        self.all.iter().find(|server| server.name() == name)
    }

    /// The server for a model, and the model's name there.
    async fn choose(&self, model: &str) -> Result<(Arc<Server>, String), UpstreamError> {
        let addressed = || {
            let (name, rest) = model.split_once('/')?;
            Some((self.named(name)?, rest))
        };
        if let [only] = self.all.as_slice() {
            // It may have the model under any name, or not look at the name at all.
            let is_named = only.name() != UpstreamSettings::DEFAULT_NAME;
            let (server, model) = addressed().filter(|_| is_named).unwrap_or((only, model));
            return Ok(server.chosen(model).await);
        }
        let lists = self.lists().await;
        let listed_at = |(server, models): &(&Arc<Server>, Result<Arc<Vec<Value>>, UpstreamError>)| {
            let name = listed(models.as_ref().ok()?, model)?;
            Some((Arc::clone(server), name.to_owned()))
        };
        let listing: Vec<_> = lists.iter().filter_map(listed_at).collect();
        let exact = listing.iter().find(|(_, name)| name == model);
        if let Some(found) = exact.or_else(|| listing.first()) {
            return Ok(found.clone());
        }
        if let Some((server, rest)) = addressed() {
            return Ok(server.chosen(rest).await);
        }
        // In front of equals stands the first.
        let fitting = self.all.iter().rev().filter_map(|server| Some((server.fit(model)?, server)));
        if let Some((_, server)) = fitting.max_by_key(|(fit, _)| *fit) {
            return Ok(server.chosen(model).await);
        }
        let away: Vec<&Arc<Server>> =
            lists.iter().filter(|(_, models)| models.is_err()).map(|(server, _)| *server).collect();
        for server in &away {
            if server.had(model) {
                return Ok(server.chosen(model).await);
            }
        }
        if let Some(server) = away.iter().find(|server| server.http.settings.models.is_empty()) {
            return Ok(server.chosen(model).await);
        }
        Err(UpstreamError::NoModel(model.to_owned()))
    }
}
