//! How much of the model's context a turn takes, and what is said about it.

use registry_core::Caller;
use toolrack_apis::{Provider, Request, TurnEvent};

use super::{
    Backend,
    offer::{Round, function_of},
    prepared::FOR_PROMPTS,
    room::Removed,
    run::Run,
};
use crate::upstream::{Answer, Cut, tokens_of};

/// The tools' definitions may take so much of the context before the log warns: one in so many parts.
const SHARE: u64 = 4;
/// What helps where the kind of the server is not known.
const LARGER_CONTEXT: &str = "start the model server with a larger context";

/// What a turn knows of its model's context.
#[derive(Debug, Default)]
pub(super) struct TurnContext {
    /// Its size in tokens, if it is known.
    pub(super) size: Option<u64>,
    /// The tokens of the tools' definitions, once they are counted.
    tools: Option<u64>,
    /// What was taken out of old results.
    pub(super) removed: Removed,
    /// Whether the person has been shown that the server has cut a request.
    is_cut_shown: bool,
}

impl Backend {
    /// Logs the size of the default model's context, and how much of it the tools take that a caller may use. Asks the model server what it is, which
    /// the first request waits for otherwise.
    pub async fn report_context(&self, caller: Caller) {
        let Ok(mut route) = self.upstream().route(self.settings().model.as_deref()).await else { return };
        route.set_context(self.settings().context_of(route.model()));
        let Some(context) = route.context(&Request::default()).await else { return };
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
    /// About how many tokens the tools' definitions have; warns where they take much of the context.
    pub(super) fn share_of_tools(&mut self, context: u64) -> u64 {
        if let Some(tools) = self.context.tools {
            return tools;
        }
        let first = Round { number: 1, is_last: false };
        let definitions = self.offer.definitions(first, Provider::OpenAi);
        let clients = self.offer.client_tools(first);
        let client = clients.iter().map(|tool| tokens_of(&function_of(tool).to_string()));
        let tools = tokens_of(&definitions) + client.sum::<u64>();
        self.context.tools = Some(tools);
        self.backend.warn_if_crowded(&self.route.full_name(), context, tools);
        tools
    }

    /// How many characters of a result the model is given: one result takes about a quarter of the context at most.
    pub(super) fn result_limit(&self) -> usize {
        let limit = self.backend.settings().limits.max_result_characters;
        self.context.size.map_or(limit, |size| limit.min(usize::try_from(size).unwrap_or(usize::MAX)))
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
