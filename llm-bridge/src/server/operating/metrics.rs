//! `GET /metrics`: what the server measures, for Prometheus.

use std::{sync::Arc, time::Instant};

use axum::{
    Extension,
    extract::{MatchedPath, Request, State},
    http::{HeaderName, Method, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use registry_core::Permission;

use crate::{
    metrics::HttpMetrics,
    server::{
        App,
        callers::identity::{Identities, Identity},
        openapi::Operation,
        requests::{api_error::ApiError, key::SentKey},
        routes::Routes,
    },
};

/// The text format of Prometheus: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text and its type.
type Text = ([(HeaderName, &'static str); 1], String);

/// The route, which has a key of its own besides those of users: a scraper needs nobody's rights.
pub(in crate::server) fn routes(app: &App, identities: &Arc<Identities>) -> Routes {
    let state = (app.clone(), Arc::clone(identities));
    Routes::new()
        .add("/metrics", scrape, operation())
        .behind_key(Arc::clone(identities))
        .behind(|router| router.route_layer(middleware::from_fn_with_state(state, with_its_key)))
}

fn operation() -> Operation {
    Operation::new(Method::GET, "Server", "metrics", "What the server measures, for Prometheus")
        .answers_with(200, CONTENT_TYPE, "The metrics of all tenants.")
        .refuses(403, "The user is not an admin of the tenant `default` (`permission_denied`).")
}

/// Metrics are of all tenants and for the operator: `metrics_key`, an admin of the default tenant, or the configured user unless that is a guest.
async fn scrape(State(app): State<App>, Extension(identity): Extension<Identity>) -> Result<Text, ApiError> {
    let least = if identity.is_configured() { Permission::User } else { Permission::Admin };
    identity.require_in_default_tenant(least, "reading metrics")?;
    written(&app).await
}

/// Lets the key of the metrics in, also while the store is away.
async fn with_its_key(
    State((app, identities)): State<(App, Arc<Identities>)>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    match request.extensions().get::<SentKey>() {
        Some(key) if identities.is_metrics_key(key) => written(&app).await.map(IntoResponse::into_response),
        _ => Ok(next.run(request).await),
    }
}

async fn written(app: &App) -> Result<Text, ApiError> {
    let backend = &app.backend;
    let (registry, upstream) = (backend.registry(), backend.upstream().metrics());
    let store = app.readiness.store().await;
    let text = app.settings.metrics.text(registry, &app.modules, upstream, &app.http, store).await;
    let text = text.map_err(|cause| {
        tracing::error!(%cause, "metrics_failed");
        ApiError::internal("the metrics could not be written; see the server's log")
    })?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text))
}

/// Counts a request. A path of its own that a client makes up is of no route.
pub(in crate::server) async fn count(
    State(http): State<HttpMetrics>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let began = Instant::now();
    let response = next.run(request).await;
    let route = route.as_ref().map_or("unknown", MatchedPath::as_str);
    http.answered(route, response.status().as_u16(), began.elapsed());
    response
}
