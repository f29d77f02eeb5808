//! The model behind the bridge: a server that speaks the OpenAI API, or the built-in demo model.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::demo::{self, DemoModel, DemoTool};
use crate::provider::{
    openai::{self, Object, Piece},
    sse::SseDecoder,
};

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

/// How long the end of a stream is waited for once the model has finished.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// A model that can be asked.
#[derive(Debug, Clone)]
pub struct Upstream(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    Http(HttpUpstream),
    Demo(DemoModel),
}

#[derive(Debug)]
struct HttpUpstream {
    client: reqwest::Client,
    base: String,
    api_key: Option<String>,
    idle_timeout: Duration,
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
        Self(Arc::new(Kind::Demo(DemoModel::new())))
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
        // A proxy of the environment is for the world, not for the model server beside this one. Nor are connections kept: small
        // servers close them after seconds, and a question sent at that moment would be lost.
        let options = || reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0);
        let client = registry_core::http::build_client(options).map_err(|error| error.to_string())?;
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self(Arc::new(Kind::Http(HttpUpstream { client, base, api_key, idle_timeout }))))
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
            Kind::Demo(_) => DEMO,
        }
    }

    /// Whether it is the built-in demo model.
    pub fn is_demo(&self) -> bool {
        matches!(&*self.0, Kind::Demo(_))
    }

    /// The models it has, as the API lists them.
    ///
    /// # Errors
    /// When it cannot be reached or does not list them.
    pub async fn models(&self) -> Result<Vec<Value>, UpstreamError> {
        let upstream = match &*self.0 {
            Kind::Demo(_) => {
                return Ok(vec![
                    json!({"id": demo::NAME, "object": "model", "created": 0, "owned_by": "toolrack"}),
                ]);
            }
            Kind::Http(upstream) => upstream,
        };
        let request = upstream.authorized(upstream.client.get(format!("{}/models", upstream.base)));
        let response = upstream.send(request.timeout(Duration::from_secs(10))).await?;
        let mut list: Value =
            response.json().await.map_err(|error| UpstreamError::Interrupted(cause_of(&error)))?;
        Ok(match list.get_mut("data").map(Value::take) {
            Some(Value::Array(models)) => models,
            _ => Vec::new(),
        })
    }

    /// Asks for an answer to a request, with the tools as a JSON array.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub async fn ask(&self, request: &Object, tools: Option<&str>) -> Result<Answer, UpstreamError> {
        match &*self.0 {
            Kind::Demo(model) => Ok(Answer::demo(model, request, tools)),
            Kind::Http(upstream) => upstream.ask(request, tools).await,
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
        let body = response.text().await.unwrap_or_default();
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
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        // What it is counts more than what was asked for.
        let body = match kind.unwrap_or_default() {
            kind if kind.starts_with("text/event-stream") => Body::Events(SseDecoder::default()),
            kind if streamed && !kind.starts_with("application/json") && !kind.starts_with("text/html") => {
                Body::Events(SseDecoder::default())
            }
            _ => Body::Whole(Vec::new()),
        };
        Ok(Answer {
            source: Source::Http { response, body, idle_timeout: self.idle_timeout },
            inbox: Inbox::default(),
        })
    }
}

/// A request with its tools, which are JSON already.
fn with_tools(request: &Object, tools: Option<&str>) -> String {
    let mut body = serde_json::Value::Object(request.clone()).to_string();
    if let Some(tools) = tools {
        body.pop();
        body.push_str(if body.len() > 1 { ",\"tools\":" } else { "\"tools\":" });
        body.push_str(tools);
        body.push('}');
    }
    body
}

/// A connection error with what caused it, without the address twice.
fn cause_of(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// An answer on its way.
#[derive(Debug)]
pub struct Answer {
    source: Source,
    inbox: Inbox,
}

/// What has come of an answer.
#[derive(Debug, Default)]
struct Inbox {
    ready: VecDeque<Result<Piece, UpstreamError>>,
    /// The model has finished: only the usage may still come.
    finished: bool,
    /// The server has said that nothing more comes.
    done: bool,
}

#[derive(Debug)]
enum Source {
    Http { response: reqwest::Response, body: Body, idle_timeout: Duration },
    Demo,
    Ended,
}

#[derive(Debug)]
enum Body {
    Events(SseDecoder),
    Whole(Vec<u8>),
}

impl Answer {
    fn demo(model: &DemoModel, request: &Object, tools: Option<&str>) -> Self {
        let messages =
            request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let definitions: Vec<Value> =
            tools.and_then(|tools| serde_json::from_str(tools).ok()).unwrap_or_default();
        let tools: Vec<DemoTool<'_>> = definitions
            .iter()
            .filter_map(|tool| {
                let function = tool.get("function")?;
                Some(DemoTool {
                    name: function.get("name")?.as_str()?,
                    description: function.get("description").and_then(Value::as_str).unwrap_or_default(),
                    parameters: function.get("parameters").unwrap_or(&Value::Null),
                })
            })
            .collect();
        let text = model.answer(messages, &tools);
        let prompt: usize = messages.iter().map(|message| message.to_string().len().div_ceil(4)).sum();
        let pieces: Vec<Piece> = demo::pieces(&text).map(|piece| Piece::Text(piece.to_owned())).collect();
        let usage = json!({
            "prompt_tokens": prompt, "completion_tokens": pieces.len(), "total_tokens": prompt + pieces.len(),
        });
        let ending = [Piece::Finish("stop".into()), Piece::Usage(usage)];
        Self { source: Source::Demo, inbox: Inbox::of(pieces.into_iter().chain(ending)) }
    }

    /// An answer that is known already: the text that a server could not read itself.
    pub(crate) fn recovered(text: String) -> Self {
        let pieces = [Piece::Text(text), Piece::Finish("stop".into())];
        Self { source: Source::Ended, inbox: Inbox::of(pieces) }
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Piece, UpstreamError>> {
        loop {
            if let Some(piece) = self.inbox.ready.pop_front() {
                if matches!(self.source, Source::Demo) {
                    // Without a breath between its pieces the demo would show nothing of streaming.
                    tokio::time::sleep(Duration::from_millis(4)).await;
                }
                return Some(piece);
            }
            if self.inbox.done {
                // Whether the server closes the connection is its own affair.
                self.source = Source::Ended;
            }
            let Source::Http { response, body, idle_timeout } = &mut self.source else { return None };
            let idle = if self.inbox.finished { (*idle_timeout).min(AFTERWARDS) } else { *idle_timeout };
            match tokio::time::timeout(idle, response.chunk()).await {
                Err(_) | Ok(Err(_)) if self.inbox.finished => self.end(),
                Err(_) => return self.fail(UpstreamError::Stalled(idle)),
                Ok(Err(error)) => return self.fail(UpstreamError::Interrupted(cause_of(&error))),
                Ok(Ok(Some(bytes))) => match body {
                    Body::Whole(all) => all.extend_from_slice(&bytes),
                    Body::Events(decoder) => {
                        let inbox = &mut self.inbox;
                        if decoder.push(&bytes, &mut |data| inbox.read_event(&data)).is_err() {
                            return self
                                .fail(UpstreamError::Failed("a line of its stream is over 16 MiB".into()));
                        }
                    }
                },
                Ok(Ok(None)) => self.end(),
            }
        }
    }

    fn fail(&mut self, error: UpstreamError) -> Option<Result<Piece, UpstreamError>> {
        self.source = Source::Ended;
        Some(Err(error))
    }

    /// The server has closed the stream.
    fn end(&mut self) {
        let Source::Http { body, .. } = std::mem::replace(&mut self.source, Source::Ended) else { return };
        match body {
            Body::Events(mut decoder) => {
                decoder.finish(&mut |data| self.inbox.read_event(&data));
            }
            Body::Whole(bytes) => match openai::read_json(&String::from_utf8_lossy(&bytes)) {
                Ok(answer) => {
                    self.inbox.finished = true;
                    self.inbox.take(answer);
                }
                Err(error) => self
                    .inbox
                    .ready
                    .push_back(Err(UpstreamError::Failed(format!("its reply is not JSON: {error}")))),
            },
        }
        if !self.inbox.finished && !self.inbox.ready.iter().any(Result::is_err) {
            let error = UpstreamError::Interrupted("the stream ended before the answer did".into());
            self.inbox.ready.push_back(Err(error));
        }
    }
}

impl Inbox {
    /// An answer that is whole.
    fn of(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self { ready: pieces.into_iter().map(Ok).collect(), finished: true, done: true }
    }

    /// One event of a stream. What is no JSON is skipped: a broken event is not worth the rest of the answer.
    fn read_event(&mut self, data: &str) {
        if data.trim() == "[DONE]" {
            (self.finished, self.done) = (true, true);
            return;
        }
        match openai::read_json(data) {
            Ok(chunk) => self.take(chunk),
            Err(error) => tracing::warn!(%error, data, "the model server sent an event that is not JSON"),
        }
    }

    fn take(&mut self, answer: Value) {
        match openai::read_answer(answer) {
            Ok(pieces) => {
                self.finished |= pieces.iter().any(|piece| matches!(piece, Piece::Finish(_)));
                self.ready.extend(pieces.into_iter().map(Ok));
            }
            Err(message) => {
                (self.finished, self.done) = (true, true);
                self.ready.push_back(Err(UpstreamError::Failed(message)));
            }
        }
    }
}
