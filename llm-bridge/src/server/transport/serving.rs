//! Serves the connections of clients.

use std::{sync::Arc, time::Duration};

use axum::{Router, serve::Listener};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connections::Connections,
    handover::{Watching, answer, hand_on},
    seats::Seats,
};
use crate::{takeover::Takeover, woken::when_woken};

/// Serves until `stop` is cancelled, then waits for open answers. The head of a request has to come within `timeout`, which is also how
/// long a connection without one is kept. Where another program has taken over, connections go on there.
pub(in crate::server) async fn serve(
    mut listener: Connections,
    router: Router,
    timeout: Duration,
    max_connections: usize,
    stop: CancellationToken,
) {
    let seats = Seats::new(max_connections);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(timeout);
    let connections = TaskTracker::new();
    // Those that still take requests.
    let taking = TaskTracker::new();
    while let Some((stream, _)) = stop.run_until_cancelled(listener.accept()).await {
        let stop = stop.clone();
        let router = TowerToHyperService::new(router.clone());
        let requests = stream.requests();
        let Some(seat) = seats.take(Arc::clone(&requests)) else { continue };
        let (takeover, takes) = (listener.takeover.clone(), taking.token());
        let watching = Watching { router, requests: Arc::clone(&requests) };
        let mut connection = http.serve_connection(TokioIo::new(stream), watching);
        connections.spawn(async move {
            report(tokio::select! {
                ended = answer(&mut connection, &requests) => ended,
                () = when_woken(Box::pin(seat.given_up())) => Ok(()),
                () = when_woken(Box::pin(stop.cancelled())) => {
                    hand_on(connection, &requests, takeover.as_ref(), takes).await
                }
            });
        });
    }
    let takeover = listener.takeover.take();
    drop(listener);
    if let Some(takeover) = takeover.filter(Takeover::is_succeeded) {
        taking.close();
        taking.wait().await;
        takeover.given_way().await;
    }
    connections.close();
    connections.wait().await;
}

fn report(ended: hyper::Result<()>) {
    if let Err(cause) = ended {
        tracing::trace!(%cause, "connection_ended");
    }
}
