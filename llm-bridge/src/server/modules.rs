//! Modules over HTTP, both ways: `GET /manifest` is this server as a module of another; `GET /api/modules`, `POST /refresh-tools`
//! and `POST /api/modules/{module}/execute` and `…/accept` are about the modules that it has.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Path, Request, State},
    http::{HeaderMap, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use registry_core::{
    Caller, DEFAULT_TENANT, Permission, Registry,
    source::module::{AcceptError, ModuleReport, Modules, ModulesSettings},
    store::MemoryManifests,
};
use serde_json::{Value, json};

use super::{
    App,
    body::JsonBody,
    error,
    execute::{Door, make_call},
    identity::Identity,
    store_failed,
};

const MODULES: &str = "modules";

/// For a registry without modules.
///
/// # Errors
/// When the system's TLS cannot be set up.
pub(super) fn none(registry: &Registry) -> Result<Modules, String> {
    let manifests = Arc::new(MemoryManifests::default());
    let modules = Modules::new(registry, ModulesSettings::default(), manifests.clone(), manifests);
    modules.map_err(|error| error.to_string())
}

/// Sees to it that the modules' tools are there before a request looks for them.
pub(super) async fn found(State(app): State<App>, request: Request, next: Next) -> Response {
    app.modules.ready().await;
    next.run(request).await
}

pub(super) async fn manifest(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    let selection = identity.registry.select(&identity.context());
    Json(app.modules.serve(&app.module_name, &selection)).into_response()
}

/// All tenants have the same modules and MCP servers, so that they are the business of the admins of the first.
pub(super) fn refused(identity: &Identity, what: &str) -> Option<Response> {
    let Caller { user, level, .. } = &identity.caller;
    if *level >= Permission::Admin && identity.registry.tenant() == DEFAULT_TENANT {
        return None;
    }
    let message = format!(
        "{what} are for the level admin of the tenant {DEFAULT_TENANT}; {user} has {level} in {}",
        identity.registry.tenant()
    );
    Some(error(StatusCode::FORBIDDEN, "permission_denied", &message, None))
}

pub(super) async fn list(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    let reports = app.modules.reports();
    if refused(&identity, MODULES).is_none() {
        return all(&reports);
    }
    let may_see = |report: &&ModuleReport| {
        identity.caller.allowed_modules.as_ref().is_none_or(|allowed| allowed.contains(&report.name))
    };
    let modules: Vec<Value> =
        reports.iter().filter(may_see).map(|report| for_users(report, &identity)).collect();
    Json(json!({"modules": modules})).into_response()
}

fn all(reports: &[ModuleReport]) -> Response {
    Json(json!({"modules": reports})).into_response()
}

/// What a module is to somebody who may use its tools: where it is, and what is wrong with it, is the operator's business.
fn for_users(report: &ModuleReport, identity: &Identity) -> Value {
    let tools = usable_of(identity, &report.name);
    json!({"name": report.name, "version": report.version, "tools": tools, "breaker": report.breaker})
}

/// How many tools of a module somebody may use.
pub(super) fn usable_of(identity: &Identity, module: &str) -> usize {
    let context = identity.context();
    let tools = identity.registry.list_all(true);
    let tools = tools.iter().filter(|tool| tool.module() == module);
    tools.filter(|tool| identity.registry.may_see(tool, &context)).count()
}

pub(super) async fn refresh(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    if let Some(refused) = refused(&identity, MODULES) {
        return refused;
    }
    // As a task of its own: others may wait for the same answers.
    let modules = app.modules.clone();
    match app.backend.spawn(async move { modules.refresh().await }).await {
        Ok(reports) => all(&reports),
        Err(fault) => {
            let message = format!("the modules were not asked to the end: {fault}");
            error(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", &message, None)
        }
    }
}

pub(super) async fn accept(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Path(module): Path<String>,
    JsonBody(body): JsonBody,
) -> Response {
    if let Some(refused) = refused(&identity, MODULES) {
        return refused;
    }
    let Some(digest) = digest(&body) else { return no_digest() };
    match app.modules.accept(&module, digest).await {
        Ok(report) => Json(report).into_response(),
        Err(fault) => not_accepted(&fault, "module_not_found"),
    }
}

/// What names the tools that somebody has looked at, so that no others are accepted.
pub(super) fn digest(body: &Value) -> Option<&str> {
    body.get("digest").and_then(Value::as_str)
}

pub(super) fn no_digest() -> Response {
    let message = "`digest` has to be the text of that name in the list, so that what is accepted is what you have looked at";
    error(StatusCode::BAD_REQUEST, "invalid_request_error", message, Some("digest"))
}

pub(super) fn not_accepted(fault: &AcceptError, unknown: &str) -> Response {
    match fault {
        AcceptError::NotKept(cause) => store_failed(cause),
        AcceptError::Changed(_) => {
            error(StatusCode::CONFLICT, "digest_changed", &fault.to_string(), Some("digest"))
        }
        _ => error(StatusCode::NOT_FOUND, unknown, &fault.to_string(), None),
    }
}

pub(super) async fn execute(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Path(module): Path<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Response {
    make_call(app, identity, &headers, body, &Door::Module(module)).await
}
