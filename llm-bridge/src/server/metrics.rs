//! `GET /metrics`: what the server measures, for Prometheus.

use std::time::Instant;

use axum::{
    Extension,
    extract::{MatchedPath, Request, State},
    http::{HeaderName, Method, header},
    middleware::Next,
    response::Response,
};
use registry_core::Permission;

use crate::metrics::HttpMetrics;

use super::{App, api_error::ApiError, identity::Identity, openapi::Operation};

/// The text format of Prometheus: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn operation() -> Operation {
    Operation::new(Method::GET, "Server", "metrics", "What the server measures, for Prometheus")
        .answers_with(200, CONTENT_TYPE, "The metrics of all tenants.")
        .refuses(403, "The user is not an admin of the tenant `default` (`permission_denied`).")
}

/// Metrics are of all tenants and for the operator: an admin of the default tenant, or the configured user unless that is a guest.
pub(super) async fn scrape(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
) -> Result<([(HeaderName, &'static str); 1], String), ApiError> {
    let least = if identity.is_configured() { Permission::User } else { Permission::Admin };
    identity.require_in_default_tenant(least, "reading metrics")?;
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
pub(super) async fn count(State(http): State<HttpMetrics>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let began = Instant::now();
    let response = next.run(request).await;
    let route = route.as_ref().map_or("unknown", MatchedPath::as_str);
    http.answered(route, response.status().as_u16(), began.elapsed());
    response
}
