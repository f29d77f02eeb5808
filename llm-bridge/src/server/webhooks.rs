//! `GET /api/dead-letters` and `POST /api/dead-letters/{id}`: what webhooks could not deliver. For a tenant's admins, of what
//! is the tenant's.

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use registry_core::store::DeadLetter;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    App,
    admin::{ADMINS_ONLY, require_admin},
    error,
    identity::Identity,
    name::Name,
    openapi::Operation,
    store_failed,
};

/// Messages that could not be delivered.
#[derive(Serialize, JsonSchema)]
struct DeadLetterList {
    dead_letters: Vec<DeadLetter>,
}

/// What needs the level admin: webhooks report changes of a tenant's tools, which concern its admins.
const WHAT: &str = "reading and sending dead letters";

pub(super) fn list_operation() -> Operation {
    Operation::new("Webhooks", "list_dead_letters", "What webhooks could not deliver of the tenant's")
        .answers::<DeadLetterList>(200, "The messages, oldest first.")
        .refuses(403, ADMINS_ONLY)
}

pub(super) async fn list(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    if let Err(refused) = require_admin(&identity, WHAT) {
        return refused.into_response();
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
        .refuses(403, ADMINS_ONLY)
        .refuses(404, "There is no such message, or it cannot be sent now (`dead_letter_not_found`).")
}

pub(super) async fn redeliver(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
) -> Response {
    if let Err(refused) = require_admin(&identity, WHAT) {
        return refused.into_response();
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
