//! A name in the address of a request, or the error to answer with.

use axum::{
    extract::{FromRequestParts, Path, rejection::PathRejection},
    http::request::Parts,
    response::Response,
};

use super::error;

/// The one name in the address.
pub(super) struct Name(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let name: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        name.map(|Path(name)| Self(name)).map_err(|fault| {
            let message = format!("the name in the address cannot be read: {}", fault.body_text());
            error(fault.status(), "invalid_request_error", &message, Some("path"))
        })
    }
}
