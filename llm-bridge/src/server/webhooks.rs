//! `GET /api/dead-letters` and `POST /api/dead-letters/{id}`: what webhooks could not deliver. For a tenant's admins, of what
//! is the tenant's.

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use registry_core::{Caller, Permission, store::DeadLetter};
use schemars::JsonSchema;
use serde::Serialize;

use super::{App, error, identity::Identity, name::Name, openapi::Operation, store_failed};

/// Messages that could not be delivered.
#[derive(Serialize, JsonSchema)]
struct DeadLetterList {
    dead_letters: Vec<DeadLetter>,
}

const REFUSED: &str = "The user is not of the level admin (`permission_denied`).";

/// Webhooks tell of a tenant's tools, and concern its admins.
fn refused(identity: &Identity) -> Option<Response> {
    let Caller { user, level, .. } = &identity.caller;
    let how = identity.how_to_get(Permission::Admin);
    let message = format!("dead letters are for the level admin, {user} has {level}; {how}");
    (*level < Permission::Admin).then(|| error(StatusCode::FORBIDDEN, "permission_denied", &message, None))
}

pub(super) fn list_operation() -> Operation {
    Operation::new("Webhooks", "list_dead_letters", "What webhooks could not deliver of the tenant's")
        .answers::<DeadLetterList>(200, "The messages, oldest first.")
        .refuses(403, REFUSED)
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
        Ok(dead_letters) => Json(DeadLetterList { dead_letters }).into_response(),
        Err(cause) => store_failed(&cause),
    }
}

pub(super) fn redeliver_operation() -> Operation {
    Operation::new("Webhooks", "redeliver_dead_letter", "Sends a message once more")
        .path("id", "The message's id.")
        .answers_nothing(202, "It will be sent.")
        .refuses(403, REFUSED)
        .refuses(404, "There is no such message, or it cannot be sent now (`dead_letter_not_found`).")
}

pub(super) async fn redeliver(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
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
