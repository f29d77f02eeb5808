//! The body of a request as JSON, or the error to answer with.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, rejection::BytesRejection},
    http::{StatusCode, header},
    response::Response,
};
use serde_json::Value;

use super::{MAX_BODY, error};

const KIND: &str = "invalid_request_error";

/// A JSON object that was sent as such. To `serde` an array could be an object as well, by the order of its fields.
pub(super) struct JsonBody(pub(super) Value);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        // A form of another page cannot send JSON without asking first.
        if !essence.eq_ignore_ascii_case("application/json") {
            let message = "send the request as `Content-Type: application/json`";
            return Err(error(StatusCode::UNSUPPORTED_MEDIA_TYPE, KIND, message, None));
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|fault| error(fault.status(), KIND, &told(&fault), Some("body")))?;
        let message = match serde_json::from_slice(&bytes) {
            Ok(body @ Value::Object(_)) => return Ok(Self(body)),
            Ok(_) => "the request has to be a JSON object".to_owned(),
            Err(fault) => format!("the request is not JSON: {fault}"),
        };
        Err(error(StatusCode::BAD_REQUEST, KIND, &message, Some("body")))
    }
}

/// How much of what was sent a message repeats, in bytes.
const REPEATED: usize = 400;

/// Why a body is not of its form. The fault may repeat a value that is as long as the body.
pub(super) fn misread(fault: &serde_json::Error) -> String {
    let mut text = fault.to_string();
    if text.len() > REPEATED {
        text.truncate(text.floor_char_boundary(REPEATED));
        text.push('…');
    }
    text
}

fn told(fault: &BytesRejection) -> String {
    match fault.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            format!("the request is over {} MiB, which is the most that is read", MAX_BODY >> 20)
        }
        _ => fault.body_text(),
    }
}
