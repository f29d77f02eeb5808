//! A language model that tools ask, as a resource.

use std::sync::Arc;

use crate::{future::BoxFuture, result::ToolError};

/// The model that a host provides to its tools. What can be done with it is in [`LanguageModel`].
#[derive(Clone, derive_more::Debug, derive_more::Deref)]
#[debug("Model")]
#[deref(forward)]
pub struct Model(Arc<dyn LanguageModel>);

impl Model {
    /// A model.
    pub fn new(model: impl LanguageModel) -> Self {
        Self(Arc::new(model))
    }
}

/// Answers questions in words, without tools.
pub trait LanguageModel: Send + Sync + 'static {
    /// Asks for an answer. Whoever drops the future wants it no more.
    ///
    /// Fails when the model cannot be asked or breaks off, and as [`InvalidArguments`](crate::ErrorKind::InvalidArguments) when it refuses
    /// the question, which then is mostly too long for it.
    fn answer(&self, question: ModelQuestion) -> BoxFuture<'_, Result<ModelAnswer, ToolError>>;

    /// The name of the model that answers, for what is kept of its answers.
    ///
    /// Fails when there is no model, or when it cannot be asked for its name.
    fn name(&self) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async { Ok("unnamed".to_owned()) })
    }

    /// How to get a model, where it is known that there is none. A host that finds out only as it runs provides its model to
    /// [requests](crate::Resources::insert_by_request) for which this is `None`.
    fn missing(&self) -> Option<String> {
        None
    }
}

/// A question to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQuestion {
    /// How it is to be answered.
    pub system: String,
    /// The question.
    pub prompt: String,
    /// The answer has no more tokens, thinking included.
    pub max_tokens: u32,
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    /// What it says, without its thinking.
    pub text: String,
    /// The tokens of question and answer; guessed where the model does not say.
    pub tokens: u64,
    /// Whether it was cut off, because there was no room for more.
    pub truncated: bool,
}
