//! Vectors of documents, from a server that speaks the OpenAI API.

use async_trait::async_trait;
use serde_json::json;
use toolrack_documents::{EmbedError, Embedder, TextRole};

use super::{Upstream, UpstreamError, read_vectors};
use crate::beside::beside;

/// A model that makes vectors, and what is put before texts for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmbeddingModel {
    /// Its name on the server.
    pub name: String,
    /// What is put before a question, as the model was trained.
    pub query_prefix: String,
    /// What is put before a passage.
    pub passage_prefix: String,
}

impl EmbeddingModel {
    /// The name under which its vectors of passages are kept; what is put before a passage is part of it.
    pub fn kept_as(&self) -> String {
        match self.passage_prefix.as_str() {
            "" => self.name.clone(),
            prefix => format!("{} of \"{prefix}…\"", self.name),
        }
    }
}

/// Asks an upstream at `/v1/embeddings`, as OpenAI describes it:
/// <https://platform.openai.com/docs/api-reference/embeddings/create>.
#[derive(Debug, Clone)]
pub struct UpstreamEmbedder {
    upstream: Upstream,
    model: EmbeddingModel,
    kept_as: String,
}

impl UpstreamEmbedder {
    /// So many passages are good to ask for at once: some servers take no more than 32, and those without a graphics card take seconds
    /// for each.
    pub const BATCH: usize = 16;

    /// A model of an upstream.
    pub fn new(upstream: Upstream, model: EmbeddingModel) -> Self {
        Self { upstream, kept_as: model.kept_as(), model }
    }

    async fn ask(&self, texts: Vec<String>, role: TextRole) -> Result<Vec<Vec<f32>>, EmbedError> {
        let prefix = match role {
            TextRole::Query => &self.model.query_prefix,
            TextRole::Passage => &self.model.passage_prefix,
        };
        let input: Vec<String> = texts.into_iter().map(|text| format!("{prefix}{text}")).collect();
        let request = json!({"model": self.model.name, "input": input, "encoding_format": "float"});
        let reply = self.upstream.embeddings(&request).await.map_err(|error| match error {
            // llama.cpp answers 500 where a text is longer than its batch.
            UpstreamError::Refused { status: 400 | 413 | 422 | 500, .. } => {
                EmbedError::Refused(error.to_string())
            }
            _ => EmbedError::Unavailable(error.to_string()),
        })?;
        let (size, count) = (reply.len(), input.len());
        let stopped = || Err("this server is being stopped".to_owned());
        let read = beside(size, move || read_vectors(&reply, count)).await.unwrap_or_else(stopped);
        read.map_err(|fault| EmbedError::Unavailable(format!("the vectors of the model server: {fault}")))
    }
}

#[async_trait]
impl Embedder for UpstreamEmbedder {
    fn model(&self) -> &str {
        &self.kept_as
    }

    async fn embed(&self, texts: Vec<String>, role: TextRole) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.ask(texts, role).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_what_is_put_before_passages_makes_other_vectors() {
        let model =
            EmbeddingModel { name: "m".into(), query_prefix: "q: ".into(), ..EmbeddingModel::default() };
        assert_eq!(model.kept_as(), "m");
        let other = EmbeddingModel { passage_prefix: "p: ".into(), ..model };
        assert_eq!(other.kept_as(), "m of \"p: …\"");
    }
}
