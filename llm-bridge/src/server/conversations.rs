//! Conversations of OpenAI's Responses, which the server keeps: `previous_response_id` and `store`, and
//! `DELETE /v1/responses/{id}`: <https://platform.openai.com/docs/api-reference/responses>.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::Method,
};
use jiff::Timestamp;
use registry_core::{
    CallerAuthority,
    store::{ConversationError, Conversations, StoredResponse},
};
use serde_json::{Value, json};
use toolrack_apis::{Failure, FailureKind, Message, Request};

use super::{
    App,
    api_error::ApiError,
    identity::Identity,
    openapi::{JsonObject, Operation},
    routes::Routes,
};

pub(super) fn routes() -> Routes {
    let operation =
        Operation::new(Method::DELETE, "Chat", "delete_response", "Forgets a response that is kept")
            .path("id", "The response's id. What continues it cannot be continued any more.")
            .answers::<JsonObject>(200, "It is deleted.")
            .refuses(404, "There is no such response of this user (`not_found`).");
    Routes::new().add("/v1/responses/{id}", delete, operation)
}

async fn delete(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    id: Result<Path<String>, axum::extract::rejection::PathRejection>,
) -> Result<Json<Value>, ApiError> {
    let Path(id) = id.map_err(|fault| ApiError::invalid("id", fault.body_text()))?;
    let deleted = match &app.conversations {
        Some(conversations) => {
            conversations.delete(identity.registry.tenant(), &identity.caller.user, &id).await
        }
        None => Err(ConversationError::Unknown),
    };
    match deleted {
        Ok(()) => Ok(Json(json!({"id": id, "object": "response", "deleted": true}))),
        Err(ConversationError::Store(cause)) => Err(cause.into()),
        Err(_) => Err(ApiError::not_found("not_found", format!("Response with id '{id}' not found."))),
    }
}

/// An answer that is to be kept with what its request has added.
pub(super) struct Keeping {
    conversations: Conversations,
    /// Who says whether the user is still there.
    standing: Option<Arc<dyn CallerAuthority>>,
    tenant: String,
    user: String,
    previous: Option<String>,
    added: Vec<Message>,
}

/// Puts what is kept of a conversation before a request; what has to be kept of it.
///
/// # Errors
/// When the conversation is not kept.
pub(super) async fn begin(
    conversations: Option<&Conversations>,
    identity: &Identity,
    request: &mut Request,
) -> Result<Option<Keeping>, Failure> {
    let (tenant, user) = (identity.registry.tenant().to_owned(), identity.caller.user.clone());
    let previous = request.conversation.previous_response_id.take();
    if let Some(id) = &previous {
        let conversations = conversations.ok_or_else(|| failure(id, ConversationError::Disabled))?;
        let texts = conversations.chain(&tenant, &user, id).await.map_err(|error| failure(id, error))?;
        for text in texts {
            let messages: Vec<Message> = serde_json::from_str(&text).map_err(|error| {
                tracing::error!(%error, "kept_response_not_read");
                Failure::new(
                    FailureKind::Internal,
                    "the server's store holds something that this server cannot read",
                )
            })?;
            request.conversation.earlier.extend(messages);
        }
    }
    let is_wanted = request.conversation.store != Some(false);
    let conversations = conversations.filter(|conversations| is_wanted && conversations.are_kept());
    let instructions = usize::from(request.conversation.has_instructions);
    Ok(conversations.map(|conversations| Keeping {
        conversations: conversations.clone(),
        standing: identity.standing(),
        tenant,
        user,
        previous,
        added: request.messages.iter().skip(instructions).cloned().collect(),
    }))
}

fn failure(id: &str, error: ConversationError) -> Failure {
    let (kind, message) = match error {
        ConversationError::Unknown => {
            (FailureKind::NotFound, format!("Previous response with id '{id}' not found: {error}"))
        }
        ConversationError::Store(cause) => {
            tracing::error!(%cause, "store_failed");
            (FailureKind::Overloaded, "the server's store does not answer; try again".to_owned())
        }
        other => (FailureKind::InvalidRequest, other.to_string()),
    };
    Failure { param: Some("previous_response_id".to_owned()), ..Failure::new(kind, message) }
}

impl Keeping {
    /// Keeps the answer under its id. The answer stands, whether that works or not.
    pub(super) async fn keep(mut self, id: String, model: String, answer: Vec<Message>) {
        // A user who was removed meanwhile has no conversations.
        if let Some(standing) = &self.standing
            && !matches!(standing.caller().await, Ok(Some(_)))
        {
            return;
        }
        self.added.extend(answer);
        let Self { conversations, tenant, user, previous, added, .. } = self;
        let messages = match serde_json::to_string(&added) {
            Ok(messages) => messages.into(),
            Err(error) => return tracing::error!(%error, "response_not_kept"),
        };
        let created_at = Timestamp::now();
        let response = StoredResponse { id, tenant, user, previous, model, messages, created_at };
        if let Err(error) = conversations.keep(response).await {
            tracing::warn!(%error, "response_not_kept");
        }
    }
}
