//! Modules over HTTP, both ways: `GET /manifest` is this server as a module of another; `GET /api/modules`, `POST /refresh-tools`
//! and `POST /api/modules/{module}/execute` and `…/accept` are about the modules that it has.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use registry_core::{
    Caller, DEFAULT_TENANT, Permission, Registry,
    source::module::{AcceptError, BreakerState, ModuleReport, Modules, ModulesSettings, ServedManifest},
    store::MemoryManifests,
};
use schemars::JsonSchema;
use serde::Serialize;

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
const ADMINS: &str = "The user is no admin of the tenant `default` (`permission_denied`).";

/// All tenants have the same modules, so that they are the business of the admins of the first.
fn refused(identity: &Identity) -> Option<Response> {
    let Caller { user, level, .. } = &identity.caller;
    if *level >= Permission::Admin && identity.registry.tenant() == DEFAULT_TENANT {
        return None;
    }
    let message = format!(
        "modules are for the level admin of the tenant {DEFAULT_TENANT}; {user} has {level} in {}",
        identity.registry.tenant()
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
    if refused(&identity).is_none() {
        return all(reports);
    }
    let may_see = |report: &&ModuleReport| {
        identity.caller.allowed_modules.as_ref().is_none_or(|allowed| allowed.contains(&report.name))
    };
    let modules = reports.iter().filter(may_see).map(|report| for_users(report, &identity)).collect();
    Json(ModuleList { modules }).into_response()
}

fn all(modules: Vec<ModuleReport>) -> Response {
    Json(ModuleList { modules }).into_response()
}

fn for_users(report: &ModuleReport, identity: &Identity) -> ModuleSummary {
    let context = identity.context();
    let tools = identity.registry.list_all(true);
    let tools = tools.iter().filter(|tool| tool.module() == report.name);
    let tools = tools.filter(|tool| identity.registry.may_see(tool, &context)).count();
    let (name, version) = (report.name.clone(), report.version.clone());
    ModuleSummary { name, version, tools, breaker: report.breaker }
}

pub(super) fn refresh_operation() -> Operation {
    Operation::new("Modules", "refresh_tools", "Asks all modules for their tools now")
        .answers::<ModuleList<ModuleReport>>(200, "The modules as they are now known.")
        .refuses(403, ADMINS)
}

pub(super) async fn refresh(State(app): State<App>, Extension(identity): Extension<Identity>) -> Response {
    if let Some(refused) = refused(&identity) {
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
        .answers::<ModuleReport>(200, "The module as it is now known.")
        .refuses(403, ADMINS)
        .refuses(404, "There is no such module (`module_not_found`).")
}

pub(super) async fn accept(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(module): Name,
) -> Response {
    if let Some(refused) = refused(&identity) {
        return refused;
    }
    match app.modules.accept(&module).await {
        Ok(report) => Json(report).into_response(),
        Err(AcceptError::NotKept(cause)) => store_failed(&cause),
        Err(unknown) => error(StatusCode::NOT_FOUND, "module_not_found", &unknown.to_string(), None),
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
