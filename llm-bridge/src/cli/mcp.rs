//! `toolrack mcp`: the tools for a client of the Model Context Protocol that starts this program.

use std::{process::ExitCode, time::Duration};

use registry_core::{Caller, Registry};
use rmcp::{ServiceExt, service::ServerInitializeError, transport};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{caller::CallerArguments, serve};
use crate::mcp::{McpServer, Visitor};

/// How long calls that were cut short have for their records.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) caller: CallerArguments,
}

/// Serves standard input and output until the client closes them.
pub(super) async fn run(caller: Caller, registry: Registry) -> Result<ExitCode, String> {
    let (closing, calls) = (CancellationToken::new(), TaskTracker::new());
    tokio::spawn(serve::stop_on_signal(closing.clone()));
    let context = registry.context(caller);
    let server = McpServer::for_one(closing.clone(), calls.clone(), Visitor { registry, context })?;
    match server.serve_with_ct(transport::stdio(), closing.clone()).await {
        Ok(running) => drop(running.waiting().await),
        // A client may go before it has said a word.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
        Err(fault) => return Err(format!("the client did not begin as the protocol asks: {fault}")),
    }
    closing.cancel();
    calls.close();
    // A tool that blocks its thread is not waited for.
    if tokio::time::timeout(LAST_WORDS, calls.wait()).await.is_err() {
        tracing::warn!(calls = calls.len(), "calls_left");
    }
    Ok(ExitCode::SUCCESS)
}
