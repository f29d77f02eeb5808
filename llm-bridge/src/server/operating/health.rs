//! `GET /healthz`, and `GET /health`, which is what model servers call it.

use axum::{Json, extract::State, http::Method};
use schemars::JsonSchema;
use serde::Serialize;

use crate::server::{App, openapi::Operation};

/// The state of the server.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct Health {
    /// `ok`.
    status: &'static str,
    /// The kind of model server: `demo`, one such as `llama.cpp` or `ollama`, or `openai` while it is not known; of several all.
    upstream: String,
    /// The model for requests that name none.
    model: Option<String>,
    /// How many tools there are.
    tools: usize,
    /// Whether people sign in on the page, at `/sign-in`.
    sign_in: bool,
    /// Whether the program is built again when a source is saved: `toolrack dev`.
    dev: bool,
}

pub(in crate::server) fn operation(id: &'static str) -> Operation {
    Operation::new(Method::GET, "Server", id, "Whether the server runs, and for which kind of model server")
        .answers::<Health>(200, "It runs.")
}

/// Needs no key, so it shows no address. It does not ask the model server, so it answers also when that is down.
pub(in crate::server) async fn health(State(app): State<App>) -> Json<Health> {
    Json(Health {
        status: "ok",
        upstream: app.backend.upstream().kind(),
        model: app.backend.settings().model.clone(),
        tools: app.backend.registry().len(),
        sign_in: app.settings.sign_in.as_ref().is_some_and(|sign_in| sign_in.has_page()),
        dev: app.settings.takeover.is_some(),
    })
}
