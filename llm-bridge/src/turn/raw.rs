//! The raw route in a turn: the model is asked with a prompt from its own template, and its text is read here.

use toolrack_apis::{Provider, Request};
use toolrack_dialects::dialect;

use super::{
    ToolStyle, ask::MOST_AT_ONCE, constrain::Constraint, models::ModelRoute, offer::Round, prompt, run::Run,
};
use crate::upstream::{RawQuestion, RawTools, UpstreamError};

/// How the model is asked by the raw route.
#[derive(Debug)]
pub(super) struct RawStyle {
    pub(super) question: RawQuestion,
    /// The request, which says how the model chooses its words.
    pub(super) request: Request,
    /// What keeps the model to calls.
    pub(super) constraint: Option<&'static str>,
    /// Whether that is a grammar, which leaves it nothing else to write.
    pub(super) only_calls: bool,
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
        let may_constrain = self.required.is_some() && !self.is_unconstrained && !request.has_grammar;
        let name = self.dialect().or(model.dialect).unwrap_or(prompt::COMMON_DIALECT);
        let constrained = match dialect(name).filter(|_| may_constrain && with_tools) {
            Some(dialect) => {
                let most = if self.parallel == Some(false) { 1 } else { MOST_AT_ONCE };
                let field = self.route.kind().and_then(|kind| kind.grammar);
                let field = field.filter(|_| self.api == Provider::OpenAi);
                Constraint::to_calls(self.offer.functions(round), dialect, field, most).await
            }
            None => None,
        };
        let mut only_calls = false;
        if let Some((_, constraint)) = &constrained {
            constraint.apply(&mut request);
            only_calls = matches!(constraint, Constraint::Grammar { .. });
        }
        let question = self.route.raw_question(model, request.clone(), tools, constrained.is_some()).await?;
        let constraint = constrained.map(|(dialect, _)| dialect.name);
        Ok(RawStyle { question, request, constraint, only_calls })
    }
}
