//! `GET /api/tools` lists or searches tools; `POST /api/tools/{name}` enables and disables one.

use axum::{
    Extension, Json,
    extract::{Query, rejection::QueryRejection},
    http::{Method, StatusCode},
};
use registry_core::{ChangeError, Permission, Query as Search, RegistryError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    api_error::ApiError,
    body::{Body, JsonBody},
    identity::Identity,
    name::Name,
    openapi::Operation,
};
use crate::listing;

/// Query parameters in their order.
type Parameters = Query<Vec<(String, String)>>;

/// Tools as they are listed.
#[derive(Serialize, JsonSchema)]
pub(super) struct ToolList {
    tools: Vec<listing::Row>,
}

pub(super) fn list_operation() -> Operation {
    Operation::new(
        Method::GET,
        "Tools",
        "list_tools",
        "The tools that the user may see, or those that a search finds",
    )
    .query("search", "Words to look for.")
    .query_list("tag", "A tag that a tool has to have.")
    .answers::<ToolList>(200, "The tools by name, or what is found with the best first.")
    .refuses(400, "A query parameter is unknown, or `search` is repeated (`invalid_request_error`).")
}

pub(super) async fn list(
    Extension(identity): Extension<Identity>,
    parameters: Result<Parameters, QueryRejection>,
) -> Result<Json<ToolList>, ApiError> {
    let search = parameters.map_err(|fault| fault.body_text()).and_then(search);
    let search = search.map_err(|message| ApiError::invalid("query", message))?;
    let Identity { registry, caller, .. } = identity;
    let context = registry.context(caller);
    Ok(Json(ToolList { tools: listing::found(&registry, &context, &search) }))
}

/// The search that the parameters ask for. Empty ones count as missing, as forms send them.
fn search(Query(parameters): Parameters) -> Result<Search, String> {
    let mut search = Search::default();
    for (name, value) in parameters {
        match name.as_str() {
            "search" if search.text.is_empty() => search.text = value,
            "search" => return Err("`search` may be given once; put all words into one".to_owned()),
            "tag" => search.tags.extend(Some(value).filter(|tag| !tag.is_empty())),
            _ => {
                return Err(
                    "the query parameters are `search` and `tag`, as in `?search=weather&tag=web`".to_owned()
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
pub(super) struct Switch {
    /// Whether the tool can be used.
    enabled: bool,
}

impl Body for Switch {
    const EXAMPLE: &str = "`{\"enabled\": true}` or `{\"enabled\": false}`";
}

/// A tool and whether it is on.
#[derive(Serialize, JsonSchema)]
pub(super) struct Switched {
    /// The tool's name.
    name: String,
    /// Whether it can be used.
    enabled: bool,
}

pub(super) fn switch_operation() -> Operation {
    Operation::new(Method::POST, "Tools", "switch_tool", "Enable or disable a tool")
        .details("It takes effect at once, also in running turns.")
        .path("name", "The tool's name.")
        .reads::<Switch>()
        .answers::<Switched>(200, "The tool was enabled or disabled.")
        .refuses(403, "The user is not an admin (`permission_denied`).")
        .refuses(404, "No tool has that name (`tool_not_found`).")
        .refuses(409, "This tool cannot be enabled or disabled (`tool_not_changed`).")
}

pub(super) async fn switch(
    Extension(identity): Extension<Identity>,
    Name(name): Name,
    JsonBody(Switch { enabled }): JsonBody<Switch>,
) -> Result<Json<Switched>, ApiError> {
    identity.require(Permission::Admin, "enabling and disabling tools")?;
    match identity.stored.set_enabled(&name, enabled).await {
        Ok(_) => Ok(Json(Switched { name, enabled })),
        Err(ChangeError::Store(cause)) => Err(cause.into()),
        Err(ChangeError::Rule(fault @ RegistryError::Unknown { .. })) => {
            Err(ApiError::not_found("tool_not_found", fault.to_string()))
        }
        Err(fault) => Err(ApiError::new(StatusCode::CONFLICT, "tool_not_changed", fault.to_string())),
    }
}
