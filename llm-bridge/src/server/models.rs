//! `GET /v1/models` and `GET /healthz`.

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    App, error,
    openapi::{ModelList, Operation},
};
use crate::chat::{Upstream, UpstreamError, upstream::DEMO};

pub(super) fn list_operation() -> Operation {
    Operation::new("Chat", "list_models", "The models of the server behind")
        .answers::<ModelList>(200, "The models.")
        .refuses(502, "The model server does not answer, or not with a list (`upstream_error`).")
}

/// The models of the server behind: <https://platform.openai.com/docs/api-reference/models/list>.
pub(super) async fn list(State(app): State<App>) -> Response {
    let upstream = app.backend.upstream();
    match upstream.models().await {
        Ok(models) => Json(json!({"object": "list", "data": models})).into_response(),
        Err(failure) => {
            error(StatusCode::BAD_GATEWAY, "upstream_error", &explained(&failure, upstream), None)
        }
    }
}

/// The failure in words, with what is likely behind it.
pub(crate) fn explained(failure: &UpstreamError, upstream: &Upstream) -> String {
    let base = upstream.address();
    match failure {
        // A model that is not there is a 404, too; the address is at fault only where it looks so.
        UpstreamError::Status { status: 404, .. } if !base.ends_with("/v1") => {
            format!("{failure}. Its address is {base}: does it have to end in /v1?")
        }
        _ => failure.to_string(),
    }
}

/// That the server runs.
#[derive(Serialize, JsonSchema)]
struct Health<'a> {
    /// `ok`.
    status: &'static str,
    /// The kind of model server behind: `demo` or `openai`.
    upstream: &'static str,
    /// The model that is asked where a request names none.
    model: Option<&'a str>,
    /// How many tools there are.
    tools: usize,
}

pub(super) fn health_operation() -> Operation {
    Operation::new("Server", "health", "That the server runs, and what it stands in front of")
        .answers::<Health<'_>>(200, "It runs.")
}

/// That this server runs, and what kind of model it stands in front of. It says no address, for it needs no key; and it asks nobody, so it answers also when the model server does not.
pub(super) async fn health(State(app): State<App>) -> Response {
    Json(Health {
        status: "ok",
        upstream: if app.backend.upstream().is_demo() { DEMO } else { "openai" },
        model: app.backend.settings().model.as_deref(),
        tools: app.backend.registry().len(),
    })
    .into_response()
}
