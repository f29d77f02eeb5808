//! The registry as an MCP server, for the revision 2026-07-28 and earlier ones with `initialize`.
//!
//! Every call takes the registry's one path with the caller of its request. What differs by revision is only how a person is
//! asked to approve a call.

mod approval;
mod call;
mod listing;
mod names;
mod progress;
mod settings;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use registry_core::{Registry, RegistryEvent, ToolContext};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, Extensions, Implementation, InitializeRequestParams,
        InitializeResult, ListToolsResult, PaginatedRequestParams, RequestStateCodec, ServerCapabilities,
        ServerConfig, SubscriptionFilter, Tool,
    },
    service::{Peer, RequestContext, SubscriptionContext},
};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use names::names;
pub use settings::McpSettings;

/// Changes that come together are reported once.
const SETTLES: Duration = Duration::from_millis(50);
/// How often to check for closed sessions.
const LOOKED_FOR: Duration = Duration::from_secs(30);

/// Who makes a request, and with which tools.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// The tools.
    pub registry: Registry,
    /// Who asks, and what is provided to the tools.
    pub context: ToolContext,
}

/// Identifies the caller of a request from its transport's data.
type Identify = Arc<dyn Fn(&Extensions) -> Option<Visitor> + Send + Sync>;

/// The server. Cheap to clone; one serves any number of clients.
#[derive(Clone, derive_more::Debug)]
#[debug("McpServer")]
pub struct McpServer {
    identify: Identify,
    /// The caller of the one request that this instance serves, if the transport has identified it before.
    asking: Option<Visitor>,
    settings: McpSettings,
    /// Over when the sources of tools have answered once, or were waited for long enough.
    answered: Shared<BoxFuture<'static, ()>>,
    /// Seals the state that a client returns with an approval.
    codec: Arc<RequestStateCodec>,
    /// The running calls, also those of disconnected clients.
    calls: TaskTracker,
    /// Receivers for subscriptions that are being acknowledged.
    early: Arc<Mutex<Vec<Receiver<RegistryEvent>>>>,
    /// Ends subscriptions.
    stopping: CancellationToken,
    closing: CancellationToken,
}

impl McpServer {
    /// A server that identifies the visitor of each request with `identify`; a request without one is refused. `closing` cancels running
    /// calls. They run in `calls`, so that a caller can wait for their audit records.
    ///
    /// # Errors
    /// When the system's random numbers are not available.
    pub fn new(
        closing: CancellationToken,
        calls: TaskTracker,
        identify: impl Fn(&Extensions) -> Option<Visitor> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let codec = Arc::new(approval::codec()?);
        let (stopping, early) = (closing.clone(), Arc::default());
        let (settings, answered) = (McpSettings::default(), std::future::ready(()).boxed().shared());
        let identify = Arc::new(identify);
        Ok(Self { identify, asking: None, settings, answered, codec, calls, early, stopping, closing })
    }

    /// With these settings. `answered` is over when every source of tools has answered once, or has failed to; the first list waits for
    /// that, because many clients list once.
    #[must_use]
    pub fn with_settings(
        self,
        settings: McpSettings,
        answered: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let waits = async move {
            // What has not come by then is reported as a change.
            let _ = tokio::time::timeout(settings.first_list(), answered).await;
        };
        Self { settings, answered: waits.boxed().shared(), ..self }
    }

    /// Ends subscriptions, which have no end of their own, earlier than calls.
    #[must_use]
    pub fn with_stopping(self, stopping: CancellationToken) -> Self {
        Self { stopping, ..self }
    }

    /// A server with one visitor, as over standard input and output.
    ///
    /// # Errors
    /// As in [`new`](Self::new).
    pub fn for_one(closing: CancellationToken, calls: TaskTracker, visitor: Visitor) -> Result<Self, String> {
        let one = visitor.clone();
        Ok(Self::new(closing, calls, move |_| Some(one.clone()))?.asked_by(visitor))
    }

    /// The same server for one HTTP request, whose headers repeat arguments of the tool's schema and are checked before the request is
    /// read.
    #[must_use]
    pub fn asked_by(&self, visitor: Visitor) -> Self {
        Self { asking: Some(visitor), early: Arc::default(), ..self.clone() }
    }

    fn early(&self) -> MutexGuard<'_, Vec<Receiver<RegistryEvent>>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn visitor(&self, extensions: &Extensions) -> Result<Visitor, ErrorData> {
        (self.identify)(extensions)
            .ok_or_else(|| ErrorData::invalid_request("the caller of this request is unknown", None))
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
        self.answered.clone().await;
        listing::page(&visitor, self.settings, request.and_then(|request| request.cursor))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let visitor = self.visitor(&context.extensions)?;
        call::run(self, visitor, request, context).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        listing::tool(self.asking.as_ref()?, self.settings, name)
    }

    /// For clients of the earlier revisions, which are notified of changes without asking: of all since this request, so that none
    /// is lost between the first list and the first word that they listen.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let visitor = self.visitor(&context.extensions)?;
        let answer = self.negotiate_initialize(&request)?;
        context.peer.set_peer_info(request);
        tokio::spawn(tell_of_changes(visitor.registry.subscribe(), context.peer, self.closing.clone()));
        Ok(answer)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // The acknowledgement is sent next, and no later change may be lost.
        if let Some(visitor) = self.asking.as_ref().filter(|_| requested.tools_list_changed == Some(true)) {
            self.early().push(visitor.registry.subscribe());
        }
        Some(requested.clone())
    }

    /// For clients of 2026-07-28, which subscribe to changes.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let visitor = self.visitor(&context.request_context().extensions)?;
        // Only what was asked for is sent; the list of tools is all that this server has.
        let wanted = context.accepted().tools_list_changed == Some(true);
        let early = self.early().pop().filter(|_| wanted);
        let is_late = early.is_none();
        let mut changes = early.unwrap_or_else(|| visitor.registry.subscribe());
        // Without an early receiver, a change since the acknowledgement may have been missed.
        if wanted && is_late && context.sink().notify_tool_list_changed().await.is_err() {
            return Ok(());
        }
        loop {
            tokio::select! {
                more = settled(&mut changes), if wanted => {
                    if !more || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
                () = context.cancelled() => return Ok(()),
                () = self.stopping.cancelled() => return Ok(()),
            }
        }
    }
}

/// Tells a client that the list has changed, until it is gone.
async fn tell_of_changes(
    mut changes: Receiver<RegistryEvent>,
    peer: Peer<RoleServer>,
    closing: CancellationToken,
) {
    while !peer.is_transport_closed() {
        tokio::select! {
            more = settled(&mut changes) => {
                if !more || peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep(LOOKED_FOR) => {}
            () = closing.cancelled() => return,
        }
    }
}

/// Waits for a change and those right after it; false when there will be none any more.
async fn settled(changes: &mut Receiver<RegistryEvent>) -> bool {
    if matches!(changes.recv().await, Err(RecvError::Closed)) {
        return false;
    }
    tokio::time::sleep(SETTLES).await;
    *changes = changes.resubscribe();
    true
}
