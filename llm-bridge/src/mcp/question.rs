//! The questions of tools, asked by forms: while a call waits, or by its [result](super::round_trip).

use std::time::Duration;

use registry_core::{
    PendingQuestion, QuestionError,
    guard::approval::{AnswerError, Approval, Question},
};
use rmcp::{
    ErrorData, RoleServer,
    model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema},
    service::Peer,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Visitor,
    round_trip::{Answered, not_applied, store_failed},
};

/// How long a question can wait for a form.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);
/// How often a form is shown whose answer does not fit.
const TRIES: usize = 3;

/// Shows the forms, one after the other, as long as there are any.
pub(super) async fn ask_all(
    mut asked: mpsc::UnboundedReceiver<PendingQuestion>,
    visitor: &Visitor,
    peer: &Peer<RoleServer>,
) {
    while let Some(question) = asked.recv().await {
        if let Err(reason) = ask(visitor, &question, peer).await {
            decline(visitor, &question.id, Some(reason)).await;
        }
    }
}

pub(super) async fn decline(visitor: &Visitor, id: &str, reason: Option<String>) {
    let user = &visitor.context.caller().user;
    if let Err(cause) = visitor.registry.decline_question(id, user, reason).await {
        tracing::debug!(question = id, %cause, "question_not_declined");
    }
}

/// The form for the user.
///
/// # Errors
/// Why a client cannot show it.
pub(super) fn form(question: &Question) -> Result<ElicitRequestParams, String> {
    if question.has_secret() {
        return Err(
            "forms of MCP clients must not ask for secrets; call the tool on the chat page".to_owned()
        );
    }
    let requested_schema: ElicitationSchema = serde_json::from_value(question.schema.clone())
        .map_err(|fault| format!("MCP clients have no such form: {fault}"))?;
    let message = question.message.clone();
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Applies the answer of a repeated call.
pub(super) async fn answer_with(
    visitor: &Visitor,
    asked: &Approval,
    given: ElicitResult,
) -> Result<Answered, ErrorData> {
    let (registry, user) = (&visitor.registry, &visitor.context.caller().user);
    let answered = match given.action {
        ElicitationAction::Accept => {
            let content = given.content.map_or(Value::Null, Value::from);
            registry.answer_question(&asked.id, user, content).await
        }
        // The tool goes on with that.
        _ => registry.decline_question(&asked.id, user, None).await.map_err(QuestionError::Answer),
    };
    match answered {
        Ok(_) => Ok(Answered::Go),
        Err(QuestionError::Invalid(fault) | QuestionError::Answer(AnswerError::Invalid(fault))) => {
            Ok(Answered::Unfit(fault))
        }
        Err(QuestionError::Answer(AnswerError::Store(failed))) => Err(store_failed(failed)),
        Err(_) => Ok(not_applied(visitor, asked)),
    }
}

/// Shows one form and applies its answer.
///
/// # Errors
/// Why the user could not be asked.
async fn ask(visitor: &Visitor, asked: &PendingQuestion, peer: &Peer<RoleServer>) -> Result<(), String> {
    let mut form = form(&asked.question)?;
    for _ in 0..TRIES {
        let wait = Duration::from_secs(asked.seconds).min(PATIENCE);
        let given =
            peer.create_elicitation_with_timeout(form.clone(), Some(wait)).await.map_err(|fault| {
                tracing::warn!(question = asked.id, %fault, "elicitation_failed");
                "the client has not shown the form".to_owned()
            })?;
        if given.action != ElicitationAction::Accept {
            decline(visitor, &asked.id, None).await;
            return Ok(());
        }
        let content = given.content.map_or(Value::Null, Value::from);
        match visitor.registry.answer_question(&asked.id, &visitor.context.caller().user, content).await {
            Err(QuestionError::Invalid(fault)) => {
                if let ElicitRequestParams::FormElicitationParams { message, .. } = &mut form {
                    *message = format!("{fault}\n{}", asked.question.message);
                }
            }
            // Answered; or it is over, which the call knows.
            _ => return Ok(()),
        }
    }
    Err("the answers did not fit".to_owned())
}
