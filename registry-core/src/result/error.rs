//! Why a call failed.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use serde::Serialize;
use strum::IntoStaticStr;

use crate::{
    policy::{Effect, ToolPolicy},
    store::{StoreError, StoreErrorKind},
};

/// What kind of failure a [`ToolError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// No tool has that name.
    ToolNotFound,
    /// The tool is switched off, or what it needs is not there.
    Unavailable,
    /// The caller may not call it.
    PermissionDenied,
    /// The arguments do not fit its schema.
    InvalidArguments,
    /// It took longer than it may.
    Timeout,
    /// The caller went away or the server is stopping.
    Cancelled,
    /// Its code panicked.
    Panicked,
    /// Its code gave an error.
    Failed,
    /// The user has called it too often; [`ToolError::retry_at`] says when it is free again.
    ToolRateLimited,
    /// As many calls run and wait as may.
    Busy,
    /// A person has to approve the call and has not yet; [`ToolError::approval`] names the approval.
    ApprovalPending,
    /// The person has to answer a question first; [`ToolError::question`] names it. The same call finds the answer.
    AnswerPending,
    /// The user has to let this server into an account elsewhere first; [`ToolError::authorize_at`] says where.
    AuthorizationRequired,
    /// The entry point it came through turned it down, as for a limit of its own.
    Refused,
    /// The call could not be written to the audit: before it, so it was not made, or after it, so its result is withheld.
    NotAudited,
}

impl ErrorKind {
    /// The word for it, as it is written everywhere.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a call failed: `message` is for whoever calls, `feedback` for the model, and `detail` for the operator alone.
///
/// Whatever implements [`std::error::Error`] converts into it, so `?` works in a tool; for others there is [`of`](Self::of). It is no `Error` itself for that
/// reason, but converts into `Box<dyn Error + Send + Sync>`.
#[derive(Clone, PartialEq, derive_more::Debug)]
#[debug("{:?}: {}", _0.kind, _0.message)]
pub struct ToolError(Box<Repr>);

#[derive(Clone, PartialEq)]
struct Repr {
    kind: ErrorKind,
    message: String,
    detail: Option<String>,
    feedback: Option<String>,
    retryable: bool,
    nearest: Vec<String>,
    retry_at: Option<Timestamp>,
    approval: Option<String>,
    question: Option<String>,
    authorize_at: Option<String>,
    was_asking: bool,
}

impl ToolError {
    /// An error of a kind. The model gets the same text until [`with_feedback`](Self::with_feedback) says otherwise.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Repr {
            kind,
            message: message.into(),
            detail: None,
            feedback: None,
            retryable: false,
            nearest: Vec::new(),
            retry_at: None,
            approval: None,
            question: None,
            authorize_at: None,
            was_asking: false,
        }))
    }

    /// The tool's own work failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// An argument fits the schema and is still wrong; the message says which and what is expected.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArguments, message)
    }

    /// It took longer than it may.
    pub fn timed_out(limit: Duration) -> Self {
        Self::new(ErrorKind::Timeout, format!("Tool execution timed out ({}s).", limit.as_secs_f64()))
            .retryable()
    }

    /// A store that the call needs has failed. The message is for the caller; the store's own text belongs in the operator's log.
    ///
    /// Only where the store is at fault is this [`Unavailable`](ErrorKind::Unavailable), and only where that may pass is it retryable.
    pub fn store_failed(error: &StoreError, message: impl Into<String>) -> Self {
        let kind = match error.kind() {
            StoreErrorKind::Invalid => ErrorKind::InvalidArguments,
            _ => ErrorKind::Unavailable,
        };
        let failed = Self::new(kind, message).with_detail(error.to_string());
        if error.is_transient() { failed.retryable() } else { failed }
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the call was cancelled")
    }

    /// The same while the person was asked something.
    pub(crate) fn cancelled_asking(question: &str, policy: &ToolPolicy) -> Self {
        let message = format!("the call was stopped while it waited for the user's answer to: {question}");
        let before = match policy {
            ToolPolicy { effect: Effect::Read, .. } => "",
            ToolPolicy { resumable: true, .. } => " It has changed nothing.",
            _ => " It has done nothing after that question.",
        };
        let feedback =
            format!("{message} —{before} Made again, it asks again; do so only if the user still wants it.");
        let mut error = Self::new(ErrorKind::Cancelled, message).with_feedback(feedback);
        error.0.was_asking = true;
        error
    }

    /// Something it needs is not there now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message).retryable()
    }

    /// Says that the same call may succeed when it is made again.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.0.retryable = true;
        self
    }

    /// What the operator's audit has in place of the message: what callers should not know, such as a private address.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// The text for the model in place of the message: what to do.
    #[must_use]
    pub fn with_feedback(mut self, feedback: impl Into<String>) -> Self {
        self.0.feedback = Some(feedback.into());
        self
    }

    /// Names that may have been meant.
    #[must_use]
    pub fn with_nearest(mut self, nearest: Vec<String>) -> Self {
        self.0.nearest = nearest;
        self
    }

    /// Says when the same call may be made again.
    #[must_use]
    pub fn with_retry_at(mut self, retry_at: Timestamp) -> Self {
        self.0.retry_at = Some(retry_at);
        self
    }

    /// Names the approval that the call waits for.
    #[must_use]
    pub(crate) fn with_approval(mut self, id: impl Into<String>) -> Self {
        self.0.approval = Some(id.into());
        self
    }

    /// Names the question that the call waits for the answer to.
    #[must_use]
    pub(crate) fn with_question(mut self, id: impl Into<String>) -> Self {
        self.0.question = Some(id.into());
        self
    }

    /// Names the page on which the user lets this server in.
    #[must_use]
    pub fn with_authorize_at(mut self, url: impl Into<String>) -> Self {
        self.0.authorize_at = Some(url.into());
        self
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What happened, for whoever calls.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What happened, for the operator alone.
    pub fn detail(&self) -> &str {
        self.0.detail.as_deref().unwrap_or(&self.0.message)
    }

    /// What to do, for the model.
    pub fn feedback(&self) -> &str {
        self.0.feedback.as_deref().unwrap_or(&self.0.message)
    }

    /// Whether it was stopped while it waited for the answer to a question, and so is known to have done nothing after that.
    pub fn was_asking(&self) -> bool {
        self.0.was_asking
    }

    /// Whether the same call may succeed when it is made again.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// Names of tools that may have been meant.
    pub fn nearest(&self) -> &[String] {
        &self.0.nearest
    }

    /// When the same call may be made again, where that is known (UTC).
    pub fn retry_at(&self) -> Option<Timestamp> {
        self.0.retry_at
    }

    /// The id of the question that the call waits for the answer to.
    pub fn question(&self) -> Option<&str> {
        self.0.question.as_deref()
    }

    /// The page on which the user lets this server in.
    pub fn authorize_at(&self) -> Option<&str> {
        self.0.authorize_at.as_deref()
    }

    /// The id of the approval that the call waits for.
    pub fn approval(&self) -> Option<&str> {
        self.0.approval.as_deref()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}
