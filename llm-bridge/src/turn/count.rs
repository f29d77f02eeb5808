//! How many tokens a request has, as the model would get it.

use registry_core::Caller;
use toolrack_apis::{BadRequest, Request, ToolChoice};

use super::{Backend, beginning, offer::Round, prompt};

impl Backend {
    /// Counts the tokens of a request, with the server's tools and prompts that a turn would add to it: by the model server's own tokenizer where it
    /// has one, otherwise estimated. Never 0.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn count_tokens(&self, mut request: Request, caller: Caller) -> Result<u64, BadRequest> {
        let offer = beginning::prepare(self, &mut request, caller, self.shared.stopping.child_token())?;
        let settings = self.settings();
        let asked = request.model.take().or_else(|| settings.model.clone());
        // A server that is away does not keep the client from an estimate.
        let mut route = self.upstream().route(asked.as_deref()).await.unwrap_or_default();
        route.set_asker(self.asker(offer.context.caller()));
        let name = route.model();
        beginning::assemble(self, &mut request, &offer, &route.full_name(), None).await;
        if let Some(messages) = self.picture_limit(&route).apply(&request.messages) {
            request.messages = messages;
        }
        let accepted = self.shared.learned.accepted(&route.learner());
        let round = Round { number: 1, is_last: settings.limits.max_rounds == 1 };
        request.tools = Vec::new();
        request.choice = ToolChoice::Auto;
        let mut definitions = String::new();
        if self.asks_in_prompt(&route) {
            let (functions, dialect) = (offer.functions(round), settings.dialect_of(name));
            let required = offer.requires_call(round);
            prompt::describe_tools(&mut request.messages, &functions, dialect, required);
        } else {
            request.tools = offer.client_tools(round);
            definitions = offer.definitions(round, route.api().await);
        }
        accepted.place_system(&mut request.messages);
        request.model = Some(name.to_owned());
        Ok(route.count_tokens(&request, &definitions).await)
    }
}
