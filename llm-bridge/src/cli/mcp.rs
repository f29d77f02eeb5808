//! `toolrack mcp`: an MCP server over standard input and output.

use std::{process::ExitCode, time::Duration};

use registry_core::{Caller, Registry};
use rmcp::{ServiceExt, service::ServerInitializeError, transport};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{caller::CallerArguments, serve};
use crate::mcp::{McpServer, McpSettings, Visitor};

/// How long cancelled calls may take to be audited.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) caller: CallerArguments,
}

/// Serves standard input and output until the client closes them.
pub(super) async fn run(
    caller: Caller,
    registry: Registry,
    settings: McpSettings,
    answered: impl Future<Output = ()> + Send + 'static,
) -> Result<ExitCode, String> {
    let (closing, calls) = (CancellationToken::new(), TaskTracker::new());
    tokio::spawn(serve::stop_on_signal(closing.clone()));
    let context = registry.context(caller);
    let visitor = Visitor { registry, context, session: None };
    let server =
        McpServer::for_one(closing.clone(), calls.clone(), visitor).with_settings(settings, answered);
    match server.serve_with_ct(transport::stdio(), closing.clone()).await {
        Ok(running) => drop(running.waiting().await),
        // A client may disconnect before it initializes.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
        Err(fault) => return Err(format!("the client did not follow the protocol: {fault}")),
    }
    closing.cancel();
    calls.close();
    // Tools that block their thread are abandoned.
    if tokio::time::timeout(LAST_WORDS, calls.wait()).await.is_err() {
        tracing::warn!(calls = calls.len(), "calls_left");
    }
    Ok(ExitCode::SUCCESS)
}
