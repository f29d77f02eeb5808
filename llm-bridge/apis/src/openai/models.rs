//! Lists of models: <https://platform.openai.com/docs/api-reference/models>. What the model server says of a model passes.

use serde_json::{Map, Value, json};

use super::OpenAiFront;
use crate::{ListModels, ListedModel, front::json_reply};

impl ListModels for OpenAiFront {
    fn list(&self, models: &[ListedModel]) -> http::Response<Vec<u8>> {
        let data: Vec<_> = models.iter().map(entry).collect();
        json_reply(&json!({"object": "list", "data": data}))
    }

    fn model(&self, model: &ListedModel) -> http::Response<Vec<u8>> {
        json_reply(&entry(model))
    }
}

/// The model server's own entry; what SDKs require is there in any case.
fn entry(model: &ListedModel) -> Map<String, Value> {
    let mut entry = model.fields.clone();
    entry.insert("id".to_owned(), model.id.as_str().into());
    for (name, usual) in
        [("object", "model".into()), ("created", model.created.into()), ("owned_by", "local".into())]
    {
        entry.entry(name).or_insert(usual);
    }
    // The two names by which agents look for it.
    for name in ["context_length", "max_model_len"] {
        entry.extend(model.context.map(|context| (name.to_owned(), context.into())));
    }
    entry.extend(model.pictures.map(|pictures| ("pictures".to_owned(), pictures.into())));
    entry
}
