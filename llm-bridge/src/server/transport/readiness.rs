//! `GET /readyz`: whether a balancer may send requests here.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header::CONNECTION},
    middleware::Next,
    response::Response,
};
use registry_core::store::Store;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::{sync::Mutex, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::server::{
    App,
    openapi::Operation,
    requests::{api_error::ApiError, store_log},
};

/// For how long an answer of the store holds: whoever asks needs no key, and each time something is written.
const FRESH: Duration = Duration::from_secs(3);
/// How long the store may take to answer. A balancer does not wait much longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether this server can answer requests.
pub(in crate::server) struct Readiness {
    store: Arc<dyn Store>,
    /// Cancelled when the server begins to stop.
    draining: CancellationToken,
    /// When the store was last asked, and what came of it.
    asked: Mutex<Option<(Instant, (bool, Duration))>>,
}

/// The server answers requests.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct Ready {
    /// `ready`.
    status: &'static str,
}

impl Readiness {
    pub(in crate::server) fn new(store: Arc<dyn Store>, draining: CancellationToken) -> Self {
        Self { store, draining, asked: Mutex::default() }
    }

    /// Whether the store takes what is written, and how long it took to say so.
    pub(in crate::server) async fn store(&self) -> (bool, Duration) {
        let mut asked = self.asked.lock().await;
        if let Some((_, found)) = asked.filter(|(at, _)| at.elapsed() < FRESH) {
            return found;
        }
        let began = Instant::now();
        let is_well = match tokio::time::timeout(PATIENCE, self.store.check()).await {
            Ok(Ok(())) => {
                store_log::answered();
                true
            }
            Ok(Err(cause)) => {
                tracing::warn!(%cause, "store_not_ready");
                false
            }
            Err(_) => {
                tracing::warn!(cause = "it does not answer in time", "store_not_ready");
                false
            }
        };
        let found = (is_well, began.elapsed());
        *asked = Some((Instant::now(), found));
        found
    }
}

pub(in crate::server) fn operation() -> Operation {
    Operation::new(
        Method::GET,
        "Server",
        "ready",
        "Whether the server can answer requests, for balancers: its store takes what is written, and it is not being stopped",
    )
    .answers::<Ready>(200, "It can.")
    .refuses(503, "Its store does not answer (`store_unavailable`), or it is being stopped (`server_stopping`).")
}

/// Needs no key, so it names no address and no cause.
pub(in crate::server) async fn ready(State(app): State<App>) -> Result<Json<Ready>, ApiError> {
    let unready = |kind, message| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, kind, message);
    if app.readiness.draining.is_cancelled() {
        return Err(unready("server_stopping", "the server is being stopped"));
    }
    match app.readiness.store().await.0 {
        true => Ok(Json(Ready { status: "ready" })),
        false => Err(unready("store_unavailable", "the server's store takes nothing now; see its log")),
    }
}

/// While the server drains, clients make a new connection for their next request: elsewhere.
pub(in crate::server) async fn close_while_draining(
    State(draining): State<CancellationToken>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    if draining.is_cancelled() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
