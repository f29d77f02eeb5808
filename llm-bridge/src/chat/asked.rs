//! The model behind the bridge, for tools that ask it themselves.

use registry_core::{
    BoxFuture, ToolError,
    model::{LanguageModel, ModelAnswer, ModelQuestion},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use toolrack_apis::openai::Piece;
use toolrack_dialects::{Offered, ScanOptions, parse};

use super::{Upstream, UpstreamError};

/// Characters of a token, where the server does not count.
const CHARACTERS: usize = 4;

/// Asks an upstream.
#[derive(Debug)]
pub struct UpstreamModel {
    upstream: Upstream,
    /// The model's name; the upstream's first where none is set.
    name: OnceCell<String>,
}

impl UpstreamModel {
    /// What the host tells where there is none but the demo.
    pub const HOW_TO_PROVIDE: &'static str =
        "start a model server, or name one with --upstream or `upstream` in toolrack.toml";

    /// The model of that name, or the first there is.
    pub fn new(upstream: Upstream, name: Option<String>) -> Self {
        Self { upstream, name: OnceCell::new_with(name) }
    }

    /// The model's name.
    async fn model(&self) -> Result<&str, UpstreamError> {
        self.name.get_or_try_init(|| self.upstream.first_model()).await.map(String::as_str)
    }

    /// That there is no model behind the demo.
    fn not_the_demo(&self) -> Result<(), ToolError> {
        match self.upstream.is_demo() {
            false => Ok(()),
            true => Err(ToolError::unavailable(format!(
                "the built-in demo model answers no questions of tools; {}",
                Self::HOW_TO_PROVIDE
            ))
            .with_feedback("There is no model that could do this. Answer from other tools.")),
        }
    }

    async fn ask(&self, question: &ModelQuestion) -> Result<ModelAnswer, UpstreamError> {
        let name = self.model().await?;
        let request = json!({
            "model": name,
            "messages": [
                {"role": "system", "content": question.system},
                {"role": "user", "content": question.prompt},
            ],
            "max_tokens": question.max_tokens,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        let Value::Object(request) = request else {
            return Err(UpstreamError::Failed("no request".to_owned()));
        };
        let mut answer = self.upstream.ask(&request, None).await?;
        let (mut text, mut tokens, mut truncated) = (String::new(), None, false);
        while let Some(piece) = answer.next().await {
            match piece? {
                Piece::Text(piece) => text.push_str(&piece),
                Piece::Usage(usage) => tokens = usage.get("total_tokens").and_then(Value::as_u64).or(tokens),
                Piece::Finish(reason) => truncated = reason == "length",
                _ => {}
            }
        }
        let characters = question.system.len() + question.prompt.len() + text.len();
        let guessed = u64::try_from(characters / CHARACTERS).unwrap_or(u64::MAX);
        // Thinking that the server left in the text is no answer.
        let read = parse(&text, Offered::none().into(), ScanOptions::default());
        Ok(ModelAnswer { text: read.content.trim().to_owned(), tokens: tokens.unwrap_or(guessed), truncated })
    }
}

impl LanguageModel for UpstreamModel {
    fn answer(&self, question: ModelQuestion) -> BoxFuture<'_, Result<ModelAnswer, ToolError>> {
        Box::pin(async move {
            self.not_the_demo()?;
            self.ask(&question).await.map_err(fault)
        })
    }

    fn name(&self) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async move {
            self.not_the_demo()?;
            self.model().await.map(str::to_owned).map_err(fault)
        })
    }
}

fn fault(error: UpstreamError) -> ToolError {
    if let UpstreamError::Status { status: 400 | 413 | 422, .. } = error {
        return ToolError::invalid(error.to_string())
            .with_feedback("The model that should do this refuses the question; it may be too long.");
    }
    ToolError::unavailable(error.to_string())
        .with_feedback("The model that should do this cannot be asked now. Answer from other tools.")
}
