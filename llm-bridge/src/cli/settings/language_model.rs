//! The model that tools ask themselves.

use registry_core::{
    BoxFuture, ToolError,
    model::{LanguageModel, Model, ModelAnswer, ModelQuestion},
};
use tokio::sync::OnceCell;

use super::Settings;
use crate::chat::{UpstreamModel, upstream::DEMO};

impl Settings {
    /// The upstream, for tools that ask it; `None` where it is the built-in demo model, which answers no such questions. Where no address
    /// is set, one is looked for when the first question is asked.
    pub fn language_model(&self) -> Option<Model> {
        let is_demo = self.upstream.as_deref() == Some(DEMO);
        (!is_demo).then(|| Model::new(Found { settings: self.clone(), model: OnceCell::new() }))
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

impl LanguageModel for Found {
    fn answer(&self, question: ModelQuestion) -> BoxFuture<'_, Result<ModelAnswer, ToolError>> {
        Box::pin(async { self.model().await?.answer(question).await })
    }

    fn name(&self) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async { self.model().await?.name().await })
    }
}
