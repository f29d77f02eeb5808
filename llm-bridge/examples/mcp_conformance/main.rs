//! A server for the conformance suite of the Model Context Protocol: the tools that the suite asks for, in a registry behind
//! Toolrack's server. What the suite asks for and Toolrack does not offer at all (prompts, resources, completion, sampling, tools
//! that ask their user) is answered by a small handler around it.
//!
//! ```sh
//! cargo run -p llm-bridge --example mcp_conformance -- 127.0.0.1:7332
//! npx @modelcontextprotocol/conformance server --url http://127.0.0.1:7332/mcp --requirements 2026-07-28
//! ```

mod beside;
mod inputs;
mod resources;
mod tools;

use std::{error::Error, sync::Arc};

use llm_bridge::mcp::{McpServer, Visitor};
use registry_core::{Caller, Permission};
use rmcp::{
    model::RequestStateCodec,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use beside::Fixture;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let registry = tools::registry()?;
    let context = registry.context(Caller::new("conformance", Permission::User));
    let visitor = Visitor { registry, context, session: None };
    let tools = McpServer::for_one(CancellationToken::new(), TaskTracker::new(), visitor);
    // States of this fixture's own tools; it is no secret that is worth keeping.
    let codec = Arc::new(RequestStateCodec::try_new(b"a key of thirty-two bytes or more".to_vec())?);
    let config = StreamableHttpServerConfig::default().with_allowed_origins([
        "http://localhost:*",
        "http://127.0.0.1:*",
        "http://[::1]:*",
    ]);
    let new = move || Ok(Fixture { tools: tools.clone(), codec: Arc::clone(&codec) });
    let service = StreamableHttpService::new(new, Arc::<LocalSessionManager>::default(), config);
    let listener = TcpListener::bind(address).await?;
    println!("READY http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await?;
    Ok(())
}
