//! `GET /api/tool-definitions` and `GET /api/tool-check`: the tools as they are written for models.

use axum::{Extension, Json, extract::State, http::Method};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolrack_apis::Provider;

use crate::{
    checking::{self, Checked},
    definition::{definer, subject},
    server::{
        App,
        callers::{
            admin::{Admin, NOT_ADMIN},
            identity::Identity,
        },
        openapi::Operation,
        requests::query::QueryParameters,
        routes::Routes,
    },
};

pub(in crate::server) fn routes() -> Routes {
    Routes::new().add("/api/tool-definitions", define, define_operation()).add(
        "/api/tool-check",
        check,
        check_operation(),
    )
}

/// In which format.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    format: Option<Provider>,
    #[serde(default)]
    strict: bool,
}

/// Definitions of tools in the format of an API.
#[derive(Serialize, JsonSchema)]
struct ToolDefinitions {
    /// The `tools` of a request to that API.
    definitions: Value,
    /// What the format cannot express, and the tools that are left out for it.
    notes: Vec<String>,
}

fn define_operation() -> Operation {
    let formats: Vec<&str> = Provider::ALL.iter().map(|provider| provider.name()).collect();
    Operation::new(
        Method::GET,
        "Tools",
        "define_tools",
        "The definitions of the tools that the user may call, in the format of an API",
    )
    .query_choice("format", "The API; `openai` where it is not said.", &formats)
    .query_flag("strict", "Whether schemas are strict, where the API has such.")
    .answers::<ToolDefinitions>(200, "The definitions of the tools that are ready.")
    .refuses(400, "There is no such format, or a query parameter is unknown (`invalid_request_error`).")
}

async fn define(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    QueryParameters(Wanted { format, strict }): QueryParameters<Wanted>,
) -> Json<ToolDefinitions> {
    let provider = format.unwrap_or(Provider::OpenAi);
    let selection = identity.registry.select(&identity.context());
    let tools = selection.tools().iter().map(|tool| subject(tool));
    let made = definer(provider, strict, &identity.registry, &app.settings.mcp).definitions(tools);
    let losses = made.losses.iter().map(ToString::to_string);
    let notes = losses.chain(made.left_out.iter().map(ToString::to_string)).collect();
    Json(ToolDefinitions { definitions: made.list, notes })
}

fn check_operation() -> Operation {
    Operation::new(Method::GET, "Tools", "check_tools", "What is to be mended in the tools")
        .details("Names, descriptions, schemas, effects, and the size of all in a prompt, as `toolrack tools check` does. For admins of the tenant `default` also tools and modules that the configuration names and are not there.")
        .query_number("budget", "How many tokens all definitions together may take; 8000 where it is not said.", 0, i64::MAX)
        .answers::<Checked>(200, "What was found.")
        .refuses(400, "`budget` is no whole number, or a query parameter is unknown (`invalid_request_error`).")
        .refuses(403, NOT_ADMIN)
}

/// Within what.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Within {
    budget: Option<usize>,
}

async fn check(
    State(app): State<App>,
    Admin(identity): Admin,
    QueryParameters(Within { budget }): QueryParameters<Within>,
) -> Json<Checked> {
    let mut checked = checking::check(&identity.registry, budget.unwrap_or(checking::BUDGET));
    // The configuration is all tenants'.
    if let Some(unknown) = app.settings.unknown_names.as_ref().filter(|_| identity.require_operator().is_ok())
    {
        checked.warnings.extend(unknown(&identity.registry));
    }
    Json(checked)
}
