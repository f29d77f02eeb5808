//! `GET /api/tools`: the tools there are and whether they can be used.

use axum::{Json, extract::State};
use serde_json::{Value, json};

use super::App;
use crate::listing;

pub(super) async fn list(State(app): State<App>) -> Json<Value> {
    let registry = app.backend.registry();
    let context = registry.context(app.settings.caller.clone());
    Json(json!({"tools": listing::rows(registry, &context, false)}))
}
