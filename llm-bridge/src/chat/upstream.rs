//! The model behind the bridge: a server that speaks the OpenAI API, or the built-in demo model.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolrack_apis::openai::{self, Object};

use super::{answer::Answer, demo};
use crate::metrics::UpstreamMetrics;

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

/// The largest list of models or error that is read, in bytes.
const MAX_REPLY: usize = 4 * 1024 * 1024;

/// A model that can be asked.
#[derive(Debug, Clone)]
pub struct Upstream(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    Http(HttpUpstream),
    Demo,
}

struct HttpUpstream {
    client: reqwest::Client,
    base: String,
    api_key: Option<String>,
    idle_timeout: Duration,
    metrics: UpstreamMetrics,
}

/// Without the key.
impl fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUpstream").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Why the model could not be asked, or stopped answering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamError {
    /// No connection.
    Unreachable {
        /// The address.
        base: String,
        /// Why.
        cause: String,
    },
    /// The server refused the request.
    Status {
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The server failed while it answered, and said so.
    Failed(String),
    /// The server sent nothing for that long.
    Stalled(Duration),
    /// The answer broke off.
    Interrupted(String),
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { base, cause } => {
                write!(f, "cannot reach the model server at {base}: {cause}. Is it running? See --upstream")
            }
            Self::Status { status, message } => write!(f, "the model server answered {status}: {message}"),
            Self::Failed(message) => write!(f, "the model server failed: {message}"),
            Self::Stalled(idle) => write!(f, "the model server sent nothing for {} s", idle.as_secs()),
            Self::Interrupted(cause) => write!(f, "the model server broke off its answer: {cause}"),
        }
    }
}

impl std::error::Error for UpstreamError {}

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
        Ok(Self(Arc::new(Kind::Http(HttpUpstream { client, base, api_key, idle_timeout, metrics }))))
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

    /// The models it has, as the API lists them.
    ///
    /// # Errors
    /// When it cannot be reached or does not list them.
    pub async fn models(&self) -> Result<Vec<Value>, UpstreamError> {
        let upstream = match &*self.0 {
            Kind::Demo => {
                return Ok(vec![
                    json!({"id": demo::NAME, "object": "model", "created": 0, "owned_by": "toolrack"}),
                ]);
            }
            Kind::Http(upstream) => upstream,
        };
        let request = upstream.authorized(upstream.client.get(format!("{}/models", upstream.base)));
        let response = upstream.send(request.timeout(Duration::from_secs(10))).await?;
        let body = read_capped(response).await?;
        let mut list: Value = serde_json::from_slice(&body)
            .map_err(|error| UpstreamError::Failed(format!("its list of models is not JSON: {error}")))?;
        Ok(match list.get_mut("data").map(Value::take) {
            Some(Value::Array(models)) => models,
            _ => Vec::new(),
        })
    }

    /// The name of the first of its models.
    pub(super) async fn first_model(&self) -> Result<String, UpstreamError> {
        let models = self.models().await?;
        let first = models.first().and_then(|model| model.get("id")).and_then(Value::as_str);
        Ok(first.unwrap_or("default").to_owned())
    }

    /// Asks for an answer to a request, with the tools as a JSON array.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub async fn ask(&self, request: &Object, tools: Option<&str>) -> Result<Answer, UpstreamError> {
        match &*self.0 {
            Kind::Demo => Ok(Answer::demo(request, tools)),
            Kind::Http(upstream) => {
                let began = Instant::now();
                let answer = upstream.ask(request, tools).await;
                upstream.metrics.asked(answer.as_ref().err(), began.elapsed());
                answer
            }
        }
    }

    /// Asks for the vectors of texts; gives the reply as it came.
    pub(super) async fn embeddings(&self, request: &Value) -> Result<Vec<u8>, UpstreamError> {
        let upstream = match &*self.0 {
            Kind::Demo => {
                return Err(UpstreamError::Failed(
                    "the built-in demo model makes no vectors of texts".into(),
                ));
            }
            Kind::Http(upstream) => upstream,
        };
        let post = upstream.client.post(format!("{}/embeddings", upstream.base)).json(request);
        let reply = async { read_capped(upstream.send(upstream.authorized(post)).await?).await };
        let stalled = Err(UpstreamError::Stalled(upstream.idle_timeout));
        tokio::time::timeout(upstream.idle_timeout, reply).await.unwrap_or(stalled)
    }

    /// How the server has answered; the demo model is none.
    pub(crate) fn metrics(&self) -> Option<&UpstreamMetrics> {
        match &*self.0 {
            Kind::Http(upstream) => Some(&upstream.metrics),
            Kind::Demo => None,
        }
    }
}

impl HttpUpstream {
    fn authorized(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.api_key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, UpstreamError> {
        let response = request.send().await.map_err(|error| {
            if error.is_connect() {
                UpstreamError::Unreachable { base: self.base.clone(), cause: cause_of(&error) }
            } else {
                UpstreamError::Interrupted(cause_of(&error))
            }
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = read_capped(response).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        Err(UpstreamError::Status { status: status.as_u16(), message: openai::error_text(body) })
    }

    async fn ask(&self, request: &Object, tools: Option<&str>) -> Result<Answer, UpstreamError> {
        let streamed = request.get("stream").and_then(Value::as_bool).unwrap_or(false);
        let post = self.client.post(format!("{}/chat/completions", self.base));
        let post = post.header("content-type", "application/json").body(with_tools(request, tools));
        let post = self.authorized(post);
        let response = tokio::time::timeout(self.idle_timeout, self.send(post))
            .await
            .unwrap_or(Err(UpstreamError::Stalled(self.idle_timeout)))?;
        Ok(Answer::of(response, streamed, self.idle_timeout))
    }
}

/// A request with its tools, which are JSON already.
fn with_tools(request: &Object, tools: Option<&str>) -> String {
    // A map of JSON values is always JSON.
    let mut body = serde_json::to_string(request).unwrap_or_default();
    if let Some(tools) = tools {
        body.pop();
        body.push_str(if body.len() > 1 { ",\"tools\":" } else { "\"tools\":" });
        body.push_str(tools);
        body.push('}');
    }
    body
}

/// The body of a reply that is no answer of the model.
async fn read_capped(mut response: reqwest::Response) -> Result<Vec<u8>, UpstreamError> {
    let mut body = Vec::new();
    while let Some(bytes) =
        response.chunk().await.map_err(|error| UpstreamError::Interrupted(cause_of(&error)))?
    {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_REPLY {
            return Err(UpstreamError::Failed("its reply is over 4 MiB".into()));
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
