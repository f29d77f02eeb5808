//! The chat APIs: each is a front of `toolrack-apis` before the same turn.

use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderMap, Method},
    response::Response,
};
use toolrack_apis::{
    BadRequest, Decoded, Framing, Provider,
    anthropic::AnthropicFront,
    gemini::GeminiFront,
    ollama::OllamaFront,
    openai::OpenAiFront,
    responses::{ITEMS_HEADER, ResponsesFront},
};

use super::{
    answering::{Answering, streamed, whole},
    conversations, counts,
    fronts::{StaticFront, is_at, read, reply},
    gemini, ollama,
};
use crate::{
    server::{
        App,
        callers::identity::Identity,
        openapi::{ChatCompletion, ChatCompletionRequest, JsonObject, Operation},
        requests::{
            api_error::ApiError,
            body::{check_values, decode},
            public_url::PublicUrl,
        },
        routes::Routes,
    },
    traces,
};

/// The header that switches the server's tools off for a request.
pub(in crate::server) const TOOLS_HEADER: &str = "x-toolrack-tools";

/// An address of a chat API.
pub(in crate::server) struct Endpoint {
    pub(in crate::server) path: &'static str,
    /// Decodes its requests, and writes its answers and every error at this path and below it.
    pub(in crate::server) front: StaticFront,
    /// How it streams.
    stream: Framing,
    /// Its name in generated clients.
    id: &'static str,
    summary: &'static str,
}

impl Endpoint {
    /// Whether a path is this one or below it.
    pub(in crate::server) fn has(&self, path: &str) -> bool {
        is_at(path, self.path.split("/{").next().unwrap_or(self.path))
    }
}

/// The addresses of the chat APIs, a row each.
pub(in crate::server) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/v1/chat/completions",
        front: &OpenAiFront,
        stream: Framing::Sse,
        id: "create_chat_completion",
        summary: "An answer of the model, which may call tools on the way",
    },
    Endpoint {
        path: "/v1/responses",
        front: &ResponsesFront,
        stream: Framing::Sse,
        id: "create_response",
        summary: "The same, as OpenAI's Responses: <https://platform.openai.com/docs/api-reference/responses>",
    },
    Endpoint {
        path: "/v1/messages",
        front: &AnthropicFront,
        stream: Framing::Sse,
        id: "create_message",
        summary: "The same, as Anthropic's Messages: <https://docs.claude.com/en/api/messages>",
    },
    Endpoint {
        path: "/v1beta/models/{*call}",
        front: &GeminiFront,
        stream: Framing::Sse,
        id: "generate_content",
        summary: "The same, as Gemini's `MODEL:generateContent`: <https://ai.google.dev/api/generate-content>",
    },
    Endpoint {
        path: "/v1alpha/models/{*call}",
        front: &GeminiFront,
        stream: Framing::Sse,
        id: "generate_content_v1alpha",
        summary: "The same, as Gemini's `MODEL:generateContent`: <https://ai.google.dev/api/generate-content>",
    },
    Endpoint {
        path: "/v1/models/{*call}",
        front: &GeminiFront,
        stream: Framing::Sse,
        id: "generate_content_v1",
        summary: "The same, as Gemini's `MODEL:generateContent`: <https://ai.google.dev/api/generate-content>",
    },
    Endpoint {
        path: "/api/chat",
        front: &OllamaFront::Chat,
        stream: Framing::Lines,
        id: "ollama_chat",
        summary: "The same, as Ollama's chat: <https://docs.ollama.com/api/chat>",
    },
    Endpoint {
        path: "/api/generate",
        front: &OllamaFront::Generate,
        stream: Framing::Lines,
        id: "ollama_generate",
        summary: "The same, as Ollama's generate: <https://docs.ollama.com/api/generate>",
    },
];

/// The routes of the chat APIs.
pub(in crate::server) fn routes() -> Routes {
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
    let operation = match endpoint.front.api() {
        Provider::OpenAi => {
            operation.reads::<ChatCompletionRequest>().answers::<ChatCompletion>(200, "The answer.")
        }
        Provider::Responses => operation
            .header(ITEMS_HEADER, "`mcp_call` for calls of the server's tools as items of that type.")
            .reads::<JsonObject>()
            .answers::<JsonObject>(200, "The answer."),
        _ => operation.reads::<JsonObject>().answers::<JsonObject>(200, "The answer."),
    };
    operation.answers_with(200, endpoint.stream.content_type(), "")
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
    if front.api() == Provider::Gemini && gemini::embeds(request.uri().path()) {
        return gemini::embed(&app, request).await;
    }
    let (parts, body) = read(front, request).await?;
    if front.api() == Provider::Ollama
        && let Some(response) = ollama::prompts::answer(&app, &identity, &parts, &body).await?
    {
        return Ok(response);
    }
    let (base, headers) =
        (PublicUrl::of(app.settings.public_url.as_ref(), &parts.headers), parts.headers.clone());
    let bad = |fault: BadRequest| reply(front.failure(&fault.into()));
    let (size, sent) = (body.len(), body.clone());
    let read = move || check_values(&body).map(|_| front.decode(&parts, &body));
    let mut decoded = match decode(identity.sender(), size, read).await?? {
        Ok(decoded) => decoded,
        Err(fault) => return Ok(bad(fault)),
    };
    let missing = std::mem::take(&mut decoded.request.conversation.missing_items);
    if !missing.is_empty() {
        let kept = app.settings.conversations.as_ref();
        let with_items = conversations::with_items(kept, &identity, headers.clone(), sent, missing);
        decoded = match with_items.await {
            Ok(decoded) => decoded,
            Err(fault) => return fault.answered(front),
        };
    }
    let Decoded { mut request, encoder } = decoded;
    let identity = match request.extension.persona.take() {
        Some(persona) => identity.under_persona(persona).await?,
        None => identity,
    };
    if !wants_tools(&headers)? {
        request.extension.allowed_tools = Some(Vec::new());
    }
    let keeping = match front.api() {
        Provider::Responses => {
            match conversations::begin(app.settings.conversations.as_ref(), &identity, &mut request).await {
                Ok(keeping) => keeping,
                Err(fault) => return fault.answered(front),
            }
        }
        _ => None,
    };
    let stream = request.stream;
    let backend = app.backend.for_request(identity.registry.clone(), identity.standing());
    let backend = backend.reached_at(base.as_ref().map(PublicUrl::to_string));
    let trace = traces::of_request(app.settings.traces.as_ref(), &headers);
    let trace_id = app.settings.traces.as_ref().and_then(|_| traces::id_of(trace.as_ref()));
    let backend = backend.traced(trace);
    let turn = match backend.start(request, identity.caller) {
        Ok(turn) => turn,
        Err(fault) => return Ok(bad(fault)),
    };
    let answering = Answering::new(turn, encoder, base, keeping);
    let mut response = match stream {
        true => streamed(front, answering, app.closing).await,
        false => whole(front, answering, app.closing).await,
    };
    if let Some(id) = trace_id {
        // SDKs of OpenAI and Anthropic show what they find here in their errors.
        for name in [traces::TRACE_HEADER, "x-request-id", "request-id"] {
            response.headers_mut().insert(name, id.clone());
        }
    }
    Ok(response)
}

/// Whether a request is to have the server's tools: clients cannot say so in the bodies of their APIs.
pub(in crate::server) fn wants_tools(headers: &HeaderMap) -> Result<bool, ApiError> {
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
