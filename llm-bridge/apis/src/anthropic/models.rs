//! Lists of models: <https://docs.claude.com/en/api/models-list>. A list is one page.

use serde_json::{Value, json};

use super::AnthropicFront;
use crate::{ListModels, ListedModel, front::json_reply};

impl ListModels for AnthropicFront {
    fn list(&self, models: &[ListedModel]) -> http::Response<Vec<u8>> {
        let data: Vec<_> = models.iter().map(entry).collect();
        let id = |model: Option<&ListedModel>| model.map(|model| model.id.clone());
        json_reply(&json!({
            "data": data, "has_more": false, "first_id": id(models.first()), "last_id": id(models.last()),
        }))
    }

    fn model(&self, model: &ListedModel) -> http::Response<Vec<u8>> {
        json_reply(&entry(model))
    }
}

fn entry(model: &ListedModel) -> Value {
    json!({"type": "model", "id": model.id, "display_name": model.id, "created_at": model.created_at().to_string()})
}
