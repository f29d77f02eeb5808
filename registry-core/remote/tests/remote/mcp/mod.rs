//! MCP servers as sources of tools: requirement B3, with B5 and B7 as they hold for such tools.

mod calls;
mod http;
mod lifecycle;
mod oauth;
mod odd;
mod peer;
mod pins;
mod program;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use registry_core::{
    Caller, Permission, Registry, ToolCall, ToolContext, ToolOutcome, store::MemoryManifests,
};
use serde_json::Value;
use toolrack_remote::mcp::{McpServerReport, McpServerSettings, McpServers};

fn registry() -> Registry {
    Registry::builder().without_compiled().build().unwrap()
}

fn start(registry: &Registry, servers: &[(&str, McpServerSettings)]) -> McpServers {
    let settings: BTreeMap<_, _> =
        servers.iter().map(|(name, settings)| ((*name).to_owned(), settings.clone())).collect();
    McpServers::start(registry, settings, Arc::new(MemoryManifests::default())).unwrap()
}

/// Servers that have all answered.
async fn settled(registry: &Registry, servers: &[(&str, McpServerSettings)]) -> McpServers {
    let servers = start(registry, servers);
    assert!(servers.settled(Duration::from_secs(30)).await);
    servers
}

fn ada(registry: &Registry) -> ToolContext {
    registry.context(Caller::new("ada", Permission::User))
}

async fn call(registry: &Registry, tool: &str, arguments: Value) -> ToolOutcome {
    registry.execute(&ada(registry), ToolCall::new(tool, arguments)).await
}

fn names(registry: &Registry) -> Vec<String> {
    registry.list_all(true).iter().map(|tool| tool.name().to_owned()).collect()
}

fn report(servers: &McpServers) -> McpServerReport {
    servers.reports().remove(0)
}

/// Waits for what comes about by itself.
async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..9000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not come about");
}
