//! The models of a server, in the form of OpenAI's list.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{api::root_of, error::UpstreamError, http::HttpUpstream, kind::ModelList, recognize::Recognized};

impl HttpUpstream {
    /// The models, with what the server says about each in its own form of the list.
    pub(super) async fn models(self: &Arc<Self>) -> Result<Vec<Value>, UpstreamError> {
        let known = self.recognized().await;
        let listed = match known.list {
            ModelList::OpenAi => Ok(Vec::new()),
            own => self.own_list(&known, own).await,
        };
        match listed {
            Ok(models) if !models.is_empty() => Ok(models),
            // An older version may not have a list of its own.
            Ok(_) | Err(UpstreamError::Refused { .. }) => {
                Ok(array(self.get(format!("{}/models", known.openai_base)).await?, "data"))
            }
            Err(error) => Err(error),
        }
    }

    async fn own_list(&self, known: &Recognized, list: ModelList) -> Result<Vec<Value>, UpstreamError> {
        let root = root_of(&known.openai_base);
        Ok(match list {
            ModelList::Ollama => {
                let models = array(self.get(format!("{root}/api/tags")).await?, "models");
                models.iter().filter_map(of_ollama).collect()
            }
            ModelList::LmStudio => array(self.get(format!("{root}/api/v0/models")).await?, "data"),
            ModelList::OpenAi => Vec::new(),
        })
    }
}

/// The name of a model of a list.
pub(super) fn name_of(model: &Value) -> Option<&str> {
    model.get("id").and_then(Value::as_str)
}

/// The array in a field.
fn array(mut reply: Value, field: &str) -> Vec<Value> {
    match reply.get_mut(field).map(Value::take) {
        Some(Value::Array(models)) => models,
        _ => Vec::new(),
    }
}

/// A model of Ollama's list, as Ollama itself puts it for OpenAI's, with what it says about the model.
fn of_ollama(model: &Value) -> Option<Value> {
    let text = |field: &str| model.get(field).and_then(Value::as_str);
    let modified = text("modified_at").and_then(|time| time.parse::<jiff::Timestamp>().ok());
    let mut entry = Map::new();
    entry.insert("id".into(), text("name").or_else(|| text("model"))?.into());
    entry.insert("object".into(), json!("model"));
    entry.insert("created".into(), modified.map_or(0, jiff::Timestamp::as_second).into());
    entry.insert("owned_by".into(), json!("library"));
    for field in ["capabilities", "details"] {
        entry.extend(model.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    Some(entry.into())
}

/// Whether a model of a list is one that answers questions. Some servers say so: LM Studio with a `type`, Ollama with
/// `capabilities`, or with the family of the model. Of others only the name does.
pub(super) fn answers_questions(model: &Value) -> bool {
    const OTHERS: [&str; 8] = ["embed", "rerank", "bge-", "minilm", "whisper", "tts", "clip", "e5-"];
    if let Some(kind) = model.get("type").and_then(Value::as_str) {
        return !kind.contains("embed");
    }
    if let Some(capabilities) = model.get("capabilities").and_then(Value::as_array) {
        return capabilities.iter().any(|capability| capability == "completion");
    }
    // `bert`, `nomic-bert` and others: a family of models that read and do not write.
    let family = model.pointer("/details/family").and_then(Value::as_str);
    if family.is_some_and(|family| family.ends_with("bert")) {
        return false;
    }
    let name = name_of(model).unwrap_or_default().to_ascii_lowercase();
    !OTHERS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g7_a_model_of_vectors_answers_no_questions() {
        for (model, answers) in [
            (json!({"id": "qwen3:8b"}), true),
            (json!({"id": "nomic-embed-text:latest"}), false),
            (json!({"id": "bge-m3"}), false),
            (json!({"id": "x", "type": "embeddings"}), false),
            (json!({"id": "x", "type": "vlm"}), true),
            (json!({"id": "embedded-coder", "type": "llm"}), true),
            (json!({"id": "x", "details": {"family": "nomic-bert"}}), false),
            (json!({"id": "x", "details": {"family": "qwen3"}}), true),
            (json!({"id": "x", "capabilities": ["embedding"]}), false),
            (json!({"id": "embedded-coder", "capabilities": ["completion", "tools"]}), true),
            (json!({}), true),
        ] {
            assert_eq!(answers_questions(&model), answers, "{model}");
        }
    }

    #[test]
    fn a_model_of_ollama_is_listed_as_openai_does() {
        let model = json!({"name": "qwen3:8b", "model": "qwen3:8b", "modified_at": "2026-01-02T03:04:05.678+01:00",
            "size": 1, "details": {"family": "qwen3"}});
        let listed = json!({"id": "qwen3:8b", "object": "model", "created": 1767319445, "owned_by": "library",
            "details": {"family": "qwen3"}});
        assert_eq!(of_ollama(&model), Some(listed));
        assert_eq!(of_ollama(&json!({"size": 1})), None);
    }
}
