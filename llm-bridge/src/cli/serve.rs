//! `toolrack serve`.

use std::{io, net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

#[cfg(unix)]
use registry_core::{Caller, Permission};
use registry_core::{Registry, store::Conversations};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolrack_http::webhook::Webhooks;
use toolrack_remote::{
    mcp::{McpServers, oauth::Connections},
    module::Modules,
};
use toolrack_stores::{NameTaken, SqlStore};

use super::{
    Settings,
    audit::{HeadSigner, ServedKeys, Verifier},
    backup::{ServedBackup, ServedRestore},
    doctor::ServedDoctor,
    erase::Eraser,
    names::Known,
    out::count,
    store::Stores,
    trials::ServedTrials,
    webhooks,
};
use crate::{
    listing,
    metrics::Metrics,
    server,
    turn::{Backend, TurnsElsewhere},
    upstream::Upstream,
};

/// How long to wait for the last records of stopped calls.
const LAST_RECORDS: Duration = Duration::from_secs(5);

/// How often conversations that have expired are deleted.
const SWEEP: Duration = Duration::from_secs(3600);

/// What the supervisor of `toolrack dev` shares with this program.
pub(super) type Joined = Option<(server::Takeover, std::net::TcpListener)>;

pub(super) async fn run(
    (settings, host_tables): (&Settings, Vec<&'static str>),
    registry: Registry,
    stores: Stores,
    modules: Modules,
    metrics: Metrics,
    (mcp_servers, connections): (McpServers, Connections),
    joined: Joined,
) -> Result<ExitCode, String> {
    registry.check();
    Known::new(settings, &registry)
        .unknown_in(settings)
        .iter()
        .for_each(|reported| tracing::warn!("{reported}"));
    let endpoints = webhooks::endpoints(settings)?;
    let reading = server::AuditReading::new(stores.log.clone(), Verifier::new(stores.log.clone(), settings)?);
    let reading = reading.signed(ServedKeys::new(settings));
    let signer = HeadSigner::open(settings, stores.log, Arc::clone(registry.audit())).await?;
    // One that takes over from another has its name.
    let _name = match joined {
        None => take_name(&stores.sql, &settings.store.server).await?,
        Some(_) => None,
    };
    let mut server_settings = settings.server_settings(stores.store);
    server_settings.sign_in = settings.sign_in()?;
    server_settings.audit = Some(reading);
    server::check_address(&server_settings, settings.listen).await?;
    let listener = match joined {
        None => listen(settings.listen).await?,
        Some((takeover, listener)) => {
            server_settings.takeover = Some(takeover);
            TcpListener::from_std(listener).map_err(|error| error.to_string())?
        }
    };
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let upstream = settings.upstream().await?;
    if upstream.is_demo() && settings.upstream.is_none() {
        tracing::warn!(
            "No model server found on the usual ports: the built-in demo model answers. See --upstream"
        );
    }
    server_settings.eraser = Some(Arc::new(Eraser {
        settings: settings.clone(),
        sql: stores.sql,
        connections: connections.clone(),
    }));
    // Servers with one file of SQLite would be on one machine, where one is enough.
    if settings.store.postgres().is_some() {
        server_settings.elsewhere = Some(TurnsElsewhere::new(stores.state, &settings.store.server));
    }
    server_settings.backup = Some(Arc::new(ServedBackup::new(settings.clone())));
    server_settings.restore = Some(Arc::new(ServedRestore::new(settings.clone())));
    let (own, tables) = (settings.clone(), host_tables);
    server_settings.doctor = Some(Arc::new(ServedDoctor::new(own, tables)));
    server_settings.trials = Some(Arc::new(ServedTrials::new(settings.clone(), upstream.clone())));
    server_settings.configured = configured(settings, &upstream);
    let own = settings.clone();
    server_settings.unknown_names =
        Some(Arc::new(move |registry| Known::new(&own, registry).unknown_in(&own)));
    tokio::spawn(warn_of(upstream.clone()));
    tracing::info!("Model: {}", upstream.address());
    match cfg!(feature = "page") {
        true => tracing::info!("Chat at http://{address}/ or point an OpenAI client at http://{address}/v1"),
        false => tracing::info!("Point an OpenAI client at http://{address}/v1"),
    }
    let calls = registry.clone();
    let backend = Backend::new(registry, upstream, settings.chat_settings());

    // Also without endpoints, for stored dead letters.
    let webhooks = Webhooks::start(backend.registry(), endpoints, stores.letters, Default::default());
    let webhooks = webhooks.map_err(|error| format!("webhooks: {error}"))?;
    server_settings.webhooks = Some(webhooks.clone());
    server_settings.modules = Some(modules.clone());
    server_settings.schedule = Some(stores.schedule);
    server_settings.metrics = metrics;
    settings.warn_of_unread_variables();
    let traces = settings.traces.start(|name| std::env::var(name).ok())?;
    server_settings.traces.clone_from(&traces);
    server_settings.mcp_servers = Some(mcp_servers);
    server_settings.connections = Some(connections.clone());
    tokio::spawn(forget_removed(connections));
    server_settings.conversations = Some(stores.conversations.clone());
    server_settings.chats = Some(stores.chats).filter(|_| stores.conversations.are_kept());
    server_settings.documents = settings.served_documents(backend.registry())?;
    // So that the first request does not wait for discovery.
    let (discovered, caller) = (backend.clone(), settings.caller());
    tokio::spawn(async move {
        modules.ready().await;
        discovered.report_context(caller).await;
    });
    tracing::info!("{}", ready(settings, backend.registry())?);
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    #[cfg(unix)]
    if let Some(takeover) = &server_settings.takeover {
        let (ended, stop) = (takeover.stop(), stop.clone());
        tokio::spawn(async move {
            ended.cancelled().await;
            stop.cancel();
        });
        let registry = backend.registry();
        let all = listing::rows(registry, &registry.context(Caller::new("dev", Permission::Owner)), true);
        let off = all.into_iter().filter_map(|row| Some((row.name, row.reason?))).collect();
        let faults = registry.faults().iter().map(ToString::to_string).collect();
        takeover.say(crate::takeover::ToSupervisor::Tools { off, faults }).await;
    }
    tokio::spawn(stop.clone().run_until_cancelled_owned(delete_expired(stores.conversations)));
    // Stopped behind the last record.
    let signing = CancellationToken::new();
    let signer = signer.map(|signer| tokio::spawn(signer.run(signing.clone())));
    let served = server::serve(listener, backend, server_settings, stop).await;
    if tokio::time::timeout(LAST_RECORDS, webhooks.close()).await.is_err() {
        tracing::error!("the store did not take the last dead letters in time");
    }
    served?;
    if tokio::time::timeout(LAST_RECORDS, calls.finished()).await.is_err() {
        tracing::error!("the store did not take the last records of stopped calls in time");
    }
    if let Some(traces) = traces
        && tokio::time::timeout(LAST_RECORDS, traces.flush()).await.is_err()
    {
        tracing::warn!("the collector did not take the last spans in time");
    }
    signing.cancel();
    if let Some(signer) = signer
        && tokio::time::timeout(LAST_RECORDS, signer).await.is_err()
    {
        tracing::error!("the last heads of the audit were not signed in time");
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the name of this server. Another one that has it may be about to end, so this one starts all the same.
async fn take_name(sql: &SqlStore, server: &str) -> Result<Option<NameTaken>, String> {
    let taken = sql.take_name().await.map_err(|error| error.to_string())?;
    if taken.is_none() {
        tracing::error!(
            server,
            "server_name_taken: another server on this store has this name; give each its own, as `server` under [store] or in \
             TOOLRACK_STORE_SERVER"
        );
    }
    Ok(taken)
}

/// The settings, with the model server that was found.
fn configured(settings: &Settings, upstream: &Upstream) -> Arc<[server::Configured]> {
    let mut all = settings.configured();
    let unset = |setting: &&mut server::Configured| setting.key == "upstream" && setting.value.is_null();
    if let Some(setting) = all.iter_mut().find(unset).filter(|_| settings.upstreams.is_empty()) {
        setting.value = upstream.address().into();
        setting.from = server::SettingOrigin::Found;
    }
    all.into()
}

/// Listens on an address.
///
/// # Errors
/// A text that says what to do.
pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| cannot_listen(address, &error))
}

/// The summary at the start. Tools above the user's level are counted separately, because the page does not show them.
fn ready(settings: &Settings, registry: &Registry) -> Result<String, String> {
    let caller = settings.caller();
    let (user, level) = (&caller.user, caller.level);
    let rows = listing::rows(registry, &registry.context(caller.clone()), false);
    let on = rows.iter().filter(|row| row.enabled).count();
    let (off, above) = (rows.len() - on, registry.len().saturating_sub(rows.len()));
    let configuration = settings.file().map_or("none".to_owned(), |file| file.display().to_string());
    let key = if settings.api_key.is_some() { "one is set" } else { "none" };
    Ok(format!(
        "{} ready, {off} off, {above} not allowed to user {user} ({level}). Data: {}; configuration: {configuration}; API key: {key}",
        count(on, "tool"),
        Stores::place(settings)?
    ))
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::AddrInUse {
        return format!("cannot listen on {address}: {error}; choose another address with --listen");
    }
    let next = SocketAddr::new(address.ip(), address.port().checked_add(1).unwrap_or(7331));
    format!(
        "{address} is already in use, perhaps by another toolrack; stop that program, or choose another address: `toolrack serve --listen {next}`"
    )
}

/// Deletes conversations that have expired, now and then: they are not found any more, but have room.
async fn delete_expired(conversations: Conversations) {
    let mut sweeps = tokio::time::interval(SWEEP);
    loop {
        sweeps.tick().await;
        if let Err(cause) = conversations.delete_expired().await {
            tracing::warn!(%cause, "expired_conversations_not_deleted");
        }
    }
}

/// Ends the connections to servers that are not configured any more.
async fn forget_removed(connections: Connections) {
    match connections.forget_removed().await {
        Ok(0) => {}
        Ok(gone) => {
            tracing::info!("{} to MCP servers that are not configured any more", count(gone, "connection"))
        }
        Err(cause) => tracing::warn!(%cause, "mcp_connections_not_forgotten"),
    }
}

/// Warns if the model server does not answer. It may still be starting, so the server starts anyway.
async fn warn_of(upstream: Upstream) {
    if let Err(failure) = upstream.models().await {
        tracing::warn!("{failure}");
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
    let ended = async {
        use tokio::signal::unix::{SignalKind, signal};
        // That of a terminal that was closed ends it as well, with its last records.
        match (signal(SignalKind::terminate()), signal(SignalKind::hangup())) {
            (Ok(mut terminated), Ok(mut hung_up)) => tokio::select! {
                _ = terminated.recv() => {}
                _ = hung_up.recv() => {}
            },
            _ => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let ended = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = ended => {}
    }
}
