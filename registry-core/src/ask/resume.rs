//! Makes a call anew that was kept while it waited for an answer, once it has that.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    keeping::{Keeping, Means},
    kept::{KeptState, Spot},
};
use crate::{
    context::{Conversation, Origin, ToolCall, ToolContext},
    flow::TurnFlow,
    guard::approval::{Approval, ApprovalState},
    outcome::ToolOutcome,
    registry::Registry,
    store::{StateError, StoreError},
};

/// How long the process that has asked has to go on with the answer before another one does.
const GRACE: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(300);

/// How a call that has asked is doing after its process has ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QuestionCall {
    /// How far it is.
    pub state: QuestionCallState,
    /// What it came to, for the model: `success`, `result` and `error`.
    pub result: Option<Value>,
}

/// How far such a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionCallState {
    /// It waits for the answer.
    Waiting,
    /// It goes on with the answer.
    Running,
    /// It went on, and was interrupted: whether it took effect is not known.
    Interrupted,
    /// It is done, and a later call like it gets the result.
    Done,
}

impl Registry {
    /// Leaves calls that wait for an answer, and can be made anew, to another process. A host that ends says so before it stops its calls.
    pub fn leave_questions(&self) {
        self.shared.common.guards.leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn means(&self, timeout: Duration) -> Means {
        let common = &self.shared.common;
        Means {
            clock: Arc::clone(&common.clock),
            background: common.guards.background.clone(),
            leaving: Arc::clone(&common.guards.leaving),
            timeout,
        }
    }

    /// How the call is doing that has asked this question; `None` where it is not kept, or is over.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn call_of_question(&self, question: &Approval) -> Result<Option<QuestionCall>, StoreError> {
        let Some(spot) = self.spot_of(question) else { return Ok(None) };
        let Some((kept, _)) = spot.look().await? else { return Ok(None) };
        let is_over = kept.is_over(self.shared.common.clock.now());
        let (state, result) = match kept.state {
            KeptState::Waiting(id) if id == question.id && !is_over => (QuestionCallState::Waiting, None),
            KeptState::Running if is_over => (QuestionCallState::Interrupted, None),
            KeptState::Running => (QuestionCallState::Running, None),
            KeptState::Done(done) if !is_over => {
                let shown = match done.into_result() {
                    Ok(done) => {
                        json!({"success": done.success, "result": done.value, "message": done.message})
                    }
                    Err(error) => json!({"success": false, "error": error.message()}),
                };
                (QuestionCallState::Done, Some(shown))
            }
            _ => return Ok(None),
        };
        Ok(Some(QuestionCall { state, result }))
    }

    fn spot_of(&self, question: &Approval) -> Option<Spot> {
        let owner = (&*self.shared.tenant, question.user.as_str());
        Some(Spot::at(self.state_store(), owner, question.call.clone()?))
    }

    /// Makes the call anew that has asked this question, where the question has its answer and the process that has asked does not go
    /// on; one alone does, however many ask for it. The answers before are given again. `context` is that of the question's user as of
    /// now: the call may do what that and the call before may do. Its result is kept for the same call, for an hour.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn resume_answered(
        &self,
        context: ToolContext,
        question: &Approval,
    ) -> Result<Option<ToolOutcome>, StateError> {
        let (Some(spot), true) = (self.spot_of(question), is_answered(question)) else { return Ok(None) };
        if context.caller().user != question.user {
            return Ok(None);
        }
        let (clock, guards) = (&self.shared.common.clock, &self.shared.common.guards);
        let asked = |state: &KeptState| matches!(state, KeptState::Waiting(id) if *id == question.id);
        let Some((kept, text)) =
            spot.look().await?.filter(|(kept, _)| asked(&kept.state) && !kept.is_of(&guards.process))
        else {
            return Ok(None);
        };
        let began = Instant::now();
        while began.elapsed() < GRACE {
            tokio::time::sleep(LOOK).await;
            if spot.look().await?.is_none_or(|(_, now)| now != text) {
                return Ok(None);
            }
        }
        let timeout = self.get(&kept.tool).map_or(GRACE, |tool| tool.policy().timeout);
        let mut taken = kept.taken(&guards.process, clock.now(), timeout);
        taken.answer(question);
        let Some(text) = spot.put(Some(&taken), Some(&text)).await? else { return Ok(None) };
        let call = ToolCall::new(&taken.tool, taken.arguments.clone().into()).with_origin(Origin::Http);
        let mut context = context
            .with_flow(TurnFlow::after(taken.flow.clone()))
            .with_approval_scope(taken.scope.as_str())
            .with_conversation(Conversation { chat_id: taken.chat_id.clone(), ..Conversation::default() })
            .with_questions()
            .with_question_wait(guards.approval_timeout);
        context.narrow_caller(&taken.caller);
        let keeping = Arc::new(Keeping::new(spot, self.means(timeout), taken, Some(text), true));
        let outcome = self.execute(&context.with_resumed(Arc::clone(&keeping)), call).await;
        if !guards.leaving.load(Ordering::Relaxed) || outcome.is_success() {
            keeping.done(&outcome).await;
        }
        Ok(Some(outcome))
    }
}

fn is_answered(question: &Approval) -> bool {
    matches!(question.state, ApprovalState::Answered { .. } | ApprovalState::Declined { .. })
}
