//! From the first connection to the last answer.

use std::{net::SocketAddr, time::Duration};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{connections::Connections, serving};
use crate::{
    server::{ServerSettings, router::routes},
    takeover::Takeover,
    turn::Backend,
};

/// How long what runs may go on here after another program has taken over.
const FINISH: Duration = Duration::from_secs(600);

/// How long a program that takes over waits for the tools of other servers, which the program before has already.
const REMOTE_TOOLS: Duration = Duration::from_secs(2);

/// How long the last bytes of cancelled answers may take.
pub(in crate::server) const LAST_BYTES: Duration = Duration::from_secs(1);

/// The stages in which a server stops, one after the other.
#[derive(Debug, Clone, Default)]
pub(in crate::server) struct Stop {
    /// It goes on, and says that requests had better go elsewhere.
    pub(in crate::server) draining: CancellationToken,
    /// It accepts no more connections, and streams without an end of their own end.
    pub(in crate::server) stopping: CancellationToken,
    /// Open answers are cancelled.
    pub(in crate::server) closing: CancellationToken,
}

/// Checks that it is safe to serve on an address.
///
/// # Errors
/// When the tools would be open to the network, or the store fails.
pub async fn check_address(settings: &ServerSettings, address: SocketAddr) -> Result<(), String> {
    settings.access.check_address(address, settings.sign_in.is_some() || settings.store.has_keys().await?)
}

/// Serves until `stop` is cancelled and for the time of draining, then waits for open answers for the grace period.
///
/// # Errors
/// When the address is not safe to serve on without a key, or the listener fails.
pub async fn serve(
    listener: TcpListener,
    backend: Backend,
    settings: ServerSettings,
    stop: CancellationToken,
) -> Result<(), String> {
    let address: SocketAddr = listener.local_addr().map_err(|error| error.to_string())?;
    check_address(&settings, address).await?;
    let (request_timeout, write_timeout) = (settings.request_timeout, settings.write_timeout);
    let max_connections = settings.max_connections;
    let stages = Stop::default();
    let Stop { stopping, closing, .. } = stages.clone();
    let router = routes(backend.clone(), settings.clone(), stages.clone())?;
    let leaving = backend.registry().clone();
    tokio::spawn({
        let ends = end(stop, stages, (settings.drain, settings.grace), settings.takeover.clone());
        let closing = closing.clone();
        async move {
            ends.await;
            // What a tool asks then is for the server after this one.
            leaving.leave_questions();
            closing.cancel();
        }
    });
    if let Some(takeover) = settings.takeover.clone() {
        tokio::spawn(announce(takeover, settings.clone(), backend.clone()));
    }
    let takeover = settings.takeover;
    let listener = Connections { listener, write_timeout, takeover: takeover.clone() };
    let finished = async {
        serving::serve(listener, router, request_timeout, max_connections, stopping).await;
        // A call of a client that has gone goes on.
        if takeover.as_ref().is_some_and(Takeover::is_succeeded) {
            backend.finished().await;
        }
    };
    tokio::select! {
        () = finished => {}
        // Does not wait for a client that reads nothing.
        () = async { closing.cancelled().await; tokio::time::sleep(LAST_BYTES).await } => {}
    }
    // A call can outlive its connection.
    backend.registry().leave_questions();
    closing.cancel();
    backend.stop().await;
    Ok(())
}

/// Says when to accept no more connections, and ends when what runs is to be cancelled.
async fn end(
    stop: CancellationToken,
    Stop { draining, stopping, .. }: Stop,
    (drain, grace): (Duration, Duration),
    takeover: Option<Takeover>,
) {
    let succeeded = async {
        match &takeover {
            Some(takeover) => takeover.succeeded().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop.cancelled() => {
            draining.cancel();
            tokio::time::sleep(drain).await;
        }
        () = succeeded => {
            stopping.cancel();
            // What runs goes on until then.
            let _ = tokio::time::timeout(FINISH, stop.cancelled()).await;
        }
    }
    stopping.cancel();
    tracing::info!("Stopping; open answers have {} s", grace.as_secs());
    tokio::time::sleep(grace).await;
}

/// Says that this server can take over, when it has the tools that the one before has.
async fn announce(takeover: Takeover, settings: ServerSettings, backend: Backend) {
    if takeover.succeeds() {
        let settled = async {
            if let Some(modules) = &settings.modules {
                modules.ready().await;
            }
            if let Some(servers) = &settings.mcp_servers {
                servers.settled(REMOTE_TOOLS).await;
            }
        };
        let _ = tokio::time::timeout(REMOTE_TOOLS, settled).await;
    }
    let tools = backend.registry().list_all(false);
    takeover.ready(tools.iter().map(|tool| tool.name().to_owned()).collect()).await;
}
