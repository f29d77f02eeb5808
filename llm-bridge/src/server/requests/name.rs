//! The names in the path of a request, or the error to answer with.

use axum::{
    extract::{FromRequestParts, Path, rejection::PathRejection},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use super::api_error::ApiError;

/// The one name in the path.
pub(in crate::server) struct Name(pub(in crate::server) String);

/// Several names in the path, as a tuple.
pub(in crate::server) struct Names<T>(pub(in crate::server) T);

fn unreadable(fault: &PathRejection) -> ApiError {
    let message = format!("the name in the path cannot be read: {}", fault.body_text());
    ApiError::new(fault.status(), "invalid_request_error", message).param("path")
}

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let name: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        name.map(|Path(name)| Self(name)).map_err(|fault| unreadable(&fault))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Names<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let names: Result<Path<T>, PathRejection> = Path::from_request_parts(parts, state).await;
        names.map(|Path(names)| Self(names)).map_err(|fault| unreadable(&fault))
    }
}
