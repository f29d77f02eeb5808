//! `GET /api/dead-letters` and `POST /api/dead-letters/{id}`: what webhooks could not deliver. For admins.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use registry_core::{DEFAULT_TENANT, Permission, webhook::Webhooks};
use serde_json::json;

use super::{App, error, identity::Identity};

/// Webhooks tell of the default tenant's tools, and concern its admins.
fn concerns(identity: &Identity) -> bool {
    identity.caller.level >= Permission::Admin && identity.registry.tenant() == DEFAULT_TENANT
}

fn refused() -> Response {
    let message = "webhooks are for admins of the default tenant";
    error(StatusCode::FORBIDDEN, "permission_denied", message, None)
}

pub(super) async fn list(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    if !concerns(&identity) {
        return refused();
    }
    let letters = app.webhooks.as_ref().map(Webhooks::dead_letters).unwrap_or_default();
    Json(json!({"dead_letters": letters})).into_response()
}

pub(super) async fn redeliver(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Response {
    if !concerns(&identity) {
        return refused();
    }
    if app.webhooks.as_ref().is_some_and(|webhooks| webhooks.redeliver(&id)) {
        return StatusCode::ACCEPTED.into_response();
    }
    let message = format!("there is no dead letter `{id}`, or too many messages wait already");
    error(StatusCode::NOT_FOUND, "dead_letter_not_found", &message, None)
}
