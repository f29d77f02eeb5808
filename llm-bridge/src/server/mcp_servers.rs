//! `GET /api/mcp-servers` and `POST /api/mcp-servers/{server}/accept`: the MCP servers whose tools this one has.

use axum::{
    Extension, Json,
    extract::State,
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::Serialize;
use toolrack_remote::{
    AcceptError, BreakerState, SourceReport,
    mcp::{McpServerReport, McpServers, McpState},
};

use super::{
    App,
    body::JsonBody,
    identity::Identity,
    modules::{ADMINS, Accepting, CHANGED, digest, no_digest, not_accepted, refused, usable_of},
    name::Name,
    openapi::Operation,
};

/// The MCP servers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{S}List")]
struct McpServerList<S> {
    mcp_servers: Vec<S>,
}

/// What a server is to somebody who may use its tools: where it is, and what is wrong with it, is the operator's business.
#[derive(Serialize, JsonSchema)]
struct McpServerSummary {
    /// Its name, the prefix of its tools.
    name: String,
    /// Whether it is there.
    state: McpState,
    /// How many of its tools the user may see.
    tools: usize,
    /// Whether it is called.
    breaker: BreakerState,
}

pub(super) fn list_operation() -> Operation {
    Operation::new("MCP", "list_mcp_servers", "The MCP servers whose tools this one has")
        .answers::<McpServerList<McpServerSummary>>(200, "The servers that the user may use.")
        .answers::<McpServerList<McpServerReport>>(
            200,
            "To admins of the tenant `default`: all there is to know.",
        )
}

pub(super) async fn list(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    let reports = app.mcp_servers.as_ref().map(McpServers::reports).unwrap_or_default();
    if refused(&identity, "MCP servers").is_none() {
        return Json(McpServerList { mcp_servers: reports }).into_response();
    }
    let may_see = |report: &&McpServerReport| {
        identity.caller.allowed_modules.as_ref().is_none_or(|allowed| allowed.contains(&report.source.name))
    };
    let mcp_servers = reports.iter().filter(may_see).map(|report| for_users(report, &identity)).collect();
    Json(McpServerList { mcp_servers }).into_response()
}

fn for_users(report: &McpServerReport, identity: &Identity) -> McpServerSummary {
    let SourceReport { name, breaker, .. } = &report.source;
    let tools = usable_of(identity, name);
    McpServerSummary { name: name.clone(), state: report.state, tools, breaker: *breaker }
}

pub(super) fn accept_operation() -> Operation {
    Operation::new("MCP", "accept_mcp_server", "Accepts an MCP server's tools as they are now known")
        .path("server", "The server's name.")
        .reads::<Accepting>()
        .answers::<McpServerReport>(200, "The server as it is now known.")
        .refuses(403, ADMINS)
        .refuses(404, "There is no such server (`mcp_server_not_found`).")
        .refuses(409, CHANGED)
}

pub(super) async fn accept(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(server): Name,
    JsonBody(body): JsonBody,
) -> Response {
    if let Some(refused) = refused(&identity, "MCP servers") {
        return refused;
    }
    let Some(digest) = digest(&body) else { return no_digest() };
    let accepted = match &app.mcp_servers {
        Some(servers) => servers.accept(&server, digest).await,
        None => Err(AcceptError::Unknown { kind: "MCP server", name: server }),
    };
    accepted.map_or_else(
        |fault| not_accepted(&fault, "mcp_server_not_found"),
        |report| Json(report).into_response(),
    )
}
