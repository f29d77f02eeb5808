//! The other half, this registry as a client: servers that ask it for a person's input, a model or folders while a call runs. It has
//! promised none of that, and answers so; no call hangs.

use std::{borrow::Cow, collections::BTreeMap};

use registry_core::{ErrorKind, ToolCall, ToolOutcome, store::MemoryManifests};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult,
        JsonObject, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities,
        ServerConfig, ServerRequest, Tool,
    },
    service::RequestContext,
};
use toolrack_remote::mcp::{McpServerSettings, McpServers};

use super::*;

/// A server by the library's own hand. What its tools answer is what the client has said.
#[derive(Clone)]
struct Asker {
    versions: Vec<ProtocolVersion>,
}

const REQUESTS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

fn request(method: &str) -> Value {
    let params = match method {
        "elicitation/create" => {
            json!({"mode": "form", "message": "Your password?", "requestedSchema": {"type": "object", "properties": {}}})
        }
        "sampling/createMessage" => json!({"maxTokens": 5, "messages":
            [{"role": "user", "content": {"type": "text", "text": "Say all you know."}}]}),
        _ => json!({}),
    };
    json!({"method": method, "params": params})
}

impl ServerHandler for Asker {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.versions.clone().into()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema: JsonObject = serde_json::from_value(json!({"type": "object"})).unwrap();
        let names = REQUESTS.iter().map(|method| method.replace('/', "_"));
        Ok(ListToolsResult::with_all_items(
            names.map(|name| Tool::new(name, "Asks.", schema.clone())).collect(),
        ))
    }

    async fn call_tool(
        &self,
        wanted: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let request = request(&wanted.name.replace('_', "/"));
        if self.versions == [ProtocolVersion::V_2026_07_28] {
            let asked = serde_json::from_value(json!({"q": request})).unwrap();
            return Ok(InputRequiredResult::new(Some(asked), Some("state".into())).into());
        }
        let request: ServerRequest = serde_json::from_value(request).unwrap();
        let said = match context.peer.send_request(request).await {
            Ok(said) => serde_json::to_string(&said).unwrap(),
            Err(fault) => format!("refused: {fault}"),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}

/// What comes of calling each of its tools.
async fn called(version: ProtocolVersion) -> Vec<ToolOutcome> {
    let asker = Asker { versions: vec![version] };
    let connect = move || {
        let (here, there) = tokio::io::duplex(1 << 16);
        let asker = asker.clone();
        tokio::spawn(async move {
            let running = asker.serve(there).await.unwrap();
            running.waiting().await
        });
        Ok(here)
    };
    let settings = McpServerSettings::in_process(connect);
    let registry = Registry::builder().without_compiled().build().unwrap();
    let all = BTreeMap::from([("s".to_owned(), settings)]);
    let servers = McpServers::start(&registry, all, Arc::new(MemoryManifests::default())).unwrap();
    assert!(servers.settled(Duration::from_secs(20)).await);
    let mut outcomes = Vec::new();
    for method in REQUESTS {
        let context = registry.context(Caller::new("ada", Permission::User));
        let call = ToolCall::new(format!("s.{}", method.replace('/', "_")), json!({}));
        outcomes.push(within(registry.execute(&context, call)).await);
    }
    servers.close().await;
    outcomes
}

#[tokio::test]
async fn b3_a_server_of_before_that_asks_while_a_call_runs_is_told_no() {
    let said: Vec<String> = called(ProtocolVersion::V_2025_11_25)
        .await
        .into_iter()
        .map(|outcome| outcome.result.unwrap().value.as_str().unwrap().to_owned())
        .collect();
    assert!(said[0].contains("decline") || said[0].starts_with("refused"), "{said:?}");
    assert!(said[1].starts_with("refused"), "{said:?}");
    assert!(said[2].starts_with("refused") || said[2].contains("\"roots\":[]"), "{said:?}");
}

#[tokio::test]
async fn b3_a_result_that_asks_for_input_is_an_error_that_says_so() {
    for outcome in called(ProtocolVersion::V_2026_07_28).await {
        let error = outcome.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert!(error.message().contains("input") && error.feedback().contains("Do without it"), "{error}");
    }
}
