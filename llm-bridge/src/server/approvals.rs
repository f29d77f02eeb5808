//! `GET /api/approvals` and `POST /api/approvals/{id}`: calls that wait for a person.

use axum::{
    Extension, Json,
    extract::Path,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use registry_core::{
    Permission,
    guard::approval::{AnswerError, Approval, ApprovalAnswer},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    body::{JsonBody, misread},
    error,
    identity::Identity,
    store_failed,
};

/// A person's answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    approve: bool,
    #[serde(default)]
    reason: Option<String>,
}

/// A user answers for his own calls, an admin for everybody's.
fn may_answer(identity: &Identity, approval: &Approval) -> bool {
    approval.user == identity.caller.user || identity.caller.level >= Permission::Admin
}

/// Without the hash of the arguments, by which a short secret could be found.
fn shown(approval: &Approval) -> Value {
    let mut shown = serde_json::to_value(approval).unwrap_or_default();
    if let Some(members) = shown.as_object_mut() {
        members.remove("arguments_sha256");
    }
    shown
}

pub(super) async fn list(Extension(identity): Extension<Identity>) -> Response {
    match identity.registry.pending_approvals().await {
        Ok(mut approvals) => {
            approvals.retain(|approval| may_answer(&identity, approval));
            let approvals: Vec<Value> = approvals.iter().map(shown).collect();
            Json(json!({"approvals": approvals})).into_response()
        }
        Err(cause) => store_failed(&cause),
    }
}

pub(super) async fn answer(
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
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
        Ok(approval) => Json(shown(&approval)).into_response(),
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
