//! A server of the Model Context Protocol with nothing but the library and one tool: what Toolrack's server is measured against.
//!
//! ```sh
//! cargo run -p llm-bridge --example mcp_bare -- 127.0.0.1:7333
//! ```

use std::{error::Error, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[derive(Clone)]
struct Bare;

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        });
        let schema = schema.as_object().cloned().unwrap_or_default();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("add", "Adds two numbers.", Arc::new(schema))]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != "add" {
            return Err(ErrorData::invalid_params("there is only `add`", None));
        }
        let arguments = request.arguments.unwrap_or_default();
        let number = |name| arguments.get(name).and_then(Value::as_i64).unwrap_or_default();
        let sum = number("a").saturating_add(number("b"));
        Ok(CallToolResult::success(vec![ContentBlock::text(sum.to_string())]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let sessions = Arc::<LocalSessionManager>::default();
    let service = StreamableHttpService::new(|| Ok(Bare), sessions, Default::default());
    let listener = TcpListener::bind(address).await?;
    println!("READY http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await?;
    Ok(())
}
