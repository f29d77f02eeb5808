//! The registry as a server of the Model Context Protocol: the revision 2026-07-28 and those before it that open with
//! `initialize`.
//!
//! Every call takes the registry's one path with the caller of its request. What differs by revision is only how a person is
//! asked to approve a call: see [`approval`].

mod approval;
mod call;
mod listing;
mod progress;

use std::{fmt, sync::Arc, time::Duration};

use registry_core::{Registry, ToolContext};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, Extensions, Implementation, ListToolsResult,
        PaginatedRequestParams, RequestStateCodec, ServerCapabilities, ServerConfig, SubscriptionFilter,
    },
    service::{NotificationContext, Peer, RequestContext, SubscriptionContext},
};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// Changes that come together are told once.
const SETTLES: Duration = Duration::from_millis(50);
/// How often a session that was left is looked for.
const LOOKED_FOR: Duration = Duration::from_secs(30);

/// Who makes a request, and with which tools.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// The tools.
    pub registry: Registry,
    /// Who asks, and what is provided to the tools.
    pub context: ToolContext,
}

/// Finds out who makes a request, from what its transport knows of it.
type Identify = Arc<dyn Fn(&Extensions) -> Option<Visitor> + Send + Sync>;

/// The server. Cheap to clone; one serves any number of clients.
#[derive(Clone)]
pub struct McpServer {
    identify: Identify,
    /// Seals what a client brings back with a person's answer.
    codec: Arc<RequestStateCodec>,
    closing: CancellationToken,
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").finish_non_exhaustive()
    }
}

impl McpServer {
    /// A server whose requests are those of `identify`'s visitor; none where it knows nobody, and the request is refused.
    /// `closing` ends running calls.
    ///
    /// # Errors
    /// When the machine has no randomness to give.
    pub fn new(
        closing: CancellationToken,
        identify: impl Fn(&Extensions) -> Option<Visitor> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let codec = approval::codec()?;
        Ok(Self { identify: Arc::new(identify), codec: Arc::new(codec), closing })
    }

    /// A server with one visitor, as over standard input and output.
    ///
    /// # Errors
    /// As in [`new`](Self::new).
    pub fn for_one(closing: CancellationToken, visitor: Visitor) -> Result<Self, String> {
        Self::new(closing, move |_| Some(visitor.clone()))
    }

    fn visitor(&self, extensions: &Extensions) -> Result<Visitor, ErrorData> {
        (self.identify)(extensions)
            .ok_or_else(|| ErrorData::invalid_request("nobody is known to make this request", None))
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("toolrack", env!("CARGO_PKG_VERSION")).with_title("Toolrack");
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let visitor = self.visitor(&context.extensions)?;
        listing::page(&visitor, request.and_then(|request| request.cursor))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let visitor = self.visitor(&context.extensions)?;
        call::run(self, visitor, request, context).await
    }

    /// Of clients of the earlier revisions, which are told without asking.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Ok(visitor) = self.visitor(&context.extensions) {
            tokio::spawn(tell_of_changes(visitor.registry, context.peer, self.closing.clone()));
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    /// Of clients of 2026-07-28, which ask to be told.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let visitor = self.visitor(&context.request_context().extensions)?;
        let mut changes = visitor.registry.subscribe();
        loop {
            tokio::select! {
                changed = changes.recv() => {
                    if matches!(changed, Err(RecvError::Closed)) {
                        return Ok(());
                    }
                    tokio::time::sleep(SETTLES).await;
                    changes = changes.resubscribe();
                    if context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
                () = context.cancelled() => return Ok(()),
                () = self.closing.cancelled() => return Ok(()),
            }
        }
    }
}

/// Tells a client that the list has changed, until it is gone.
async fn tell_of_changes(registry: Registry, peer: Peer<RoleServer>, closing: CancellationToken) {
    let mut changes = registry.subscribe();
    while !peer.is_transport_closed() {
        tokio::select! {
            changed = changes.recv() => {
                if matches!(changed, Err(RecvError::Closed)) {
                    return;
                }
                tokio::time::sleep(SETTLES).await;
                changes = changes.resubscribe();
                if peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep(LOOKED_FOR) => {}
            () = closing.cancelled() => return,
        }
    }
}
