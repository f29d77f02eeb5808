//! What an answer may do in a browser that opens it as a page of its own.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};

/// Nothing: no script, no form, no frame around it, and none of this server's origin.
const NOTHING: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";

/// Says of an answer that it may do nothing, unless it says itself what it may: pages do, and all others are data, some of which a model
/// server, a module or a tool has written.
pub(super) async fn in_browsers(mut response: Response) -> Response {
    // A browser takes these headers for those of what it has kept.
    if response.status() == StatusCode::NOT_MODIFIED {
        return response;
    }
    let headers = response.headers_mut();
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NOTHING));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
