//! The HTTP of the client library, with a bound on the values of each message: the library bounds bytes alone.

use std::{borrow::Cow, collections::HashMap, io, sync::Arc};

use futures_util::{StreamExt, stream::BoxStream};
use reqwest::{
    Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcError, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage,
    },
    service::ServiceError,
    transport::{
        common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE},
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
            StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};
use sse_stream::{Sse, SseStream};

use super::{lenient, oauth::Bearer};
use crate::values::Values;

/// How large a message may be, in bytes; as the library has it.
const MAX_MESSAGE: usize = 16 << 20;
/// How much is read of what a server says when it refuses, in bytes.
const MAX_REFUSAL: usize = 64 << 10;

type Headers = HashMap<HeaderName, HeaderValue>;
type Failure = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// An HTTP client that makes no message of more values than it may have, and opens an account, where there is one to open.
#[derive(Clone)]
pub(super) struct BoundedHttp {
    pub(super) http: reqwest::Client,
    pub(super) bearer: Option<Arc<Bearer>>,
}

/// How long is waited at least before a stream that has ended is asked for again, in milliseconds, whatever the server says.
const LEAST_RETRY: u64 = 1000;

/// Why a stream ends.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("{0}")]
    TooLarge(String),
    #[error(transparent)]
    Lost(#[from] reqwest::Error),
}

/// The answer to a request in place of one that is too large: the server has answered, so nothing is broken.
fn too_large(id: RequestId, fault: &str) -> ServerJsonRpcMessage {
    let error = ErrorData::internal_error(format!("the answer is too large: {fault}; ask for less"), None);
    ServerJsonRpcMessage::error(error, Some(id))
}

/// Ends at the first event of too many values or bytes: with the answer that says so, where one is awaited, and with an error elsewhere.
fn bounded(events: Events, awaited: Option<RequestId>) -> Events {
    let counted = events.scan(false, move |is_over, event| {
        let counted = event.and_then(|mut event| {
            event.retry = event.retry.map(|retry| retry.max(LEAST_RETRY));
            let data = event.data.as_deref().unwrap_or_default();
            Values::default()
                .count(data.as_bytes())
                .map_err(|fault| SseError::Body(Box::new(Broken::TooLarge(fault.to_string()))))?;
            // The library reads it by itself.
            if let Some(meant) = lenient::introduced(data) {
                event.data = Some(meant);
            }
            Ok(event)
        });
        let goes_on = !std::mem::replace(is_over, counted.is_err());
        let counted = counted.or_else(|fault| match (&fault, &awaited) {
            (SseError::Body(cause), Some(id)) => match cause.downcast_ref() {
                Some(Broken::TooLarge(why)) => {
                    let answer = serde_json::to_string(&too_large(id.clone(), why)).unwrap_or_default();
                    Ok(Sse::default().data(answer))
                }
                _ => Err(fault),
            },
            _ => Err(fault),
        });
        std::future::ready(goes_on.then_some(counted))
    });
    counted.boxed()
}

/// The events of an answer.
fn events_of(response: Response, awaited: Option<RequestId>) -> Events {
    let (mut bytes, mut is_line_empty) = (0_usize, true);
    let counted = response.bytes_stream().map(move |chunk| {
        let chunk = chunk?;
        for byte in &chunk {
            match byte {
                b'\n' if is_line_empty => bytes = 0,
                b'\n' => is_line_empty = true,
                b'\r' => {}
                _ => is_line_empty = false,
            }
            bytes += 1;
            if bytes > MAX_MESSAGE {
                return Err(Broken::TooLarge(format!("a message has more than {MAX_MESSAGE} bytes")));
            }
        }
        Ok(chunk)
    });
    bounded(SseStream::from_bytes_stream(counted).boxed(), awaited)
}

/// A body of at most so many bytes.
async fn body_of(mut response: Response, most: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if chunk.len() > most - body.len() {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: most });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn message_of(body: &[u8]) -> io::Result<ServerJsonRpcMessage> {
    Values::default().count(body)?;
    lenient::message(body)
}

/// The answer to a request that came with nothing else: it is that request's whatever id it has, as some servers refuse with none.
fn addressed(mut answer: ServerJsonRpcMessage, message: &ClientJsonRpcMessage) -> ServerJsonRpcMessage {
    if let ClientJsonRpcMessage::Request(request) = message {
        match &mut answer {
            JsonRpcMessage::Response(answer) => answer.id = request.id.clone(),
            JsonRpcMessage::Error(error) => error.id = Some(request.id.clone()),
            _ => {}
        }
    }
    answer
}

/// Whether a server refused a message because it has forgotten the session: not every one says so with 404. An error of the request's
/// own id is its answer.
fn is_about_session(
    status: StatusCode,
    message: &ClientJsonRpcMessage,
    told: Option<&JsonRpcError>,
    body: &[u8],
) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    let is_answer = told.is_some_and(|told| told.id.as_ref() == Some(&request.id));
    let said = told.map_or_else(|| String::from_utf8_lossy(body), |told| told.error.message.clone());
    status == StatusCode::BAD_REQUEST && !is_answer && said.to_lowercase().contains("session")
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The scope that a server asks for.
fn scope(challenge: &str) -> Option<String> {
    let (_, behind) = challenge.split_once("scope=")?;
    let scope = match behind.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => behind.split([',', ' ']).next(),
    };
    scope.filter(|scope| !scope.is_empty()).map(str::to_owned)
}

/// What comes of a message that a server has not taken.
async fn refused(
    response: Response,
    message: &ClientJsonRpcMessage,
    in_session: bool,
) -> Result<StreamableHttpPostResponse, Failure> {
    let (status, headers) = (response.status(), response.headers());
    let challenge = text(headers, &WWW_AUTHENTICATE).map(str::to_owned);
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, Some(challenge)) => {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            let wanted = scope(&challenge);
            let fault = InsufficientScopeError::new(challenge, wanted);
            return Err(StreamableHttpError::InsufficientScope(fault));
        }
        (StatusCode::NOT_FOUND, _) if in_session => return Err(StreamableHttpError::SessionExpired),
        _ => {}
    }
    let again = text(headers, &RETRY_AFTER).map(str::to_owned);
    let is_json = text(headers, &CONTENT_TYPE).is_some_and(|kind| kind.starts_with(JSON_MIME_TYPE));
    let fails_later = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let later = || StreamableHttpError::from(HttpStatusError::new(status.as_u16(), again.clone()));
    if fails_later && (!is_json || status == StatusCode::TOO_MANY_REQUESTS) {
        return Err(later());
    }
    let body = body_of(response, MAX_REFUSAL).await.unwrap_or_default();
    let told = match message_of(&body) {
        Ok(JsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let is_closed = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    // An earlier revision does not know what it is asked first, and cannot say whose question that was.
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !in_session
        && status.is_client_error()
        && !is_closed
    {
        let error = told.map(|told| told.error);
        let error = error.unwrap_or_else(|| ErrorData::invalid_request(format!("HTTP {status}"), None));
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    if in_session && is_about_session(status, message, told.as_ref(), &body) {
        return Err(StreamableHttpError::SessionExpired);
    }
    match told.filter(|_| is_json && !is_closed) {
        Some(told) => {
            let told = addressed(JsonRpcMessage::Error(told), message);
            Ok(StreamableHttpPostResponse::Json(told, None))
        }
        None if fails_later => Err(later()),
        None => Err(unusable(format!("HTTP {status}: {}", String::from_utf8_lossy(&body)))),
    }
}

/// The status with which a server has turned a message away unread, as it has too much to do.
pub(super) fn turned_away(error: &ServiceError) -> Option<&HttpStatusError> {
    let ServiceError::TransportSend(sent) = error else { return None };
    let Some(StreamableHttpError::HttpStatus(answer)) = sent.error.downcast_ref::<Failure>() else {
        return None;
    };
    // Without a time to come back, 503 may be what a proxy says of a call that broke off.
    let is_busy = answer.status == StatusCode::TOO_MANY_REQUESTS
        || (answer.status == StatusCode::SERVICE_UNAVAILABLE && answer.retry_after.is_some());
    is_busy.then_some(answer)
}

fn unusable(what: String) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(what))
}

impl BoundedHttp {
    async fn with_token<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        key: Option<String>,
        send: impl Fn(Option<String>) -> F,
    ) -> Result<T, Failure> {
        match &self.bearer {
            Some(bearer) => bearer.send(|token| send(Some(token))).await,
            None => send(key).await,
        }
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        key: Option<String>,
        headers: &Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let in_session = session.is_some();
        let mut request = self.http.post(uri).headers(headers.clone().into_iter().collect());
        request = request.header(ACCEPT, format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}"));
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, session);
        }
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        let response = request.json(message).send().await?;
        let status = response.status();
        if !status.is_success() {
            return refused(response, message, in_session).await;
        }
        let awaited = match message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let asks = awaited.is_some();
        let is_empty = response.content_length() == Some(0) && !asks;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) || is_empty {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let given = response.headers().get(HEADER_SESSION_ID).and_then(|value| value.to_str().ok());
        let given = given.map(str::to_owned);
        let kind = text(response.headers(), &CONTENT_TYPE).unwrap_or_default().to_owned();
        if kind.starts_with(EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(events_of(response, awaited), given));
        }
        if !kind.starts_with(JSON_MIME_TYPE) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(kind)));
        }
        let body = match (body_of(response, MAX_MESSAGE).await, awaited) {
            (Err(StreamableHttpError::ResponseBodyTooLarge { max_size }), Some(id)) => {
                let answer = too_large(id, &format!("it has more than {max_size} bytes"));
                return Ok(StreamableHttpPostResponse::Json(answer, given));
            }
            (body, _) => body?,
        };
        match message_of(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(addressed(answer, message), given)),
            // Nothing was asked.
            Err(_) if !asks => Ok(StreamableHttpPostResponse::Accepted),
            Err(fault) => Err(unusable(format!("the answer cannot be read: {fault}"))),
        }
    }
}

/// The library's own bound on an event is [`MAX_MESSAGE`] too, so what it calls with a bound needs none of its own.
impl StreamableHttpClient for BoundedHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.with_token(key, |key| self.post(&uri, &message, session.as_deref(), key, &headers)).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let delete = |key| self.http.delete_session(uri.clone(), session.clone(), key, headers.clone());
        self.with_token(key, delete).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        let open =
            |key| self.http.get_stream(uri.clone(), session.clone(), last.clone(), key, headers.clone());
        self.with_token(key, open).await.map(|events| bounded(events, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: String) -> Response {
        axum::http::Response::new(body).into()
    }

    #[tokio::test]
    async fn b19_a_message_over_http_has_so_many_bytes_and_no_more() {
        for (bytes, is_read) in [(MAX_MESSAGE - 100, true), (MAX_MESSAGE, false)] {
            let event = format!("data: {}\n\n", "x".repeat(bytes));
            // Each event has the whole of them.
            let mut events = events_of(response(event.repeat(2)), None);
            for _ in 0..=usize::from(is_read) {
                let event = events.next().await.unwrap();
                assert_eq!(event.is_ok_and(|event| event.data.unwrap().len() == bytes), is_read, "{bytes}");
            }
        }
        for (bytes, is_read) in [(MAX_REFUSAL, true), (MAX_REFUSAL + 1, false)] {
            let body = body_of(response("x".repeat(bytes)), MAX_REFUSAL).await;
            assert_eq!(body.is_ok_and(|body| body.len() == bytes), is_read, "{bytes}");
        }
    }
}
