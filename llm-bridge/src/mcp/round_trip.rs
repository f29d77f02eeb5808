//! What a person has to say before a call can go on, asked by the result of the call: `input_required`, since revision 2026-07-28. The client
//! repeats the call with the answer and with `requestState`.
//!
//! The state is the id under which the store keeps the approval or question. It is random, and good for one user and one call, so it is not
//! sealed; and it holds after a restart, and on every server of the same store.

use std::collections::BTreeMap;

use registry_core::{
    ToolOutcome,
    guard::approval::{Approval, ApprovalState},
    store::StoreError,
};
use rmcp::{
    ErrorData,
    model::{
        ElicitRequest, ElicitRequestParams, ElicitResult, InputRequest, InputRequiredResult, InputResponses,
    },
};

use super::{Visitor, approval, question};

/// What a repeated call brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answered {
    /// Nothing, or an answer that is kept now: the call is made.
    Go,
    /// An answer that came too late: the call is made, and asks again.
    Late,
    /// An answer that does not fit the question, and why; it is asked again.
    Unfit(String),
    /// The form of an approval was dismissed, and is not shown again for this call.
    PutAway,
    /// The approval was denied.
    Denied,
}

/// The approval or question that a call waits for.
pub(super) async fn open(visitor: &Visitor, outcome: &ToolOutcome) -> Option<Approval> {
    let error = outcome.result.as_ref().err()?;
    let id = error.approval().or(error.question())?;
    find(visitor, id).await.unwrap_or_else(|cause| {
        tracing::error!(%cause, "store_failed");
        None
    })
}

async fn find(visitor: &Visitor, id: &str) -> Result<Option<Approval>, StoreError> {
    match visitor.registry.approval(id).await? {
        Some(approval) => Ok(Some(approval)),
        None => visitor.registry.question(id).await,
    }
}

/// The approval or question of a repeated call.
///
/// # Errors
/// When the user has none of that id.
pub(super) async fn of_state(visitor: &Visitor, state: &str) -> Result<Approval, ErrorData> {
    let kept = find(visitor, state).await.map_err(store_failed)?;
    kept.filter(|kept| kept.user == visitor.context.caller().user).ok_or_else(|| {
        let message = "`requestState` is of no call of yours that is known; make the call again without it";
        ErrorData::invalid_params(message, None)
    })
}

/// Applies the answer in a repeated call.
///
/// # Errors
/// When it is no answer to a form.
pub(super) async fn answer(
    visitor: &Visitor,
    kept: &Approval,
    answers: Option<&InputResponses>,
) -> Result<Answered, ErrorData> {
    let key = key(kept);
    let Some(answer) = answers.and_then(|answers| answers.get(key)) else { return Ok(Answered::Go) };
    let answer: ElicitResult = serde_json::from_value(answer.clone()).map_err(|fault| {
        ErrorData::invalid_params(format!("`inputResponses.{key}` is no answer to a form: {fault}"), None)
    })?;
    match kept.question {
        Some(_) => question::answer_with(visitor, kept, answer).await,
        None => approval::answer_with(visitor, kept, &answer).await,
    }
}

/// The form, as a result of the call. A `note` says why it is shown again.
///
/// # Errors
/// Why a client cannot show it.
pub(super) fn input_required(kept: &Approval, note: Option<&str>) -> Result<InputRequiredResult, String> {
    let mut form = match &kept.question {
        Some(question) => question::form(question)?,
        None => approval::form(kept)?,
    };
    if let (Some(note), ElicitRequestParams::FormElicitationParams { message, .. }) = (note, &mut form) {
        *message = format!("{note}\n{message}");
    }
    let request = InputRequest::Elicitation(ElicitRequest::new(form));
    let requests = BTreeMap::from([(key(kept).to_owned(), request)]);
    Ok(InputRequiredResult::new(Some(requests), Some(kept.id.clone())))
}

/// The key of the form among those of one result.
fn key(kept: &Approval) -> &'static str {
    if kept.question.is_some() { "question" } else { "approval" }
}

/// What it means that an approval or question, as it was before, cannot be answered any more.
pub(super) fn not_applied(visitor: &Visitor, asked: &Approval) -> Answered {
    let is_late = asked.state == ApprovalState::Pending && asked.expires_at <= visitor.registry.clock().now();
    if is_late { Answered::Late } else { Answered::Go }
}

pub(super) fn store_failed(failed: StoreError) -> ErrorData {
    tracing::error!(cause = %failed, "store_failed");
    let message = match failed.is_transient() {
        true => "the server's store does not answer; try again",
        false => "the server's store has failed; its log says why",
    };
    ErrorData::internal_error(message, None)
}
