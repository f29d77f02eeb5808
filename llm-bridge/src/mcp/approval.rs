//! Human approval of a call, asked through the client.
//!
//! A client of 2026-07-28 that can show a form gets it by the [result](super::round_trip). In earlier revisions the form is sent while the
//! call waits. For a client that can do neither, the call waits for an answer from elsewhere: the chat page, or `POST /api/approvals/{id}`.

use std::time::Duration;

use jiff::Timestamp;
use registry_core::{
    Origin,
    guard::approval::{AnswerError, Approval, ApprovalAnswer, ApprovalState},
    text::visible,
};
use rmcp::{
    ErrorData, RoleServer,
    model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ProtocolVersion},
    service::RequestContext,
};
use serde_json::{Value, json};

use super::{
    Visitor,
    round_trip::{Answered, not_applied, store_failed},
};
use crate::recorded::answer_approval;

/// How long a call waits for an answer from elsewhere: most clients time out after a minute.
pub(super) const PATIENCE: Duration = Duration::from_secs(45);
/// The longest time that a form is shown for.
const FORM: Duration = Duration::from_secs(300);
/// The field of the form.
const FIELD: &str = "approve";

/// How a client's user can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By the result of the call.
    Result,
    /// By a request while it waits.
    Request,
    /// Not by this client.
    Elsewhere,
}

impl Way {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let asks = context.client_capabilities().and_then(|client| client.elicitation);
        // Where neither way is named it is the form that is meant.
        if asks.is_none_or(|asks| asks.form.is_none() && asks.url.is_some()) {
            return Self::Elsewhere;
        }
        match context.protocol_version() {
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => Self::Result,
            _ if TakesAnswerAlone::is_marked(context) => Self::Elsewhere,
            _ => Self::Request,
        }
    }
}

/// Marks an HTTP request whose client reads the answer and nothing before it: no form reaches its user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakesAnswerAlone;

impl TakesAnswerAlone {
    fn is_marked(context: &RequestContext<RoleServer>) -> bool {
        let request = context.extensions.get::<axum::http::request::Parts>();
        request.is_some_and(|request| request.extensions.get::<Self>().is_some())
    }
}

/// Sends the form and applies the answer.
pub(super) async fn ask(
    visitor: &Visitor,
    approval: &Approval,
    context: &RequestContext<RoleServer>,
) -> Result<Answered, ErrorData> {
    let form =
        form(approval).map_err(|fault| ErrorData::internal_error(format!("the form: {fault}"), None))?;
    let asked = context.peer.create_elicitation_with_timeout(form, Some(time_left(approval)));
    let answered = tokio::select! {
        answered = asked => answered,
        () = context.ct.cancelled() => return Ok(Answered::PutAway),
    };
    match answered {
        Ok(answer) => answer_with(visitor, approval, &answer).await,
        // The approval stays open for an answer from elsewhere.
        Err(fault) => {
            tracing::warn!(approval = approval.id, %fault, "elicitation_failed");
            Ok(Answered::PutAway)
        }
    }
}

/// Applies the answer.
pub(super) async fn answer_with(
    visitor: &Visitor,
    asked: &Approval,
    answer: &ElicitResult,
) -> Result<Answered, ErrorData> {
    let (registry, id) = (&visitor.registry, &asked.id);
    let approve = match answer.action {
        ElicitationAction::Accept => {
            let given = answer.content.as_ref().and_then(|content| content.get(FIELD));
            let given = given.and_then(Value::as_bool);
            given.ok_or_else(|| {
                let message = format!("the answer to the form has no `{FIELD}` that is true or false");
                ErrorData::invalid_params(message, None)
            })?
        }
        ElicitationAction::Decline => false,
        _ => return Ok(Answered::PutAway),
    };
    let caller = visitor.context.caller();
    let answer =
        ApprovalAnswer { approve, by: caller.user.clone(), reason: None, content: None, arguments: None };
    let answered = answer_approval(registry, caller, Origin::Mcp, asked, answer).await.map_err(|cause| {
        tracing::error!(cause, "change_not_audited");
        ErrorData::internal_error("the audit could not be written; the server's log says why", None)
    })?;
    let closed = match answered {
        // An earlier answer, here or elsewhere, counts.
        Err(AnswerError::Closed) => registry.approval(id).await.map_err(AnswerError::Store),
        answered => answered.map(Some),
    };
    match closed.map(|approval| approval.map(|approval| approval.state)) {
        Ok(Some(ApprovalState::Denied { .. })) => Ok(Answered::Denied),
        Ok(Some(ApprovalState::Approved { .. })) => Ok(Answered::Go),
        Err(AnswerError::Store(failed)) => Err(store_failed(failed)),
        // If it has expired or was used, the call asks again.
        _ => Ok(not_applied(visitor, asked)),
    }
}

/// How long the form can be answered.
fn time_left(approval: &Approval) -> Duration {
    approval.time_left(Timestamp::now()).min(FORM)
}

/// The form for the user.
pub(super) fn form(approval: &Approval) -> Result<ElicitRequestParams, String> {
    let schema = json!({
        "type": "object",
        "properties": {FIELD: {
            "type": "boolean",
            "title": "Approve",
            "description": "Whether the call may be made, once",
            "default": false,
        }},
        "required": [FIELD],
    });
    let requested_schema: ElicitationSchema =
        serde_json::from_value(schema).map_err(|fault| fault.to_string())?;
    let (tool, arguments, seconds) = (&approval.tool, &approval.arguments, time_left(approval).as_secs());
    let reason = approval.reason.as_ref().map(|reason| format!("{}\n", visible(reason))).unwrap_or_default();
    let arguments = visible(&arguments.to_string());
    let message =
        format!("{reason}Run {tool} with these arguments? (Answer within {seconds} s.)\n{arguments}");
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}
