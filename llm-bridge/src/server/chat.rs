//! The chat APIs: each is a front of `toolrack-apis` before the same turn.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, stream};
use tokio::{sync::Semaphore, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use toolrack_apis::{
    BadRequest, Decoded, Encode, Failure, FailureKind, Provider, ToolStatus, TurnEvent,
    anthropic::AnthropicFront, gemini::GeminiFront, ollama::OllamaFront, openai::OpenAiFront,
    responses::ResponsesFront,
};

use super::{
    App,
    api_error::ApiError,
    conversations::{self, Keeping},
    counts,
    fronts::{StaticFront, read, reply},
    identity::Identity,
    openapi::{ChatCompletion, ChatCompletionRequest, JsonObject, Operation},
    routes::Routes,
};
use crate::turn::Turn;

/// The header that switches the server's tools off for a request.
pub(super) const TOOLS_HEADER: &str = "x-toolrack-tools";

/// How long the status of a streamed answer waits for the model server's first word.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// How often a silent stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The maximum size of a part of a stream that is sent at once, where the model is faster than the client, in bytes.
const PART: usize = 64 * 1024;
/// A larger body is decoded beside the runtime, in bytes.
const SMALL_BODY: usize = 256 * 1024;
/// How many of those are decoded at once; each takes a multiple of its size in memory.
static LARGE_BODIES: Semaphore = Semaphore::const_new(2);

const CLOSED: &str = "the server was stopped before the answer was finished";

/// An address of a chat API.
struct Endpoint {
    path: &'static str,
    front: StaticFront,
    /// Its name in generated clients.
    id: &'static str,
    summary: &'static str,
}

const ENDPOINTS: [Endpoint; 7] = [
    Endpoint {
        path: "/v1/chat/completions",
        front: &OpenAiFront,
        id: "create_chat_completion",
        summary: "An answer of the model, which may call tools on the way",
    },
    Endpoint {
        path: "/v1/responses",
        front: &ResponsesFront,
        id: "create_response",
        summary: "The same, as OpenAI's Responses: <https://platform.openai.com/docs/api-reference/responses>",
    },
    Endpoint {
        path: "/v1/messages",
        front: &AnthropicFront,
        id: "create_message",
        summary: "The same, as Anthropic's Messages: <https://docs.claude.com/en/api/messages>",
    },
    Endpoint {
        path: "/v1beta/models/{*call}",
        front: &GeminiFront,
        id: "generate_content",
        summary: "The same, as Gemini's `MODEL:generateContent`: <https://ai.google.dev/api/generate-content>",
    },
    Endpoint {
        path: "/v1/models/{*call}",
        front: &GeminiFront,
        id: "generate_content_v1",
        summary: "The same, as Gemini's `MODEL:generateContent`: <https://ai.google.dev/api/generate-content>",
    },
    Endpoint {
        path: "/api/chat",
        front: &OllamaFront::Chat,
        id: "ollama_chat",
        summary: "The same, as Ollama's chat: <https://docs.ollama.com/api/chat>",
    },
    Endpoint {
        path: "/api/generate",
        front: &OllamaFront::Generate,
        id: "ollama_generate",
        summary: "The same, as Ollama's generate: <https://docs.ollama.com/api/generate>",
    },
];

/// The routes of the chat APIs.
pub(super) fn routes() -> Routes {
    ENDPOINTS.iter().fold(Routes::new(), |routes, endpoint| {
        let front = endpoint.front;
        let handler = move |State(app): State<App>,
                            Extension(identity): Extension<Identity>,
                            request: Request| { answer(front, app, identity, request) };
        routes.add(endpoint.path, handler, operation(endpoint))
    })
}

fn operation(endpoint: &Endpoint) -> Operation {
    let operation = Operation::new(Method::POST, "Chat", endpoint.id, endpoint.summary)
        .details(
            "The server's tools are added to the client's, and calls of them are run here. What is called on the way is in the field \
             `x_toolrack`, or where the API has another place for it. A failure after the first word is an event of the stream.",
        )
        .header(TOOLS_HEADER, "`none` for a request without the server's tools, as with a model's name that ends with `:plain`.")
        .refuses("4XX", "What the model server says to the request (`upstream_error`); 424 if it refuses this server, or fails after tools have run.")
        .refuses(502, "The model server does not answer (`upstream_error`).")
        .refuses(503, "The model server is busy (`upstream_error`), or this one is being stopped (`server_stopping`).")
        .refuses(504, "The model server has fallen silent (`upstream_error`).");
    let operation = match endpoint.path.contains("{*call}") {
        true => operation.path(
            "call",
            "The model and the method, such as `MODEL:generateContent` or `MODEL:countTokens`.",
        ),
        false => operation,
    };
    match endpoint.front.api() {
        Provider::OpenAi => operation
            .reads::<ChatCompletionRequest>()
            .answers::<ChatCompletion>(200, "The answer.")
            .answers_with(200, "text/event-stream", ""),
        _ => operation.reads::<JsonObject>().answers::<JsonObject>(200, "The answer.").answers_with(
            200,
            if endpoint.front.api() == Provider::Ollama {
                "application/x-ndjson"
            } else {
                "text/event-stream"
            },
            "",
        ),
    }
}

async fn answer(
    front: StaticFront,
    app: App,
    identity: Identity,
    request: Request,
) -> Result<Response, ApiError> {
    if front.api() == Provider::Gemini && request.uri().path().ends_with("countTokens") {
        return counts::count(&GeminiFront, app, identity, request).await;
    }
    let (parts, body) = read(front, request).await?;
    let (base, headers) = (base_of(&parts.headers), parts.headers.clone());
    let bad = |fault: BadRequest| reply(front.failure(&fault.into()));
    let Decoded { mut request, encoder } =
        match decode(body.len(), move || front.decode(&parts, &body)).await? {
            Ok(decoded) => decoded,
            Err(fault) => return Ok(bad(fault)),
        };
    let identity = match request.extension.persona.take() {
        Some(persona) => identity.under_persona(persona).await?,
        None => identity,
    };
    if !wants_tools(&headers)? {
        request.extension.allowed_tools = Some(Vec::new());
    }
    let keeping = match front.api() {
        Provider::Responses => {
            match conversations::begin(app.conversations.as_ref(), &identity, &mut request).await {
                Ok(keeping) => keeping,
                Err(failure) => return Ok(reply(front.failure(&failure))),
            }
        }
        _ => None,
    };
    let stream = request.stream;
    let backend = app.backend.for_request(identity.registry.clone(), identity.standing());
    let turn = match backend.start(request, identity.caller) {
        Ok(turn) => turn,
        Err(fault) => return Ok(bad(fault)),
    };
    let answering = Answering { base, keeping, ..Answering::new(turn, encoder) };
    Ok(match stream {
        true => streamed(front, answering, app.closing).await,
        false => whole(front, answering, app.closing).await,
    })
}

/// Decodes a request of this many bytes, a large one on a thread of its own.
pub(super) async fn decode<T: Send + 'static>(
    size: usize,
    decode: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if size <= SMALL_BODY {
        return Ok(decode());
    }
    let failed = |_| ApiError::internal("the request could not be read; see the server's log");
    let _permit =
        LARGE_BODIES.acquire().await.map_err(|_| ApiError::internal("the server is being stopped"))?;
    tokio::task::spawn_blocking(decode).await.map_err(failed)
}

/// Whether a request is to have the server's tools: clients cannot say so in the bodies of their APIs.
pub(super) fn wants_tools(headers: &HeaderMap) -> Result<bool, ApiError> {
    match headers.get(TOOLS_HEADER) {
        None => Ok(true),
        Some(value) if value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"none") => Ok(false),
        Some(_) => {
            let message =
                "`x-toolrack-tools` has to be `none`; leave it out for a request with the server's tools";
            Err(ApiError::invalid(TOOLS_HEADER, message))
        }
    }
}

/// The address of this server, as the client reaches it.
fn base_of(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    Some(format!("http://{host}"))
}

/// An answer on its way to the client.
struct Answering {
    turn: Turn,
    encoder: Box<dyn Encode>,
    /// What is encoded and not sent yet.
    out: Vec<u8>,
    base: Option<String>,
    over: bool,
    /// Whether the client has been sent text.
    has_text: bool,
    model: String,
    /// Where the answer is kept, if it is.
    keeping: Option<Keeping>,
    /// The last event, while the answer is being kept: the client may go on from it at once.
    last: Option<(JoinHandle<()>, TurnEvent)>,
}

impl Answering {
    fn new(turn: Turn, encoder: Box<dyn Encode>) -> Self {
        Self {
            turn,
            encoder,
            out: Vec::new(),
            base: None,
            over: false,
            has_text: false,
            model: String::new(),
            keeping: None,
            last: None,
        }
    }

    /// Waits for the next event and encodes it. Nothing is lost when this is dropped while it waits.
    async fn next(&mut self) -> Result<(), Failure> {
        if let Some((kept, _)) = &mut self.last {
            // A failure of it is logged.
            let _ = kept.await;
        }
        if let Some((_, event)) = self.last.take() {
            return self.encode(event);
        }
        match self.turn.next().await {
            Some(event @ TurnEvent::Finished { .. }) => match self.keep() {
                Some(kept) => {
                    self.last = Some((kept, event));
                    Ok(())
                }
                None => self.encode(event),
            },
            Some(event) => self.encode(event),
            None => {
                self.over = true;
                Ok(())
            }
        }
    }

    /// Begins to keep the answer.
    fn keep(&mut self) -> Option<JoinHandle<()>> {
        let keeping = self.keeping.take()?;
        let (id, model) = (self.encoder.id()?.to_owned(), std::mem::take(&mut self.model));
        Some(tokio::spawn(keeping.keep(id, model, self.turn.take_answer())))
    }

    /// Encodes an event; a failure is handed back.
    fn encode(&mut self, event: TurnEvent) -> Result<(), Failure> {
        self.has_text |= matches!(event, TurnEvent::Text(_) | TurnEvent::Message { .. });
        if let TurnEvent::Model(name) = &event {
            self.model.clone_from(name);
        }
        let waits = self.waits(&event);
        match event {
            TurnEvent::Failed(failure) => {
                self.over = true;
                return Err(failure);
            }
            TurnEvent::Finished { .. } => {
                self.over = true;
                self.encoder.event(event, &mut self.out);
                self.encoder.finish(&mut self.out);
            }
            event => self.encoder.event(event, &mut self.out),
        }
        if let Some(message) = waits {
            self.encoder.event(message, &mut self.out);
            self.has_text = true;
        }
        Ok(())
    }

    /// A client that knows nothing of approvals shows this text while the call waits.
    fn waits(&self, event: &TurnEvent) -> Option<TurnEvent> {
        let TurnEvent::Tool(ToolStatus::Progress { id, name, approval: Some(approval), .. }) = event else {
            return None;
        };
        let base = self.base.as_deref().unwrap_or_default();
        let before = if self.has_text { "\n\n" } else { "" };
        let text = format!(
            "{before}[Waiting: a person has to allow `{name}`. To answer: POST {{\"approve\": true}} to {base}/api/approvals/{approval}]\n\n"
        );
        Some(TurnEvent::Message { id: id.clone(), text })
    }

    /// Ends a stream that cannot go on.
    fn fail(&mut self, failure: Failure) {
        self.over = true;
        self.encoder.event(TurnEvent::Failed(failure), &mut self.out);
        self.encoder.finish(&mut self.out);
    }

    fn content_type(&self) -> HeaderValue {
        HeaderValue::from_static(self.encoder.content_type())
    }
}

async fn whole(front: StaticFront, mut answering: Answering, closing: CancellationToken) -> Response {
    while !answering.over {
        let next = tokio::select! {
            next = answering.next() => next,
            () = closing.cancelled() => Err(closed()),
        };
        if let Err(failure) = next {
            return reply(front.failure(&failure));
        }
    }
    let kind = answering.content_type();
    ([(header::CONTENT_TYPE, kind)], answering.out).into_response()
}

async fn streamed(front: StaticFront, mut answering: Answering, closing: CancellationToken) -> Response {
    // A model server that refuses does so at once; its refusal is the status of the reply.
    let first = tokio::time::timeout(FIRST_WORD, async {
        while answering.out.is_empty() && !answering.over {
            answering.next().await?;
        }
        Ok::<_, Failure>(())
    });
    if let Ok(Err(failure)) = first.await {
        return reply(front.failure(&failure));
    }
    let kind = answering.content_type();
    let stream = stream::unfold((answering, closing), |(mut answering, closing)| async move {
        let part = answering.next_part(&closing).await?;
        Some((Ok::<_, Infallible>(part), (answering, closing)))
    });
    let mut response = Body::from_stream(stream).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies would hold the stream back until it is whole.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Answering {
    /// The next part of a stream.
    async fn next_part(&mut self, closing: &CancellationToken) -> Option<Bytes> {
        while self.out.is_empty() && !self.over {
            let next = tokio::select! {
                next = self.next() => next,
                () = tokio::time::sleep(HEARTBEAT) => {
                    self.encoder.keep_alive(&mut self.out);
                    Ok(())
                }
                () = closing.cancelled() => Err(closed()),
            };
            if let Err(failure) = next {
                self.fail(failure);
            }
        }
        // What has come meanwhile goes along.
        while self.out.len() < PART
            && !self.over
            && let Some(next) = self.next().now_or_never()
        {
            if let Err(failure) = next {
                self.fail(failure);
            }
        }
        // Copied, so that the buffer stays as large as parts are.
        let part = (!self.out.is_empty()).then(|| Bytes::copy_from_slice(&self.out));
        self.out.clear();
        part
    }
}

fn closed() -> Failure {
    Failure::new(FailureKind::Stopping, CLOSED)
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use registry_core::{Caller, Permission, Registry};
    use toolrack_apis::{Front, Message, Request, Role};

    use super::*;
    use crate::{
        turn::{Backend, ChatSettings},
        upstream::Upstream,
    };

    /// A turn that ends before its first word.
    async fn dead() -> Answering {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let upstream = Upstream::http("http://127.0.0.1:9/v1", None, FIRST_WORD).unwrap();
        let backend = Backend::new(registry, upstream, ChatSettings::default());
        backend.stop().await;
        let request = Request { messages: vec![Message::text(Role::User, "Go.")], ..Request::default() };
        let turn = backend.start(request, Caller::new("ada", Permission::User)).unwrap();
        let (parts, ()) = axum::http::Request::new(()).into_parts();
        let body = br#"{"messages": [{"role": "user", "content": "Go."}]}"#;
        let encoder = OpenAiFront.decode(&parts, body).unwrap().encoder;
        Answering::new(turn, encoder)
    }

    #[tokio::test]
    async fn a_turn_that_dies_is_no_answer() {
        let closing = CancellationToken::new();
        assert_eq!(
            whole(&OpenAiFront, dead().await, closing.clone()).await.status(),
            StatusCode::BAD_GATEWAY
        );
        assert_eq!(streamed(&OpenAiFront, dead().await, closing).await.status(), StatusCode::BAD_GATEWAY);
    }
}
