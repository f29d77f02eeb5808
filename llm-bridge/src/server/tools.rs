//! `/api/tools`: the tools there are, or those that a search finds, and whether they can be used; registered, switched and removed by admins.

use axum::{
    Extension, Json,
    extract::{Query, rejection::QueryRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use registry_core::{ChangeError, Query as Search, RegistryError, ToolRegistration, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    admin::{self, ADMINS_ONLY},
    body::{JsonBody, misread},
    error,
    identity::Identity,
    name::Name,
    openapi::Operation,
    refusal::Refusal,
};
use crate::{
    listing,
    recorded::Change,
    registering::{ToolChange, read_spec},
};

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

pub(super) fn switch_operation() -> Operation {
    Operation::new("Tools", "switch_tool", "Switches a tool on or off")
        .details("It holds at once, for running turns too.")
        .path("name", "The tool's name.")
        .reads::<Switch>()
        .answers::<ToolRegistration>(200, "The registration as it is now.")
        .refuses(403, ADMINS_ONLY)
        .refuses(404, "No tool has that name (`tool_not_found`).")
        .refuses(409, "This tool cannot be switched (`tool_not_changed`).")
}

pub(super) async fn switch(
    Extension(identity): Extension<Identity>,
    Name(name): Name,
    JsonBody(body): JsonBody,
) -> Result<Response, Refusal> {
    let Switch { enabled } = serde_json::from_value(body).map_err(|fault| {
        let example = "`{\"enabled\": true}` or `{\"enabled\": false}`";
        Refusal::invalid("enabled", format!("not understood: {}; send {example}", misread(&fault)))
    })?;
    change(&identity, ToolChange::Switch { name, enabled }).await
}

pub(super) fn register_operation() -> Operation {
    Operation::new("Tools", "register_tool", "Registers a tool, or another version of it")
        .details("Where no program that shares the store has its code, the tool is listed and cannot be called.")
        .reads::<ToolSpec>()
        .answers::<ToolRegistration>(200, "The registration.")
        .refuses(403, ADMINS_ONLY)
        .refuses(409, "The version is there with another spec, or the tool is not one that was registered (`tool_not_changed`).")
}

pub(super) async fn register(
    Extension(identity): Extension<Identity>,
    JsonBody(body): JsonBody,
) -> Result<Response, Refusal> {
    let spec = read_spec(body.to_string().as_bytes()).map_err(|fault| Refusal::invalid("body", fault))?;
    change(&identity, ToolChange::Register(Box::new(spec))).await
}

pub(super) fn remove_operation() -> Operation {
    Operation::new("Tools", "remove_tool", "Removes a tool that was registered")
        .details("Where there is none of that name, nothing is to do.")
        .path("name", "The tool's name.")
        .answers_nothing(204, "There is no such tool any more.")
        .refuses(403, ADMINS_ONLY)
        .refuses(409, "The tool is compiled in, or comes from a file or another server (`tool_not_changed`).")
}

pub(super) async fn remove(
    Extension(identity): Extension<Identity>,
    Name(name): Name,
) -> Result<Response, Refusal> {
    change(&identity, ToolChange::Remove { name }).await
}

/// Makes a change; answers with the registration where there is one then.
async fn change(identity: &Identity, change: ToolChange) -> Result<Response, Refusal> {
    let Change { command, arguments, .. } = change.recorded(identity.registry.tenant());
    let made = admin::change(identity, command, arguments, change.make(&identity.stored)).await?;
    Ok(made.map_or_else(|| StatusCode::NO_CONTENT.into_response(), |made| Json(made).into_response()))
}

impl From<ChangeError> for Refusal {
    fn from(fault: ChangeError) -> Self {
        let (status, kind) = match &fault {
            ChangeError::Store(cause) => return Self::Store(cause.to_string()),
            ChangeError::Rule(RegistryError::Unknown { .. }) => (StatusCode::NOT_FOUND, "tool_not_found"),
            ChangeError::Rule(RegistryError::InvalidSchema { .. }) => {
                (StatusCode::BAD_REQUEST, "invalid_request_error")
            }
            _ => (StatusCode::CONFLICT, "tool_not_changed"),
        };
        Self::new(status, kind, fault.to_string(), None)
    }
}
