//! `GET /api/dead-letters` and `POST /api/dead-letters/{id}`: what webhooks could not deliver. For a tenant's admins, of what
//! is the tenant's.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use registry_core::{Caller, Permission};
use serde_json::json;

use super::{App, error, identity::Identity, store_failed};

/// Webhooks tell of a tenant's tools, and concern its admins.
fn refused(identity: &Identity) -> Option<Response> {
    let Caller { user, level, .. } = &identity.caller;
    let message = format!("dead letters are for the level admin, {user} has {level}");
    (*level < Permission::Admin).then(|| error(StatusCode::FORBIDDEN, "permission_denied", &message, None))
}

pub(super) async fn list(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    if let Some(refused) = refused(&identity) {
        return refused;
    }
    let letters = match &app.webhooks {
        Some(webhooks) => webhooks.dead_letters(identity.registry.tenant()).await,
        None => Ok(Vec::new()),
    };
    match letters {
        Ok(letters) => Json(json!({"dead_letters": letters})).into_response(),
        Err(cause) => store_failed(&cause),
    }
}

pub(super) async fn redeliver(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Response {
    if let Some(refused) = refused(&identity) {
        return refused;
    }
    let sent = match &app.webhooks {
        Some(webhooks) => webhooks.redeliver(identity.registry.tenant(), &id).await,
        None => Ok(false),
    };
    match sent {
        Ok(true) => StatusCode::ACCEPTED.into_response(),
        Ok(false) => {
            let message = format!(
                "there is no dead letter `{id}`, its endpoint is not configured any more, or too many messages wait already"
            );
            error(StatusCode::NOT_FOUND, "dead_letter_not_found", &message, None)
        }
        Err(cause) => store_failed(&cause),
    }
}
