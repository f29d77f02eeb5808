//! The model that tools ask themselves.

use async_trait::async_trait;
use registry_core::{
    ToolError,
    model::{LanguageModel, Model, ModelAnswer, ModelQuestion},
    trace::Trace,
};
use tokio::sync::OnceCell;

use super::Settings;
use crate::upstream::{DEMO, Upstream, UpstreamModel};

impl Settings {
    /// The upstream, for tools that ask it. It is [missing](LanguageModel::missing) where it is the built-in demo model, which answers no
    /// such questions; where no address is set, that is known once [`upstream`](Self::upstream) has looked.
    pub fn language_model(&self) -> Model {
        Model::new(Found { settings: self.clone(), model: OnceCell::new() })
    }
}

/// The model of the settings, once it was looked for.
struct Found {
    settings: Settings,
    model: OnceCell<UpstreamModel>,
}

impl Found {
    async fn model(&self) -> Result<&UpstreamModel, ToolError> {
        let find = || async {
            let upstream = self.settings.upstream().await.map_err(ToolError::unavailable)?;
            Ok(UpstreamModel::new(upstream, self.settings.model.clone()))
        };
        self.model.get_or_try_init(find).await
    }
}

#[async_trait]
impl LanguageModel for Found {
    async fn answer(&self, question: ModelQuestion) -> Result<ModelAnswer, ToolError> {
        async { self.model().await?.answer(question).await }.await
    }

    async fn answer_within(&self, question: ModelQuestion, within: Trace) -> Result<ModelAnswer, ToolError> {
        async { self.model().await?.answer_within(question, within).await }.await
    }

    async fn name(&self) -> Result<String, ToolError> {
        async { self.model().await?.name().await }.await
    }

    fn missing(&self) -> Option<String> {
        let is_demo = match self.settings.upstream.as_deref() {
            Some(address) => address == DEMO,
            None => self.settings.found_upstream.get().is_some_and(Upstream::is_demo),
        };
        is_demo.then(|| UpstreamModel::HOW_TO_PROVIDE.to_owned())
    }
}
