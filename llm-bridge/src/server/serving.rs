//! Serves the connections of clients.

use std::{pin::pin, time::Duration};

use axum::{Router, serve::Listener};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Serves until `stop` is cancelled, then waits for open answers. The head of a request has to come within `timeout`, which is also how
/// long a connection without one is kept.
pub(super) async fn serve(
    mut listener: impl Listener,
    router: Router,
    timeout: Duration,
    stop: CancellationToken,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(timeout);
    let connections = TaskTracker::new();
    while let Some((stream, _)) = stop.run_until_cancelled(listener.accept()).await {
        let answering = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(stream), answering);
        let stop = stop.clone();
        connections.spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(cause) = ended {
                tracing::trace!(%cause, "connection_ended");
            }
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}
