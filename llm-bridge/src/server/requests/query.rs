//! The query parameters of a request, or the error to answer with.

use axum::{
    extract::{FromRequestParts, Query},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use super::api_error::ApiError;

/// The parameters as a struct.
pub(in crate::server) struct QueryParameters<T>(pub(in crate::server) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::from_request_parts(parts, state).await;
        query.map(|Query(query)| Self(query)).map_err(|fault| ApiError::invalid("query", fault.body_text()))
    }
}
