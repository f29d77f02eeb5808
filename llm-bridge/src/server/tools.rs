//! `GET /api/tools`: the tools there are, or those that a search finds, and whether they can be used; `POST /api/tools/{name}`: on and off.

use axum::{
    Extension, Json,
    extract::{Query, rejection::QueryRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use registry_core::{Caller, ChangeError, Permission, Query as Search, RegistryError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    body::{JsonBody, misread},
    error,
    identity::Identity,
    name::Name,
    openapi::Operation,
    store_failed,
};
use crate::listing;

/// Names and values as they stand behind the `?`, in their order.
type Parameters = Query<Vec<(String, String)>>;

/// Tools as they are listed.
#[derive(Serialize, JsonSchema)]
struct ToolList {
    tools: Vec<listing::Row>,
}

pub(super) fn list_operation() -> Operation {
    Operation::new("Tools", "list_tools", "The tools that the user may see, or those that a search finds")
        .query("search", "Words to look for.")
        .query_list("tag", "A tag that a tool has to have.")
        .answers::<ToolList>(200, "The tools by name, or what is found with the best first.")
        .refuses(400, "Something else is asked for, or `search` is there twice (`invalid_request_error`).")
}

pub(super) async fn list(
    Extension(identity): Extension<Identity>,
    parameters: Result<Parameters, QueryRejection>,
) -> Response {
    let search = match parameters.map_err(|fault| fault.body_text()).and_then(search) {
        Ok(search) => search,
        Err(message) => {
            return error(StatusCode::BAD_REQUEST, "invalid_request_error", &message, Some("query"));
        }
    };
    let Identity { registry, caller, .. } = identity;
    let context = registry.context(caller);
    Json(ToolList { tools: listing::found(&registry, &context, &search) }).into_response()
}

/// What is looked for; what is empty is not asked for, as a form sends it.
fn search(Query(parameters): Parameters) -> Result<Search, String> {
    let mut search = Search::default();
    for (name, value) in parameters {
        match name.as_str() {
            "search" if search.text.is_empty() => search.text = value,
            "search" => return Err("`search` is there twice; write all words into one".to_owned()),
            "tag" => search.tags.extend(Some(value).filter(|tag| !tag.is_empty())),
            _ => {
                return Err(
                    "only `search` and `tag` can be asked for, as in `?search=weather&tag=web`".to_owned()
                );
            }
        }
    }
    Ok(search)
}

/// On or off.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ToolSwitch")]
struct Switch {
    /// Whether the tool can be used.
    enabled: bool,
}

/// What a tool was switched to.
#[derive(Serialize, JsonSchema)]
struct Switched {
    /// The tool's name.
    name: String,
    /// Whether it can be used.
    enabled: bool,
}

pub(super) fn switch_operation() -> Operation {
    Operation::new("Tools", "switch_tool", "Switches a tool on or off")
        .details("It holds at once, for running turns too.")
        .path("name", "The tool's name.")
        .reads::<Switch>()
        .answers::<Switched>(200, "It was done.")
        .refuses(403, "The user is not of the level admin (`permission_denied`).")
        .refuses(404, "No tool has that name (`tool_not_found`).")
        .refuses(409, "This tool cannot be switched (`tool_not_changed`).")
}

/// Why somebody may not change the tenant's tools.
fn refused(identity: &Identity, what: &str) -> Option<Response> {
    let Caller { user, level, .. } = &identity.caller;
    let how = identity.how_to_get(Permission::Admin);
    let message = format!("{what} needs the level admin, {user} has {level}; {how}");
    (*level < Permission::Admin).then(|| error(StatusCode::FORBIDDEN, "permission_denied", &message, None))
}

pub(super) async fn switch(
    Extension(identity): Extension<Identity>,
    Name(name): Name,
    JsonBody(body): JsonBody,
) -> Response {
    if let Some(refused) = refused(&identity, "switching tools") {
        return refused;
    }
    let Identity { stored, .. } = identity;
    let Switch { enabled } = match serde_json::from_value(body) {
        Ok(switch) => switch,
        Err(fault) => {
            let message = format!(
                "not understood: {}; send `{{\"enabled\": true}}` or `{{\"enabled\": false}}`",
                misread(&fault)
            );
            return error(StatusCode::BAD_REQUEST, "invalid_request_error", &message, Some("enabled"));
        }
    };
    match stored.set_enabled(&name, enabled).await {
        Ok(_) => Json(Switched { name, enabled }).into_response(),
        Err(ChangeError::Rule(fault @ RegistryError::Unknown { .. })) => {
            error(StatusCode::NOT_FOUND, "tool_not_found", &fault.to_string(), None)
        }
        Err(ChangeError::Store(cause)) => store_failed(&cause),
        Err(fault) => error(StatusCode::CONFLICT, "tool_not_changed", &fault.to_string(), None),
    }
}
