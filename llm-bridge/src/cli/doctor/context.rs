//! How much the model reads at once, as the server says.

use serde_json::Value;
use toolrack_apis::Request;

use super::report::{Finding, Verdict};
use crate::upstream::{ContextSize, Route};

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
        let listed = entry.map(ContextSize::of_entry).unwrap_or_default();
        let size = route.context_size().await;
        let (now, trained) = (size.now.or(listed.now), size.most.or(listed.most));
        let grows = route.kind().is_some_and(|kind| kind.id == "ollama");
        let tokens = if grows { route.context(&Request::default()).await.or(now) } else { now };
        Self { tokens, loaded: now.filter(|_| grows), trained }
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
