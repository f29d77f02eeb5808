//! The routes with what goes around them, and their state.

use std::sync::Arc;

use axum::{Extension, Router, extract::DefaultBodyLimit, middleware, response::IntoResponse};
use tokio_util::sync::CancellationToken;
use toolrack_remote::module::Modules;
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    MAX_BODY, ServerSettings,
    apis::{chat, counts, fronts, models, ollama, passed, responses},
    callers::{
        access, accounts, connected_accounts, erasure, identity::Identities, personas, protected_resource,
        sign_in, users,
    },
    calls::{
        approval_rules, approvals, execute, files, jobs, mcp_servers, modules, questions, schedule, tools,
        trials, written,
    },
    chats,
    documents::{self, DocumentAccess},
    mcp,
    openapi::{self, Document},
    operating::{audit, backup, configured, dev, doctor, health, metrics, restore, traces, turns, webhooks},
    page,
    requests::{api_error::ApiError, harmless, origins, timeouts, via},
    routes::Routes,
    transport::{
        lifecycle::Stop,
        readiness::{self, Readiness},
    },
    unrouted::{self, RouteList},
};
use crate::{metrics::HttpMetrics, turn::Backend};

/// The state of the routes.
#[derive(Clone, derive_more::Debug)]
pub(super) struct App {
    pub(super) settings: Arc<ServerSettings>,
    pub(super) backend: Backend,
    pub(super) modules: Modules,
    pub(super) documents: DocumentAccess,
    /// The turns of chats that run here.
    pub(super) chat_turns: chats::Turns,
    #[debug(skip)]
    pub(super) doctor: Option<doctor::Doctor>,
    #[debug(skip)]
    pub(super) trials: Option<trials::Trials>,
    pub(super) backup: Option<backup::Backups>,
    pub(super) restore: Option<restore::Restores>,
    #[debug(skip)]
    pub(super) readiness: Arc<Readiness>,
    pub(super) http: HttpMetrics,
    /// Cancelled when the grace period is over.
    pub(super) closing: CancellationToken,
}

/// The routes and their background tasks. `closing` cancels open answers.
///
/// # Errors
/// When the system's random numbers or TLS are not available.
pub fn router(
    backend: Backend,
    settings: ServerSettings,
    closing: CancellationToken,
) -> Result<Router, String> {
    routes(backend, settings, Stop { closing: closing.clone(), stopping: closing, ..Stop::default() })
}

/// The same, for a server that stops in stages.
pub(super) fn routes(
    backend: Backend,
    settings: ServerSettings,
    Stop { draining, stopping, closing }: Stop,
) -> Result<Router, String> {
    let settings = Arc::new(settings);
    let backend = match &settings.conversations {
        Some(conversations) => backend.with_conversations(conversations.clone()),
        None => backend,
    };
    let identities =
        Arc::new(Identities::new(Arc::clone(&settings), backend.registry().clone(), backend.tasks()));
    let mcp = mcp::Mcp::new(&settings, stopping.clone(), closing.clone(), backend.tasks())?;
    let with_tools = Routes::new().merge(mcp::routes(mcp));
    if let Some(schedule) = settings.schedule.clone() {
        let owners = schedule::Owners(Arc::clone(&identities));
        let run = schedule::run(schedule, owners, Arc::clone(&settings), stopping.clone(), closing.clone());
        backend.spawn(run);
    }
    if let Some(elsewhere) = settings.elsewhere.clone() {
        // Nothing waits for it: a server that hands over tells to its end what still runs.
        tokio::spawn(elsewhere.follow(backend.live_turns().clone(), closing.clone()));
    }
    let modules = settings.modules.clone().map_or_else(|| modules::none(backend.registry()), Ok)?;
    let documents = DocumentAccess::new(&backend, &settings, &stopping);
    let id = backend.upstream().id();
    let http = HttpMetrics::new().map_err(|error| error.to_string())?;
    let app = App {
        backend,
        modules,
        documents,
        chat_turns: chats::Turns::default(),
        doctor: settings.doctor.clone().map(doctor::Doctor::new),
        trials: settings.trials.clone().map(trials::Trials::new),
        backup: settings.backup.clone().map(backup::Backups::new),
        restore: settings.restore.clone().map(restore::Restores::new),
        readiness: Arc::new(Readiness::new(Arc::clone(&settings.store), draining.clone())),
        http: http.clone(),
        closing,
        settings: Arc::clone(&settings),
    };
    let with_tools = with_tools
        .merge(chat::routes())
        .merge(responses::routes())
        .merge(counts::routes())
        .add("/execute", execute::execute, execute::execute_operation())
        .merge(chats::routes().merge(tools::routes()).uninterrupted(&app.backend))
        .merge(written::routes())
        .add("/api/modules", modules::list, modules::list_operation())
        .add("/api/modules/{module}/execute", modules::execute, modules::execute_operation())
        .behind(|router| router.route_layer(middleware::from_fn_with_state(app.clone(), modules::found)));
    let with_key = Routes::new()
        .add("/api/mcp-servers", mcp_servers::list, mcp_servers::list_operation())
        .add("/api/mcp-servers/{server}/accept", mcp_servers::accept, mcp_servers::accept_operation())
        .add("/api/files/{*file}", files::read, files::operation())
        .merge(documents::routes())
        .add("/manifest", modules::manifest, modules::manifest_operation())
        .add("/api/traces", traces::list, traces::list_operation())
        .add("/api/traces/{id}", traces::read, traces::operation())
        .add("/api/modules/{module}/accept", modules::accept, modules::accept_operation())
        .add("/refresh-tools", modules::refresh, modules::refresh_operation())
        .add("/api/approvals", approvals::list, approvals::list_operation())
        .add("/api/approvals/{id}", approvals::answer, approvals::answer_operation())
        .merge(approval_rules::routes())
        .add("/api/questions", questions::list, questions::list_operation())
        .add("/api/questions/{id}", questions::read, questions::read_operation())
        .add("/api/questions/{id}", questions::answer, questions::answer_operation())
        .add("/api/personas", personas::list, personas::list_operation())
        .add("/api/personas", personas::add, personas::add_operation())
        .add("/api/personas/{name}", personas::change, personas::change_operation())
        .add("/api/personas/{name}", personas::remove, personas::remove_operation())
        .add("/api/users/{id}/personas", personas::assign, personas::assign_operation())
        .merge(users::routes())
        .add("/api/users/{id}/erase", erasure::erase, erasure::operation())
        .add("/api/backup", backup::make, backup::operation())
        .merge(restore::routes())
        .add("/api/audit", audit::list, audit::list_operation())
        .add("/api/audit/figures", audit::figures::figures, audit::figures::operation())
        .add("/api/audit/export", audit::export, audit::export_operation())
        .add("/api/audit/verify", audit::verify, audit::verify_operation())
        .add("/api/audit/verify", audit::verify_given, audit::verify_given_operation())
        .add("/api/audit/key", audit::keys::read, audit::keys::read_operation())
        .add("/api/audit/rotate-key", audit::keys::rotate, audit::keys::rotate_operation())
        .add("/api/turns", turns::list, turns::list_operation())
        .add("/api/turns/{id}", turns::stop, turns::stop_operation())
        .add("/api/tool-trial", trials::read, trials::read_operation())
        .add("/api/tool-trial", trials::begin, trials::begin_operation())
        .add("/api/tool-trial", trials::stop, trials::stop_operation())
        .add("/api/doctor", doctor::read, doctor::read_operation())
        .add("/api/doctor", doctor::ask, doctor::ask_operation())
        .add("/api/doctor", doctor::stop, doctor::stop_operation())
        .add("/api/doctor/settings", doctor::write, doctor::write_operation())
        .add("/api/settings", configured::list, configured::operation())
        .add("/api/jobs", jobs::list, jobs::list_operation())
        .add("/api/jobs/{id}", jobs::remove, jobs::remove_operation())
        .add("/api/webhooks", webhooks::endpoints, webhooks::endpoints_operation())
        .add("/api/dead-letters", webhooks::list, webhooks::list_operation())
        .add("/api/dead-letters/{id}", webhooks::redeliver, webhooks::redeliver_operation())
        .merge(dev::routes(settings.takeover.as_ref(), stopping))
        .merge(sign_in::session_routes(&identities))
        .merge(accounts::own_routes(settings.connections.as_ref()))
        .merge(connected_accounts::routes())
        .uninterrupted(&app.backend)
        .merge(with_tools)
        .merge(models::routes())
        .merge(ollama::routes())
        .merge(passed::routes())
        .behind_key(Arc::clone(&identities))
        .merge(metrics::routes(&app, &identities));
    // The page and the server's health need no key: a browser cannot send one with its first request.
    let (router, operations) = page::routes()
        .add("/healthz", health::health, health::operation("health"))
        .add("/health", health::health, health::operation("health_of_model_servers"))
        .add("/readyz", readiness::ready, readiness::operation())
        .add("/openapi.json", openapi::serve, openapi::serve_operation())
        .merge(protected_resource::routes(settings.sign_in.as_deref()))
        .merge(sign_in::routes(&identities))
        .merge(accounts::routes(settings.connections.as_ref(), &identities))
        .merge(with_key)
        .into_parts();
    let list = RouteList::new(&operations);
    let routes = router
        .fallback(unrouted::not_found)
        .method_not_allowed_fallback(unrouted::method_not_allowed)
        .layer(Extension(Document::new(operations)))
        .layer(Extension(list))
        .layer(middleware::from_fn_with_state(identities, access::check_host))
        .layer(middleware::from_fn_with_state(settings.request_timeout, timeouts::limit_body))
        .layer(middleware::from_fn(fronts::errors_in_shape))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(draining, readiness::close_while_draining))
        .layer(CatchPanicLayer::custom(|_| {
            ApiError::internal("the server failed; see its log").into_response()
        }));
    // Around all of it, so that pages of allowed origins can read errors as well, whatever name they call the server.
    let routes = match origins::cors(&settings.access.allowed_origins) {
        Some(cors) => routes.layer(cors),
        None => routes,
    };
    let routes = routes.layer(middleware::from_fn_with_state(settings, access::check_origin));
    let routes = routes.layer(middleware::map_response(harmless::in_browsers));
    let routes = routes.layer(middleware::from_fn_with_state(http, metrics::count));
    Ok(routes.layer(middleware::from_fn_with_state(id, via::check)).with_state(app))
}
