//! `GET /api/approvals` and `POST /api/approvals/{id}`: calls that wait for a person.

use std::borrow::Cow;

use axum::{
    Extension, Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use registry_core::{
    Permission,
    guard::approval::{AnswerError, Approval, ApprovalAnswer},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    body::{JsonBody, misread},
    error,
    identity::Identity,
    name::Name,
    openapi::Operation,
    store_failed,
};

/// A person's answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ApprovalAnswer")]
struct Answer {
    /// Whether the call may be made.
    approve: bool,
    /// Why not, for whoever made the call.
    #[serde(default)]
    reason: Option<String>,
}

/// A user answers for his own calls, an admin for everybody's.
fn may_answer(identity: &Identity, approval: &Approval) -> bool {
    approval.user == identity.caller.user || identity.caller.level >= Permission::Admin
}

/// An approval without the hash of the arguments, by which a short secret could be found.
#[derive(Serialize)]
struct Shown(Value);

const HIDDEN: &str = "arguments_sha256";

impl From<&Approval> for Shown {
    fn from(approval: &Approval) -> Self {
        let mut shown = serde_json::to_value(approval).unwrap_or_default();
        if let Some(members) = shown.as_object_mut() {
            members.remove(HIDDEN);
        }
        Self(shown)
    }
}

impl JsonSchema for Shown {
    fn schema_name() -> Cow<'static, str> {
        Approval::schema_name()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut schema = Approval::json_schema(schemas);
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove(HIDDEN);
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name != HIDDEN);
        }
        schema
    }
}

/// Calls that wait for a person.
#[derive(Serialize, JsonSchema)]
struct ApprovalList {
    approvals: Vec<Shown>,
}

pub(super) fn list_operation() -> Operation {
    Operation::new("Approvals", "list_approvals", "The calls that wait for a person")
        .details("A user sees his own, an admin everybody's.")
        .answers::<ApprovalList>(200, "What waits.")
}

pub(super) async fn list(Extension(identity): Extension<Identity>) -> Response {
    match identity.registry.pending_approvals().await {
        Ok(mut approvals) => {
            approvals.retain(|approval| may_answer(&identity, approval));
            let approvals = approvals.iter().map(Shown::from).collect();
            Json(ApprovalList { approvals }).into_response()
        }
        Err(cause) => store_failed(&cause),
    }
}

pub(super) fn answer_operation() -> Operation {
    Operation::new("Approvals", "answer_approval", "Says whether a call may be made")
        .path("id", "The approval's id.")
        .reads::<Answer>()
        .answers::<Shown>(200, "The approval as it is now.")
        .refuses(404, "There is no such approval that the user may answer (`approval_not_found`).")
        .refuses(409, "It was answered already, or has expired (`approval_closed`).")
}

pub(super) async fn answer(
    Extension(identity): Extension<Identity>,
    Name(id): Name,
    JsonBody(body): JsonBody,
) -> Response {
    let answer: Answer = match serde_json::from_value(body) {
        Ok(answer) => answer,
        Err(fault) => {
            let message = format!(
                "the answer is not understood: {}; send `{{\"approve\": true}}` or `{{\"approve\": false, \"reason\": …}}`",
                misread(&fault)
            );
            return error(StatusCode::BAD_REQUEST, "invalid_request_error", &message, Some("body"));
        }
    };
    match identity.registry.approval(&id).await {
        Ok(Some(approval)) if may_answer(&identity, &approval) => {}
        // Whose it is is nobody else's business.
        Ok(_) => return unknown(&id),
        Err(cause) => return store_failed(&cause),
    }
    let answer = ApprovalAnswer { approve: answer.approve, by: identity.caller.user, reason: answer.reason };
    match identity.registry.answer_approval(&id, answer).await {
        Ok(approval) => Json(Shown::from(&approval)).into_response(),
        Err(AnswerError::Unknown) => unknown(&id),
        Err(AnswerError::Closed) => {
            let message =
                "this approval was answered already, or has expired; make the call again for a new one";
            error(StatusCode::CONFLICT, "approval_closed", message, None)
        }
        Err(AnswerError::Store(cause)) => store_failed(&cause),
    }
}

fn unknown(id: &str) -> Response {
    error(StatusCode::NOT_FOUND, "approval_not_found", &format!("there is no approval `{id}`"), None)
}
