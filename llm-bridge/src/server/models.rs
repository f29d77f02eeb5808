//! `GET /v1/models` and `GET /healthz`.

use axum::{
    Json,
    extract::State,
    http::{Method, StatusCode},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    App,
    api_error::ApiError,
    openapi::{ModelList, Operation},
};

pub(super) fn list_operation() -> Operation {
    Operation::new(Method::GET, "Chat", "list_models", "The models of the model server")
        .answers::<ModelList>(200, "The models.")
        .refuses(502, "The model server does not answer with a list (`upstream_error`).")
}

/// The model server's models: <https://platform.openai.com/docs/api-reference/models/list>.
pub(super) async fn list(State(app): State<App>) -> Result<Json<Value>, ApiError> {
    let models =
        app.backend.upstream().models().await.map_err(|failure| {
            ApiError::new(StatusCode::BAD_GATEWAY, "upstream_error", failure.to_string())
        })?;
    Ok(Json(json!({"object": "list", "data": models})))
}

/// The state of the server.
#[derive(Serialize, JsonSchema)]
pub(super) struct Health {
    /// `ok`.
    status: &'static str,
    /// The kind of model server: `demo`, one such as `llama.cpp` or `ollama`, or `openai` while it is not known.
    upstream: &'static str,
    /// The model for requests that name none.
    model: Option<String>,
    /// How many tools there are.
    tools: usize,
}

pub(super) fn health_operation() -> Operation {
    Operation::new(
        Method::GET,
        "Server",
        "health",
        "Whether the server runs, and for which kind of model server",
    )
    .answers::<Health>(200, "It runs.")
}

/// Needs no key, so it shows no address. It does not ask the model server, so it answers also when that is down.
pub(super) async fn health(State(app): State<App>) -> Json<Health> {
    Json(Health {
        status: "ok",
        upstream: app.backend.upstream().kind(),
        model: app.backend.settings().model.clone(),
        tools: app.backend.registry().len(),
    })
}
