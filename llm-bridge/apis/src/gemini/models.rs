//! Lists of models: <https://ai.google.dev/api/models>. A list is one page.

use serde_json::{Value, json};

use super::GeminiFront;
use crate::{ListModels, ListedModel, front::json_reply};

/// What every model can be asked for.
const METHODS: [&str; 2] = ["generateContent", "countTokens"];

impl ListModels for GeminiFront {
    fn list(&self, models: &[ListedModel]) -> http::Response<Vec<u8>> {
        let models: Vec<_> = models.iter().map(entry).collect();
        json_reply(&json!({ "models": models }))
    }

    fn model(&self, model: &ListedModel) -> http::Response<Vec<u8>> {
        json_reply(&entry(model))
    }
}

fn entry(model: &ListedModel) -> Value {
    let methods = if model.embeds { &[] } else { METHODS.as_slice() };
    let mut entry = json!({
        "name": format!("models/{}", model.id), "version": "", "displayName": model.id,
        "supportedGenerationMethods": methods,
    });
    if let (Value::Object(fields), Some(tokens)) = (&mut entry, model.context) {
        fields.insert("inputTokenLimit".to_owned(), tokens.into());
    }
    entry
}
