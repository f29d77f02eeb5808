//! A name in the path of a request, or the error to answer with.

use axum::{
    extract::{FromRequestParts, Path, rejection::PathRejection},
    http::request::Parts,
};

use super::api_error::ApiError;

/// The one name in the path.
pub(super) struct Name(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let name: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        name.map(|Path(name)| Self(name)).map_err(|fault| {
            let message = format!("the name in the path cannot be read: {}", fault.body_text());
            ApiError::new(fault.status(), "invalid_request_error", message).param("path")
        })
    }
}
