//! How much of the model's context a turn takes, and what is said about it.

use registry_core::Caller;
use toolrack_apis::{Provider, TurnEvent};

use super::{Backend, offer::Round, prepared::FOR_PROMPTS, run::Run};
use crate::upstream::{Answer, Cut, tokens_of};

/// The tools' definitions may take so much of the context before the log warns: one in so many parts.
const SHARE: u64 = 4;
/// What helps where the kind of the server is not known.
const LARGER_CONTEXT: &str = "start the model server with a larger context";

/// What a turn knows of its model's context.
#[derive(Debug, Default)]
pub(super) struct TurnContext {
    /// Whether the person has been shown that the server has cut a request.
    is_cut_shown: bool,
}

impl Backend {
    /// Logs the size of the default model's context, and how much of it the tools take that a caller may use.
    pub(crate) async fn report_context(&self, caller: Caller) {
        let Ok(mut route) = self.upstream().route(self.settings().model.as_deref()).await else { return };
        route.set_context(self.settings().context_of(route.model()));
        let Some(context) = route.context().await else { return };
        let selection = self.registry().select(&self.context(caller));
        let definitions = self.shared.definitions.of(FOR_PROMPTS);
        let mut json = String::new();
        for tool in selection.in_prompt() {
            if let Some(definition) = definitions.definition(tool) {
                definition.write(tool.name(), &mut json);
            }
        }
        let tools = tokens_of(&json);
        let model = route.full_name();
        if !self.warn_if_crowded(&model, context, tools) {
            tracing::info!(
                "The model {model} has a context of {context} tokens; the tools take about {tools} of them"
            );
        }
    }

    /// Warns, once for each model, where the tools' definitions take much of its context; whether they do.
    fn warn_if_crowded(&self, model: &str, context: u64, tools: u64) -> bool {
        let is_crowded = tools.saturating_mul(SHARE) > context;
        if is_crowded && !self.shared.crowded.contains_key(model) {
            self.shared.crowded.insert(model.to_owned(), ());
            tracing::warn!(
                model,
                context,
                tools,
                "the definitions of the tools take more than a quarter of the model's context, in tokens; defer some of them with `deferred_tools`, or give the model a larger context"
            );
        }
        is_crowded
    }
}

impl Run {
    /// Looks how much of the context the tools take.
    pub(super) async fn check_share(&self) {
        let model = self.route.full_name();
        if !self.offer.has_tools() || self.backend.shared.crowded.contains_key(&model) {
            return;
        }
        let Some(context) = self.route.context().await else { return };
        let first = Round { number: 1, is_last: false };
        let definitions = self.offer.definitions(first, Provider::OpenAi);
        let clients = self.offer.client_tools(first);
        let client = clients.iter().map(|tool| tokens_of(&super::offer::function_of(tool).to_string()));
        self.backend.warn_if_crowded(&model, context, tokens_of(&definitions) + client.sum::<u64>());
    }

    /// What the person has to know of an answer whose request the server has cut; once in a turn.
    pub(super) fn report_cut(&mut self, answer: &Answer) -> Option<TurnEvent> {
        let Cut { read, sent, context } = answer.cut()?;
        let hint = self.route.kind().map_or(LARGER_CONTEXT, |kind| kind.for_context);
        tracing::warn!(
            model = self.route.full_name(),
            read,
            sent,
            context,
            hint,
            "request_cut_by_model_server"
        );
        if std::mem::replace(&mut self.context.is_cut_shown, true) {
            return None;
        }
        let size = context.map(|size| format!(", as its context has {size}")).unwrap_or_default();
        Some(TurnEvent::Notice(format!(
            "The model server has read only {read} of about {sent} tokens{size}: the model does not know the beginning of the conversation or its tools. To mend it, {hint}"
        )))
    }
}
