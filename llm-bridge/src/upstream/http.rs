//! A model server that is asked over HTTP.

use std::{
    fmt, io,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, Method, Response, header},
};
use futures_util::stream;
use serde_json::Value;
use toolrack_apis::{Request, Wire, openai::OpenAiWire};

use super::{answer::Answer, error::UpstreamError};
use crate::metrics::UpstreamMetrics;

/// The maximum size of a list of models or an error, in bytes.
const MAX_REPLY: usize = 4 * 1024 * 1024;
/// How long a list of models may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// A model server.
pub(super) struct HttpUpstream {
    client: reqwest::Client,
    pub(super) base: String,
    api_key: Option<String>,
    idle_timeout: Duration,
    wire: Box<dyn Wire>,
    pub(super) metrics: UpstreamMetrics,
}

/// Without the key.
impl fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUpstream").field("base", &self.base).finish_non_exhaustive()
    }
}

impl HttpUpstream {
    pub(super) fn new(base: &str, api_key: Option<String>, idle_timeout: Duration) -> Result<Self, String> {
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
        let options = || reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0);
        let client = toolrack_http::build_client(options).map_err(|error| error.to_string())?;
        let base = base.trim_end_matches('/').to_owned();
        let metrics = UpstreamMetrics::new().map_err(|error| format!("metrics: {error}"))?;
        Ok(Self { client, base, api_key, idle_timeout, wire: Box::new(OpenAiWire), metrics })
    }

    /// The API that it speaks.
    pub(super) fn wire(&self) -> &dyn Wire {
        self.wire.as_ref()
    }

    pub(super) async fn models(&self) -> Result<Vec<Value>, UpstreamError> {
        let request = self.authorized(self.client.get(format!("{}/models", self.base)));
        let response = self.send(request.timeout(LIST_TIMEOUT)).await?;
        let body = read_capped(response).await?;
        let mut list: Value = serde_json::from_slice(&body)
            .map_err(|error| UpstreamError::failed(format!("its list of models is not JSON: {error}")))?;
        Ok(match list.get_mut("data").map(Value::take) {
            Some(Value::Array(models)) => models,
            _ => Vec::new(),
        })
    }

    pub(super) async fn ask(&self, request: &Request, definitions: &str) -> Result<Answer, UpstreamError> {
        let began = Instant::now();
        let answer = self.begin_answer(request, definitions).await;
        self.metrics.asked(answer.as_ref().err(), began.elapsed());
        answer
    }

    async fn begin_answer(&self, request: &Request, definitions: &str) -> Result<Answer, UpstreamError> {
        let (parts, body) = self.wire.request(request, definitions).http.into_parts();
        let post = self.client.post(format!("{}{}", self.base, parts.uri)).headers(parts.headers).body(body);
        let response = tokio::time::timeout(self.idle_timeout, self.send(self.authorized(post)))
            .await
            .unwrap_or(Err(UpstreamError::Stalled(self.idle_timeout)))?;
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let decoder = self.wire.decoder(kind.unwrap_or_default());
        Ok(Answer::of(response, decoder, self.idle_timeout))
    }

    /// Asks for the vectors of texts; gives the reply as it came.
    pub(super) async fn embeddings(&self, request: &Value) -> Result<Vec<u8>, UpstreamError> {
        let post = self.client.post(format!("{}/embeddings", self.base)).json(request);
        let reply = async { read_capped(self.send(self.authorized(post)).await?).await };
        let stalled = Err(UpstreamError::Stalled(self.idle_timeout));
        tokio::time::timeout(self.idle_timeout, reply).await.unwrap_or(stalled)
    }

    /// Passes a request on, and gives the reply as it comes.
    pub(super) async fn pass(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, UpstreamError> {
        let request = self.client.request(method, self.address_of(path)).headers(headers).body(body);
        let response = tokio::time::timeout(self.idle_timeout, self.connect(self.authorized(request)))
            .await
            .unwrap_or(Err(UpstreamError::Stalled(self.idle_timeout)))?;
        // That the server refuses this one is nothing that the client could mend.
        if matches!(response.status().as_u16(), 401 | 403 | 407) {
            return Err(self.refusal(response).await);
        }
        let mut reply = Response::new(());
        *reply.status_mut() = response.status();
        for name in [header::CONTENT_TYPE, header::CONTENT_DISPOSITION, header::RETRY_AFTER] {
            if let Some(value) = response.headers().get(&name) {
                reply.headers_mut().insert(name, value.clone());
            }
        }
        let idle = self.idle_timeout;
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

    /// Where a path is on the server: one of OpenAI's API below the base, any other below the root.
    fn address_of(&self, path: &str) -> String {
        match path.strip_prefix("/v1/") {
            Some(rest) => format!("{}/{rest}", self.base),
            None => format!("{}{path}", self.base.strip_suffix("/v1").unwrap_or(&self.base)),
        }
    }

    fn authorized(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.api_key {
            Some(key) => {
                let (name, value) = self.wire.authorization(key);
                request.header(name, value)
            }
            None => request,
        }
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, UpstreamError> {
        let response = self.connect(request).await?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    /// Sends a request; the reply, whatever its status.
    async fn connect(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, UpstreamError> {
        request.send().await.map_err(|error| {
            if error.is_connect() {
                UpstreamError::Unreachable { base: self.base.clone(), cause: cause_of(&error) }
            } else {
                UpstreamError::Interrupted(cause_of(&error))
            }
        })
    }

    /// What the server says in a reply with an error status.
    async fn refusal(&self, response: reqwest::Response) -> UpstreamError {
        let status = response.status();
        let mut reply = axum::http::Response::new(());
        *reply.status_mut() = status;
        reply.headers_mut().clone_from(response.headers());
        let body = read_capped(response).await.unwrap_or_default();
        let mut failure = self.wire.failure(&reply.into_parts().0, &body);
        // A model that is not there is a 404, too; the address is at fault only where it looks so.
        if status == reqwest::StatusCode::NOT_FOUND && !self.base.ends_with("/v1") {
            let hint = format!(". Its address is {}: does it have to end in /v1?", self.base);
            failure.message.push_str(&hint);
        }
        UpstreamError::Refused { status: status.as_u16(), failure: Box::new(failure) }
    }
}

/// The body of a reply that is no answer of the model.
async fn read_capped(mut response: reqwest::Response) -> Result<Vec<u8>, UpstreamError> {
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
