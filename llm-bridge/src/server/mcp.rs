//! `/mcp`: the registry for clients of the Model Context Protocol, over streamable HTTP.

use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio_util::sync::CancellationToken;

use super::identity::Identity;
use crate::mcp::{McpServer, Visitor};

/// The route. Who asks is what the key's check has found; `Host` and `Origin` are checked before, on every route.
///
/// # Errors
/// When the machine has no randomness to give.
pub(super) fn service(
    closing: CancellationToken,
) -> Result<StreamableHttpService<McpServer, LocalSessionManager>, String> {
    let server = McpServer::new(closing.clone(), |extensions| {
        let identity = extensions.get::<Parts>()?.extensions.get::<Identity>()?;
        Some(Visitor { registry: identity.registry.clone(), context: identity.context() })
    })?;
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_cancellation_token(closing);
    Ok(StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config))
}
