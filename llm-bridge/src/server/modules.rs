//! Modules over HTTP, both ways: `GET /manifest` is this server as a module of another; `GET /api/modules`, `POST /refresh-tools`
//! and `POST /api/modules/{module}/execute` and `…/accept` are about the modules that it has.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use registry_core::{Caller, DEFAULT_TENANT, Permission, Registry, store::MemoryManifests};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolrack_remote::{
    AcceptError, BreakerState, SourceReport,
    module::{ModuleReport, Modules, ModulesSettings, ServedManifest},
};

use super::{
    App,
    body::JsonBody,
    error,
    execute::{Door, call_operation, make_call},
    identity::Identity,
    name::Name,
    openapi::Operation,
    store_failed,
};

const MODULES: &str = "modules";
/// So long another server's question waits for the modules of this one.
const SOON: Duration = Duration::from_secs(2);

pub(super) const CHANGED: &str = "The tools are not those of the digest any more (`digest_changed`), or there are none (`nothing_to_accept`).";

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

pub(super) fn manifest_operation() -> Operation {
    Operation::new("Modules", "manifest", "The tools that the user may use, as a module's")
        .answers::<ServedManifest>(200, "The manifest.")
}

pub(super) async fn manifest(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    // Two servers that are modules of each other would wait for each other for as long as they may.
    let _ = tokio::time::timeout(SOON, app.modules.ready()).await;
    let selection = identity.registry.select(&identity.context());
    Json(app.modules.serve(&app.module_name, &selection)).into_response()
}

/// The modules.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{M}List")]
struct ModuleList<M> {
    modules: Vec<M>,
}

/// What a module is to somebody who may use its tools: where it is, and what is wrong with it, is the operator's business.
#[derive(Serialize, JsonSchema)]
struct ModuleSummary {
    /// Its name, the prefix of its tools.
    name: String,
    /// The version it gives itself.
    version: Option<String>,
    /// How many of its tools the user may see.
    tools: usize,
    /// Whether it is called.
    breaker: BreakerState,
}

/// Who may change modules.
pub(super) const ADMINS: &str = "The user is no admin of the tenant `default` (`permission_denied`).";

/// All tenants have the same modules and MCP servers, so that they are the business of the admins of the first.
pub(super) fn refused(identity: &Identity, what: &str) -> Option<Response> {
    let Caller { user, level, .. } = &identity.caller;
    if *level >= Permission::Admin && identity.registry.tenant() == DEFAULT_TENANT {
        return None;
    }
    let message = format!(
        "{what} are for the level admin of the tenant {DEFAULT_TENANT}; {user} has {level} in {}; {}",
        identity.registry.tenant(),
        identity.how_to_get(Permission::Admin)
    );
    Some(error(StatusCode::FORBIDDEN, "permission_denied", &message, None))
}

pub(super) fn list_operation() -> Operation {
    Operation::new("Modules", "list_modules", "The modules of this server")
        .answers::<ModuleList<ModuleSummary>>(200, "The modules that the user may use.")
        .answers::<ModuleList<ModuleReport>>(200, "To admins of the tenant `default`: all there is to know.")
}

pub(super) async fn list(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    let reports = app.modules.reports();
    if refused(&identity, MODULES).is_none() {
        return all(reports);
    }
    let may_see = |report: &&ModuleReport| {
        identity.caller.allowed_modules.as_ref().is_none_or(|allowed| allowed.contains(&report.source.name))
    };
    let modules = reports.iter().filter(may_see).map(|report| for_users(report, &identity)).collect();
    Json(ModuleList { modules }).into_response()
}

fn all(modules: Vec<ModuleReport>) -> Response {
    Json(ModuleList { modules }).into_response()
}

fn for_users(report: &ModuleReport, identity: &Identity) -> ModuleSummary {
    let SourceReport { name, breaker, .. } = &report.source;
    let tools = usable_of(identity, name);
    ModuleSummary { name: name.clone(), version: report.version.clone(), tools, breaker: *breaker }
}

/// How many tools of a module somebody may use.
pub(super) fn usable_of(identity: &Identity, module: &str) -> usize {
    let context = identity.context();
    let tools = identity.registry.list_all(true);
    let tools = tools.iter().filter(|tool| tool.module() == module);
    tools.filter(|tool| identity.registry.may_see(tool, &context)).count()
}

pub(super) fn refresh_operation() -> Operation {
    Operation::new("Modules", "refresh_tools", "Asks all modules for their tools now")
        .answers::<ModuleList<ModuleReport>>(200, "The modules as they are now known.")
        .refuses(403, ADMINS)
}

pub(super) async fn refresh(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    if let Some(refused) = refused(&identity, MODULES) {
        return refused;
    }
    // As a task of its own: others may wait for the same answers.
    let modules = app.modules.clone();
    match app.backend.spawn(async move { modules.refresh().await }).await {
        Ok(reports) => all(reports),
        Err(fault) => {
            let message = format!("the modules were not asked to the end: {fault}");
            error(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", &message, None)
        }
    }
}

pub(super) fn accept_operation() -> Operation {
    Operation::new("Modules", "accept_module", "Accepts a module's tools as they are now known")
        .path("module", "The module's name.")
        .reads::<Accepting>()
        .answers::<ModuleReport>(200, "The module as it is now known.")
        .refuses(403, ADMINS)
        .refuses(404, "There is no such module (`module_not_found`).")
        .refuses(409, CHANGED)
}

pub(super) async fn accept(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(module): Name,
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

/// Which tools are accepted.
#[derive(JsonSchema)]
#[allow(dead_code)] // read as a schema only
pub(super) struct Accepting {
    /// The `digest` of the list, so that what is accepted is what somebody has looked at.
    digest: String,
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
        AcceptError::Nothing => error(StatusCode::CONFLICT, "nothing_to_accept", &fault.to_string(), None),
        _ => error(StatusCode::NOT_FOUND, unknown, &fault.to_string(), None),
    }
}

pub(super) fn execute_operation() -> Operation {
    call_operation("execute_in_module", "Calls a tool of a module").path("module", "The module's name.")
}

pub(super) async fn execute(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(module): Name,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Response {
    make_call(app, identity, &headers, body, &Door::Module(module)).await
}
