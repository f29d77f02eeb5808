//! What a call comes to: a [`ToolResult`] or a [`ToolError`].

use std::{borrow::Cow, error::Error, fmt, time::Duration};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use strum::IntoStaticStr;

use crate::{
    ask::AskError,
    content::Content,
    policy::{Effect, ToolPolicy},
    store::{StoreError, StoreErrorKind},
};

/// What a tool gives back when it has more to say than a value: a word to the user, what it changed, notes for the audit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// Whether the tool did what it was asked.
    pub success: bool,
    /// What it found, for the model: a string is given as it is, anything else as JSON.
    pub value: Value,
    /// Its parts beside the value: pictures, sound, files, tables. A chat shows them to the person, and pictures to a model that can see;
    /// what a model does not get is described to it.
    pub content: Vec<Content>,
    /// Whether it goes to the person as it is and ends the turn: the model is not asked again.
    pub ends_turn: bool,
    /// A word to the user beside the answer.
    pub message: Option<String>,
    /// What was changed, such as `created:inbox/note.md`.
    pub side_effects: Vec<String>,
    /// Notes for the audit record. The registry adds its own (tool, time, duration).
    pub audit: Map<String, Value>,
}

impl ToolResult {
    /// Success with a value.
    pub fn new(value: impl Into<Value>) -> Self {
        Self { success: true, value: value.into(), ..Self::default() }
    }

    /// The tool ran and could not do it, which is no error: `message` says why.
    pub fn unsuccessful(message: impl Into<String>) -> Self {
        Self { success: false, message: Some(message.into()), ..Self::new(Value::Null) }
    }

    /// Adds a word to the user.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Success with parts alone.
    ///
    /// ```
    /// use registry_core::{Content, File, Markdown, ToolResult};
    ///
    /// let result = ToolResult::parts([
    ///     Content::from(Markdown::new("The **report**:")),
    ///     File::new("report.csv", "city,degrees\nOslo,3.5\n").into(),
    /// ]);
    /// assert_eq!(result.content.len(), 2);
    /// ```
    pub fn parts<P: Into<Content>>(parts: impl IntoIterator<Item = P>) -> Self {
        Self { content: parts.into_iter().map(Into::into).collect(), ..Self::new(Value::Null) }
    }

    /// Adds a part.
    #[must_use]
    pub fn with_content(mut self, part: impl Into<Content>) -> Self {
        self.content.push(part.into());
        self
    }

    /// Gives the result to the person as it is, and ends the turn without asking the model again.
    #[must_use]
    pub fn ends_turn(mut self) -> Self {
        self.ends_turn = true;
        self
    }

    /// Adds something that was changed.
    #[must_use]
    pub fn with_side_effect(mut self, side_effect: impl Into<String>) -> Self {
        self.side_effects.push(side_effect.into());
        self
    }

    /// Adds a note for the audit record.
    #[must_use]
    pub fn with_audit(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.audit.insert(key.into(), value.into());
        self
    }

    /// The value as an object, which a sole table is too.
    pub fn structured(&self) -> Option<Value> {
        match (&self.value, self.content.as_slice()) {
            (Value::Object(_), _) => Some(self.value.clone()),
            (Value::Null, [Content::Table(table)]) => serde_json::to_value(table).ok(),
            _ => None,
        }
    }

    /// The text of its value for the model, without its parts.
    pub fn value_for_model(&self) -> Cow<'_, str> {
        match (&self.value, &self.message) {
            (Value::Null, Some(message)) => Cow::Borrowed(message.as_str()),
            (Value::Null, None) if !self.content.is_empty() => Cow::Borrowed(""),
            (Value::String(text), _) => Cow::Borrowed(text.as_str()),
            (value, _) => Cow::Owned(value.to_string()),
        }
    }

    /// The text for a model that takes only text: the value, and what is shown beside as text or described.
    pub fn for_model(&self) -> Cow<'_, str> {
        let value = self.value_for_model();
        if self.content.is_empty() {
            return value;
        }
        let value = Some(value.into_owned()).filter(|text| !text.is_empty());
        let shown = self.content.iter().map(Content::for_model);
        Cow::Owned(value.into_iter().chain(shown).collect::<Vec<_>>().join("\n"))
    }
}

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
/// Any error converts into it, so `?` works in a tool. It is no [`std::error::Error`] itself for that reason,
/// but converts into `Box<dyn Error + Send + Sync>`.
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

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        IntoToolError::into_tool_error(error)
    }
}

/// A [`ToolError`] on its way through code that knows standard errors only.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Wrapped(ToolError);

impl From<ToolError> for Box<dyn Error + Send + Sync> {
    fn from(error: ToolError) -> Self {
        Box::new(Wrapped(error))
    }
}

/// What the `E` of a tool's `Result<T, E>` may be: a [`ToolError`], any error, or a text.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "not an error",
    note = "use `ToolError`, a type that implements `std::error::Error`, or a `String`"
)]
pub trait IntoToolError {
    /// The failure as the registry reports it.
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<Box<dyn Error + Send + Sync>>> IntoToolError for E {
    fn into_tool_error(self) -> ToolError {
        let error: Box<dyn Error + Send + Sync> = self.into();
        match error.downcast::<Wrapped>() {
            Ok(wrapped) => wrapped.0,
            Err(error) => {
                if let Some(ask) = error.downcast_ref::<AskError>() {
                    return ask.to_tool_error();
                }
                if let Some(failed) = store_error(error.as_ref()) {
                    return ToolError::store_failed(failed, "a store has failed; the audit says why");
                }
                let (text, KnownError { transient, private }) =
                    (with_causes(error.as_ref()), known(error.as_ref()));
                let error = match private {
                    Some(private) => ToolError::failed(text.replace(&private, "")).with_detail(text),
                    None => ToolError::failed(text),
                };
                if transient { error.retryable() } else { error }
            }
        }
    }
}

/// The failure of a store that an error is or comes from.
fn store_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e StoreError> {
    error.downcast_ref().or_else(|| store_error(error.source()?))
}

/// The error and what caused it, each once.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}

/// What is known of an error of a library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownError {
    /// Whether it passes by itself, so that a tool that fails with it may be tried again.
    pub transient: bool,
    /// The part of its text that callers should not know, such as an address; the operator sees all of it.
    pub private: Option<String>,
}

/// Knows the errors of a library, for tools that fail with one. The crate that knows the library submits it; `None` says that an
/// error is not of that library.
///
/// ```
/// use registry_core::{KnownError, KnownErrors};
///
/// inventory::submit! {
///     KnownErrors(|error| error.downcast_ref::<std::fmt::Error>().map(|_| KnownError::default()))
/// }
/// ```
#[derive(Debug)]
pub struct KnownErrors(pub fn(&(dyn Error + 'static)) -> Option<KnownError>);

inventory::collect!(KnownErrors);

/// What is known of an error or of the first of its causes of which anything is.
fn known(error: &(dyn Error + 'static)) -> KnownError {
    let mut next = Some(error);
    while let Some(error) = next {
        let mut libraries = inventory::iter::<KnownErrors>.into_iter();
        if let Some(known) = libraries.find_map(|KnownErrors(read)| read(error)) {
            return known;
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return KnownError { transient: is_transient(error.kind()), private: None };
        }
        next = error.source();
    }
    KnownError::default()
}

/// Whether it is a connection that broke or took too long.
fn is_transient(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind as Kind;
    let broken = matches!(
        kind,
        Kind::BrokenPipe | Kind::ConnectionAborted | Kind::ConnectionReset | Kind::UnexpectedEof
    );
    broken || matches!(kind, Kind::ConnectionRefused | Kind::Interrupted | Kind::TimedOut)
}
