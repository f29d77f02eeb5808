//! One call of a server's tool.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use registry_core::{
    ErrorKind, ToolContext, ToolError,
    clock::{Clock, SystemClock},
    flow::Reads,
};
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, MetaObject,
        RequestId, RequestMetaObject,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
    transport::streamable_http_client::HttpStatusError,
};
use serde_json::Map;

use super::{
    bounded_http::turned_away,
    lenient,
    listener::Listener,
    oauth::Bearer,
    reply::{self, APPROVAL_WAIT, READS},
    retry_after::retry_at,
    sessions::Sessions,
};
use crate::{
    text::cause_of,
    tool::{Answer, Protocol, RemoteCall},
};

/// A connection that stands.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: Listener,
}

/// What leads from a server's tools to whatever connection stands now.
pub(super) struct Link {
    name: Arc<str>,
    /// The whole URL, which may have a secret in its query, and what is shown in its place.
    hidden: Option<(String, String)>,
    live: Mutex<Option<Live>>,
    /// Of users with accounts there, in whose names their calls are made.
    sessions: Option<Arc<Sessions>>,
}

impl Link {
    pub(super) fn new(
        name: Arc<str>,
        url: Option<&str>,
        shown: &str,
        sessions: Option<Arc<Sessions>>,
    ) -> Self {
        let hidden = url.map(|url| (url.to_owned(), shown.to_owned()));
        Self { name, hidden, live: Mutex::new(None), sessions }
    }

    pub(super) fn set(&self, live: Option<Live>) {
        *self.live.lock() = live;
    }

    /// A text of the transport without what may be a secret.
    pub(super) fn without_secrets(&self, text: String) -> String {
        match &self.hidden {
            Some((url, shown)) => text.replace(url, shown),
            None => text,
        }
    }

    fn gone(&self) -> ToolError {
        ToolError::unavailable(format!("the MCP server {} is not connected; it is tried again", self.name))
            .with_feedback("The service behind the tool is down. Try again later, or do without it.")
    }

    /// It is not known whether the tool has run.
    fn broken(&self, is_repeatable: bool) -> ToolError {
        let error = ToolError::failed(format!("the MCP server {} did not answer the call", self.name));
        if is_repeatable {
            return error.retryable().with_feedback("The service behind the tool is down. Try again later.");
        }
        error.with_feedback(
            "The service behind the tool broke off. The tool may have run; look before you call it again.",
        )
    }

    /// It has not run.
    fn busy(&self, answer: &HttpStatusError) -> ToolError {
        let (name, status) = (&self.name, answer.status);
        let message = format!("the MCP server {name} has too much to do (HTTP {status})");
        let error = ToolError::new(ErrorKind::Busy, message).retryable().with_feedback(
            "The service behind the tool has too much to do now. The tool has not run. Try again later.",
        );
        match answer.retry_after.as_deref().and_then(|text| retry_at(text, SystemClock.now())) {
            Some(at) => error.with_retry_at(at),
            None => error,
        }
    }

    /// What the transport says has addresses in it: it is for the operator alone.
    fn outage(&self, error: ToolError, cause: ServiceError, bearer: Option<&Bearer>) -> Answer {
        let cause = cause_of(cause);
        let cause = bearer.map_or_else(|| cause.clone(), |bearer| bearer.without_tokens(cause.clone()));
        let detail = format!("{}: {}", error.message(), self.without_secrets(cause));
        Answer::Outage(error.with_detail(detail).into())
    }

    async fn answer(&self, call: RemoteCall<'_>) -> Answer {
        let Some(sessions) = &self.sessions else {
            let Some(live) = self.live.lock().clone() else { return Answer::NotSent(self.gone()) };
            return self.answer_on(&live, call, None).await;
        };
        let opened = match sessions.of(call.context).await {
            Ok(opened) => opened,
            Err(error) => return Answer::NotSent(error),
        };
        let answer = self.answer_on(&opened.live, call, Some(&opened.bearer)).await;
        match answer {
            Answer::Outage(_) if opened.bearer.is_refused() => {
                Answer::NotSent(sessions.refusal(&opened.bearer, None))
            }
            answer => answer,
        }
    }

    async fn answer_on(&self, live: &Live, call: RemoteCall<'_>, bearer: Option<&Arc<Bearer>>) -> Answer {
        let RemoteCall { context, tool, arguments, is_repeatable, .. } = call;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = match live.peer.send_cancellable_request(request, options(&call)).await {
            Ok(sent) => sent,
            Err(closed) => return self.outage(self.gone(), closed, bearer.map(Arc::as_ref)),
        };
        let mut pending = Pending { live, context, id: Some(sent.id.clone()) };
        let _heard = live.listener.calls.route(sent.progress_token.clone(), context.clone());
        let answer = sent.await_response().await;
        pending.id = None;
        match answer {
            Ok(answer) => {
                // How large it is, is the server's to say.
                let bearer = bearer.cloned();
                let read = tokio::task::spawn_blocking(move || {
                    let answer = lenient::answer(answer);
                    (reply::reads(&answer), reply::read(answer, bearer.as_deref()))
                });
                let (reads, read) = read.await.unwrap_or_else(|fault| (Reads::NOTHING, Err(fault.into())));
                context.has_read(reads, &self.name);
                Answer::Answered(read)
            }
            Err(ServiceError::McpError(error)) => {
                let error = reply::error_of(&error, bearer.map(Arc::as_ref));
                if error.kind() == ErrorKind::ToolNotFound {
                    live.listener.wake.notify_one();
                }
                Answer::Answered(Err(error))
            }
            Err(error) => {
                if let Some(answer) = turned_away(&error) {
                    return Answer::NotSent(self.busy(answer));
                }
                live.listener.wake.notify_one();
                self.outage(self.broken(is_repeatable), error, bearer.map(Arc::as_ref))
            }
        }
    }
}

#[async_trait]
impl Protocol for Link {
    async fn execute(&self, call: RemoteCall<'_>) -> Answer {
        self.answer(call).await
    }
}

/// Asks a Toolrack on the other side to answer in time where it waits for a person, and tells it what was read before the call.
fn options(call: &RemoteCall<'_>) -> PeerRequestOptions {
    let mut meta = Map::new();
    // Also where nobody waits: who says nothing is taken for somebody who does.
    let wait = u64::try_from(call.wait.as_millis()).unwrap_or(u64::MAX);
    meta.insert(APPROVAL_WAIT.to_owned(), wait.into());
    let reads = call.context.read_so_far();
    if !reads.is_nothing() {
        meta.insert(READS.to_owned(), reads.to_string().into());
    }
    if let Some(trace) = call.context.trace() {
        meta.extend(trace.headers().map(|(name, value)| (name.to_owned(), value.into())));
    }
    let mut options = PeerRequestOptions::no_options();
    options.meta = Some(RequestMetaObject(MetaObject(meta)));
    options
}

/// A call on its way, of whose cancellation the server is notified where the registry drops it.
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
        let (peer, cancelled) =
            (self.live.peer.clone(), CancelledNotificationParam::new(Some(id), Some(reason.to_owned())));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // Without a connection there is nobody to notify.
                let _ = peer.notify_cancelled(cancelled).await;
            });
        }
    }
}
