//! How much of the model's context a turn takes, and what is done and said about it.

use std::{mem, sync::Arc};

use registry_core::Caller;
use toolrack_apis::{Failure, FailureKind, Provider, Request, TurnEvent};

use super::{
    Backend,
    offer::{Offer, Round, function_of},
    prepared::FOR_PROMPTS,
    recover,
    room::Removed,
    run::Run,
};
use crate::upstream::{Answer, Cut, Estimate, UpstreamError, tokens_of};

/// The tools' definitions may take so much of the context before the log warns: one in so many parts.
const SHARE: u64 = 4;
/// What helps where the kind of the server is not known.
const LARGER_CONTEXT: &str = "start the model server with a larger context";

/// What a turn knows of its model's context.
#[derive(Debug, Default)]
pub(super) struct TurnContext {
    /// Its size in tokens, if it is known.
    pub(super) size: Option<u64>,
    /// The tokens of the tools' definitions, as estimated, once they are counted.
    tools: Option<u64>,
    /// Whether the server has refused the request for tools that are too long for any.
    is_refused: bool,
    /// What was taken out of old results.
    pub(super) removed: Removed,
    /// Whether the person has been shown that the server has cut a request.
    is_cut_shown: bool,
}

/// What the definitions of the server's tools are too long for, as the server's own numbers have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooLong {
    /// This request, which is long itself.
    ForThis,
    /// Any request: they alone would take more of the context than they may.
    ForAny,
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
        let (model, tools) = (route.full_name(), tokens_of(&json));
        let is_too_much = self.is_too_much(context, tools, route.tokens_per_hundred());
        if !self.warn_if_crowded(&model, context, tools, is_too_much) {
            tracing::info!(
                "The model {model} has a context of {context} tokens; the tools take about {tools} of them"
            );
        }
    }

    /// Whether the tools' definitions take more of the context than the settings leave them, where there are so many tokens for a hundred
    /// estimated ones.
    fn is_too_much(&self, context: u64, tools: u64, per_hundred: u64) -> bool {
        let most = u64::from(self.settings().limits.max_tools_percent);
        // Both in hundredths.
        most < 100 && tools.saturating_mul(per_hundred) > context.saturating_mul(most)
    }

    /// Warns, once for each model, where the tools' definitions take much of its context, and says what comes of it; whether they do.
    fn warn_if_crowded(&self, model: &str, context: u64, tools: u64, is_too_much: bool) -> bool {
        let is_crowded = is_too_much || tools.saturating_mul(SHARE) > context;
        if is_crowded && !self.shared.crowded.contains_key(model) {
            self.shared.crowded.insert(model.to_owned(), ());
            if is_too_much {
                tracing::warn!(
                    model,
                    context,
                    tools,
                    "the definitions of the tools take too much of the model's context, in tokens: the model gets `search_tools` in their place; give it a larger context, or defer those with `deferred_tools` that it needs least"
                );
            } else {
                tracing::warn!(
                    model,
                    context,
                    tools,
                    "the definitions of the tools take more than a quarter of the model's context, in tokens; defer some of them with `deferred_tools`, or give the model a larger context"
                );
            }
        }
        is_crowded
    }
}

impl Run {
    /// About how many tokens the tools' definitions have. Where they would take too much of the context, or the server has refused them as too
    /// long not long ago, the server's tools are deferred.
    pub(super) async fn fit_tools(&mut self) -> u64 {
        if let Some(tools) = self.context.tools {
            return tools;
        }
        let (model, mut tools) = (self.route.full_name(), tokens_of_tools(&self.offer));
        let learned = &self.backend.shared.learned;
        let per_hundred = self.route.tokens_per_hundred();
        let is_too_much =
            self.context.size.is_some_and(|size| self.backend.is_too_much(size, tools, per_hundred));
        let may_be_deferred = is_too_much || learned.has_no_room_for_tools(&self.route.learner());
        let is_deferred = may_be_deferred && Arc::make_mut(&mut self.offer).defer_all();
        if let Some(size) = self.context.size {
            self.backend.warn_if_crowded(&model, size, tools, is_too_much && is_deferred);
        }
        if is_deferred {
            tools = tokens_of_tools(&self.offer);
        }
        self.context.tools = Some(tools);
        tools
    }

    /// The tokens of the tools' definitions, and those of all that was sent, as estimated.
    pub(super) fn tools_of_whole(&self) -> Option<(u64, u64)> {
        let tools = self.context.tools?;
        Some((tools, Estimate::of(&self.request.messages).total() + tools))
    }

    /// Whether a request that the server refuses as too long would fit without the definitions of the server's tools, by the numbers that it
    /// gives; `None` where it would not.
    pub(super) fn fits_without_tools(&self, error: &UpstreamError) -> Option<TooLong> {
        let UpstreamError::Refused { failure, .. } = error else { return None };
        let is_too_long = failure.kind == FailureKind::ContextLength;
        let percent = self.backend.settings().limits.max_tools_percent;
        if !is_too_long || percent >= 100 {
            return None;
        }
        let (tokens, room) = recover::tokens_and_room(&failure.message)?;
        let (tools, whole) = self.tools_of_whole()?;
        let mut without = Offer::clone(&self.offer);
        if !without.defer_all() {
            return None;
        }
        let others = (whole - tools).saturating_add(tokens_of_tools(&without));
        // In the proportion of the estimate, as each tokenizer has its own.
        let in_tokens =
            |estimated: u64| u128::from(tokens) * u128::from(estimated) / u128::from(whole.max(1));
        (in_tokens(others) < u128::from(room)).then(|| {
            match in_tokens(tools) * 100 > u128::from(room) * u128::from(percent) {
                true => TooLong::ForAny,
                false => TooLong::ForThis,
            }
        })
    }

    /// Defers the server's tools, as the server has refused them as too long.
    pub(super) fn defer_tools(&mut self, too_long: TooLong) {
        Arc::make_mut(&mut self.offer).defer_all();
        self.context.tools = Some(tokens_of_tools(&self.offer));
        self.context.is_refused = too_long == TooLong::ForAny;
    }

    /// An answer has come. If one with all tools was refused, the next turns do without them from the start.
    pub(super) fn learn_of_tools(&mut self) {
        if mem::take(&mut self.context.is_refused) {
            self.backend.shared.learned.found_no_room_for_tools(self.route.learner());
        }
    }

    /// What the client is told of a failure: if the conversation is too long, also how much of it the tools are.
    pub(super) fn failure_of(&self, error: UpstreamError) -> Failure {
        let mut failure = Failure::from(error);
        if failure.kind == FailureKind::ContextLength
            && let Some((tools, whole)) = self.tools_of_whole()
            && tools.saturating_mul(SHARE) > whole
        {
            let first = Round { number: 1, is_last: false };
            let count = self.offer.functions(first).len();
            failure.message = format!(
                "{}. The definitions of its tools ({count}) are about {tools} tokens of it: send or allow fewer",
                failure.message.trim_end_matches('.')
            );
        }
        failure
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
        if mem::replace(&mut self.context.is_cut_shown, true) {
            return None;
        }
        let size = context.map(|size| format!(", as its context has {size}")).unwrap_or_default();
        Some(TurnEvent::Notice(format!(
            "The model server has read only {read} of about {sent} tokens{size}: the model does not know the beginning of the conversation or its tools. To fix it, {hint}"
        )))
    }
}

/// About how many tokens the definitions of a turn's tools have.
fn tokens_of_tools(offer: &Offer) -> u64 {
    let first = Round { number: 1, is_last: false };
    let definitions = offer.definitions(first, Provider::OpenAi);
    let clients = offer.client_tools(first);
    let client = clients.iter().map(|tool| tokens_of(&function_of(tool).to_string()));
    tokens_of(&definitions) + client.sum::<u64>()
}
