//! The way of one question: kept, announced, waited for, and noted for the audit.

use jiff::SignedDuration;
use serde::Serialize;
use serde_json::{Value, json};

use super::{AskError, MAX_QUESTIONS, fit};
use crate::{
    context::{RunningCall, ToolContext},
    guard::{
        approval::{Approval, ApprovalAnswer, ApprovalState, Question},
        audit::hash_arguments,
        person::{Held, MAX_PENDING, Waited},
    },
    id::random_id,
    registry::{Common, Registry},
    schema::without_secrets,
    store::StoreError,
};

/// A question of a call, as the audit has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Asked {
    /// The question.
    pub question: String,
    /// What became of it: `answered`, `declined`, `expired`, `pending` or `withdrawn`.
    pub outcome: &'static str,
    /// Who has answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The answer, where the host keeps arguments; what is secret is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

pub(super) async fn ask(context: &ToolContext, question: Question) -> Result<Value, AskError> {
    let (Some(call), Some(registry)) = (context.running(), context.registry()) else {
        return Err(AskError::Nobody("a question belongs to a call, and this context is of none".to_owned()));
    };
    let wait = context.question_wait().ok_or_else(|| AskError::Nobody(nobody(call)))?;
    let comes_back = wait.is_some();
    if comes_back && wait.is_some_and(|wait| wait.is_zero()) && !call.is_repeatable() {
        return Err(AskError::Nobody(too_late(call)));
    }
    let number = call.asking.next().filter(|number| *number <= MAX_QUESTIONS);
    let number =
        number.ok_or_else(|| AskError::Invalid(format!("a call asks {MAX_QUESTIONS} questions at most")))?;
    let common = registry.shared.common.as_ref();
    let guards = &common.guards;
    let mut wanted = new_question(context, call, common, &question, number, comes_back)?;
    let asked = Asking { call, question: &question, keeps_answers: common.audit_arguments };
    let keeping = call.outermost().asking.keeping().filter(|_| comes_back && call.is_repeatable());
    if let Some(before) = keeping.and_then(|keeping| keeping.replayed(&wanted.arguments_sha256)) {
        let held = Held::new(guards, context.tenant().into(), before.id);
        return asked.ended(before.state, held);
    }
    let waits = !wait.is_some_and(|wait| wait.is_zero());
    let waiting = keeping.filter(|_| waits);
    let awaited = call.asking.await_answer(&question.message, waiting.map(|keeping| keeping.leaving()));
    wanted.call = waiting.map(|keeping| keeping.key().to_owned());
    let wanted_id = wanted.id.clone();
    if let Some(keeping) = waiting {
        // Before anybody can see the question: who answers it has to find the call.
        Box::pin(keeping.waits(&wanted_id, wanted.expires_at)).await;
    }
    let requested = guards.approvals.request(wanted, MAX_PENDING).await;
    if let (Err(_) | Ok(None), Some(keeping)) = (&requested, waiting) {
        Box::pin(keeping.forget()).await;
    }
    let mut kept = requested?.ok_or_else(|| {
        AskError::Invalid(format!("{MAX_PENDING} questions of this user wait for an answer already"))
    })?;
    let mut held = Held::new(guards, context.tenant().into(), kept.id.clone());
    if let Some(keeping) = waiting {
        held = held.outliving(keeping.leaving());
    }
    if let Some(answered) = answer_of_reply(context, &registry, &kept).await {
        kept = answered;
    }
    let waited = match &kept.state {
        ApprovalState::Pending => {
            // It was asked before, by a call like this one.
            if let Some(keeping) = waiting.filter(|_| kept.id != wanted_id) {
                Box::pin(keeping.waits(&kept.id, kept.expires_at)).await;
            }
            context.announce_question(&kept, common.clock.now(), waits);
            // The tool's time stands, and others may run in its place.
            let _paused = call.pause();
            let lent = guards.lend_permit(call);
            let waited = guards.wait(context, common.clock.as_ref(), &mut kept, wait).await;
            match waited? {
                Waited::Cancelled => Waited::Cancelled,
                waited => {
                    lent.finish().await;
                    waited
                }
            }
        }
        _ => Waited::Closed(kept.state.clone()),
    };
    if matches!(waited, Waited::Cancelled) {
        asked.note("withdrawn", None, None);
        if let Some(keeping) = keeping {
            Box::pin(keeping.forget()).await;
        }
        // The call ends here, and not somewhere in what the tool does then.
        tokio::task::yield_now().await;
        return Err(AskError::Cancelled);
    }
    awaited.end();
    if let Some(keeping) = keeping {
        match &waited {
            Waited::Closed(ApprovalState::Answered { .. } | ApprovalState::Declined { .. }) => {
                let goes_on = Box::pin(keeping.answered(&kept)).await;
                if !matches!(goes_on, Ok(true)) {
                    held.release();
                    asked.note("withdrawn", None, None);
                    return Err(goes_on.err().map_or(AskError::Elsewhere, AskError::Store));
                }
            }
            _ => Box::pin(keeping.forget()).await,
        }
    }
    match waited {
        Waited::Closed(state @ (ApprovalState::Answered { .. } | ApprovalState::Declined { .. })) => {
            asked.ended(state, held)
        }
        Waited::Closed(_) | Waited::Gone => {
            held.release();
            asked.note("withdrawn", None, None);
            Err(AskError::Cancelled)
        }
        Waited::Cancelled => Err(AskError::Cancelled),
        Waited::Expired => {
            asked.note("expired", None, None);
            Err(AskError::Expired { seconds: guards.approval_timeout.as_secs() })
        }
        Waited::Enough if call.is_repeatable() => {
            held.release();
            asked.note("pending", None, None);
            Err(AskError::Pending { id: kept.id, question: question.text() })
        }
        Waited::Enough => {
            asked.note("expired", None, None);
            Err(AskError::Nobody(too_late(call)))
        }
    }
}

fn nobody(call: &RunningCall) -> String {
    format!(
        "{} has to ask the user something, and nobody can be asked here: call it in a chat, at a terminal, from an MCP client that shows forms, \
         or over HTTP with `approval_wait_seconds`",
        call.tool
    )
}

/// The answer would come after the request, to a call that cannot be run again.
fn too_late(call: &RunningCall) -> String {
    format!(
        "{} has to ask the user something, and there was no answer while the call ran. It is not run again for a later answer: only a tool \
         that reads, is `idempotent` or `resumable` is. Call it in a chat, at a terminal, or over HTTP with `approval_wait_seconds`",
        call.tool
    )
}

/// What is noted of a question.
struct Asking<'a> {
    call: &'a RunningCall,
    question: &'a Question,
    keeps_answers: bool,
}

impl Asking<'_> {
    /// The question has its answer, which is there until the call is over, also for a later try of the call.
    fn ended(&self, state: ApprovalState, held: Held) -> Result<Value, AskError> {
        match state {
            ApprovalState::Answered { by, content } => {
                self.note("answered", Some(by), Some(&content));
                self.call.asking.keep(held);
                fit(&self.question.schema, content).map(Value::Object).map_err(AskError::Unreadable)
            }
            ApprovalState::Declined { by, reason } => {
                self.note("declined", Some(by), None);
                self.call.asking.keep(held);
                Err(AskError::Declined { reason })
            }
            _ => Err(AskError::Cancelled),
        }
    }

    fn note(&self, outcome: &'static str, by: Option<String>, answer: Option<&Value>) {
        let answer = answer.and_then(Value::as_object).filter(|_| self.keeps_answers);
        let answer = answer.map(|answer| without_secrets(&self.question.schema, answer));
        self.call.asking.note(Asked { question: self.question.message.clone(), outcome, by, answer });
    }
}

/// Where a call comes from, for answers that it comes back for.
pub(crate) fn scope_of(context: &ToolContext) -> String {
    let chat = context.conversation().chat_id.as_deref().unwrap_or_default();
    let via = context.caller().via.as_deref().unwrap_or_default();
    let scope = context.approval_scope().map(str::to_owned);
    scope.unwrap_or_else(|| json!(["question", via, chat]).to_string())
}

/// The question as it is kept.
fn new_question(
    context: &ToolContext,
    call: &RunningCall,
    common: &Common,
    question: &Question,
    number: u32,
    comes_back: bool,
) -> Result<Approval, AskError> {
    let requested_at = common.clock.now();
    let timeout = SignedDuration::try_from(common.guards.approval_timeout).unwrap_or(SignedDuration::MAX);
    let (scope, arguments) = match comes_back {
        // Found again by the same call, whoever makes it for the user, and in the same chat.
        true => (scope_of(context), call.asking.arguments()),
        false => (call.asking.own_scope().map_err(StoreError::unavailable)?, String::new()),
    };
    Ok(Approval {
        call: None,
        reason: None,
        remember: Vec::new(),
        tool_sha256: String::new(),
        via: None,
        id: random_id().map_err(StoreError::unavailable)?,
        tenant: context.tenant().to_owned(),
        user: context.caller().user.clone(),
        tool: call.tool.to_string(),
        version: None,
        arguments_sha256: hash_arguments(&json!([arguments, number, question.message, question.schema])),
        arguments: Value::Null,
        question: Some(question.clone()),
        scope,
        requested_at,
        expires_at: requested_at.checked_add(timeout).unwrap_or(jiff::Timestamp::MAX),
        state: ApprovalState::Pending,
    })
}

/// Answers a question of an earlier request with what the person has written since.
async fn answer_of_reply(context: &ToolContext, registry: &Registry, kept: &Approval) -> Option<Approval> {
    let (text, at) = context.reply()?;
    if kept.state != ApprovalState::Pending || kept.requested_at >= at {
        return None;
    }
    let question = kept.question.as_ref().filter(|question| !question.has_secret())?;
    let content = Some(question.read(text)?);
    let by = context.caller().user.clone();
    let answer = ApprovalAnswer { approve: true, by, reason: None, content, arguments: None };
    registry.close(&kept.id, answer).await.ok()
}
