//! `toolrack mcp`: the tools for a client of the Model Context Protocol that starts this program.

use std::process::ExitCode;

use registry_core::{Permission, Registry};
use rmcp::{ServiceExt, transport};

use super::{Settings, caller_at, stopped_by_ctrl_c, tenant::Tenant};
use crate::mcp::{McpServer, Visitor};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Offer what a caller of this level may use
    #[arg(long, value_name = "LEVEL")]
    user: Option<Permission>,
    #[command(flatten)]
    pub(super) tenant: Tenant,
}

/// Serves standard input and output until the client closes them.
pub(super) async fn run(
    arguments: Arguments,
    settings: &Settings,
    registry: Registry,
) -> Result<ExitCode, String> {
    let closing = stopped_by_ctrl_c();
    let context = registry.context(caller_at(settings, arguments.user));
    let visitor = Visitor { registry, context };
    let server = McpServer::for_one(closing.clone(), visitor)?;
    let running = server.serve_with_ct(transport::stdio(), closing).await;
    let running =
        running.map_err(|fault| format!("the client did not begin as the protocol asks: {fault}"))?;
    running.waiting().await.map_err(|fault| fault.to_string())?;
    Ok(ExitCode::SUCCESS)
}
