//! Answers to requests that no route takes: they name the routes that may have been meant.

use std::sync::Arc;

use axum::{
    Extension,
    extract::MatchedPath,
    http::{Method, StatusCode, Uri},
};
use registry_core::nearest;

use super::{apis::fronts::is_ollama_only, openapi::Operation, requests::api_error::ApiError};

/// The paths of the routes with their methods.
#[derive(Clone)]
pub(super) struct RouteList(Arc<[(&'static str, Method)]>);

impl RouteList {
    pub(super) fn new(operations: &[(&'static str, Operation)]) -> Self {
        Self(operations.iter().map(|(path, operation)| (*path, operation.method.clone())).collect())
    }

    fn methods(&self, path: &str) -> String {
        let methods = self.0.iter().filter(|(known, _)| *known == path).map(|(_, method)| method.as_str());
        methods.collect::<Vec<_>>().join(", ")
    }
}

/// For paths without a route.
pub(super) async fn not_found(Extension(routes): Extension<RouteList>, uri: Uri) -> ApiError {
    if is_ollama_only(uri.path()) {
        let message = "this is not offered here: models are managed in the model server itself, as with `ollama pull` at its own address";
        return ApiError::not_found("not_found", message);
    }
    // No client means the page or one of its files.
    let paths = routes.0.iter().map(|(path, _)| *path).filter(|path| *path != "/" && !path.contains('.'));
    let near: Vec<String> = nearest(uri.path().trim_end_matches('/'), paths)
        .into_iter()
        .map(|path| format!("`{} {path}`", routes.methods(path)))
        .collect();
    let near = if near.is_empty() { String::new() } else { format!("; the nearest: {}", near.join(", ")) };
    ApiError::not_found(
        "not_found",
        format!("there is nothing at this path{near}; `/openapi.json` has all routes"),
    )
}

/// For methods that a route does not take. Axum adds the header `Allow`.
pub(super) async fn method_not_allowed(
    Extension(routes): Extension<RouteList>,
    path: MatchedPath,
    method: Method,
) -> ApiError {
    let path = match path.as_str().trim_end_matches('/') {
        "" => "/",
        path => path,
    };
    let message = format!("`{path}` takes {}, not {method}", routes.methods(path));
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
