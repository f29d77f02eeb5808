//! The model behind the bridge, for tools that ask it themselves.

use std::time::Duration;

use async_trait::async_trait;
use moka::future::Cache;
use registry_core::{
    ToolError,
    model::{LanguageModel, ModelAnswer, ModelQuestion},
    trace::{Span, Trace},
};
use toolrack_apis::{FinishReason, Message, Piece, Request, Role, Sampling};
use toolrack_dialects::{Offered, ScanOptions, parse};

use super::{Route, Upstream, UpstreamError};
use crate::{traces, turn::traced};

/// Characters of a token, where the server does not count.
const CHARACTERS: usize = 4;
/// How long the server's first model is taken for granted. It may load another.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Asks an upstream.
#[derive(Debug)]
pub struct UpstreamModel {
    upstream: Upstream,
    /// The model's name; `None` for the upstream's first.
    name: Option<String>,
    first: Cache<(), String>,
}

impl UpstreamModel {
    /// What the host tells where there is none but the demo.
    pub const HOW_TO_PROVIDE: &'static str =
        "start a model server, or name one with --upstream or `upstream` in toolrack.toml";

    /// The model of that name, or the first there is.
    pub fn new(upstream: Upstream, name: Option<String>) -> Self {
        Self { upstream, name, first: Cache::builder().time_to_live(REMEMBERED).build() }
    }

    async fn first_model(&self) -> Result<String, UpstreamError> {
        Ok(self.upstream.route(None).await?.full_name())
    }

    /// The model's name.
    async fn model(&self) -> Result<String, UpstreamError> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => self.first.try_get_with((), self.first_model()).await.map_err(|error| (*error).clone()),
        }
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

    async fn ask(
        &self,
        question: &ModelQuestion,
        trace: Option<&Trace>,
    ) -> Result<ModelAnswer, UpstreamError> {
        let mut route = self.upstream.route(Some(&self.model().await?)).await?;
        loop {
            let mut span = traced::chat(trace, &route);
            let within = span.as_ref().and_then(Span::within).or_else(|| trace.cloned());
            let answer = traces::asking(within, Self::ask_at(&route, question)).await;
            if let Some(span) = &mut span {
                traced::question_ended(span, &answer);
            }
            match answer {
                Err(error) if route.fall_back(&error) => {}
                answer => return answer,
            }
        }
    }

    async fn ask_at(route: &Route, question: &ModelQuestion) -> Result<ModelAnswer, UpstreamError> {
        let request = Request {
            model: Some(route.model().to_owned()),
            messages: vec![
                Message::text(Role::System, &question.system),
                Message::text(Role::User, &question.prompt),
            ],
            sampling: Sampling { max_tokens: Some(question.max_tokens.into()), ..Sampling::default() },
            ..Request::default()
        };
        let mut answer = route.ask(&request, "").await?;
        let (mut text, mut counted, mut truncated) = (String::new(), None, false);
        let (mut pieces, mut more) = (Vec::new(), true);
        while more {
            more = answer.next(&mut pieces).await?;
            for piece in pieces.drain(..) {
                match piece {
                    Piece::Text(piece) => text.push_str(&piece),
                    Piece::Usage(usage) => counted = Some((usage.input, usage.output)),
                    Piece::Finish(reason) => truncated = reason == FinishReason::Length,
                    _ => {}
                }
            }
        }
        let guessed = |characters: usize| u64::try_from(characters / CHARACTERS).unwrap_or(u64::MAX);
        let (input_tokens, output_tokens) = counted
            .unwrap_or_else(|| (guessed(question.system.len() + question.prompt.len()), guessed(text.len())));
        // Thinking that the server left in the text is no answer.
        let read = parse(&text, Offered::none().into(), ScanOptions::default());
        Ok(ModelAnswer { text: read.content.trim().to_owned(), input_tokens, output_tokens, truncated })
    }
}

#[async_trait]
impl LanguageModel for UpstreamModel {
    async fn answer(&self, question: ModelQuestion) -> Result<ModelAnswer, ToolError> {
        self.not_the_demo()?;
        self.ask(&question, None).await.map_err(fault)
    }

    async fn answer_within(&self, question: ModelQuestion, within: Trace) -> Result<ModelAnswer, ToolError> {
        self.not_the_demo()?;
        self.ask(&question, Some(&within)).await.map_err(fault)
    }

    async fn name(&self) -> Result<String, ToolError> {
        self.not_the_demo()?;
        self.model().await.map_err(fault)
    }
}

fn fault(error: UpstreamError) -> ToolError {
    if let UpstreamError::Refused { status: 400 | 413 | 422, .. } = error {
        return ToolError::invalid(error.to_string())
            .with_feedback("The model that should do this refuses the question; it may be too long.");
    }
    ToolError::unavailable(error.to_string())
        .with_feedback("The model that should do this cannot be asked now. Answer from other tools.")
}
