//! A tool asks the person in the middle of its call, and goes on with the answer.
//!
//! A question is an [approval](crate::guard::approval) that has a [`Question`]: it is kept, shown, expires and is withdrawn as one.

mod flow;
mod form;
pub(crate) mod keeping;
pub(crate) mod kept;
mod resume;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    context::ToolContext,
    flow::Reads,
    guard::approval::Question,
    result::{ErrorKind, ToolError},
    schema::of_arguments,
};
pub use flow::Asked;
pub(crate) use flow::scope_of;
pub(crate) use form::fit;
pub use resume::{QuestionCall, QuestionCallState};

/// Questions of one call.
pub(crate) const MAX_QUESTIONS: u32 = 8;
/// The longest question, in bytes.
const MAX_MESSAGE: usize = 2000;
/// Choices of one question.
const MAX_CHOICES: usize = 32;
/// The longest form of an answer as JSON, in bytes.
const MAX_SCHEMA: usize = 16 << 10;

/// What a person has written for a tool comes from here. It is for that tool, and for nobody else.
const ANSWER: &str = "an answer to a question";

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The person does not want to answer.
    #[error("the person has declined to answer{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Declined {
        /// Why, where it was said.
        reason: Option<String>,
    },
    /// Nobody has answered in time.
    #[error("nobody has answered within {seconds} s")]
    Expired {
        /// How long there was.
        seconds: u64,
    },
    /// Nobody can be asked where the call comes from; the text says where to call the tool instead.
    #[error("{0}")]
    Nobody(String),
    /// The person answers later, and the call has to be made again then. Give this error back, as `?` does: the answer is found by the
    /// same call.
    #[error("the person has to answer first: {question}")]
    Pending {
        /// Names the question.
        id: String,
        /// The question in words.
        question: String,
    },
    /// The question cannot be asked: too long, too many of one call, a form that is not flat.
    #[error("the question cannot be asked: {0}")]
    Invalid(String),
    /// The answer fits the form's schema, and is still not what the type takes.
    #[error("the answer cannot be used: {0}")]
    Unreadable(String),
    /// Another server has gone on with the call meanwhile.
    #[error("another server has gone on with this call")]
    Elsewhere,
    /// The call was stopped meanwhile.
    #[error("the call was cancelled")]
    Cancelled,
    /// The question could not be kept.
    #[error("the person could not be asked")]
    Store(#[from] crate::store::StoreError),
}

impl AskError {
    /// The same as a tool's error, with what the model has to do.
    pub(crate) fn to_tool_error(&self) -> ToolError {
        let message = self.to_string();
        match self {
            Self::Pending { id, question } => {
                let feedback = format!(
                    "The user has to answer this first: {question} — Put this question to the user and end your answer with it. When the user \
                     has answered, make the same call again with the same arguments."
                );
                ToolError::new(ErrorKind::AnswerPending, message).with_feedback(feedback).with_question(id)
            }
            Self::Nobody(_) => ToolError::new(ErrorKind::Unavailable, message),
            Self::Cancelled => ToolError::cancelled(),
            Self::Store(cause) => ToolError::store_failed(cause, message),
            Self::Declined { .. } | Self::Expired { .. } => ToolError::failed(message.clone()).with_feedback(
                format!("{message}. Do not make this call again unless the user asks for it."),
            ),
            _ => ToolError::failed(message),
        }
    }
}

impl ToolContext {
    /// Asks the person which of these it is, and waits for the answer. The tool's `timeout` does not run meanwhile.
    ///
    /// A question can be answered for as long as an approval, 300 s by default. Where the person comes back with the answer in a later
    /// request, the tool is run again from its start then, and finds the answer here; so a tool asks before it changes anything.
    ///
    /// # Errors
    /// When the person declines or does not answer in time, and where nobody can be asked.
    ///
    /// ```
    /// use registry_core::{prelude::*, testing::TestHost};
    ///
    /// /// Show the balance of one of the user's accounts.
    /// #[tool(permission = Permission::User)]
    /// async fn balance(ctx: &ToolContext) -> Result<String, ToolError> {
    ///     let account = ctx.ask("Which account?", ["Savings", "Joint"]).await?;
    ///     Ok(format!("{account}: 40 EUR"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let host = TestHost::new().answering([json!("Joint")]).build();
    /// assert_eq!(host.call("balance", json!({})).await.for_model(), "Joint: 40 EUR");
    /// # }
    /// ```
    pub async fn ask<C: Into<String>>(
        &self,
        question: impl Into<String>,
        choices: impl IntoIterator<Item = C>,
    ) -> Result<String, AskError> {
        let choices: Vec<String> = choices.into_iter().map(Into::into).take(MAX_CHOICES + 1).collect();
        if choices.is_empty() || choices.len() > MAX_CHOICES {
            return Err(AskError::Invalid(format!("a question has 1 to {MAX_CHOICES} choices")));
        }
        self.ask_one(question.into(), form::of_choices(&choices)).await
    }

    /// Asks the person for a text; see [`ask`](Self::ask).
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn ask_text(&self, question: impl Into<String>) -> Result<String, AskError> {
        let answer = self.ask_one(question.into(), form::of_choices(&[])).await?;
        self.has_read(Reads::PRIVATE, ANSWER);
        Ok(answer)
    }

    /// Asks the person to fill in a form: a struct with [`#[args]`](macro@crate::args) whose fields are texts, numbers, booleans, enums without
    /// data, or options of these. The docs of its fields are shown. A field with `#[arg(secret)]` is kept out of the audit.
    ///
    /// # Errors
    /// As [`ask`](Self::ask), and when the struct is no such form.
    pub async fn ask_for<Form: DeserializeOwned + JsonSchema>(
        &self,
        question: impl Into<String>,
    ) -> Result<Form, AskError> {
        let schema = form::of_schema(of_arguments::<Form>()).map_err(AskError::Invalid)?;
        let answer = self.asked(question.into(), schema).await?;
        self.has_read(Reads::PRIVATE, ANSWER);
        serde_json::from_value(answer).map_err(|cause| AskError::Unreadable(cause.to_string()))
    }

    async fn ask_one(&self, message: String, schema: Value) -> Result<String, AskError> {
        match self.asked(message, schema).await?.get_mut(form::FIELD).map(Value::take) {
            Some(Value::String(answer)) => Ok(answer),
            other => Err(AskError::Unreadable(format!("{other:?} is no text"))),
        }
    }

    async fn asked(&self, message: String, schema: Value) -> Result<Value, AskError> {
        if message.trim().is_empty() || message.len() > MAX_MESSAGE {
            return Err(AskError::Invalid(format!("a question has 1 to {MAX_MESSAGE} bytes")));
        }
        if schema.to_string().len() > MAX_SCHEMA {
            return Err(AskError::Invalid(format!(
                "its choices or fields are over {} KiB",
                MAX_SCHEMA >> 10
            )));
        }
        Box::pin(flow::ask(self, Question { message, schema })).await
    }
}
