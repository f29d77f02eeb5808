//! `GET /v1/models` and `GET /healthz`.

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::{App, error};
use crate::chat::upstream::DEMO;

/// The models of the server behind: <https://platform.openai.com/docs/api-reference/models/list>.
pub(super) async fn list(State(app): State<App>) -> Response {
    match app.backend.upstream().models().await {
        Ok(models) => Json(json!({"object": "list", "data": models})).into_response(),
        Err(failure) => error(StatusCode::BAD_GATEWAY, "upstream_error", &failure.to_string(), None),
    }
}

/// That this server runs, and what kind of model it stands in front of. It says no address, for it needs no key; and it asks nobody, so it answers also when the model server does not.
pub(super) async fn health(State(app): State<App>) -> Response {
    Json(json!({
        "status": "ok",
        "upstream": if app.backend.upstream().is_demo() { DEMO } else { "openai" },
        "model": app.backend.settings().model,
        "tools": app.backend.registry().len(),
    }))
    .into_response()
}
