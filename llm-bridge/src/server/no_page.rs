//! Without the feature `page`: whoever opens it in a browser is told so.

use axum::{
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::{openapi::Operation, routes::Routes};

const TEXT: &str = "This server has no page: it was built without the feature `page`. Its API is at /v1, and described at /openapi.json.\n";

pub(super) fn is_file(_: &Method, _: &str) -> bool {
    false
}

pub(super) fn routes() -> Routes {
    let operation = Operation::new(Method::GET, "Server", "page", "Says that there is no chat page")
        .answers_with(404, "text/plain; charset=utf-8", "This server has no page.");
    Routes::new().add("/", serve_connect, operation)
}

/// A page with nothing but a message.
pub(super) fn message(main: &str, _: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, format!("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">{main}</html>"))
        .into_response()
}

/// Any page that would be here.
pub(super) async fn serve_connect() -> Response {
    (StatusCode::NOT_FOUND, TEXT).into_response()
}
