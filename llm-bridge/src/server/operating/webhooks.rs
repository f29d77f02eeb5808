//! `GET /api/webhooks`: where a tenant's changes are told. `GET /api/dead-letters` and `POST /api/dead-letters/{id}`: messages that could not
//! be delivered. For the tenant's admins.

use axum::{
    Extension, Json,
    extract::State,
    http::{Method, StatusCode},
};
use registry_core::{Permission, store::DeadLetter};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use toolrack_http::webhook::{EndpointReport, Webhooks};

use crate::server::{
    App,
    callers::{
        admin::{self, Admin, NOT_ADMIN},
        identity::Identity,
    },
    openapi::Operation,
    requests::{
        api_error::ApiError,
        name::Name,
        pages::{Page, numbered},
    },
};

/// Where changes are told.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct WebhookList {
    webhooks: Vec<EndpointReport>,
}

pub(in crate::server) fn endpoints_operation() -> Operation {
    Operation::new(Method::GET, "Webhooks", "list_webhooks", "Where the tenant's changes of tools are told")
        .details("Without the secrets, and without what stands behind a `?`.")
        .answers::<WebhookList>(200, "The endpoints, in the order of the configuration.")
        .refuses(403, NOT_ADMIN)
}

pub(in crate::server) async fn endpoints(
    State(app): State<App>,
    Admin(identity): Admin,
) -> Json<WebhookList> {
    let of = |webhooks: &Webhooks| webhooks.endpoints(identity.registry.tenant());
    Json(WebhookList { webhooks: app.settings.webhooks.as_ref().map(of).unwrap_or_default() })
}

/// Messages that could not be delivered.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct DeadLetterList {
    dead_letters: Vec<DeadLetter>,
    /// `after` of the next request; null where there are no more.
    next: Option<String>,
}

pub(in crate::server) fn list_operation() -> Operation {
    let operation = Operation::new(
        Method::GET,
        "Webhooks",
        "list_dead_letters",
        "The tenant's messages that could not be delivered",
    )
    .answers::<DeadLetterList>(200, "The messages, oldest first.")
    .refuses(403, NOT_ADMIN);
    Page::operation(operation)
}

pub(in crate::server) async fn list(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    page: Page,
) -> Result<Json<DeadLetterList>, ApiError> {
    identity.require(Permission::Admin, "reading dead letters")?;
    let dead_letters = match &app.settings.webhooks {
        Some(webhooks) => {
            let tenant = identity.registry.tenant();
            webhooks.dead_letters_after(tenant, page.after_number()?, page.to_read()).await?
        }
        None => Vec::new(),
    };
    let (dead_letters, next) = page.of(dead_letters, |(place, _)| numbered(*place));
    let dead_letters = dead_letters.into_iter().map(|(_, letter)| letter).collect();
    Ok(Json(DeadLetterList { dead_letters, next }))
}

pub(in crate::server) fn redeliver_operation() -> Operation {
    Operation::new(Method::POST, "Webhooks", "redeliver_dead_letter", "Send a message once more")
        .path("id", "The message's id.")
        .answers_nothing(202, "It will be sent.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "There is no such message, or it cannot be sent now (`dead_letter_not_found`).")
}

pub(in crate::server) async fn redeliver(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(id): Name,
) -> Result<StatusCode, ApiError> {
    let (tenant, arguments) = (identity.registry.tenant().to_owned(), json!({"dead_letter": id}));
    let redeliver = async move {
        let is_queued = match &app.settings.webhooks {
            Some(webhooks) => webhooks.redeliver(&tenant, &id).await?,
            None => false,
        };
        let message = || {
            format!(
                "there is no dead letter `{id}`, its endpoint is no longer configured, or the queue is full"
            )
        };
        is_queued.then_some(()).ok_or_else(|| ApiError::not_found("dead_letter_not_found", message()))
    };
    admin::change(&identity, "dead letter redeliver", arguments, redeliver).await?;
    Ok(StatusCode::ACCEPTED)
}
