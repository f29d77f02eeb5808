//! `GET /api/approvals` and `POST /api/approvals/{id}`: human approval of calls.

use std::{borrow::Cow, collections::HashMap};

use axum::{
    Extension, Json,
    extract::State,
    http::{Method, StatusCode},
    response::Response,
};
use registry_core::{
    Caller, Origin, Permission,
    guard::{
        approval::{AnswerError, Approval, ApprovalAnswer},
        rule::RuleKind,
    },
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::approval_rules;
use crate::{
    recorded::answer_approval,
    server::{
        App,
        callers::{admin::not_audited, identity::Identity, users::is_above},
        openapi::Operation,
        requests::{
            api_error::ApiError,
            body::{Body, JsonBody},
            name::Name,
            pages::{Page, Place},
        },
    },
};

/// A person's answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ApprovalAnswer")]
pub(in crate::server) struct Answer {
    /// Whether the call may run.
    approve: bool,
    /// The reason, for the caller.
    #[serde(default)]
    reason: Option<String>,
    /// What an approved call is made with instead of its arguments; all of them, not the changed ones alone.
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
    /// What else is allowed from now on, of what the approval offers in `remember`; only by the person whose call it is.
    #[serde(default)]
    remember: Option<RuleKind>,
}

impl Body for Answer {
    const EXAMPLE: &str = "`{\"approve\": true}`, `{\"approve\": true, \"arguments\": {…}}`, `{\"approve\": true, \"remember\": \"arguments\"}` or `{\"approve\": false, \"reason\": …}`";
}

/// Users answer for their own calls, admins for those of everybody whose level is not above theirs: with an answer come the arguments that the
/// call is made with.
async fn may_answer(identity: &Identity, user: &str) -> Result<bool, ApiError> {
    let Caller { user: own, level, .. } = &identity.caller;
    Ok(user == own || *level >= Permission::Admin && !is_above(identity, user).await?)
}

/// The pending approvals that somebody may answer.
async fn pending(identity: &Identity) -> Result<Vec<Approval>, ApiError> {
    let Identity { registry, caller, .. } = identity;
    if caller.level < Permission::Admin {
        return Ok(registry.pending_approvals_of(&caller.user).await?);
    }
    let (mut pending, mut users) = (registry.pending_approvals().await?, HashMap::new());
    for Approval { user, .. } in &pending {
        if !users.contains_key(user) {
            users.insert(user.clone(), may_answer(identity, user).await?);
        }
    }
    pending.retain(|approval| users.get(&approval.user).is_some_and(|may| *may));
    Ok(pending)
}

/// An approval without hashes: that of the arguments could reveal a short secret.
#[derive(Serialize)]
pub(in crate::server) struct Shown(Value);

const HIDDEN: [&str; 2] = ["arguments_sha256", "tool_sha256"];

impl From<&Approval> for Shown {
    fn from(approval: &Approval) -> Self {
        let mut shown = serde_json::to_value(approval).unwrap_or_default();
        if let Some(members) = shown.as_object_mut() {
            HIDDEN.iter().for_each(|name| drop(members.remove(*name)));
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
            HIDDEN.iter().for_each(|name| drop(properties.remove(*name)));
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| HIDDEN.iter().all(|hidden| name != hidden));
        }
        schema
    }
}

/// Pending approvals.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct ApprovalList {
    approvals: Vec<Shown>,
    /// `after` of the next request; null where there are no more.
    next: Option<String>,
}

pub(in crate::server) fn list_operation() -> Operation {
    let operation =
        Operation::new(Method::GET, "Approvals", "list_approvals", "The calls that require human approval")
            .details("Users see their own, admins those of everybody whose level is not above theirs.")
            .answers::<ApprovalList>(200, "The pending approvals, oldest first.");
    Page::operation(operation)
}

/// Where an approval or question stands among those that wait.
pub(in crate::server) fn place(kept: &Approval) -> Place {
    (kept.requested_at, kept.id.clone())
}

pub(in crate::server) async fn list(
    Extension(identity): Extension<Identity>,
    page: Page,
) -> Result<Response, ApiError> {
    let reader = identity.clone();
    let read = async move { Ok::<_, ApiError>(page.of(pending(&reader).await?, place)) };
    let shown = |(pending, next): (Vec<Approval>, _)| ApprovalList {
        approvals: pending.iter().map(Shown::from).collect(),
        next,
    };
    identity.read_json(read, shown).await
}

pub(in crate::server) fn answer_operation() -> Operation {
    Operation::new(Method::POST, "Approvals", "answer_approval", "Approve or deny a call")
        .path("id", "The approval's id.")
        .reads::<Answer>()
        .answers::<Shown>(200, "The answered approval.")
        .refuses(404, "There is no such approval that the user may answer (`approval_not_found`).")
        .refuses(409, "It was answered already, or has expired (`approval_closed`), or the user has too many rules (`approval_rules_full`).")
        .refuses(
            422,
            "The call cannot be made with these arguments (`invalid_arguments`), or this cannot be remembered (`cannot_be_remembered`); it goes on waiting.",
        )
}

pub(in crate::server) async fn answer(
    Extension(identity): Extension<Identity>,
    Name(id): Name,
    State(app): State<App>,
    JsonBody(Answer { approve, reason, arguments, remember }): JsonBody<Answer>,
) -> Result<Json<Shown>, ApiError> {
    let approval = identity.registry.approval(&id).await?.ok_or_else(|| unknown(&id))?;
    // Whether another user has it is not disclosed.
    if !may_answer(&identity, &approval.user).await? {
        return Err(unknown(&id));
    }
    let rule = match remember {
        Some(_) if !approve || arguments.is_some() => {
            return Err(approval_rules::not_remembered(
                "what is remembered is that a call is allowed as it is",
            ));
        }
        Some(kind) => approval_rules::keep(&app, &identity, &approval, kind).await?,
        None => None,
    };
    let answer = ApprovalAnswer {
        approve,
        by: identity.caller.user.clone(),
        reason,
        content: None,
        arguments: arguments.map(Value::Object),
    };
    let Identity { registry, caller, .. } = &identity;
    let answered = match answer_approval(registry, caller, Origin::Http, &approval, answer).await {
        Ok(answered) => answered.map_err(|fault| not_answered(fault, &id)),
        Err(cause) => Err(not_audited(&cause)),
    };
    match (&answered, rule) {
        (Ok(_), Some(rule)) => approval_rules::allow_waiting(&identity, &rule).await,
        // Somebody else has answered it, who may have said no.
        (Err(_), Some(rule)) => drop(approval_rules::revoke_by_id(&identity, &rule.id).await?),
        (_, None) => {}
    }
    answered.map(|approval| Json(Shown::from(&approval)))
}

fn unknown(id: &str) -> ApiError {
    ApiError::not_found("approval_not_found", format!("there is no approval `{id}`"))
}

fn not_answered(fault: AnswerError, id: &str) -> ApiError {
    match fault {
        AnswerError::Unknown => unknown(id),
        AnswerError::Closed => {
            let message = "this approval was answered already, or has expired; repeat the call for a new one";
            ApiError::new(StatusCode::CONFLICT, "approval_closed", message)
        }
        AnswerError::Invalid(fault) => {
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_arguments", fault)
        }
        AnswerError::Store(cause) => cause.into(),
        other => ApiError::internal(other.to_string()),
    }
}
