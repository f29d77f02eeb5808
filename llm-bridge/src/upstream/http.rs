//! A model server that is asked over HTTP.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Method, Response, header},
};
use futures_util::stream;
use parking_lot::{Mutex, MutexGuard};
use registry_core::{UserPlace, UserPlaces};
use reqwest::redirect;
use serde_json::{Map, Value};
use toolrack_apis::{
    Encoded, Request, Wire, completion::CompletionWire, json::values_in, openai::OpenAiWire,
};

use super::{
    answer::Answer,
    api::root_of,
    asker::Asker,
    context::{Contexts, SentSize},
    error::UpstreamError,
    omissions,
    raw::{RawModels, RawQuestion},
    recognize::Recognition,
    settings::UpstreamSettings,
    via::{VIA, header_of},
};
use crate::{beside::beside, logged::Logged, metrics::UpstreamMetrics};

/// The maximum size of a list of models or an error, in bytes.
const MAX_REPLY: usize = 4 * 1024 * 1024;
/// How many values these may have.
const MAX_VALUES: usize = 500_000;
/// So often it is followed to another address of itself.
const MAX_REDIRECTS: usize = 5;
/// How long a list of models may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// A model server.
#[derive(derive_more::Debug)]
#[debug("HttpUpstream({base})")]
pub(super) struct HttpUpstream {
    pub(super) client: reqwest::Client,
    pub(super) base: String,
    pub(super) settings: UpstreamSettings,
    recognition: Mutex<Recognition>,
    /// Held by whoever finds out which kind of server it is.
    pub(super) recognizing: tokio::sync::Mutex<()>,
    pub(super) contexts: Contexts,
    metrics: UpstreamMetrics,
    logged: Logged,
    pub(super) raw_models: RawModels,
    /// Places of answers, if the server gives only so many at once. A user waits behind at most one answer of each place.
    answering: Option<UserPlaces>,
    /// What this server is known by to others like it.
    id: Arc<str>,
}

impl HttpUpstream {
    pub(super) fn new(
        settings: UpstreamSettings,
        id: Arc<str>,
        metrics: UpstreamMetrics,
    ) -> Result<Self, String> {
        let base = settings.url.as_str();
        let url =
            reqwest::Url::parse(base).map_err(|error| format!("`{base}` is not an address: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "`{base}` is not an HTTP address; give one such as http://127.0.0.1:8080/v1"
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "the address has a password in it; give the key as TOOLRACK_UPSTREAM_API_KEY".to_owned()
            );
        }
        // A proxy of the environment is for the world, not for the model server beside this one. Nor are connections kept: small
        // servers close them after seconds, and a question sent at that moment would be lost.
        let options =
            || reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).redirect(to_itself());
        let client = toolrack_http::build_client(options).map_err(|error| error.to_string())?;
        let base = base.trim_end_matches('/').to_owned();
        let (recognition, recognizing, contexts, logged, raw_models) = Default::default();
        let answering =
            settings.parallel.map(|many| UserPlaces::new(many.get().into()).among(many.get().into()));
        Ok(Self {
            client,
            base,
            settings,
            recognition,
            recognizing,
            contexts,
            metrics,
            logged,
            raw_models,
            answering,
            id,
        })
    }

    /// What is known of the server so far.
    pub(super) fn recognition(&self) -> MutexGuard<'_, Recognition> {
        self.recognition.lock()
    }

    /// Whether somebody may say how a model is loaded.
    pub(super) fn lets_load(&self, asker: &Asker) -> bool {
        asker.loads || self.settings.users_load
    }

    /// Waits until it is somebody's turn to be answered.
    async fn place(&self, asker: &Asker) -> Option<UserPlace> {
        self.answering.as_ref()?.enter(&asker.tenant, &asker.user).await
    }

    /// Asks for an answer. `context` is the size of the model's context, where the settings say it.
    pub(super) async fn ask(
        self: &Arc<Self>,
        request: &Request,
        definitions: &str,
        context: Option<u64>,
        asker: &Asker,
    ) -> Result<Answer, UpstreamError> {
        let known = self.recognized().await;
        let size = self.measure(known.api, request, definitions, context, asker).await;
        let (place, began) = (self.place(asker).await, Instant::now());
        let wire = known.api.wire(&self.settings, size.asked(), self.lets_load(asker));
        let answer = self.begin_answer(&*wire, &known.wire_base, request, definitions, size).await;
        self.metrics.asked(&self.settings.name, answer.as_ref().err(), began.elapsed());
        Ok(answer?.at(place))
    }

    /// Asks for the completion of a prompt; the request says how the model chooses its words.
    pub(super) async fn ask_raw(
        self: &Arc<Self>,
        request: &Request,
        question: &RawQuestion,
        context: Option<u64>,
        asker: &Asker,
    ) -> Result<Answer, UpstreamError> {
        let known = self.recognized().await;
        let size = self.measure(known.api, request, &question.definitions, context, asker).await;
        let wire = CompletionWire { num_ctx: size.asked(), ..question.wire.clone() };
        let base = match wire.form.is_below_root() {
            true => root_of(&known.openai_base),
            false => &known.openai_base,
        };
        let (place, began) = (self.place(asker).await, Instant::now());
        let answer = self.begin_answer(&wire, base, request, "", size).await;
        self.metrics.asked(&self.settings.name, answer.as_ref().err(), began.elapsed());
        Ok(answer?.at(place))
    }

    async fn begin_answer(
        &self,
        wire: &dyn Wire,
        base: &str,
        request: &Request,
        definitions: &str,
        size: SentSize,
    ) -> Result<Answer, UpstreamError> {
        let Encoded { http, omissions } = wire.request(request, definitions);
        omissions::log(&self.logged, request.model.as_deref().unwrap_or_default(), &omissions);
        let (parts, body) = http.into_parts();
        let url = format!("{base}{}", parts.uri);
        let post = self.client.post(url).headers(parts.headers).body(body);
        Ok(self.answer_to(wire, post).await?.to(size, omissions))
    }

    /// Asks for the continuation of a text, by a request in OpenAI's form.
    pub(super) async fn complete(
        self: &Arc<Self>,
        request: &Map<String, Value>,
        asker: &Asker,
    ) -> Result<Answer, UpstreamError> {
        let (known, place) = (self.recognized().await, self.place(asker).await);
        let post = self.client.post(format!("{}/completions", known.openai_base)).json(request);
        Ok(self.answer_to(&CompletionWire::default(), post).await?.at(place))
    }

    /// Sends a request, and gives its answer once that begins.
    async fn answer_to(
        &self,
        wire: &dyn Wire,
        post: reqwest::RequestBuilder,
    ) -> Result<Answer, UpstreamError> {
        let idle = self.settings.idle_timeout;
        let mut response = tokio::time::timeout(idle, self.send(wire, self.authorized(wire, post)))
            .await
            .unwrap_or(Err(UpstreamError::Stalled(idle)))?;
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let decoder = wire.decoder(kind.unwrap_or_default());
        // They would keep the buffer that they were read from for as long as the model writes.
        *response.headers_mut() = HeaderMap::new();
        Ok(Answer::of(response, decoder, idle))
    }

    /// The JSON at an address.
    pub(super) async fn get(&self, url: String) -> Result<Value, UpstreamError> {
        let request = self.authorized(&OpenAiWire, self.client.get(url)).timeout(LIST_TIMEOUT);
        let body = read_capped(self.send(&OpenAiWire, request).await?).await?;
        let fault = |fault| UpstreamError::failed(format!("its list of models is not JSON: {fault}"));
        json_of(body).await.map_err(fault)
    }

    /// The JSON that an address answers with to this.
    pub(super) async fn post(&self, url: String, body: &Value) -> Result<Value, UpstreamError> {
        let request = self.authorized(&OpenAiWire, self.client.post(url).json(body)).timeout(LIST_TIMEOUT);
        let body = read_capped(self.send(&OpenAiWire, request).await?).await?;
        json_of(body).await.map_err(|fault| UpstreamError::failed(format!("its reply is not JSON: {fault}")))
    }

    /// Asks for the vectors of texts; gives the reply as it came.
    pub(super) async fn embeddings(self: &Arc<Self>, request: &Value) -> Result<Vec<u8>, UpstreamError> {
        let known = self.recognized().await;
        let post = self.client.post(format!("{}/embeddings", known.openai_base)).json(request);
        let reply =
            async { read_capped(self.send(&OpenAiWire, self.authorized(&OpenAiWire, post)).await?).await };
        let stalled = Err(UpstreamError::Stalled(self.settings.idle_timeout));
        tokio::time::timeout(self.settings.idle_timeout, reply).await.unwrap_or(stalled)
    }

    /// Passes a request on, and gives the reply as it comes. A path of OpenAI's API is below its base, any other below the server's root.
    pub(super) async fn pass(
        self: &Arc<Self>,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, UpstreamError> {
        let known = self.recognized().await;
        let url = match path.strip_prefix("/v1/") {
            Some(rest) => format!("{}/{rest}", known.openai_base),
            None => format!("{}{path}", root_of(&known.openai_base)),
        };
        let request = self.client.request(method, url).headers(headers).body(body);
        let idle = self.settings.idle_timeout;
        let response = tokio::time::timeout(idle, self.send_raw(self.authorized(&OpenAiWire, request)))
            .await
            .unwrap_or(Err(UpstreamError::Stalled(idle)))?;
        // That the server refuses this one is nothing that the client could mend.
        if matches!(response.status().as_u16(), 401 | 403 | 407) {
            return Err(self.refusal(&OpenAiWire, response).await);
        }
        let mut reply = Response::new(());
        *reply.status_mut() = response.status();
        for name in [header::CONTENT_TYPE, header::CONTENT_DISPOSITION, header::RETRY_AFTER] {
            if let Some(value) = response.headers().get(&name) {
                reply.headers_mut().insert(name, value.clone());
            }
        }
        if !is_data(reply.headers().get(header::CONTENT_TYPE)) {
            let bytes = HeaderValue::from_static("application/octet-stream");
            reply.headers_mut().insert(header::CONTENT_TYPE, bytes);
            reply.headers_mut().insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
        }
        let chunks = stream::unfold(Some(response), move |response| async move {
            let mut response = response?;
            match tokio::time::timeout(idle, response.chunk()).await {
                Ok(Ok(bytes)) => bytes.map(|bytes| (Ok(bytes), Some(response))),
                Ok(Err(error)) => Some((Err(io::Error::other(error)), None)),
                Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
            }
        });
        Ok(reply.map(|()| Body::from_stream(chunks)))
    }

    /// A request with the server's key, in the header of the API that the request is in, and with the way that it has come.
    pub(super) fn authorized(
        &self,
        wire: &dyn Wire,
        request: reqwest::RequestBuilder,
    ) -> reqwest::RequestBuilder {
        let request = request.header(VIA, header_of(&self.id));
        let request =
            crate::traces::headers().fold(request, |request, (name, value)| request.header(name, value));
        match &self.settings.api_key {
            Some(key) => {
                let (name, value) = wire.authorization(key);
                request.header(name, value)
            }
            None => request,
        }
    }

    /// Sends a request; gives the response whatever its status.
    pub(super) async fn send_raw(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, UpstreamError> {
        request.send().await.map_err(|error| {
            if error.is_connect() {
                self.recognition().forget();
                self.contexts.forget();
                UpstreamError::Unreachable { base: self.base.clone(), cause: cause_of(&error) }
            } else {
                UpstreamError::Interrupted(cause_of(&error))
            }
        })
    }

    async fn send(
        &self,
        wire: &dyn Wire,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, UpstreamError> {
        let response = self.send_raw(request).await?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(self.refusal(wire, response).await),
        }
    }

    /// What the server says in a reply with an error status.
    async fn refusal(&self, wire: &dyn Wire, response: reqwest::Response) -> UpstreamError {
        let status = response.status();
        let mut reply = axum::http::Response::new(());
        *reply.status_mut() = status;
        reply.headers_mut().clone_from(response.headers());
        let body = read_capped(response).await.unwrap_or_default();
        let mut failure = wire.failure(&reply.into_parts().0, &body);
        // A model that is not there is a 404, too; the address is at fault only where it looks so.
        let is_at_fault = || self.recognition().last().is_none_or(|known| known.kind.is_none());
        if status == reqwest::StatusCode::NOT_FOUND && !self.base.ends_with("/v1") && is_at_fault() {
            let hint = format!(". Its address is {}: does it have to end in /v1?", self.base);
            failure.message.push_str(&hint);
        }
        if is_about_context(&failure.message)
            && let Some(kind) = self.recognition().last().and_then(|known| known.kind)
        {
            failure.message.push_str(&format!(". To fix it, {}", kind.for_context));
        }
        UpstreamError::Refused { status: status.as_u16(), failure: Box::new(failure) }
    }
}

/// Whether a content type is one that a browser shows as data, and does not run.
fn is_data(kind: Option<&HeaderValue>) -> bool {
    let Some(kind) = kind else { return true };
    let kind = kind.to_str().unwrap_or_default().to_ascii_lowercase();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let begins = |family: &str| essence.starts_with(family);
    match essence {
        "text/plain" | "text/vtt" | "text/event-stream" | "application/octet-stream" => true,
        "image/svg+xml" => false,
        _ => {
            essence == "application/json"
                || essence.ends_with("+json")
                || essence == "application/x-ndjson"
                || begins("audio/")
                || begins("image/")
                || begins("video/")
        }
    }
}

/// Follows a server that sends on to itself, such as to https. Elsewhere is not where the operator wants conversations.
fn to_itself() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let (from, to) = (attempt.previous().last(), attempt.url());
        let stays = from.is_some_and(|from| {
            let is_upgraded = from.scheme() == "http" && to.scheme() == "https";
            from.host() == to.host() && (from.origin() == to.origin() || is_upgraded)
        });
        match stays && attempt.previous().len() <= MAX_REDIRECTS {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    })
}

/// Whether an error says that a request is larger than the context: `the request exceeds the available context size` of llama.cpp and
/// Ollama, `maximum context length is` of vLLM, `longer than the model's context length` of SGLang.
fn is_about_context(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("context")
        && ["exceed", "maximum", "longer than"].iter().any(|word| message.contains(word))
}

/// The JSON of such a body, of a bounded number of values, read beside the runtime where it is long.
///
/// # Errors
/// Why it is none.
pub(crate) async fn json_of(body: impl AsRef<[u8]> + Send + 'static) -> Result<Value, String> {
    let size = body.as_ref().len();
    let read = move || match values_in(body.as_ref()) {
        ..=MAX_VALUES => serde_json::from_slice(body.as_ref()).map_err(|error| error.to_string()),
        _ => Err(format!("it has more than {MAX_VALUES} values")),
    };
    beside(size, read).await.unwrap_or_else(|| Err("this server is being stopped".to_owned()))
}

/// The body of a reply that is no answer of the model.
pub(super) async fn read_capped(mut response: reqwest::Response) -> Result<Vec<u8>, UpstreamError> {
    let mut body = Vec::new();
    while let Some(bytes) =
        response.chunk().await.map_err(|error| UpstreamError::Interrupted(cause_of(&error)))?
    {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_REPLY {
            return Err(UpstreamError::failed("its reply is over 4 MiB"));
        }
    }
    Ok(body)
}

/// A connection error with what caused it, without the address twice.
pub(super) fn cause_of(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a32_a_list_of_a_model_server_has_so_many_values_and_no_more() {
        let list = |many: usize| format!("[{}]", vec!["1"; many].join(","));
        assert_eq!(json_of(list(MAX_VALUES - 1)).await.unwrap().as_array().unwrap().len(), MAX_VALUES - 1);
        assert_eq!(json_of(list(MAX_VALUES)).await.unwrap_err(), "it has more than 500000 values");
        assert!(json_of("<html>").await.is_err());
    }
}
