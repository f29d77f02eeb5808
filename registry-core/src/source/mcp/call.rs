//! One call of a server's tool.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::{
    RoleClient,
    model::{CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, RequestId},
    service::{Peer, PeerRequestOptions, ServiceError},
};
use serde_json::{Map, Value};

use super::{listener::Listener, reply, text::cause_of};
use crate::{
    context::ToolContext,
    execute::BoxFuture,
    guard::Lanes,
    result::{ErrorKind, ToolError, ToolResult},
    tool::Handler,
};

/// A connection that stands.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: Listener,
}

/// The way from a server's tools to whatever connection stands now.
pub(super) struct Link {
    pub(super) name: Arc<str>,
    pub(super) lanes: Lanes,
    /// The whole URL, which may have a secret in its query, and what is shown in its place.
    pub(super) hidden: Option<(String, String)>,
    pub(super) live: Mutex<Option<Live>>,
}

impl Link {
    fn live(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, live: Option<Live>) {
        *self.live() = live;
    }

    /// A text of the transport without what may be a secret.
    pub(super) fn without_secrets(&self, text: String) -> String {
        match &self.hidden {
            Some((url, shown)) => text.replace(url, shown),
            None => text,
        }
    }

    fn busy(&self) -> ToolError {
        let server = &self.name;
        ToolError::new(
            ErrorKind::Busy,
            format!("as many calls of the MCP server {server} run and wait as may"),
        )
        .retryable()
        .with_feedback("The tool has too much to do now. Try again later, or do without it.")
    }

    fn gone(&self) -> ToolError {
        ToolError::unavailable(format!("the MCP server {} is not connected; it is tried again", self.name))
            .with_feedback("The service behind the tool is down. Try again later, or do without it.")
    }

    /// It is not known whether the tool has run.
    fn broken(&self, error: ServiceError, is_repeatable: bool) -> ToolError {
        let cause = self.without_secrets(cause_of(error));
        let error =
            ToolError::failed(format!("the MCP server {} did not answer the call: {cause}", self.name));
        if is_repeatable {
            return error.retryable().with_feedback("The service behind the tool is down. Try again later.");
        }
        error.with_feedback(
            "The service behind the tool broke off. The tool may have run; look before you call it again.",
        )
    }
}

/// A tool of a server.
pub(super) struct McpTool {
    pub(super) link: Arc<Link>,
    pub(super) wire_name: String,
    /// Whether a second call does no harm.
    pub(super) is_repeatable: bool,
}

impl McpTool {
    async fn run(
        &self,
        context: &ToolContext,
        arguments: Map<String, Value>,
    ) -> Result<ToolResult, ToolError> {
        let _turn = self.link.lanes.enter(&self.link.name, 0).await.map_err(|_full| self.link.busy())?;
        let live = self.link.live().clone().ok_or_else(|| self.link.gone())?;
        let params = CallToolRequestParams::new(self.wire_name.clone()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = live.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let sent = sent.map_err(|_closed| self.link.gone())?;
        let mut pending = Pending { live: &live, context, id: Some(sent.id.clone()) };
        let _heard = live.listener.calls.route(sent.progress_token.clone(), context.clone());
        let answer = sent.await_response().await;
        pending.id = None;
        answer.map_or_else(
            |error| match error {
                ServiceError::McpError(error) => {
                    let error = reply::error_of(&error);
                    if error.kind() == ErrorKind::ToolNotFound {
                        live.listener.wake.notify_one();
                    }
                    Err(error)
                }
                error => {
                    live.listener.wake.notify_one();
                    Err(self.link.broken(error, self.is_repeatable))
                }
            },
            reply::read,
        )
    }
}

impl Handler for McpTool {
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(self.run(context, arguments))
    }
}

/// A call on its way, which the server is told of where the registry drops it.
struct Pending<'a> {
    live: &'a Live,
    context: &'a ToolContext,
    id: Option<RequestId>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let is_late = !self.context.is_cancelled();
        if is_late {
            // It may be slow, or hang altogether, which is to be found out.
            self.live.listener.wake.notify_one();
        }
        let reason = if is_late { "it took too long" } else { "nobody waits for it any more" };
        let (peer, told) =
            (self.live.peer.clone(), CancelledNotificationParam::new(Some(id), Some(reason.to_owned())));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // Without a connection there is nobody to tell.
                let _ = peer.notify_cancelled(told).await;
            });
        }
    }
}
