//! Human approval of a call, asked through the client.
//!
//! A client of 2026-07-28 that can show a form gets `input_required` and repeats the call with the answer. In earlier revisions the form is
//! sent while the call waits. For a client that can do neither, the call waits for an answer from elsewhere: the chat page, or
//! `POST /api/approvals/{id}`.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use registry_core::{
    guard::approval::{AnswerError, Approval, ApprovalAnswer, ApprovalState},
    random_id,
    store::StoreError,
};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
        InputRequiredResult, InputResponses, ProtocolVersion, RequestStateCodec, SealOptions,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::{McpServer, Visitor};

/// How long a call waits for an answer from elsewhere: most clients time out after a minute.
pub(super) const PATIENCE: Duration = Duration::from_secs(45);
/// The longest time that a form is shown for.
const FORM: Duration = Duration::from_secs(300);
/// The key of the form among those of one result.
const KEY: &str = "approval";
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
            _ => Self::Request,
        }
    }
}

/// Seals with a key of this process: after a restart, a form is shown once more.
pub(super) fn codec() -> Result<RequestStateCodec, String> {
    let mut key = [0_u8; 32];
    getrandom::fill(&mut key).map_err(|fault| format!("no randomness: {fault}"))?;
    RequestStateCodec::try_new(key.to_vec()).map_err(|fault| fault.to_string())
}

/// The tenant and user that a state is sealed for.
fn bound(visitor: &Visitor) -> Vec<u8> {
    format!("{}\0{}", visitor.registry.tenant(), visitor.context.caller().user).into_bytes()
}

/// The form, as a result of the call.
pub(super) fn input_required(
    server: &McpServer,
    visitor: &Visitor,
    approval: &Approval,
) -> Result<InputRequiredResult, ErrorData> {
    let form = InputRequest::Elicitation(ElicitRequest::new(form(approval)?));
    let (bound, ttl) = (bound(visitor), time_left(approval));
    let state =
        server.codec.seal_with(approval.id.as_bytes(), &SealOptions::new().associated_data(&bound).ttl(ttl));
    Ok(InputRequiredResult::new(Some(BTreeMap::from([(KEY.to_owned(), form)])), Some(state)))
}

/// The approval that a state was sealed for.
fn approval_of(server: &McpServer, visitor: &Visitor, state: &str) -> Result<String, ErrorData> {
    let opened = server.codec.open_with(state, &bound(visitor)).map_err(|fault| {
        ErrorData::invalid_params(format!("`requestState`: {fault}; make the call again without it"), None)
    })?;
    Ok(String::from_utf8_lossy(&opened).into_owned())
}

/// The scope of an approval: the call that is repeated with the form's state, or the call that waits for it.
pub(super) async fn scope(
    visitor: &Visitor,
    server: &McpServer,
    state: Option<&str>,
) -> Result<String, ErrorData> {
    if let Some(state) = state {
        let id = approval_of(server, visitor, state)?;
        if let Some(approval) = visitor.registry.approval(&id).await.map_err(store_failed)? {
            return Ok(approval.scope);
        }
    }
    random_id().map_err(|fault| ErrorData::internal_error(fault.to_string(), None))
}

fn store_failed(failed: StoreError) -> ErrorData {
    tracing::error!(cause = %failed, "store_failed");
    let message = match failed.is_transient() {
        true => "the server's store does not answer; try again",
        false => "the server's store has failed; its log says why",
    };
    ErrorData::internal_error(message, None)
}

/// The state of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    /// It was not shown or not answered.
    Not,
    /// It was dismissed, and is not shown again for this call.
    PutAway,
    Yes,
    No,
}

/// Applies the answer in a repeated call.
pub(super) async fn brought(
    server: &McpServer,
    visitor: &Visitor,
    state: &str,
    answers: Option<&InputResponses>,
) -> Result<Answered, ErrorData> {
    let id = approval_of(server, visitor, state)?;
    let Some(answer) = answers.and_then(|answers| answers.get(KEY)) else { return Ok(Answered::Not) };
    let answer: ElicitResult = serde_json::from_value(answer.clone()).map_err(|fault| {
        ErrorData::invalid_params(format!("`inputResponses.{KEY}` is no answer to a form: {fault}"), None)
    })?;
    answer_with(visitor, &id, &answer).await
}

/// Sends the form and applies the answer.
pub(super) async fn ask(
    visitor: &Visitor,
    approval: &Approval,
    context: &RequestContext<RoleServer>,
) -> Result<Answered, ErrorData> {
    let asked = context.peer.create_elicitation_with_timeout(form(approval)?, Some(time_left(approval)));
    let answered = tokio::select! {
        answered = asked => answered,
        () = context.ct.cancelled() => return Ok(Answered::Not),
    };
    match answered {
        Ok(answer) => answer_with(visitor, &approval.id, &answer).await,
        // The approval stays open for an answer from elsewhere.
        Err(fault) => {
            tracing::warn!(approval = approval.id, %fault, "elicitation_failed");
            Ok(Answered::Not)
        }
    }
}

async fn answer_with(visitor: &Visitor, id: &str, answer: &ElicitResult) -> Result<Answered, ErrorData> {
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
    let answer = ApprovalAnswer { approve, by: visitor.context.caller().user.clone(), reason: None };
    let closed = match visitor.registry.answer_approval(id, answer).await {
        // An earlier answer, here or elsewhere, counts.
        Err(AnswerError::Closed) => visitor.registry.approval(id).await.map_err(AnswerError::Store),
        answered => answered.map(Some),
    };
    match closed.map(|approval| approval.map(|approval| approval.state)) {
        Ok(Some(ApprovalState::Denied { .. })) => Ok(Answered::No),
        // If it has expired or was used, the call asks again.
        Ok(_) | Err(AnswerError::Closed | AnswerError::Unknown) => Ok(Answered::Yes),
        Err(AnswerError::Store(failed)) => Err(store_failed(failed)),
    }
}

/// How long the form can be answered.
fn time_left(approval: &Approval) -> Duration {
    approval.time_left(Timestamp::now()).min(FORM)
}

/// The form for the user.
fn form(approval: &Approval) -> Result<ElicitRequestParams, ErrorData> {
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
    let requested_schema: ElicitationSchema = serde_json::from_value(schema)
        .map_err(|fault| ErrorData::internal_error(format!("the form: {fault}"), None))?;
    let (tool, arguments, seconds) = (&approval.tool, &approval.arguments, time_left(approval).as_secs());
    let message = format!("Run {tool} with these arguments? (Answer within {seconds} s.)\n{arguments}");
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

#[cfg(test)]
mod tests {
    use registry_core::{Caller, Permission, Registry};
    use tokio_util::{sync::CancellationToken, task::TaskTracker};

    use super::*;

    #[tokio::test]
    async fn b3_a_state_that_is_expired_or_tampered_with_is_refused_and_says_what_to_do() {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let context = registry.context(Caller::new("ada", Permission::User));
        let visitor = Visitor { registry, context };
        let server =
            McpServer::for_one(CancellationToken::new(), TaskTracker::new(), visitor.clone()).unwrap();
        let sealed = |ttl: Duration| {
            let bound = bound(&visitor);
            server.codec.seal_with(b"approval", &SealOptions::new().associated_data(&bound).ttl(ttl))
        };
        let (good, expired) = (sealed(FORM), sealed(Duration::from_millis(1)));
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(brought(&server, &visitor, &good, None).await.unwrap(), Answered::Not);
        // One character in the middle is another.
        let middle = good.len() / 2;
        let other = if good.get(middle..).is_some_and(|rest| rest.starts_with('A')) { "B" } else { "A" };
        let mut tampered = good.clone();
        tampered.replace_range(middle..=middle, other);
        for (state, why) in
            [(expired, "expired"), (tampered, "integrity"), ("rs1.".to_owned(), "request state")]
        {
            let refused = brought(&server, &visitor, &state, None).await.unwrap_err();
            assert_eq!(refused.code.0, -32602);
            assert!(
                refused.message.contains(why) && refused.message.contains("make the call again without it"),
                "{refused:?}"
            );
        }
    }
}
