//! The JSON body of a request, or the error to answer with.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, header},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

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

impl<T: Body, S: Send + Sync> FromRequest<S> for JsonBody<T> {
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
        object(&bytes).map(Self)
    }
}

/// Reads a JSON object.
pub(super) fn object<T: Body>(bytes: &[u8]) -> Result<T, ApiError> {
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
