//! `GET /api/mcp-servers` and `POST /api/mcp-servers/{server}/accept`: the MCP servers whose tools this one has.

use axum::{
    Extension, Json,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use registry_core::source::{
    mcp::{McpServerReport, McpServers},
    module::AcceptError,
};
use serde_json::{Value, json};

use super::{
    App,
    body::JsonBody,
    identity::Identity,
    modules::{digest, no_digest, not_accepted, refused, usable_of},
};

pub(super) async fn list(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    let reports = app.mcp_servers.as_ref().map(McpServers::reports).unwrap_or_default();
    if refused(&identity, "MCP servers").is_none() {
        return Json(json!({"mcp_servers": reports})).into_response();
    }
    let may_see = |report: &&McpServerReport| {
        identity.caller.allowed_modules.as_ref().is_none_or(|allowed| allowed.contains(&report.name))
    };
    let servers: Vec<Value> =
        reports.iter().filter(may_see).map(|report| for_users(report, &identity)).collect();
    Json(json!({"mcp_servers": servers})).into_response()
}

/// What a server is to somebody who may use its tools: where it is, and what is wrong with it, is the operator's business.
fn for_users(report: &McpServerReport, identity: &Identity) -> Value {
    let tools = usable_of(identity, &report.name);
    json!({"name": report.name, "state": report.state, "tools": tools, "breaker": report.breaker})
}

pub(super) async fn accept(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Path(server): Path<String>,
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
