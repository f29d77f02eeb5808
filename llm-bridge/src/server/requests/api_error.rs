//! The error that a handler answers with, in the form that clients of OpenAI's API know.

use std::{fmt, sync::Arc};

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use registry_core::{
    ErrorKind, ToolError,
    store::{StoreError, StoreErrorKind},
};
use serde_json::{Value, json};
use toolrack_apis::{Failure, FailureKind};

use super::store_log;

/// The challenge of a 401: <https://www.rfc-editor.org/rfc/rfc6750#section-3>.
pub(in crate::server) const CHALLENGE: &str = "Bearer realm=\"toolrack\"";

/// An error as it is sent.
#[derive(Debug)]
pub(in crate::server) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    message: String,
    param: Option<&'static str>,
    retry_after_seconds: Option<u64>,
    challenge: Option<HeaderValue>,
}

impl ApiError {
    pub(in crate::server) fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
            param: None,
            retry_after_seconds: None,
            challenge: None,
        }
    }

    /// A field or parameter of the request is wrong.
    pub(in crate::server) fn invalid(param: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message).param(param)
    }

    /// The user may not do this.
    pub(in crate::server) fn denied(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_denied", message)
    }

    pub(in crate::server) fn not_found(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, kind, message)
    }

    pub(in crate::server) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
    }

    /// The field or parameter at fault.
    pub(in crate::server) fn param(self, param: &'static str) -> Self {
        Self { param: Some(param), ..self }
    }

    /// What the header `WWW-Authenticate` says, in place of [`CHALLENGE`].
    pub(in crate::server) fn challenge(self, challenge: Option<HeaderValue>) -> Self {
        Self { challenge, ..self }
    }

    pub(in crate::server) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after_seconds: Some(seconds), ..self }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The text of the store's error is for the log.
impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        store_log::failed(&error);
        match error.kind() {
            StoreErrorKind::Unavailable => unavailable(),
            StoreErrorKind::Conflict => Self::new(
                StatusCode::CONFLICT,
                "store_conflict",
                "others change the same at the same time, and nothing was changed; try again",
            ),
            StoreErrorKind::Invalid => Self::new(
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                "the server's store cannot keep this; use names and texts without control characters",
            ),
            _ => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "store_corrupt",
                "the server's store holds something that this server cannot read; its log says what",
            ),
        }
    }
}

/// Of the documents' store.
impl From<ToolError> for ApiError {
    fn from(fault: ToolError) -> Self {
        if fault.kind() == ErrorKind::InvalidArguments {
            return Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", fault.message());
        }
        store_log::unanswered(fault.detail());
        unavailable()
    }
}

fn unavailable() -> ApiError {
    let message = "the server's store does not answer; try again";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", message)
}

impl ApiError {
    /// The error for APIs of another shape.
    fn failure(&self) -> Failure {
        let kind = match self.status {
            _ if self.kind == "server_stopping" => FailureKind::Stopping,
            StatusCode::UNAUTHORIZED => FailureKind::Authentication,
            StatusCode::FORBIDDEN => FailureKind::Permission,
            StatusCode::NOT_FOUND => FailureKind::NotFound,
            StatusCode::PAYLOAD_TOO_LARGE => FailureKind::TooLarge,
            StatusCode::TOO_MANY_REQUESTS => FailureKind::RateLimit,
            StatusCode::SERVICE_UNAVAILABLE => FailureKind::Overloaded,
            status if status.is_client_error() => FailureKind::InvalidRequest,
            _ => FailureKind::Internal,
        };
        Failure {
            status: self.status.as_u16(),
            param: self.param.map(str::to_owned),
            retry_after: self.retry_after_seconds.map(|seconds| seconds.to_string()),
            ..Failure::new(kind, self.message.as_str())
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (message, param) = (self.message.as_str(), self.param);
        let error = json!({"message": message, "type": self.kind, "param": param, "code": Value::Null});
        let mut response = (self.status, Json(json!({ "error": error }))).into_response();
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        // SDKs send a request again after any other 5xx.
        if self.status == StatusCode::NOT_IMPLEMENTED {
            response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
        }
        let is_unauthorized = self.status == StatusCode::UNAUTHORIZED;
        let usual = is_unauthorized.then(|| HeaderValue::from_static(CHALLENGE));
        if let Some(challenge) = self.challenge.clone().or(usual) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response.extensions_mut().insert(Arc::new(self.failure()));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k24_each_failure_of_the_store_has_its_status_and_says_nothing_of_the_store() {
        let cases = [
            (StoreError::unavailable("db.example"), StatusCode::SERVICE_UNAVAILABLE, "store_unavailable"),
            (StoreError::conflict("db.example"), StatusCode::CONFLICT, "store_conflict"),
            (StoreError::invalid("db.example"), StatusCode::BAD_REQUEST, "invalid_request_error"),
            (StoreError::corrupt("db.example"), StatusCode::INTERNAL_SERVER_ERROR, "store_corrupt"),
        ];
        for (failed, status, kind) in cases {
            let error = ApiError::from(failed);
            assert_eq!((error.status, error.kind), (status, kind));
            assert!(!error.message.contains("db.example"), "{}", error.message);
        }
    }
}
