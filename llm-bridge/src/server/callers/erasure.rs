//! `POST /api/users/{id}/erase`: all that is kept of a person is erased, for a tenant's admins.

use async_trait::async_trait;
use axum::{Json, extract::State, http::Method};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    admin::{self, Admin},
    users::{ABOVE, may_change, unknown},
};
use crate::{
    server::{
        App,
        openapi::Operation,
        requests::{api_error::ApiError, name::Name},
    },
    traces::Traces,
};

/// Erases what is kept of a person, in all stores.
#[async_trait]
pub trait ErasePerson: Send + Sync {
    /// Erases it, and says what that was. The person need not be a stored user.
    ///
    /// # Errors
    /// When a store fails. What was erased by then stays erased, and another call goes on.
    async fn erase(&self, tenant: &str, user: &str) -> Result<Erased, String>;
}

/// What has been erased of a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Erased {
    /// Whether the person was a stored user.
    pub was_known: bool,
    /// How many keys.
    pub keys: usize,
    /// How many browsers the person was signed in with.
    pub sessions: usize,
    /// How many chats.
    pub chats: usize,
    /// How many accounts on MCP servers.
    pub connections: usize,
    /// How many responses of conversations.
    pub responses: usize,
    /// How many transcripts of turns.
    pub transcripts: usize,
    /// How many files of results.
    pub files: usize,
    /// How many documents.
    pub documents: usize,
    /// How many values that tools kept.
    pub values: usize,
    /// How many scheduled calls.
    pub jobs: usize,
    /// How many approvals and questions, answered or not.
    pub approvals: usize,
    /// How many records of the audit, of which only that and how the calls were made is left.
    pub records: usize,
}

impl Erased {
    /// Whether there was anything.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

pub(in crate::server) fn operation() -> Operation {
    Operation::new(Method::POST, "Users", "erase_user", "Erase all that is kept of a person")
        .details(
            "It cannot be undone. The person need not be a stored user. Turns of theirs that run on this server are stopped. Of \
             their records in the audit only that and how the calls were made is left, and of changes as an admin to whom. Nobody erases oneself.",
        )
        .path("id", "The user's id.")
        .answers::<Erased>(200, "What has been erased.")
        .refuses(403, ABOVE)
        .refuses(404, "Nothing is kept of such a person (`user_not_found`), or this server cannot erase (`erasure_not_found`).")
}

pub(in crate::server) async fn erase(
    State(app): State<App>,
    Admin(identity): Admin,
    Name(id): Name,
) -> Result<Json<Erased>, ApiError> {
    let eraser = app.settings.eraser.clone().ok_or_else(|| {
        ApiError::not_found("erasure_not_found", "this server cannot erase what is kept of a person")
    })?;
    if id == identity.caller.user {
        // Who erases oneself would take what one did as an admin with it, and be gone before anybody asks.
        return Err(ApiError::denied(
            "nobody erases oneself; have another admin do it, or use `toolrack user erase`",
        ));
    }
    let tenant = identity.registry.tenant().to_owned();
    let stored = identity.stored.store().user(&tenant, &id).await?.map(|user| user.level);
    may_change(&identity, &id, stored).await?;
    // They would be kept when they end.
    app.backend.live_turns().stop_of(&tenant, &id);
    let erase = async {
        match eraser.erase(&tenant, &id).await {
            Ok(erased) if erased.is_nothing() => Err(NotErased::Nothing(id.clone())),
            erased => erased.map_err(NotErased::Failed),
        }
    };
    let erased = admin::change(&identity, "toolrack user erase", json!({"user": id}), erase).await;
    // They may have the person's words, and do not say whose they are.
    app.settings.traces.iter().for_each(Traces::forget);
    erased.map(Json)
}

/// Why something is left, or nothing was there.
#[derive(Debug, thiserror::Error)]
enum NotErased {
    #[error("there is no user `{0}`")]
    Nothing(String),
    #[error("{0}")]
    Failed(String),
}

impl From<NotErased> for ApiError {
    fn from(fault: NotErased) -> Self {
        match fault {
            NotErased::Nothing(user) => unknown(&user),
            NotErased::Failed(cause) => {
                tracing::error!(cause, "person_not_erased");
                Self::internal("not all was erased; the server's log says why. Erase again to go on")
            }
        }
    }
}
