//! Finds out about servers like this one that ask each other in a circle.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderValue, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::api_error::ApiError;
use crate::upstream::via::{self, VIA};

/// Refuses requests that have come through the server of this id before, and tells others like it that it is no model server.
pub(in crate::server) async fn check(State(own): State<Arc<str>>, request: Request, next: Next) -> Response {
    let Some(header) = request.headers().get(VIA) else { return next.run(request).await };
    let mut response = match via::through(header.as_bytes(), &own) {
        Ok(through) => via::answering(through, next.run(request)).await,
        Err(message) => ApiError::new(StatusCode::LOOP_DETECTED, "loop_detected", message).into_response(),
    };
    if let Ok(own) = HeaderValue::from_str(&own) {
        response.headers_mut().insert(VIA, own);
    }
    response
}
