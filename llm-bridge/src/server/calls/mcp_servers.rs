//! `GET /api/mcp-servers` and `POST /api/mcp-servers/{server}/accept`: the MCP servers whose tools this server offers.

use axum::{
    Extension, Json,
    extract::State,
    http::Method,
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use toolrack_remote::{
    AcceptError, BreakerState,
    mcp::{McpServerReport, McpServers, McpState},
};

use super::modules::{Accepting, CHANGED, NOT_ADMIN, not_accepted, usable_of};
use crate::server::{
    App,
    callers::{
        admin::{self, Operator},
        identity::Identity,
    },
    openapi::Operation,
    requests::{api_error::ApiError, body::JsonBody, name::Name},
};

/// The MCP servers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{S}List")]
struct McpServerList<S> {
    mcp_servers: Vec<S>,
}

/// An MCP server as a user sees it. Its address and its faults are for admins.
#[derive(Serialize, JsonSchema)]
struct McpServerSummary {
    /// Its name, the prefix of its tools.
    name: String,
    /// Whether it is connected.
    state: McpState,
    /// How many of its tools the user may see.
    tools: usize,
    /// Whether it is called.
    breaker: BreakerState,
}

pub(in crate::server) fn list_operation() -> Operation {
    Operation::new(Method::GET, "MCP", "list_mcp_servers", "The MCP servers whose tools this server offers")
        .answers::<McpServerList<McpServerSummary>>(200, "The servers that the user may use.")
        .answers::<McpServerList<McpServerReport>>(200, "For admins of the tenant `default`: full reports.")
}

pub(in crate::server) async fn list(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
) -> Response {
    let reports = app.settings.mcp_servers.as_ref().map(McpServers::reports).unwrap_or_default();
    if identity.require_operator().is_ok() {
        return Json(McpServerList { mcp_servers: reports }).into_response();
    }
    let may_see = |report: &McpServerReport| identity.may_use_module(&report.source.name);
    let mcp_servers = reports.into_iter().filter(may_see).map(|report| McpServerSummary {
        tools: usable_of(&identity, &report.source.name),
        name: report.source.name,
        state: report.state,
        breaker: report.source.breaker,
    });
    Json(McpServerList { mcp_servers: mcp_servers.collect() }).into_response()
}

pub(in crate::server) fn accept_operation() -> Operation {
    Operation::new(Method::POST, "MCP", "accept_mcp_server", "Accept the tools of an MCP server as listed")
        .path("server", "The server's name.")
        .reads::<Accepting>()
        .answers::<McpServerReport>(200, "The server's report.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "There is no such server (`mcp_server_not_found`).")
        .refuses(409, CHANGED)
}

pub(in crate::server) async fn accept(
    State(app): State<App>,
    _: Operator,
    Extension(identity): Extension<Identity>,
    Name(server): Name,
    JsonBody(Accepting { digest }): JsonBody<Accepting>,
) -> Result<Json<McpServerReport>, ApiError> {
    let arguments = json!({"server": server, "digest": digest});
    let accept = async move {
        let accepted = match &app.settings.mcp_servers {
            Some(servers) => servers.accept(&server, &digest).await,
            None => Err(AcceptError::Unknown { kind: "MCP server", name: server }),
        };
        accepted.map_err(|fault| not_accepted(&fault, "mcp_server_not_found"))
    };
    admin::change(&identity, "toolrack mcp-servers accept", arguments, accept).await.map(Json)
}
