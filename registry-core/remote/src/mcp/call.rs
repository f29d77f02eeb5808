//! One call of a server's tool.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use registry_core::{BoxFuture, ErrorKind, Handler, ToolContext, ToolError, ToolResult};
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, MetaObject,
        RequestId, RequestMetaObject,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    listener::Listener,
    reply::{self, APPROVAL_WAIT},
    text::{cause_of, shown},
};
use crate::{module::Guarded, remote_call::RemoteCall, slots::Slots};

/// A connection that stands.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: Listener,
}

/// The way from a server's tools to whatever connection stands now.
pub(super) struct Link {
    pub(super) name: Arc<str>,
    pub(super) slots: Slots,
    pub(super) guarded: Guarded,
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
    fn broken(&self, cause: &str, is_repeatable: bool) -> ToolError {
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
    /// How long the server has for an answer.
    pub(super) timeout: Duration,
    /// Whether a second call does no harm.
    pub(super) is_repeatable: bool,
    /// Whether it is made again while a person on the server's side has not answered.
    pub(super) may_wait: bool,
    /// Why it may not be called until somebody has looked at it.
    pub(super) quarantine: Option<String>,
}

impl McpTool {
    async fn run(
        &self,
        context: &ToolContext,
        arguments: Map<String, Value>,
    ) -> Result<ToolResult, ToolError> {
        let tool = shown(&self.wire_name);
        let mut call = RemoteCall {
            context,
            tool: &tool,
            place: &self.link.name,
            may_wait: self.may_wait,
            timeout: self.timeout,
            waits_since: None,
        };
        let wait = call.wait_there();
        loop {
            let once = self.once(context, arguments.clone(), self.options(wait));
            if let Some(answer) = call.answered(once).await {
                return answer;
            }
        }
    }

    /// Makes the call once.
    async fn once(
        &self,
        context: &ToolContext,
        arguments: Map<String, Value>,
        options: PeerRequestOptions,
    ) -> Result<ToolResult, ToolError> {
        let _slot = self.link.slots.acquire().await.ok_or_else(|| self.link.busy())?;
        // The wait for a turn says nothing about the server.
        let deadline = Instant::now() + self.timeout;
        let live = self.link.live().clone().ok_or_else(|| self.link.gone())?;
        let trial = self.link.guarded.admit(context, self.timeout, deadline)?;
        let params = CallToolRequestParams::new(self.wire_name.clone()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = live.peer.send_cancellable_request(request, options).await;
        let sent = match sent {
            Ok(sent) => sent,
            Err(closed) => {
                trial.end(Some(self.link.without_secrets(cause_of(closed)).into()));
                return Err(self.link.gone());
            }
        };
        let mut pending = Pending { live: &live, context, id: Some(sent.id.clone()) };
        let _heard = live.listener.calls.route(sent.progress_token.clone(), context.clone());
        let answer = sent.await_response().await;
        pending.id = None;
        match answer {
            Ok(answer) => {
                trial.end(None);
                reply::read(answer)
            }
            Err(ServiceError::McpError(error)) => {
                trial.end(None);
                let error = reply::error_of(&error);
                if error.kind() == ErrorKind::ToolNotFound {
                    live.listener.wake.notify_one();
                }
                Err(error)
            }
            Err(error) => {
                let cause = self.link.without_secrets(cause_of(error));
                trial.end(Some(cause.clone().into()));
                live.listener.wake.notify_one();
                Err(self.link.broken(&cause, self.is_repeatable))
            }
        }
    }

    /// A Toolrack on the other side is told to answer in time where it waits for a person.
    fn options(&self, wait: Duration) -> PeerRequestOptions {
        let mut options = PeerRequestOptions::no_options();
        if self.may_wait {
            let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let meta = Map::from_iter([(APPROVAL_WAIT.to_owned(), wait.into())]);
            options.meta = Some(RequestMetaObject(MetaObject(meta)));
        }
        options
    }
}

impl Handler for McpTool {
    fn unavailable(&self, _: &ToolContext) -> Option<String> {
        self.quarantine.clone()
    }

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
