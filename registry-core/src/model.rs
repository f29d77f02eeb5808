//! A language model that tools ask, as a resource.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    context::{Resource, RunningCall, ToolContext},
    result::ToolError,
    schema::{ArgumentChecker, of_arguments},
    trace::Trace,
};

/// How long an answer may be, in tokens, where nothing is said.
const MAX_TOKENS: u32 = 2048;
/// How often an answer in a form is asked for.
const TRIES: usize = 2;

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

    /// Asks the model a question, and gives its answer in words, of up to 2048 tokens.
    ///
    /// # Errors
    /// When the model cannot be asked, refuses, or says nothing.
    pub async fn ask(&self, prompt: impl Into<String>) -> Result<String, ToolError> {
        let system = "Answer briefly and to the point.".to_owned();
        let question = ModelQuestion { system, prompt: prompt.into(), max_tokens: MAX_TOKENS };
        let ModelAnswer { text, .. } = self.answer(question).await?;
        match text.trim() {
            "" => Err(ToolError::failed("the model gave no answer").retryable()),
            text => Ok(text.to_owned()),
        }
    }

    /// Asks the model for a struct: it is given the struct's schema, its answer is coerced and validated, and where that does not fit it is
    /// asked once more with what was wrong.
    ///
    /// # Errors
    /// As [`ask`](Self::ask), and when the second answer does not fit either.
    pub async fn ask_for<T: DeserializeOwned + JsonSchema>(
        &self,
        prompt: impl Into<String>,
    ) -> Result<T, ToolError> {
        let schema = of_arguments::<T>();
        let checker = ArgumentChecker::new(&schema).map_err(ToolError::failed)?;
        let system = format!("Answer with one JSON object and nothing else. Its JSON Schema is: {schema}");
        let prompt = prompt.into();
        let (mut asked, mut fault) = (prompt.clone(), String::new());
        for _ in 0..TRIES {
            let question = ModelQuestion { system: system.clone(), prompt: asked, max_tokens: MAX_TOKENS };
            let answer = self.answer(question).await?;
            fault = match object_in(&answer.text) {
                None => "it has no JSON object".to_owned(),
                Some(object) => match checker.fit("answer", &schema, object) {
                    Err(misfit) => misfit.error.message().to_owned(),
                    Ok(object) => match serde_json::from_value(Value::Object(object)) {
                        Ok(answer) => return Ok(answer),
                        Err(fault) => fault.to_string(),
                    },
                },
            };
            asked = format!("{prompt}\n\nYour last answer could not be used: {fault}. Answer again.");
        }
        Err(ToolError::failed(format!("the model's answer cannot be used: {fault}")).retryable())
    }
}

impl Model {
    /// The same model, whose tokens are counted to that call, and which is asked in its trace.
    pub(crate) fn counted(&self, call: Arc<RunningCall>, trace: Option<Trace>) -> Self {
        Self::new(Counted { model: Arc::clone(&self.0), call, trace })
    }
}

struct Counted {
    model: Arc<dyn LanguageModel>,
    call: Arc<RunningCall>,
    trace: Option<Trace>,
}

#[async_trait]
impl LanguageModel for Counted {
    async fn answer(&self, question: ModelQuestion) -> Result<ModelAnswer, ToolError> {
        async {
            let answer = match &self.trace {
                Some(trace) => self.model.answer_within(question, trace.clone()).await?,
                None => self.model.answer(question).await?,
            };
            self.call.count_model(ModelUsage {
                answers: 1,
                input_tokens: answer.input_tokens,
                output_tokens: answer.output_tokens,
            });
            Ok(answer)
        }
        .await
    }

    async fn name(&self) -> Result<String, ToolError> {
        self.model.name().await
    }

    fn missing(&self) -> Option<String> {
        self.model.missing()
    }
}

/// What a call has used of the model, with the calls that its tool has made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelUsage {
    /// How many answers the model has given.
    pub answers: u32,
    /// The tokens of the questions.
    pub input_tokens: u64,
    /// The tokens of the answers, thinking included.
    pub output_tokens: u64,
}

impl ModelUsage {
    /// `None` where the model was not asked.
    pub(crate) fn used(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.answers = self.answers.saturating_add(more.answers);
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
    }
}

/// The object in an answer, which may stand in a fence or among words.
fn object_in(text: &str) -> Option<Value> {
    let (begin, end) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(begin..=end)?).ok()
}

impl ToolContext {
    /// The model behind the host, to be asked a question of the tool's own. A tool that cannot do without has a parameter
    /// `Resource<Model>` instead, and is off where there is none.
    ///
    /// The time is that of the tool. The tokens are counted to the call, and to the turn that has made it.
    ///
    /// # Errors
    /// When there is no model; the error says how to get one.
    ///
    /// ```
    /// use async_trait::async_trait;
    /// use registry_core::{
    ///     model::{LanguageModel, Model, ModelAnswer, ModelQuestion},
    ///     prelude::*,
    ///     testing::TestHost,
    /// };
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Mood {
    ///     /// From 0 (sad) to 10 (happy).
    ///     happiness: u8,
    /// }
    ///
    /// /// Tell how happy a text is.
    /// #[tool]
    /// async fn mood(
    ///     ctx: &ToolContext,
    ///     /// The text.
    ///     text: String,
    /// ) -> Result<u8, ToolError> {
    ///     let mood: Mood = ctx.model()?.ask_for(format!("How happy is this?\n\n{text}")).await?;
    ///     Ok(mood.happiness)
    /// }
    ///
    /// /// A model for the test.
    /// struct Cheerful;
    ///
    /// #[async_trait]
    /// impl LanguageModel for Cheerful {
    ///     async fn answer(&self, _: ModelQuestion) -> Result<ModelAnswer, ToolError> {
    ///         let text = r#"Sure: {"happiness": "9"}"#.to_owned();
    ///         Ok(ModelAnswer { text, input_tokens: 10, output_tokens: 2, truncated: false })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let host = TestHost::new().resource(Model::new(Cheerful)).build();
    /// assert_eq!(host.call("mood", json!({"text": "What a day!"})).await.for_model(), "9");
    /// let without = TestHost::new().build().call("mood", json!({"text": ""})).await;
    /// assert!(without.result.unwrap_err().message().contains("needs Model"));
    /// # }
    /// ```
    pub fn model(&self) -> Result<Resource<Model>, ToolError> {
        self.require().map_err(|missing| {
            ToolError::unavailable(missing)
                .with_feedback("There is no model that this tool could ask. Do without the tool.")
        })
    }
}

/// Answers questions in words, without tools.
#[async_trait]
pub trait LanguageModel: Send + Sync + 'static {
    /// Asks for an answer. Whoever drops the future wants it no more.
    ///
    /// Fails when the model cannot be asked or breaks off, and as [`InvalidArguments`](crate::ErrorKind::InvalidArguments) when it refuses
    /// the question, which then is mostly too long for it.
    async fn answer(&self, question: ModelQuestion) -> Result<ModelAnswer, ToolError>;

    /// The same as part of a trace. By default it leaves no span.
    async fn answer_within(&self, question: ModelQuestion, _within: Trace) -> Result<ModelAnswer, ToolError> {
        self.answer(question).await
    }

    /// The name of the model that answers, for what is kept of its answers.
    ///
    /// Fails when there is no model, or when it cannot be asked for its name.
    async fn name(&self) -> Result<String, ToolError> {
        async { Ok("unnamed".to_owned()) }.await
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
    /// The tokens of the question; guessed where the model does not say.
    pub input_tokens: u64,
    /// The tokens of the answer, thinking included; guessed where the model does not say.
    pub output_tokens: u64,
    /// Whether it was cut off, because there was no room for more.
    pub truncated: bool,
}

impl ModelAnswer {
    /// The tokens of question and answer.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}
