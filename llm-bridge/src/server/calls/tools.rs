//! `/api/tools` lists and searches tools; admins register, enable, disable and remove them.

use axum::{
    Extension, Json,
    extract::{Query, rejection::QueryRejection},
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use registry_core::{
    ChangeError, Permission, Query as Search, RegistryError, ToolLimits, ToolRegistration, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_http::compression::CompressionLayer;

use crate::{
    listing,
    recorded::Change,
    registering::{ToolChange, read_spec},
    server::{
        callers::{
            admin::{self, Admin, NOT_ADMIN},
            identity::Identity,
        },
        openapi::Operation,
        requests::{
            api_error::ApiError,
            body::{Body, JsonBody},
            name::Name,
        },
        routes::Routes,
    },
};

/// A longer search is refused, in bytes, and so is one for more words or tags: each is looked for in each tool.
const MAX_SEARCH: usize = 1000;
const MAX_WORDS: usize = 8;

pub(in crate::server) fn routes() -> Routes {
    let listed = Routes::new().add("/api/tools", list, list_operation());
    // A page asks for it when it is opened, and schemas are many words of few kinds.
    let listed = listed.behind(|router| router.layer(CompressionLayer::new()));
    listed
        .add("/api/tools", register, register_operation())
        .add("/api/tools/{name}", switch, switch_operation())
        .add("/api/tools/{name}", remove, remove_operation())
}

/// Query parameters in their order.
type Parameters = Query<Vec<(String, String)>>;

/// Tools as they are listed.
#[derive(Serialize, JsonSchema)]
struct ToolList {
    tools: Vec<listing::Row>,
}

fn list_operation() -> Operation {
    Operation::new(
        Method::GET,
        "Tools",
        "list_tools",
        "The tools that the user may see, or those that a search finds",
    )
    .query("search", "Words to look for, 8 at most.")
    .query_list("tag", "A tag that a tool has to have.")
    .query("level", "Lists what a user of this level may see: `guest`, `user`, `admin` or `owner`. For admins, up to their own level.")
    .query("persona", "The same under this persona.")
    .answers::<ToolList>(200, "The tools by name, or what is found with the best first.")
    .refuses(
        400,
        "A query parameter is unknown, or `search` is repeated or too long (`invalid_request_error`).",
    )
    .refuses(403, "It is for others, and the user is no admin or of a lower level (`permission_denied`), or there is no such persona (`persona_not_allowed`).")
}

async fn list(
    Extension(identity): Extension<Identity>,
    parameters: Result<Parameters, QueryRejection>,
) -> Result<Json<ToolList>, ApiError> {
    let asked = parameters.map_err(|fault| fault.body_text()).and_then(asked);
    let Asked { search, level, persona } = asked.map_err(|message| ApiError::invalid("query", message))?;
    let caller = match level.is_some() || persona.is_some() {
        true => {
            let least = level.map_or(Permission::Admin, |level| level.max(Permission::Admin));
            identity.require(least, "seeing the tools of others")?;
            identity.seen_as(level, persona.as_deref()).await?
        }
        false => identity.caller,
    };
    let registry = identity.registry;
    let context = registry.context(caller);
    Ok(Json(ToolList { tools: listing::found(&registry, &context, &search) }))
}

/// What is to be listed, and for whom, where it is not the caller.
#[derive(Debug, Default)]
struct Asked {
    search: Search,
    level: Option<Permission>,
    persona: Option<String>,
}

/// What the parameters ask for. Empty ones count as missing, as forms send them.
fn asked(Query(parameters): Parameters) -> Result<Asked, String> {
    let Asked { mut search, mut level, mut persona } = Asked::default();
    for (name, value) in parameters {
        match name.as_str() {
            "level" if value.is_empty() => {}
            "level" => level = Some(value.parse()?),
            "persona" => persona = Some(value).filter(|persona| !persona.is_empty()),
            "search" if search.text.is_empty() => search.text = value,
            "search" => return Err("`search` may be given once; put all words into one".to_owned()),
            "tag" => search.tags.extend(Some(value).filter(|tag| !tag.is_empty())),
            _ => {
                return Err(
                    "the query parameters are `search`, `tag`, `level` and `persona`, as in `?search=weather&tag=web`".to_owned()
                );
            }
        }
    }
    let words = search.text.split_whitespace().count();
    if search.text.len() > MAX_SEARCH || words > MAX_WORDS || search.tags.len() > MAX_WORDS {
        return Err(format!(
            "a search has at most {MAX_WORDS} words, {MAX_SEARCH} bytes and {MAX_WORDS} tags; look for fewer"
        ));
    }
    Ok(Asked { search, level, persona })
}

/// On or off, and limits; what is not named stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ToolSwitch", extend("minProperties" = 1))]
struct Switch {
    /// Whether the tool can be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    enabled: Option<bool>,
    /// What is set in place of the tool's own limits, all of it; `{}` for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ToolLimits")]
    limits: Option<ToolLimits>,
}

impl Body for Switch {
    const EXAMPLE: &str = "`{\"enabled\": true}`, `{\"enabled\": false}` or `{\"limits\": {\"daily_limit\": 100, \"cooldown_seconds\": 2}}`";
}

fn switch_operation() -> Operation {
    Operation::new(Method::POST, "Tools", "switch_tool", "Enable or disable a tool, or set its limits")
        .details("It takes effect at once, also in running turns.")
        .path("name", "The tool's name.")
        .reads::<Switch>()
        .answers::<ToolRegistration>(200, "The registration as it is now.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "No tool has that name (`tool_not_found`).")
        .refuses(409, "This tool cannot be enabled or disabled (`tool_not_changed`).")
}

async fn switch(
    Admin(identity): Admin,
    Name(name): Name,
    JsonBody(Switch { enabled, limits }): JsonBody<Switch>,
) -> Result<Response, ApiError> {
    let limit = limits.map(|limits| ToolChange::Limit { name: name.clone(), limits });
    let switch = enabled.map(|enabled| ToolChange::Switch { name, enabled });
    match (limit, switch) {
        (None, None) => {
            Err(ApiError::invalid("body", format!("nothing is to change; write {}", Switch::EXAMPLE)))
        }
        (Some(one), None) | (None, Some(one)) => change(&identity, one).await,
        (Some(limit), Some(switch)) => {
            change(&identity, limit).await?;
            change(&identity, switch).await
        }
    }
}

fn register_operation() -> Operation {
    Operation::new(Method::POST, "Tools", "register_tool", "Register a tool, or another version of it")
        .details("Without code in a program that shares the store the tool is listed and cannot be called.")
        .reads::<ToolSpec>()
        .answers::<ToolRegistration>(200, "The registration.")
        .refuses(403, NOT_ADMIN)
        .refuses(409, "The version exists with another spec, or the tool was not registered at run time (`tool_not_changed`).")
}

async fn register(Admin(identity): Admin, JsonBody(body): JsonBody<Value>) -> Result<Response, ApiError> {
    let spec = read_spec(body.to_string().as_bytes()).map_err(|fault| ApiError::invalid("body", fault))?;
    change(&identity, ToolChange::Register(Box::new(spec))).await
}

fn remove_operation() -> Operation {
    Operation::new(Method::DELETE, "Tools", "remove_tool", "Remove a tool that was registered at run time")
        .details("Without a tool of that name there is nothing to do.")
        .path("name", "The tool's name.")
        .answers_nothing(204, "There is no such tool any more.")
        .refuses(403, NOT_ADMIN)
        .refuses(409, "The tool is compiled in, or comes from a file or another server (`tool_not_changed`).")
}

async fn remove(Extension(identity): Extension<Identity>, Name(name): Name) -> Result<Response, ApiError> {
    change(&identity, ToolChange::Remove { name }).await
}

/// Makes a change; answers with the registration, where there is one afterwards.
async fn change(identity: &Identity, change: ToolChange) -> Result<Response, ApiError> {
    let Change { command, arguments, .. } = change.recorded(identity.registry.tenant());
    let made = admin::change(identity, command, arguments, change.make(&identity.stored)).await?;
    Ok(made.map_or_else(|| StatusCode::NO_CONTENT.into_response(), |made| Json(made).into_response()))
}

impl From<ChangeError> for ApiError {
    fn from(fault: ChangeError) -> Self {
        match fault {
            ChangeError::Store(cause) => cause.into(),
            ChangeError::Rule(RegistryError::Unknown { .. }) => {
                Self::not_found("tool_not_found", fault.to_string())
            }
            ChangeError::Rule(RegistryError::InvalidSchema { field, .. }) => {
                Self::invalid(field, fault.to_string())
            }
            fault => Self::new(StatusCode::CONFLICT, "tool_not_changed", fault.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l6_a_search_for_tools_has_so_many_words_and_tags_and_no_more() {
        let asked = |name: &str, values: Vec<String>| {
            super::asked(Query(values.into_iter().map(|value| (name.to_owned(), value)).collect()))
        };
        let words = |count: usize| vec![vec!["a"; count].join(" ")];
        assert!(asked("search", words(8)).is_ok() && asked("tag", vec!["a".to_owned(); 8]).is_ok());
        assert!(asked("search", vec!["a".repeat(1000)]).is_ok());
        for (name, values) in
            [("search", words(9)), ("search", vec!["a".repeat(1001)]), ("tag", vec!["a".to_owned(); 9])]
        {
            assert!(asked(name, values).unwrap_err().contains("look for fewer"), "{name}");
        }
    }
}
