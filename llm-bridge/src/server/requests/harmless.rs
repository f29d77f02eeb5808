//! What an answer may do in a browser that opens it as a page of its own.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};

/// Nothing: no script, no form, no frame around it, and none of this server's origin.
const NOTHING: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";

/// Who may load an answer without being able to read it: the Fetch standard, "Cross-Origin-Resource-Policy header".
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Says of an answer that it is not kept and may do nothing, unless it says itself otherwise: pages do, and all others are data, some of which a model
/// server, a module or a tool has written.
pub(in crate::server) async fn in_browsers(mut response: Response) -> Response {
    // A browser takes these headers for those of what it has kept.
    if response.status() == StatusCode::NOT_MODIFIED {
        return response;
    }
    let headers = response.headers_mut();
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING));
        // No other page loads it as a picture or a script, from which it could tell that it is there, or how large.
        headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    }
    // What one user may see is not kept for the next one at the same browser, or behind the same proxy.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_not_kept_unless_it_says_so_itself() {
        let plain = in_browsers(Response::new(Body::empty())).await;
        assert_eq!(plain.headers()[header::CACHE_CONTROL], "no-store");
        assert_eq!(plain.headers()[RESOURCE_POLICY], "same-origin");
        let mut kept = Response::new(Body::empty());
        kept.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
        // Files of tools, which other clients show in their pages, and those of the page say what they may do.
        kept.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
        let kept = in_browsers(kept).await;
        assert!(!kept.headers().contains_key(RESOURCE_POLICY));
        assert_eq!(kept.headers()[header::CACHE_CONTROL], "max-age=3600");
    }
}
