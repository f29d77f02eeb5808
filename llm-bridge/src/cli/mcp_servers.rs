//! Connects the configured MCP servers while a command runs.

use std::{process::ExitCode, sync::Arc, time::Duration};

use registry_core::{Registry, store::ManifestStore};
use toolrack_remote::mcp::{McpServers, McpState, oauth::Connections};

use super::{Settings, out::tell};

/// How long a command waits for the servers' tools.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a long command, which does not wait for their tools.
pub(super) async fn beside<C: Future<Output = Result<ExitCode, String>>>(
    settings: &Settings,
    registry: &Registry,
    manifests: Arc<dyn ManifestStore>,
    connections: Connections,
    command: impl FnOnce(McpServers) -> C,
) -> Result<ExitCode, String> {
    let servers = start(settings, registry, manifests, connections)?;
    let end = command(servers.clone()).await;
    servers.close().await;
    end
}

/// Runs a command with their tools, after waiting for them.
pub(super) async fn ahead(
    settings: &Settings,
    registry: &Registry,
    manifests: Arc<dyn ManifestStore>,
    connections: Connections,
    command: impl Future<Output = Result<ExitCode, String>>,
) -> Result<ExitCode, String> {
    let servers = start(settings, registry, manifests, connections)?;
    servers.settled(PATIENCE).await;
    for report in servers.reports().iter().filter(|report| report.state != McpState::Connected) {
        let why = report.source.error.as_deref().unwrap_or("it has not answered yet");
        tell(format_args!("warning: no tools from the MCP server {}: {why}", report.source.name));
    }
    let end = command.await;
    servers.close().await;
    end
}

fn start(
    settings: &Settings,
    registry: &Registry,
    manifests: Arc<dyn ManifestStore>,
    connections: Connections,
) -> Result<McpServers, String> {
    let servers = settings.mcp_servers.clone();
    McpServers::start_with(registry, servers, manifests, Some(connections)).map_err(|fault| fault.to_string())
}
