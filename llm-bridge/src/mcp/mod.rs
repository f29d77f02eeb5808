//! The registry as an MCP server, for the revision 2026-07-28 and earlier ones with `initialize`.
//!
//! Every call takes the registry's one path with the caller of its request. What differs by revision is only how a person is
//! asked to approve a call.

mod approval;
mod authorization;
mod call;
mod flow;
mod ids;
mod listing;
mod names;
mod progress;
mod question;
mod round_trip;
mod settings;

use std::{sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::{Mutex, MutexGuard};
use registry_core::{Registry, RegistryEvent, ToolContext};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Extensions,
        Implementation, InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    },
    service::{Peer, RequestContext, SubscriptionContext},
    transport::streamable_http_server::SessionRestoreMarker,
};
use serde::Deserialize;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::takeover::Takeover;
pub(crate) use approval::TakesAnswerAlone;
pub(crate) use ids::Named;
pub use ids::UniqueIds;
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
    /// The session of the request, where there is one: its calls are one turn, as far as it is known what they have read.
    pub session: Option<Arc<str>>,
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
    settings: Arc<McpSettings>,
    /// Over when the sources of tools have answered once, or were waited for long enough.
    answered: Shared<BoxFuture<'static, ()>>,
    /// The running calls, also those of disconnected clients.
    calls: TaskTracker,
    /// What sessions have read.
    read: flow::SessionsRead,
    /// Receivers for subscriptions that are being acknowledged.
    early: Arc<Mutex<Vec<Receiver<RegistryEvent>>>>,
    /// Ends subscriptions.
    stopping: CancellationToken,
    closing: CancellationToken,
    /// The servers before this one, from which clients may have a list.
    takeover: Option<Takeover>,
}

impl McpServer {
    /// A server that identifies the visitor of each request with `identify`; a request without one is refused. `closing` cancels running
    /// calls. They run in `calls`, so that a caller can wait for their audit records.
    pub fn new(
        closing: CancellationToken,
        calls: TaskTracker,
        identify: impl Fn(&Extensions) -> Option<Visitor> + Send + Sync + 'static,
    ) -> Self {
        let (stopping, early) = (closing.clone(), Arc::default());
        let (settings, answered) = (Arc::default(), std::future::ready(()).boxed().shared());
        let identify = Arc::new(identify);
        let (takeover, read) = (None, flow::SessionsRead::default());
        Self { identify, asking: None, settings, answered, calls, read, early, stopping, closing, takeover }
    }

    /// A server that takes over from another, if there is one: its clients are told to list the tools again.
    pub(crate) fn succeeding(self, takeover: Option<Takeover>) -> Self {
        Self { takeover, ..self }
    }

    /// With these settings. `answered` is over when every source of tools has answered once, or has failed to; the first list waits for
    /// that, because many clients list once.
    #[must_use]
    pub fn with_settings(
        self,
        settings: McpSettings,
        answered: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let first_list = settings.first_list();
        let waits = async move {
            // What has not come by then is reported as a change.
            let _ = tokio::time::timeout(first_list, answered).await;
        };
        Self { settings: Arc::new(settings), answered: waits.boxed().shared(), ..self }
    }

    /// Ends subscriptions, which have no end of their own, earlier than calls.
    #[must_use]
    pub fn with_stopping(self, stopping: CancellationToken) -> Self {
        Self { stopping, ..self }
    }

    /// A server with one visitor, as over standard input and output. Serve it over [`UniqueIds`].
    pub fn for_one(closing: CancellationToken, calls: TaskTracker, mut visitor: Visitor) -> Self {
        visitor.session.get_or_insert_with(|| "".into());
        let one = visitor.clone();
        Self::new(closing, calls, move |_| Some(one.clone())).asked_by(visitor)
    }

    /// The same server for one HTTP request, whose headers repeat arguments of the tool's schema and are checked before the request is
    /// read.
    #[must_use]
    pub fn asked_by(&self, visitor: Visitor) -> Self {
        Self { asking: Some(visitor), early: Arc::default(), ..self.clone() }
    }

    fn early(&self) -> MutexGuard<'_, Vec<Receiver<RegistryEvent>>> {
        self.early.lock()
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
        info.instructions = self.settings.instructions();
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let visitor = self.visitor(&context.extensions)?;
        self.answered.clone().await;
        listing::page(&visitor, &self.settings, request.and_then(|request| request.cursor))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let visitor = self.visitor(&context.extensions)?;
        call::run(self, visitor, request, context).await
    }

    /// What the library takes for a request of its own kind, because its parameters are not those of the protocol's.
    async fn on_custom_request(
        &self,
        CustomRequest { method, params, .. }: CustomRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match method.as_str() {
            "tools/call" => {
                let mut params = params.unwrap_or_default();
                let wanted =
                    call::wanted(&mut params).map_err(|fault| ErrorData::invalid_params(fault, None))?;
                if let Some(meta) = params.get("_meta").and_then(|meta| Deserialize::deserialize(meta).ok()) {
                    context.meta = meta;
                }
                let answer = self.call_tool(wanted, context).await?;
                let answer = match answer {
                    CallToolResponse::Complete(result) => serde_json::to_value(result),
                    CallToolResponse::InputRequired(asking) => serde_json::to_value(asking),
                    _ => return Err(ErrorData::internal_error("the answer is of an unknown kind", None)),
                };
                let answer = answer.map_err(|fault| ErrorData::internal_error(fault.to_string(), None));
                answer.map(CustomResult::new)
            }
            "tools/list" | "initialize" | "ping" | "server/discover" | "subscriptions/listen" => {
                let message = format!("the parameters are not those of {method}");
                Err(ErrorData::invalid_params(message, None))
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        listing::tool(self.asking.as_ref()?, &self.settings, name)
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
        let is_restored = context.extensions.get::<SessionRestoreMarker>().is_some();
        let (changes, closing) = (visitor.registry.subscribe(), self.closing.clone());
        tokio::spawn(tell_of_changes(changes, context.peer, is_restored, closing));
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
        // Without an early receiver, a change since the acknowledgement may have been missed; and a client that comes from the server
        // before has its list.
        if wanted
            && (is_late || self.takeover.as_ref().is_some_and(Takeover::succeeds))
            && context.sink().notify_tool_list_changed().await.is_err()
        {
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
    is_restored: bool,
    closing: CancellationToken,
) {
    // It has the list of the server before. The message waits in the session until the client listens.
    if is_restored {
        let _ = peer.notify_tool_list_changed().await;
    }
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
