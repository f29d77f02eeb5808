//! Why something that was asked for is not done, as the answer that says so.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use registry_core::{ToolError, store::StoreError};

use super::{error, store_failed};

/// When to come back where others are busy, in seconds.
const SOON: u16 = 2;

/// Why something is not done.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It is no good.
    Bad { status: StatusCode, kind: &'static str, message: String, param: Option<&'static str> },
    /// Others are busy with as much as can be done at once.
    Busy,
    /// The store does not answer; why, for the operator.
    Store(String),
}

impl Refusal {
    pub(super) fn new(
        status: StatusCode,
        kind: &'static str,
        message: impl Into<String>,
        param: Option<&'static str>,
    ) -> Self {
        Self::Bad { status, kind, message: message.into(), param }
    }

    /// Of a request that is not as it has to be.
    pub(super) fn invalid(param: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message, Some(param))
    }

    /// Of somebody who may not do this.
    pub(super) fn denied(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_denied", message, None)
    }
}

impl From<StoreError> for Refusal {
    fn from(cause: StoreError) -> Self {
        Self::Store(cause)
    }
}

impl From<ToolError> for Refusal {
    fn from(fault: ToolError) -> Self {
        Self::Store(fault.message().to_owned())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Bad { status, kind, message, param } => error(status, kind, &message, param),
            Self::Busy => {
                let message = "as many documents are being added as may be at once; try again";
                let mut response = error(StatusCode::SERVICE_UNAVAILABLE, "busy", message, None);
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(SOON));
                response
            }
            Self::Store(cause) => store_failed(&cause),
        }
    }
}
