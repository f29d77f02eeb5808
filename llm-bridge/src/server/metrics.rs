//! `GET /metrics`: what the server measures, for Prometheus.

use axum::{
    Extension,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use registry_core::{Caller, DEFAULT_TENANT, Permission};

use super::{App, error, identity::Identity, openapi::Operation};

/// The text format of Prometheus: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The numbers are of all tenants and for their operator: an admin of the first, or the user of the configuration, who is no
/// guest.
fn refused(identity: &Identity) -> Option<Response> {
    let Caller { user, level, .. } = &identity.caller;
    let least = if identity.is_configured() { Permission::User } else { Permission::Admin };
    if *level >= least && identity.registry.tenant() == DEFAULT_TENANT {
        return None;
    }
    let message = format!(
        "metrics are for the level {least} of the tenant {DEFAULT_TENANT}; {user} has {level} in {}; {}",
        identity.registry.tenant(),
        identity.how_to_get(least)
    );
    Some(error(StatusCode::FORBIDDEN, "permission_denied", &message, None))
}

pub(super) fn operation() -> Operation {
    Operation::new("Server", "metrics", "What the server measures, for Prometheus")
        .answers_with(200, CONTENT_TYPE, "The numbers, of all tenants.")
        .refuses(403, "The user is no admin of the first tenant (`permission_denied`).")
}

pub(super) async fn scrape(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    if let Some(refused) = refused(&identity) {
        return refused;
    }
    let backend = &app.backend;
    let text = app.metrics.text(backend.registry(), &app.modules, backend.upstream().metrics()).await;
    match text {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(cause) => {
            tracing::error!(%cause, "metrics_failed");
            let message = "the metrics could not be written; the server's log says why";
            error(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message, None)
        }
    }
}
