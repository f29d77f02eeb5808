//! The models, in the form of the SDK that asks: `GET /v1/models`, `GET /v1beta/models` and one model below them. For the operator
//! `GET /api/upstreams`: the model servers.

use std::collections::HashSet;

use axum::{
    Extension, Json,
    extract::State,
    http::{Method, StatusCode},
    response::Response,
};
use schemars::JsonSchema;
use serde::Serialize;
use toolrack_apis::{Failure, FailureKind, ListedModel};

use super::fronts::{ListedBy, reply};
use crate::{
    server::{
        App,
        callers::admin::Operator,
        calls::modules::NOT_ADMIN,
        openapi::{JsonObject, ModelList, Operation},
        requests::name::Name,
        routes::Routes,
    },
    turn::PLAIN,
    upstream::UpstreamReport,
};

const FORMS: &str = "In Anthropic's form for a request with the header `anthropic-version`, in Gemini's for one with \
    `x-goog-api-key` or `?key=` and below `/v1beta` and `/v1alpha`, otherwise in OpenAI's. `NAME:plain` is the model `NAME` without the server's tools.";

/// The routes of the lists.
pub(in crate::server) fn routes() -> Routes {
    Routes::new()
        .add("/v1/models", list, list_operation("list_models").answers::<ModelList>(200, "The models."))
        .add(
            "/v1beta/models",
            list,
            list_operation("list_models_v1beta").answers::<JsonObject>(200, "The models."),
        )
        .add(
            "/v1alpha/models",
            list,
            list_operation("list_models_v1alpha").answers::<JsonObject>(200, "The models."),
        )
        .add("/v1/models/{*call}", show, show_operation("get_model"))
        .add("/v1alpha/models/{*call}", show, show_operation("get_model_v1alpha"))
        .add("/v1beta/models/{*call}", show, show_operation("get_model_v1beta"))
        .add("/api/upstreams", upstreams, upstreams_operation())
}

/// The model servers.
#[derive(Serialize, JsonSchema)]
struct UpstreamList {
    upstreams: Vec<UpstreamReport>,
}

fn upstreams_operation() -> Operation {
    Operation::new(Method::GET, "Server", "list_upstreams", "The model servers, and whether they answer")
        .details("Each is asked for its models, for ten seconds at most; of several, what was listed within five seconds counts.")
        .answers::<UpstreamList>(200, "The model servers, in the order in which a model is looked for.")
        .refuses(403, NOT_ADMIN)
}

async fn upstreams(State(app): State<App>, _: Operator) -> Json<UpstreamList> {
    Json(UpstreamList { upstreams: app.backend.upstream().reports().await })
}

fn list_operation(id: &'static str) -> Operation {
    Operation::new(Method::GET, "Chat", id, "The models of the model server")
        .details(FORMS)
        .header("anthropic-version", "Chooses Anthropic's form.")
        .refuses(502, "The model server does not answer with a list (`upstream_error`).")
}

fn show_operation(id: &'static str) -> Operation {
    Operation::new(Method::GET, "Chat", id, "One of the models")
        .details(FORMS)
        .path("call", "The model's name, which may have slashes and colons.")
        .header("anthropic-version", "Chooses Anthropic's form.")
        .answers::<JsonObject>(200, "The model.")
        .refuses(404, "There is no such model.")
        .refuses(502, "The model server does not answer with a list (`upstream_error`).")
}

/// The models that the model server lists, with the sizes of their contexts, and whether they see pictures, as it is set or as the list
/// says.
///
/// # Errors
/// When the model server does not answer with a list.
pub(in crate::server) async fn listed(app: &App) -> Result<Vec<ListedModel>, Failure> {
    let status = StatusCode::BAD_GATEWAY.as_u16();
    let upstream = app.backend.upstream();
    let models = upstream.listed().await.map_err(|error| Failure {
        kind: FailureKind::Upstream,
        status,
        ..Failure::from(error)
    })?;
    let settings = app.backend.settings();
    let with_context = |model: ListedModel| {
        let found = || upstream.known_context(&model.id);
        let context = settings.context_of(&model.id).or_else(found).or(model.context);
        let pictures = settings.models.pictures(&model.id).or(model.pictures);
        ListedModel { context, pictures, ..model }
    };
    Ok(models.into_iter().map(with_context).collect())
}

/// All models that answer questions, each with its name for a request without the server's tools, and those that make vectors.
///
/// # Errors
/// As [`listed`].
pub(in crate::server) async fn all(app: &App) -> Result<Vec<ListedModel>, Failure> {
    let models = listed(app).await?;
    let names: HashSet<&str> = models.iter().map(|model| model.id.as_str()).collect();
    let plain: Vec<ListedModel> = models
        .iter()
        // Another Toolrack lists them itself.
        .filter(|model| !model.embeds && !model.id.ends_with(PLAIN))
        .map(|model| model.named(format!("{}{PLAIN}", model.id)))
        .filter(|plain| !names.contains(plain.id.as_str()))
        .collect();
    Ok(models.into_iter().chain(plain).collect())
}

/// That there is no model of a name.
pub(in crate::server) fn unknown(name: &str, models: &[ListedModel]) -> Failure {
    let near = registry_core::nearest(name, models.iter().map(|model| model.id.as_str()));
    let hint = near.first().map(|id| format!("; did you mean `{id}`?")).unwrap_or_default();
    Failure::new(FailureKind::NotFound, format!("there is no model `{name}`{hint}"))
}

async fn list(State(app): State<App>, Extension(ListedBy(front)): Extension<ListedBy>) -> Response {
    reply(all(&app).await.map_or_else(|failure| front.failure(&failure), |models| front.list(&models)))
}

async fn show(
    State(app): State<App>,
    Extension(ListedBy(front)): Extension<ListedBy>,
    Name(name): Name,
) -> Response {
    let name = name.trim_end_matches('/');
    let found = all(&app).await.and_then(|models| {
        let model = models.iter().find(|model| model.id == name);
        model.cloned().ok_or_else(|| unknown(name, &models))
    });
    reply(found.map_or_else(|failure| front.failure(&failure), |model| front.model(&model)))
}
