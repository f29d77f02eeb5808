//! `GET /api/dev/events`: the state of the build, while `toolrack dev` watches the sources.

use std::{convert::Infallible, time::Duration};

use axum::{
    http::Method,
    response::{
        IntoResponse, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::{StreamExt, stream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    build::Build,
    server::{openapi::Operation, routes::Routes},
    takeover::Takeover,
};

/// How often a stream without news says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The route, which there is only under `toolrack dev`. `stopping` ends the streams.
pub(in crate::server) fn routes(takeover: Option<&Takeover>, stopping: CancellationToken) -> Routes {
    let Some(takeover) = takeover else { return Routes::new() };
    let build = takeover.build();
    let operation = Operation::new(
        Method::GET,
        "Server",
        "build_events",
        "The state of the build, while `toolrack dev` watches the sources",
    )
    .details("The stream ends when a newer program takes over, which answers the next request.")
    .answers_with(200, "text/event-stream", "The state, and each later one.");
    let serve = move || async move { events(build.clone(), stopping.clone()) };
    Routes::new().add("/api/dev/events", serve, operation)
}

fn events(build: watch::Receiver<Build>, stopping: CancellationToken) -> impl IntoResponse {
    let states = stream::unfold((build, true), |(mut build, is_first)| async move {
        if !is_first && build.changed().await.is_err() {
            return None;
        }
        let state = build.borrow_and_update().clone();
        let event = Event::default().json_data(state).unwrap_or_default();
        Some((Ok::<_, Infallible>(event), (build, false)))
    });
    Sse::new(states.take_until(stopping.cancelled_owned())).keep_alive(KeepAlive::new().interval(HEARTBEAT))
}
