//! Modules over HTTP, both ways: `GET /manifest` is this server as a module of another; `GET /api/modules`, `POST /refresh-tools`
//! and `POST /api/modules/{module}/execute` and `…/accept` are about the modules that it has.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use registry_core::{Registry, store::MemoryManifests};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolrack_remote::{
    AcceptError, BreakerState,
    module::{ModuleReport, Modules, ModulesSettings, ServedManifest},
};

use super::execute::{EntryPoint, call_operation, make_call};
use crate::server::{
    App,
    callers::{
        admin::{self, Operator},
        identity::Identity,
    },
    openapi::Operation,
    requests::{
        api_error::ApiError,
        body::{Body, JsonBody},
        name::Name,
    },
};

/// How long a manifest waits for the tools of this server's own modules.
const MANIFEST_WAIT: Duration = Duration::from_secs(2);

pub(in crate::server) const CHANGED: &str = "The tools are no longer those of the digest (`digest_changed`), or there are none (`nothing_to_accept`).";
pub(in crate::server) const NOT_ADMIN: &str =
    "The user is not an admin of the tenant `default` (`permission_denied`).";

/// For a registry without modules.
///
/// # Errors
/// When the system's TLS cannot be set up.
pub(in crate::server) fn none(registry: &Registry) -> Result<Modules, String> {
    let manifests = Arc::new(MemoryManifests::default());
    let modules = Modules::new(registry, ModulesSettings::default(), manifests.clone(), manifests);
    modules.map_err(|error| error.to_string())
}

/// Waits for the modules' tools before a request looks for them.
pub(in crate::server) async fn found(State(app): State<App>, request: Request, next: Next) -> Response {
    app.modules.ready().await;
    next.run(request).await
}

pub(in crate::server) fn manifest_operation() -> Operation {
    Operation::new(
        Method::GET,
        "Modules",
        "manifest",
        "The tools that the user may use, as a module's manifest",
    )
    .answers::<ServedManifest>(200, "The manifest.")
}

pub(in crate::server) async fn manifest(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
) -> Json<ServedManifest> {
    // Two servers that are modules of each other would wait for each other.
    let _ = tokio::time::timeout(MANIFEST_WAIT, app.modules.ready()).await;
    let selection = identity.registry.select(&identity.context());
    Json(app.modules.serve(&app.settings.module_name, &selection))
}

/// The modules.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{M}List")]
pub(in crate::server) struct ModuleList<M> {
    modules: Vec<M>,
}

/// A module as a user sees it. Its address and its faults are for admins.
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

pub(in crate::server) fn list_operation() -> Operation {
    Operation::new(Method::GET, "Modules", "list_modules", "The modules of this server")
        .answers::<ModuleList<ModuleSummary>>(200, "The modules that the user may use.")
        .answers::<ModuleList<ModuleReport>>(200, "For admins of the tenant `default`: full reports.")
}

pub(in crate::server) async fn list(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
) -> Response {
    let reports = app.modules.reports();
    if identity.require_operator().is_ok() {
        return Json(ModuleList { modules: reports }).into_response();
    }
    let may_see = |report: &ModuleReport| identity.may_use_module(&report.source.name);
    let modules = reports.into_iter().filter(may_see).map(|report| ModuleSummary {
        tools: usable_of(&identity, &report.source.name),
        name: report.source.name,
        version: report.version,
        breaker: report.source.breaker,
    });
    Json(ModuleList { modules: modules.collect() }).into_response()
}

/// How many tools of a module the user may see.
pub(in crate::server) fn usable_of(identity: &Identity, module: &str) -> usize {
    let context = identity.context();
    let tools = identity.registry.list_all(true);
    let tools = tools.iter().filter(|tool| tool.module() == module);
    tools.filter(|tool| identity.registry.may_see(tool, &context)).count()
}

pub(in crate::server) fn refresh_operation() -> Operation {
    Operation::new(Method::POST, "Modules", "refresh_tools", "Ask all modules for their tools now")
        .answers::<ModuleList<ModuleReport>>(200, "The modules after the refresh.")
        .refuses(403, NOT_ADMIN)
}

pub(in crate::server) async fn refresh(
    State(app): State<App>,
    _: Operator,
) -> Result<Json<ModuleList<ModuleReport>>, ApiError> {
    Ok(Json(ModuleList { modules: app.modules.refresh().await }))
}

pub(in crate::server) fn accept_operation() -> Operation {
    Operation::new(Method::POST, "Modules", "accept_module", "Accept the tools of a module as listed")
        .path("module", "The module's name.")
        .reads::<Accepting>()
        .answers::<ModuleReport>(200, "The module's report.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "There is no such module (`module_not_found`).")
        .refuses(409, CHANGED)
}

pub(in crate::server) async fn accept(
    State(app): State<App>,
    _: Operator,
    Extension(identity): Extension<Identity>,
    Name(module): Name,
    JsonBody(Accepting { digest }): JsonBody<Accepting>,
) -> Result<Json<ModuleReport>, ApiError> {
    let arguments = json!({"module": module, "digest": digest});
    let accept = async move {
        let accepted = app.modules.accept(&module, &digest).await;
        accepted.map_err(|fault| not_accepted(&fault, "module_not_found"))
    };
    admin::change(&identity, "toolrack modules accept", arguments, accept).await.map(Json)
}

/// Which tools are accepted.
#[derive(Deserialize, JsonSchema)]
pub(in crate::server) struct Accepting {
    /// The `digest` of the list: only the tools listed with it are accepted.
    pub(in crate::server) digest: String,
}

impl Body for Accepting {
    const EXAMPLE: &str = "`{\"digest\": …}` with the `digest` of the list";
}

pub(in crate::server) fn not_accepted(fault: &AcceptError, unknown: &'static str) -> ApiError {
    let conflict = |kind| ApiError::new(StatusCode::CONFLICT, kind, fault.to_string());
    match fault {
        AcceptError::NotKept(cause) => cause.clone().into(),
        AcceptError::Changed(_) => conflict("digest_changed").param("digest"),
        AcceptError::Nothing => conflict("nothing_to_accept"),
        _ => ApiError::not_found(unknown, fault.to_string()),
    }
}

pub(in crate::server) fn execute_operation() -> Operation {
    call_operation("execute_in_module", "Call a tool of a module").path("module", "The module's name.")
}

pub(in crate::server) async fn execute(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(module): Name,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    make_call(app, identity, &headers, body, &EntryPoint::Module(module)).await
}
