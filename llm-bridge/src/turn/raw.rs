//! The raw route in a turn: the model is asked with a prompt from its own template, and its text is read here.

use toolrack_apis::{Provider, Request};

use super::{ToolStyle, constrain::Constraint, models::ModelRoute, offer::Round, prompt, run::Run};
use crate::upstream::{RawQuestion, RawTools, UpstreamError};

/// How the model is asked by the raw route.
#[derive(Debug)]
pub(super) struct RawStyle {
    pub(super) question: RawQuestion,
    /// The request, which says how the model chooses its words.
    pub(super) request: Request,
    /// What keeps the model to calls.
    pub(super) constraint: Option<Constraint>,
}

impl Run {
    /// Whether the raw route is set for the model.
    pub(super) fn is_set_to_raw(&self) -> bool {
        self.model_route() == Some(ModelRoute::Raw) && !self.is_raw_off
    }

    /// Whether the raw route may be tried where the chat endpoint of the server cannot do the job.
    pub(super) fn may_use_raw(&self) -> bool {
        let is_free = self.model_route().is_none() && self.tool_style() == ToolStyle::Auto;
        (is_free || self.is_set_to_raw()) && !self.is_raw_off
    }

    fn model_route(&self) -> Option<ModelRoute> {
        self.backend.settings().models.route(self.route.model())
    }

    /// The raw route for a round; `None` where there is none, which is told in the log.
    pub(super) async fn raw_style(&mut self, round: Round, with_tools: bool) -> Option<Box<RawStyle>> {
        let style = self.make_raw_style(round, with_tools).await;
        match style {
            Ok(style) => Some(Box::new(style)),
            Err(error) => {
                self.is_raw_off = true;
                match self.model_route() {
                    Some(_) => {
                        tracing::warn!(%error, "the raw route cannot be taken; asking the chat endpoint")
                    }
                    None => tracing::debug!(%error, "there is no raw route"),
                }
                None
            }
        }
    }

    async fn make_raw_style(&self, round: Round, with_tools: bool) -> Result<RawStyle, UpstreamError> {
        let file = self.backend.settings().models.template(self.route.model());
        let model = self.route.raw_model(file.as_deref()).await?;
        // The same definitions as in the fields of OpenAI's API, which templates are written for.
        let tools = match with_tools {
            true => RawTools {
                definitions: self.offer.definitions(round, Provider::OpenAi),
                functions: self.offer.client_functions(round),
            },
            false => RawTools::default(),
        };
        let mut request = self.request.clone();
        let missing = self.missing();
        if missing > 1 {
            let last_words = self.required.as_ref().map_or("", |required| &required.last_words);
            prompt::remind(&mut request.messages, last_words);
        }
        let constraint = match with_tools {
            true => self.constraint(round, self.dialect().or(model.dialect), true).await,
            false => None,
        };
        if let Some(constraint) = &constraint {
            constraint.apply(&mut request);
        }
        let opening = constraint.as_ref().and_then(Constraint::opening);
        let ends_thinking = constraint.is_some() && opening.is_none();
        let mut question = self.route.raw_question(model, request.clone(), tools, ends_thinking).await?;
        question.preserve(opening);
        Ok(RawStyle { question, request, constraint })
    }
}
