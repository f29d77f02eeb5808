//! Lists of models, which each API has in a form of its own.

use serde_json::{Map, Value};

use crate::Front;

/// A model that clients can ask for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListedModel {
    /// Its name, which a request repeats.
    pub id: String,
    /// When it was made, in seconds since 1970; 0 if that is not known.
    pub created: i64,
    /// The size of its context in tokens, if the model server says.
    pub context: Option<u64>,
    /// Whether it sees pictures, if that is known.
    pub pictures: Option<bool>,
    /// Whether it makes vectors of texts and answers no questions.
    pub embeds: bool,
    /// All that the model server says of it, in the form of OpenAI's list.
    pub fields: Map<String, Value>,
}

impl ListedModel {
    /// Reads an entry of a model server's list in OpenAI's form; `None` for one without a name. Whether it embeds is the caller's to know.
    pub fn read(entry: Value) -> Option<Self> {
        // vLLM and SGLang, LM Studio, llama.cpp, those like OpenRouter; what a model could have at most stands for what it has.
        const CONTEXTS: [&str; 7] = [
            "/max_model_len",
            "/loaded_context_length",
            "/meta/n_ctx",
            "/context_length",
            "/context_window",
            "/max_context_length",
            "/meta/n_ctx_train",
        ];
        let known = |place: &&str| entry.pointer(place)?.as_u64().filter(|size| *size > 0);
        let context = CONTEXTS.iter().find_map(known);
        let modalities = entry.pointer("/architecture/input_modalities").and_then(Value::as_array);
        let pictures = modalities.map(|all| all.iter().any(|modality| modality == "image"));
        let Value::Object(fields) = entry else { return None };
        let id = fields.get("id")?.as_str().filter(|id| !id.is_empty())?.to_owned();
        let created = fields.get("created").and_then(Value::as_i64).unwrap_or_default();
        Some(Self { id, created, context, pictures, embeds: false, fields })
    }

    /// Whether the model server says that it can do something that goes by one of these words.
    pub(crate) fn can(&self, words: &[&str]) -> bool {
        // LM Studio and Ollama, llama.cpp's router and OpenRouter.
        let modalities = self.fields.get("architecture").and_then(|of| of.get("input_modalities"));
        let others = ["capabilities", "supported_parameters", "type"].map(|name| self.fields.get(name));
        let is_word = |value: &Value| value.as_str().is_some_and(|word| words.contains(&word));
        others.into_iter().chain([modalities]).flatten().any(|value| match value {
            Value::Array(all) => all.iter().any(is_word),
            one => is_word(one),
        })
    }

    /// The same model under another name.
    #[must_use]
    pub fn named(&self, id: impl Into<String>) -> Self {
        Self { id: id.into(), ..self.clone() }
    }

    /// When it was made.
    pub(crate) fn created_at(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(self.created).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

/// A front whose API lists models.
pub trait ListModels: Front {
    /// The reply with all models.
    fn list(&self, models: &[ListedModel]) -> http::Response<Vec<u8>>;

    /// The reply about one model.
    fn model(&self, model: &ListedModel) -> http::Response<Vec<u8>>;
}
