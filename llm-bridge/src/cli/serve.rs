//! `toolrack serve`.

use std::process::ExitCode;

use registry_core::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolrack_documents::Documents;
use toolrack_http::webhook::Webhooks;
use toolrack_remote::{mcp::McpServers, module::Modules};

use super::{Settings, names::Known, store::Stores, tools::count, webhooks};
use crate::{
    chat::{Backend, Upstream},
    metrics::Metrics,
    server,
};

/// How long the last records of stopped calls may take.
const LAST_RECORDS: std::time::Duration = std::time::Duration::from_secs(5);

pub(super) async fn run(
    settings: &Settings,
    registry: Registry,
    stores: Stores,
    modules: Modules,
    metrics: Metrics,
    mcp_servers: McpServers,
) -> Result<ExitCode, String> {
    registry.check();
    Known::new(settings, &registry).unknown_in(settings).iter().for_each(|told| tracing::warn!("{told}"));
    let endpoints = webhooks::endpoints(settings)?;
    let mut server_settings = settings.server_settings(stores.store);
    server::check_address(&server_settings, settings.listen).await?;
    let listener = TcpListener::bind(settings.listen).await.map_err(|error| {
        format!("cannot listen on {}: {error}. Another one? See --listen", settings.listen)
    })?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let upstream = settings.upstream().await?;
    if upstream.is_demo() && settings.upstream.is_none() {
        tracing::warn!(
            "No model server found on the usual ports: the built-in demo model answers. See --upstream"
        );
    }
    tokio::spawn(warn_of(upstream.clone()));
    tracing::info!("{}, model: {}", count(registry.len(), "tool"), upstream.address());
    tracing::info!("Chat at http://{address}/ or point an OpenAI client at http://{address}/v1");
    let calls = registry.clone();
    let backend = Backend::new(registry, upstream, settings.chat_settings());

    // Also without endpoints, for the dead letters that are kept.
    let webhooks = Webhooks::start(backend.registry(), endpoints, stores.letters, Default::default());
    let webhooks = webhooks.map_err(|error| format!("webhooks: {error}"))?;
    server_settings.webhooks = Some(webhooks.clone());
    server_settings.modules = Some(modules.clone());
    server_settings.schedule = Some(stores.schedule);
    server_settings.metrics = metrics;
    server_settings.mcp_servers = Some(mcp_servers);
    if backend.registry().context(settings.caller()).resources().provides::<Documents>() {
        server_settings.documents = Some(settings.documents()?);
    }
    // So that the first who asks for tools need not wait for them.
    tokio::spawn(async move { modules.ready().await });
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    let served = server::serve(listener, backend, server_settings, stop).await;
    if tokio::time::timeout(LAST_RECORDS, webhooks.close()).await.is_err() {
        tracing::error!("the store did not take the last dead letters in time");
    }
    served?;
    if tokio::time::timeout(LAST_RECORDS, calls.finished()).await.is_err() {
        tracing::error!("the store did not take the last records of stopped calls in time");
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what is wrong with the model server. It may still be starting, so this is no reason to stop, nor to wait.
async fn warn_of(upstream: Upstream) {
    if let Err(failure) = upstream.models().await {
        tracing::warn!("{}", server::explained(&failure, &upstream));
    }
}

/// Cancels the token at the first signal to stop; the second ends the program at once.
pub(super) async fn stop_on_signal(stop: CancellationToken) {
    wait_for_signal().await;
    stop.cancel();
    wait_for_signal().await;
    std::process::exit(130);
}

async fn wait_for_signal() {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}
