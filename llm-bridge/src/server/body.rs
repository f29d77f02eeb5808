//! The JSON body of a request, or the error to answer with.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, header},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;
use toolrack_apis::json::values_in;

use super::{MAX_BODY, api_error::ApiError};

const KIND: &str = "invalid_request_error";

/// What a route reads from a JSON object.
pub(super) trait Body: DeserializeOwned {
    /// What to send, for the error when something else was sent.
    const EXAMPLE: &str;
}

impl Body for Value {
    const EXAMPLE: &str = "a JSON object";
}

/// A JSON object that was sent as such. serde alone would also read a struct from an array.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: Body + Send + 'static, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        // A form of another page cannot send JSON without a preflight request.
        if !is_sent_as(request.headers(), "application/json") {
            let message = "send the request as `Content-Type: application/json`";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, KIND, message));
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|fault| ApiError::new(fault.status(), KIND, not_read(&fault)).param("body"))?;
        decode(bytes.len(), move || object(&bytes)).await?.map(Self)
    }
}

/// A larger body is decoded beside the runtime, in bytes.
const SMALL_BODY: usize = 256 * 1024;
/// How many of those are decoded at once; each takes a multiple of its size in memory.
static LARGE_BODIES: Semaphore = Semaphore::const_new(2);

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

/// How many values the JSON of a request may consist of: each takes up to a hundred times its two bytes in memory.
const MAX_VALUES: usize = 500_000;

/// Refuses a JSON text of very many values before they are made.
pub(super) fn check_values(json: &[u8]) -> Result<(), ApiError> {
    if json.len() <= MAX_VALUES || values_in(json) <= MAX_VALUES {
        return Ok(());
    }
    let message = format!("the request has more than {MAX_VALUES} values; send less at once");
    Err(ApiError::invalid("body", message))
}

/// Reads a JSON object.
pub(super) fn object<T: Body>(bytes: &[u8]) -> Result<T, ApiError> {
    check_values(bytes)?;
    let message = match serde_json::from_slice(bytes) {
        Ok(body @ Value::Object(_)) => match serde_json::from_value(body) {
            Ok(body) => return Ok(body),
            Err(fault) => format!("the request is not valid: {}; send {}", shortened(&fault), T::EXAMPLE),
        },
        Ok(_) => "the request has to be a JSON object".to_owned(),
        Err(fault) => format!("the request is not JSON: {fault}"),
    };
    Err(ApiError::invalid("body", message))
}

/// Whether the content type is this one, whatever its parameters.
pub(super) fn is_sent_as(headers: &HeaderMap, kind: &str) -> bool {
    let sent_as = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    sent_as.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(kind)
}

/// How much of what was sent a message repeats, in bytes.
const REPEATED: usize = 400;

/// The message of a fault, which may repeat a value that is as long as the body.
pub(super) fn shortened(fault: &serde_json::Error) -> String {
    let mut text = fault.to_string();
    if text.len() > REPEATED {
        text.truncate(text.floor_char_boundary(REPEATED));
        text.push('…');
    }
    text
}

/// Why a body could not be read.
pub(super) fn not_read(fault: &BytesRejection) -> String {
    match fault.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            format!("the request is larger than the limit of {} MiB", MAX_BODY >> 20)
        }
        _ => fault.body_text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a7_the_values_of_a_body_are_counted_before_they_are_made() {
        let body = |item: &str| format!("{{\"a\":[{}]}}", [item].repeat(MAX_VALUES + 1).join(","));
        assert!(object::<Value>(body("{}").as_bytes()).is_err());
        // Texts may be as long as the body.
        assert!(object::<Value>(format!("{{\"a\":\"{}\"}}", ",[".repeat(MAX_VALUES)).as_bytes()).is_ok());
    }
}
