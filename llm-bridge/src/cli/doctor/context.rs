//! How much the model reads at once, as the server says.

use serde_json::{Value, json};
use toolrack_apis::Request;

use super::report::{Finding, Verdict};
use crate::upstream::Route;

/// The context in tokens.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// What a request may have: as the server runs the model or, of Ollama, as much as it is asked for.
    pub(super) tokens: Option<u64>,
    /// As Ollama has it loaded now.
    loaded: Option<u64>,
    /// As the model was trained.
    trained: Option<u64>,
}

impl Context {
    /// Asks the server; `entry` is the model's in its list.
    pub(super) async fn ask(route: &Route, entry: Option<&Value>) -> Self {
        let listed = |pointers: &[&str]| number(entry?, pointers);
        let mut context = Self {
            // vLLM and SGLang; LM Studio; KoboldCpp and llama.cpp behind routers.
            tokens: listed(&["/max_model_len", "/loaded_context_length", "/context_length", "/meta/n_ctx"]),
            trained: listed(&["/max_context_length", "/meta/n_ctx_train"]),
            loaded: None,
        };
        if route.kind().is_some_and(|kind| kind.id == "ollama") {
            context.ask_ollama(route).await;
            context.tokens = route.context(&Request::default()).await.or(context.loaded);
            return context;
        }
        // llama.cpp: `tools/server/README.md`, GET /props.
        if context.tokens.is_none()
            && let Some(props) = route.look("/props", None).await
        {
            context.tokens = number(&props, &["/default_generation_settings/n_ctx", "/n_ctx"]);
        }
        if context.tokens.is_none()
            && let Some(length) = route.look("/api/extra/true_max_context_length", None).await
        {
            context.tokens = number(&length, &["/value"]);
        }
        context
    }

    /// What runs is in `/api/ps`, where newer versions have `context_length`; what the model was trained for in `/api/show`, under the name of its
    /// architecture.
    async fn ask_ollama(&mut self, route: &Route) {
        let running = route.look("/api/ps", None).await.unwrap_or_default();
        let models = running.get("models").and_then(Value::as_array);
        let is_meant = |model: &&Value| {
            let name = |field: &str| model.get(field).and_then(Value::as_str);
            [name("name"), name("model")].contains(&Some(route.model()))
        };
        let meant = models.and_then(|models| models.iter().find(is_meant));
        self.loaded = meant.and_then(|model| number(model, &["/context_length"]));
        let shown = route.look("/api/show", Some(&json!({"model": route.model()}))).await.unwrap_or_default();
        let facts = shown.get("model_info").and_then(Value::as_object);
        let length = facts.and_then(|facts| facts.iter().find(|(name, _)| name.ends_with(".context_length")));
        self.trained = length.and_then(|(_, tokens)| tokens.as_u64());
    }

    pub(super) fn finding(&self) -> Finding {
        let verdict = if self.tokens.is_some() { Verdict::Yes } else { Verdict::Unknown };
        let loaded = self.loaded.map(|tokens| format!("grows with the requests, {tokens} now"));
        let trained = self.trained.filter(|_| self.trained != self.tokens);
        let trained = trained.map(|tokens| format!("the model was trained for {tokens}"));
        let unknown = self.tokens.is_none().then(|| "the server does not say".to_owned());
        let note: Vec<String> = [unknown, loaded, trained].into_iter().flatten().collect();
        Finding::new(verdict, note.join("; "))
            .figure("tokens", self.tokens)
            .figure("loaded_tokens", self.loaded)
            .figure("trained_tokens", self.trained)
    }
}

/// The first number above 0 at one of these places.
fn number(value: &Value, pointers: &[&str]) -> Option<u64> {
    pointers.iter().find_map(|pointer| value.pointer(pointer)?.as_u64().filter(|number| *number > 0))
}
