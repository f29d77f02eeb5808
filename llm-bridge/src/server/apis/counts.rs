//! How many tokens a request has: Anthropic's `POST /v1/messages/count_tokens`, `POST /v1/responses/input_tokens` and Gemini's `MODEL:countTokens`.

use axum::{
    Extension,
    extract::{Request, State},
    http::Method,
    response::Response,
};
use toolrack_apis::{CountTokens, anthropic::AnthropicFront, responses::ResponsesFront};

use super::{
    chat::{TOOLS_HEADER, wants_tools},
    conversations,
    fronts::{read, reply},
};
use crate::server::{
    App,
    callers::identity::Identity,
    openapi::{JsonObject, Operation},
    requests::{
        api_error::ApiError,
        body::{check_values, decode},
    },
    routes::Routes,
};

/// A front whose API counts tokens.
type CountFront = &'static dyn CountTokens;

/// The routes that only count; Gemini's is among those of its chats.
pub(in crate::server) fn routes() -> Routes {
    let of = |front: CountFront| {
        move |State(app): State<App>, Extension(identity): Extension<Identity>, request: Request| {
            count(front, app, identity, request)
        }
    };
    let operation = |id, summary| {
        Operation::new(Method::POST, "Chat", id, summary)
            .details(
                "With the server's tools, as they are sent to the model. By the model server's own tokenizer where it has one (llama.cpp, vLLM), \
                 otherwise estimated: a token for about four characters.",
            )
            .header(TOOLS_HEADER, "`none` for a count without the server's tools.")
            .reads::<JsonObject>()
            .answers::<JsonObject>(200, "The number, as `input_tokens`.")
    };
    Routes::new()
        .add(
            "/v1/messages/count_tokens",
            of(&AnthropicFront),
            operation(
                "count_message_tokens",
                "The number of tokens of a request: <https://docs.claude.com/en/api/messages-count-tokens>",
            ),
        )
        .add(
            "/v1/responses/input_tokens",
            of(&ResponsesFront),
            operation(
                "count_response_tokens",
                "The number of tokens of a request for a response, with what it continues",
            ),
        )
}

pub(in crate::server) async fn count(
    front: CountFront,
    app: App,
    identity: Identity,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = read(front, request).await?;
    let (wants_tools, headers) = (wants_tools(&parts.headers)?, parts.headers.clone());
    let (size, sent) = (body.len(), body.clone());
    let read = move || check_values(&body).map(|_| front.decode_count(&parts, &body));
    let decoded = decode(identity.sender(), size, read).await??;
    let mut request = match decoded {
        Ok(request) => request,
        Err(fault) => return Ok(reply(front.failure(&fault.into()))),
    };
    let kept = app.settings.conversations.as_ref();
    let missing = std::mem::take(&mut request.conversation.missing_items);
    if !missing.is_empty() {
        request = match conversations::with_items(kept, &identity, headers, sent, missing).await {
            Ok(decoded) => decoded.request,
            Err(fault) => return fault.answered(front),
        };
    }
    let identity = match request.extension.persona.take() {
        Some(persona) => identity.under_persona(persona).await?,
        None => identity,
    };
    if !wants_tools {
        request.extension.allowed_tools = Some(Vec::new());
    }
    request.conversation.input = None;
    if let Err(fault) = conversations::begin(kept, &identity, &mut request).await {
        return fault.answered(front);
    }
    let backend = app.backend.for_request(identity.registry.clone(), identity.standing());
    Ok(reply(match backend.count_tokens(request, identity.caller).await {
        Ok(tokens) => front.count(tokens),
        Err(fault) => front.failure(&fault.into()),
    }))
}
