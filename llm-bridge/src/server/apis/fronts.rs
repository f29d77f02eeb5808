//! The API that a request is in: its errors have the API's shape.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request},
    http::{Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::Response,
};
use toolrack_apis::{
    Failure, Front, ListModels, Provider, anthropic::AnthropicFront, gemini::GeminiFront,
    ollama::OllamaFront, openai::OpenAiFront,
};

use super::chat::ENDPOINTS;
use crate::server::requests::{
    api_error::ApiError,
    body::{is_sent_as, not_read},
};

/// A front that lives as long as the program.
pub(in crate::server) type StaticFront = &'static dyn Front;

/// A front whose API lists models.
pub(in crate::server) type ListFront = &'static dyn ListModels;

/// The addresses of Ollama's API beside its chats. Others below `/api` are this server's own.
const OLLAMA: [&str; 6] =
    ["/api/tags", "/api/show", "/api/ps", "/api/version", "/api/embed", "/api/embeddings"];

/// The addresses of Ollama's API that are not here. Their errors have its shape, too.
const OLLAMA_ONLY: [&str; 7] =
    ["/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete", "/api/blobs", "/api/me"];

/// Whether a path is one of Ollama's API that is not here.
pub(in crate::server) fn is_ollama_only(path: &str) -> bool {
    OLLAMA_ONLY.iter().any(|place| is_at(path, place))
}

/// Whether a path is this one or below it.
pub(in crate::server) fn is_at(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path is below a version that Gemini's API alone has.
fn is_of_gemini(path: &str) -> bool {
    ["/v1beta", "/v1alpha"].iter().any(|version| is_at(path, version))
}

/// The API that a request is in, where its errors have another shape than OpenAI's.
fn front_of(request: &Request) -> Option<StaticFront> {
    let path = request.uri().path();
    let front: StaticFront = if is_of_gemini(path) || is_at(path, "/v1/models") {
        match request.method() {
            &Method::POST => &GeminiFront,
            _ => list_front_of(request),
        }
    } else if let Some(endpoint) = ENDPOINTS.iter().find(|endpoint| endpoint.has(path)) {
        endpoint.front
    } else if is_ollama_only(path) || OLLAMA.iter().any(|place| is_at(path, place)) {
        &OllamaFront::Chat
    } else if request.headers().contains_key("anthropic-version") {
        // What these APIs have and this server has not.
        &AnthropicFront
    } else if request.headers().contains_key("x-goog-api-key") {
        &GeminiFront
    } else {
        return None;
    };
    Some(front).filter(|front| !matches!(front.api(), Provider::OpenAi | Provider::Responses))
}

/// The API of a client that asks for models: the SDKs share addresses, and differ in how they send their key.
fn list_front_of(request: &Request) -> ListFront {
    let (headers, uri) = (request.headers(), request.uri());
    let is_key = |pair: &str| pair.split('=').next() == Some("key");
    if headers.contains_key("anthropic-version") {
        &AnthropicFront
    } else if headers.contains_key("x-goog-api-key")
        || is_of_gemini(uri.path())
        || uri.query().is_some_and(|query| query.split('&').any(is_key))
    {
        &GeminiFront
    } else {
        &OpenAiFront
    }
}

/// The API in which a client asks for models.
#[derive(Clone, Copy)]
pub(in crate::server) struct ListedBy(pub(in crate::server) ListFront);

/// Puts an error of the server into the shape of the API that the request is in. It has to see the request before its key is taken out.
pub(in crate::server) async fn errors_in_shape(mut request: Request, next: Next) -> Response {
    let front = front_of(&request);
    let listed_by = ListedBy(list_front_of(&request));
    request.extensions_mut().insert(listed_by);
    let response = next.run(request).await;
    let failure = response.extensions().get::<Arc<Failure>>().map(Arc::clone);
    match (front, failure) {
        (Some(front), Some(failure)) => {
            let mut shaped = reply(front.failure(&failure));
            for (name, value) in response.headers() {
                if !shaped.headers().contains_key(name) && *name != header::CONTENT_LENGTH {
                    shaped.headers_mut().append(name.clone(), value.clone());
                }
            }
            shaped
        }
        _ => response,
    }
}

/// What a front replies, as the server sends it.
pub(in crate::server) fn reply(reply: axum::http::Response<Vec<u8>>) -> Response {
    reply.map(Body::from)
}

/// Reads the body of a request.
pub(in crate::server) async fn read(
    front: StaticFront,
    request: Request,
) -> Result<(Parts, Bytes), ApiError> {
    // A form of another page cannot send JSON without a preflight request. Ollama's own examples do not say that they send JSON.
    let headers = request.headers();
    let may_be_anything = front.api() == Provider::Ollama && !headers.contains_key(header::ORIGIN);
    if !may_be_anything && !is_sent_as(headers, "application/json") {
        let message = "send the request as `Content-Type: application/json`";
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message));
    }
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let message = "send the body as it is, without `Content-Encoding`";
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message));
    }
    let (parts, body) = request.into_parts();
    let bytes = read_bytes(Request::from_parts(parts.clone(), body)).await?;
    Ok((parts, bytes))
}

/// Reads the bytes of a body.
pub(in crate::server) async fn read_bytes(request: Request) -> Result<Bytes, ApiError> {
    let read = Bytes::from_request(request, &()).await;
    read.map_err(|fault| {
        ApiError::new(fault.status(), "invalid_request_error", not_read(&fault)).param("body")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_at_every_chat_address_have_the_shape_of_its_api() {
        for endpoint in ENDPOINTS {
            let path = endpoint.path.replace("{*call}", "m:generateContent");
            for path in [path.clone(), format!("{path}/"), format!("{path}/more")] {
                let request = Request::builder().method(Method::POST).uri(&path).body(Body::empty()).unwrap();
                let shape = front_of(&request).map_or(Provider::OpenAi, |front| front.api());
                let api = match endpoint.front.api() {
                    // Its errors are those of chat completions.
                    Provider::Responses => Provider::OpenAi,
                    api => api,
                };
                assert_eq!(shape, api, "{path}");
            }
        }
    }

    #[test]
    fn errors_at_addresses_that_are_not_here_have_the_shape_of_the_client() {
        for (header, path, api) in [
            ("anthropic-version", "/v1/files", Some(Provider::Anthropic)),
            ("anthropic-version", "/v1/v1/messages", Some(Provider::Anthropic)),
            ("x-goog-api-key", "/upload/v1beta/files", Some(Provider::Gemini)),
            ("x-goog-api-key", "/v1alpha/cachedContents", Some(Provider::Gemini)),
            ("accept", "/v1/files", None),
        ] {
            let request = Request::builder().method(Method::POST).uri(path).header(header, "x");
            let front = front_of(&request.body(Body::empty()).unwrap());
            assert_eq!(front.map(|front| front.api()), api, "{path}");
        }
    }
}
