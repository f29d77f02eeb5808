//! The embedding model for documents.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::Deserialize;
use tokio::sync::OnceCell;
use toolrack_documents::{Documents, EmbedError, Embedder, TextRole};

use super::Settings;
use crate::{
    cli::{address, settings::Secret},
    upstream::{EmbeddingModel, Upstream, UpstreamEmbedder},
};

/// The embedding model for documents; none if it has no name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddingSettings {
    /// Its name on the server.
    pub model: String,
    /// Base URL of the server; by default the upstream of chats.
    pub upstream: String,
    /// Key for that server; the key of the upstream of chats is sent to no other.
    pub upstream_api_key: Option<Secret>,
    /// Text before a question.
    pub query_prefix: String,
    /// Text before a passage.
    pub passage_prefix: String,
}

impl EmbeddingSettings {
    /// Environment variables override the file. Empty values count as not set.
    ///
    /// # Errors
    /// When the settings are invalid.
    pub(super) fn lay_over(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<(), String> {
        let variable =
            |name: &str| variable(&format!("TOOLRACK_EMBEDDINGS_{name}")).filter(|value| !value.is_empty());
        for (name, setting) in [
            ("MODEL", &mut self.model),
            ("UPSTREAM", &mut self.upstream),
            ("QUERY_PREFIX", &mut self.query_prefix),
            ("PASSAGE_PREFIX", &mut self.passage_prefix),
        ] {
            if let Some(value) = variable(name) {
                *setting = value;
            }
        }
        let key = variable("UPSTREAM_API_KEY").map(Secret).or_else(|| self.upstream_api_key.take());
        self.upstream_api_key = key.filter(|key| !key.is_empty());
        if self.model.is_empty() && *self != Self::default() {
            return Err(
                "documents.embeddings.model: name the model, or leave the other settings out".to_owned()
            );
        }
        if !self.upstream.is_empty() {
            let fault = |error| format!("documents.embeddings.upstream: {error}");
            address::check_upstream(&self.upstream).map_err(fault)?;
        }
        Ok(())
    }
}

impl Settings {
    /// The documents with the embedding model, if one is configured.
    pub(super) fn with_embedder(&self, documents: Documents) -> Documents {
        let EmbeddingSettings { model, query_prefix, passage_prefix, .. } = self.documents.embeddings.clone();
        if model.is_empty() {
            return documents;
        }
        let model = EmbeddingModel { name: model, query_prefix, passage_prefix };
        let kept_as = model.kept_as();
        // Without the documents, to avoid a reference cycle.
        let mut settings = self.clone();
        settings.documents.opened = Arc::default();
        documents.with_embedder(Found { settings, model, kept_as, embedder: OnceCell::new() })
    }

    async fn embedding_upstream(&self) -> Result<Upstream, String> {
        let EmbeddingSettings { upstream, upstream_api_key, .. } = &self.documents.embeddings;
        if upstream.is_empty() {
            return self.upstream().await;
        }
        let key = upstream_api_key.clone().map(|key| key.0);
        Upstream::http(upstream, key, Duration::from_secs(self.limits.idle_seconds))
            .map_err(|error| format!("documents.embeddings.upstream: {error}"))
    }
}

/// The configured embedder; its server is found on first use.
struct Found {
    settings: Settings,
    model: EmbeddingModel,
    kept_as: String,
    embedder: OnceCell<UpstreamEmbedder>,
}

impl Found {
    async fn embedder(&self) -> Result<&UpstreamEmbedder, EmbedError> {
        let find = || async {
            let upstream = self.settings.embedding_upstream().await.map_err(EmbedError::Unavailable)?;
            Ok(UpstreamEmbedder::new(upstream, self.model.clone()))
        };
        self.embedder.get_or_try_init(find).await
    }
}

#[async_trait]
impl Embedder for Found {
    fn model(&self) -> &str {
        &self.kept_as
    }

    async fn embed(&self, texts: Vec<String>, role: TextRole) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.embedder().await?.embed(texts, role).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str, variables: &[(&str, &str)]) -> Result<EmbeddingSettings, String> {
        let mut settings: EmbeddingSettings = toml::from_str(text).unwrap();
        let variable = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        settings.lay_over(variable).map(|()| settings)
    }

    #[test]
    fn c_the_environment_goes_before_the_file() {
        let text = "model = \"a\"\nupstream = \"http://127.0.0.1:1/v1\"\nupstream_api_key = \"k\"\nquery_prefix = \"q: \"";
        let variables = [
            ("TOOLRACK_EMBEDDINGS_MODEL", "b"),
            ("TOOLRACK_EMBEDDINGS_UPSTREAM", ""),
            ("TOOLRACK_EMBEDDINGS_PASSAGE_PREFIX", "p: "),
            ("TOOLRACK_EMBEDDINGS_UPSTREAM_API_KEY", "other"),
        ];
        let read = settings(text, &variables).unwrap();
        assert_eq!((read.model.as_str(), read.upstream.as_str()), ("b", "http://127.0.0.1:1/v1"));
        assert_eq!((read.query_prefix.as_str(), read.passage_prefix.as_str()), ("q: ", "p: "));
        assert_eq!(read.upstream_api_key, Some(Secret("other".into())));
        assert!(!format!("{read:?}").contains("other"));
        assert_eq!(settings("", &[]), Ok(EmbeddingSettings::default()));
    }

    #[test]
    fn c_invalid_settings_are_reported() {
        for (text, fault) in [
            ("upstream = \"http://127.0.0.1:1/v1\"", "documents.embeddings.model: name the model"),
            ("query_prefix = \"q: \"", "documents.embeddings.model: name the model"),
            ("model = \"a\"\nupstream = \"here\"", "documents.embeddings.upstream: "),
        ] {
            let reported = settings(text, &[]).unwrap_err();
            assert!(reported.contains(fault), "{text}: {reported}");
        }
    }
}
