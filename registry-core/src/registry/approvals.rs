//! The calls that wait for a person, to allow them or to answer them.

use serde_json::Value;

use super::{Common, Registry};
use crate::{
    ask::fit,
    execute::fit_arguments,
    guard::{
        approval::{AnswerError, Approval, ApprovalAnswer},
        person::MAX_SHOWN,
    },
    json::is_within,
    schema::ArgumentChecker,
    store::StoreError,
    text::cut,
};

/// Why a question could not be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// The answer does not fit the question's form; the question stays open.
    #[error("{0}")]
    Invalid(String),
    /// It is not there or not open any more, or the store failed.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// How much is kept of why a person says no, in bytes.
const MAX_REASON: usize = 4096;
/// How long the answer to a question may be, in bytes of JSON.
const MAX_ANSWER: usize = 64 << 10;

impl Registry {
    /// The approvals that wait for an answer, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn pending_approvals(&self) -> Result<Vec<Approval>, StoreError> {
        self.pending(None, |kept| kept.question.is_none()).await
    }

    /// Those of one user.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn pending_approvals_of(&self, user: &str) -> Result<Vec<Approval>, StoreError> {
        self.pending(Some(user), |kept| kept.question.is_none()).await
    }

    /// The questions of tools that wait for an answer, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn pending_questions(&self) -> Result<Vec<Approval>, StoreError> {
        self.pending(None, |kept| kept.question.is_some()).await
    }

    /// Those of one user.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn pending_questions_of(&self, user: &str) -> Result<Vec<Approval>, StoreError> {
        self.pending(Some(user), |kept| kept.question.is_some()).await
    }

    async fn pending(
        &self,
        user: Option<&str>,
        wanted: impl Fn(&Approval) -> bool + Send,
    ) -> Result<Vec<Approval>, StoreError> {
        let Common { guards, clock, .. } = self.shared.common.as_ref();
        let mut pending = guards.approvals.pending(&self.shared.tenant, user, clock.now()).await?;
        pending.retain(wanted);
        Ok(pending)
    }

    /// The approval of that id, whatever has become of it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn approval(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        Ok(self.kept(id).await?.filter(|kept| kept.question.is_none()))
    }

    /// The question of that id, whatever has become of it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn question(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        Ok(self.kept(id).await?.filter(|kept| kept.question.is_some()))
    }

    async fn kept(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        self.shared.common.guards.approvals.get(&self.shared.tenant, id).await
    }

    /// Answers an approval. The call that waits for it goes on at once. Who may answer is up to the entry point.
    ///
    /// # Errors
    /// When the call cannot be made with the arguments of the answer, which leaves the approval open; when there is none, it is not
    /// open any more, or the store fails.
    pub async fn answer_approval(&self, id: &str, answer: ApprovalAnswer) -> Result<Approval, AnswerError> {
        let kept = self.approval(id).await?.ok_or(AnswerError::Unknown)?;
        let arguments = match answer.arguments {
            Some(_) if !answer.approve => {
                return Err(AnswerError::Invalid(
                    "a call that is refused is made with no arguments".to_owned(),
                ));
            }
            Some(arguments) => self.changed(&kept, arguments).await?,
            None => None,
        };
        self.close(id, ApprovalAnswer { content: None, arguments, ..answer }).await
    }

    /// What a call is made with instead, after coercion; `None` where that is what it was to be made with. What the person was not
    /// shown whole cannot be changed.
    async fn changed(&self, kept: &Approval, arguments: Value) -> Result<Option<Value>, AnswerError> {
        let tool = self.get(&kept.tool).filter(|tool| tool.spec().version == kept.version);
        let tool = tool.ok_or_else(|| {
            let fault = format!("the tool {} is not there any more, or has another version", kept.tool);
            AnswerError::Invalid(fault)
        })?;
        if tool.checker().is_ok_and(ArgumentChecker::has_secret) {
            let fault = "some arguments of this call are secret and not shown, so that it can only be allowed or refused as it is";
            return Err(AnswerError::Invalid(fault.to_owned()));
        }
        let fitted = fit_arguments((self.tenant(), &kept.user), &tool, &kept.tool, arguments).await;
        let fitted =
            Value::Object(fitted.map_err(|fault| AnswerError::Invalid(fault.error.message().to_owned()))?);
        if !is_within(&fitted, MAX_SHOWN) {
            let fault = format!("the arguments have more than the {MAX_SHOWN} bytes that are taken");
            return Err(AnswerError::Invalid(fault));
        }
        Ok((fitted != kept.arguments).then_some(fitted))
    }

    /// Answers a question of a tool with an object that fits its form, after coercion. The call that waits goes on at once. Who may answer is
    /// up to the entry point: it is the question's own user.
    ///
    /// # Errors
    /// When the answer does not fit, which leaves the question open; when there is none, it is not open any more, or the store fails.
    pub async fn answer_question(
        &self,
        id: &str,
        by: &str,
        content: Value,
    ) -> Result<Approval, QuestionError> {
        let kept = self.question(id).await.map_err(AnswerError::from)?;
        let question = kept.and_then(|kept| kept.question).ok_or(AnswerError::Unknown)?;
        let content = fit(&question.schema, content).map_err(QuestionError::Invalid)?;
        let content = Value::Object(content);
        if !is_within(&content, MAX_ANSWER) {
            let fault = format!("the answer has more than the {MAX_ANSWER} bytes that are taken");
            return Err(QuestionError::Invalid(fault));
        }
        let content = Some(content);
        let answer =
            ApprovalAnswer { approve: true, by: by.to_owned(), reason: None, content, arguments: None };
        Ok(self.close(id, answer).await?)
    }

    /// Declines a question of a tool, which may say why. The call that waits goes on at once with that.
    ///
    /// # Errors
    /// When there is none, it is not open any more, or the store fails.
    pub async fn decline_question(
        &self,
        id: &str,
        by: &str,
        reason: Option<String>,
    ) -> Result<Approval, AnswerError> {
        self.question(id).await?.ok_or(AnswerError::Unknown)?;
        let content = Some(Value::Null);
        let answer = ApprovalAnswer { approve: false, by: by.to_owned(), reason, content, arguments: None };
        self.close(id, answer).await
    }

    /// Forgets what a user who is removed was asked about. Calls that wait for it find it withdrawn.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn forget_asked(&self, user: &str) -> Result<usize, StoreError> {
        let guards = &self.shared.common.guards;
        let forgotten = guards.approvals.forget_user(&self.shared.tenant, user).await;
        guards.answered.notify_waiters();
        forgotten
    }

    pub(crate) async fn close(&self, id: &str, answer: ApprovalAnswer) -> Result<Approval, AnswerError> {
        let Common { guards, clock, .. } = self.shared.common.as_ref();
        let answer = ApprovalAnswer { reason: answer.reason.map(|reason| cut(reason, MAX_REASON)), ..answer };
        let answered = guards.approvals.answer(&self.shared.tenant, id, answer, clock.now()).await;
        guards.answered.notify_waiters();
        answered
    }
}
