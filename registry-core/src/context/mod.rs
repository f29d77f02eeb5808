//! Who calls, with what, and how a running tool speaks back: the [`ToolContext`].

mod authority;
mod call;
mod caller;
mod resource;
mod running;

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::tenant::DEFAULT_TENANT;
pub use authority::CallerAuthority;
pub use call::{Origin, ToolCall};
pub use caller::Caller;
pub use resource::{Resource, Resources};
pub(crate) use running::{Provided, RunningCall};

/// What the conversation around a call is, as far as the host says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// The user's words that led to the call.
    pub user_message: Option<String>,
    /// The chat it happens in.
    pub chat_id: Option<String>,
    /// What a knowledge base gave for this turn.
    pub kb_context: Option<String>,
    /// How sure the model says it is, from 0 to 1.
    pub confidence: Option<f64>,
}

/// A word from a running tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolEvent {
    /// The call's id.
    pub call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// What it is doing, for people.
    pub message: String,
    /// How far it is, from 0 to 1, where it can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// The id of the approval that the call waits for, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// For how many seconds from now that can be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_seconds: Option<u64>,
}

/// Where the events of running tools go.
pub type EventSink = Arc<dyn Fn(ToolEvent) + Send + Sync>;

/// The request a tool runs in: who calls, what the host provides, and the way to report and to be stopped.
///
/// Cheap to clone. A host makes one for each request; the registry derives one for each call. The default is that of a guest, with nothing
/// provided: for unit tests that call a tool's function.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("ToolContext({caller:?}, {call:?})")]
#[must_use]
pub struct ToolContext {
    caller: Arc<Caller>,
    resources: Arc<Resources>,
    conversation: Arc<Conversation>,
    call: Option<Arc<RunningCall>>,
    events: Option<EventSink>,
    cancellation: CancellationToken,
    /// `None` is the default tenant.
    tenant: Option<Arc<str>>,
    approval_wait: Option<Duration>,
    approval_scope: Option<Arc<str>>,
    authority: Option<Arc<dyn CallerAuthority>>,
}

impl ToolContext {
    /// A context for a caller, with nothing provided and nobody listening.
    pub fn new(caller: Caller) -> Self {
        Self { caller: Arc::new(caller), ..Self::default() }
    }

    /// With what the host provides.
    pub fn with_resources(mut self, resources: impl Into<Arc<Resources>>) -> Self {
        self.resources = resources.into();
        self
    }

    /// With another caller: what a request narrowed.
    pub fn with_caller(mut self, caller: Caller) -> Self {
        self.caller = Arc::new(caller);
        self
    }

    /// With an authority that says what the caller may do by the time a call is made. By default it is what it is now.
    pub fn with_authority(mut self, authority: Arc<dyn CallerAuthority>) -> Self {
        self.authority = Some(authority);
        self
    }

    pub(crate) fn authority(&self) -> Option<&Arc<dyn CallerAuthority>> {
        self.authority.as_ref()
    }

    /// Leaves the caller only what another may do too.
    pub(crate) fn narrow_caller(&mut self, other: &Caller) {
        if *self.caller != *other {
            self.caller = Arc::new(Caller::clone(&self.caller).narrowed_to(other));
        }
    }

    /// With the conversation around the call.
    pub fn with_conversation(mut self, conversation: Conversation) -> Self {
        self.conversation = Arc::new(conversation);
        self
    }

    /// With somebody who listens to the tools.
    pub fn with_events(mut self, events: EventSink) -> Self {
        self.events = Some(events);
        self
    }

    /// Stopped when the token is cancelled.
    pub fn with_cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// Waiting no longer than this for a person to approve a call; then the call is refused and the approval stays open
    /// for the same call to be made again. By default a call waits until the approval expires, and withdraws it where it is stopped.
    pub fn with_approval_wait(mut self, wait: Duration) -> Self {
        self.approval_wait = Some(wait);
        self
    }

    /// Where a call comes back for the answer of a person: the answer is for calls of this scope alone. By default a scope is
    /// where the call comes from ([`Origin`]) and the [chat](Conversation::chat_id). A call that waits until it is answered needs none:
    /// the answer is its own.
    pub fn with_approval_scope(mut self, scope: impl Into<Arc<str>>) -> Self {
        self.approval_scope = Some(scope.into());
        self
    }

    pub(crate) fn approval_scope(&self) -> Option<&str> {
        self.approval_scope.as_deref()
    }

    pub(crate) fn approval_wait(&self) -> Option<Duration> {
        self.approval_wait
    }

    /// The context of one call.
    pub(crate) fn for_call(&self, tenant: &Arc<str>, mut call: RunningCall) -> Self {
        let mut context = self.clone().of_tenant(Arc::clone(tenant));
        call.parent = context.call.take();
        call.nesting = call.parent.as_ref().map_or(0, |parent| parent.nesting + 1);
        context.call = Some(Arc::new(call));
        context
    }

    pub(crate) fn call(&self) -> Option<&Arc<RunningCall>> {
        self.call.as_ref()
    }

    /// How many calls are around this one.
    pub(crate) fn nesting(&self) -> usize {
        self.call.as_ref().map_or(0, |call| call.nesting)
    }

    /// Who calls.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The conversation around the call.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The tenant whose registry the request is made to.
    pub fn tenant(&self) -> &str {
        self.tenant.as_deref().unwrap_or(DEFAULT_TENANT)
    }

    pub(crate) fn of_tenant(mut self, tenant: Arc<str>) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// The text behind the tag, where the call was a line `TAG: text`.
    pub fn raw_argument(&self) -> Option<&str> {
        self.call.as_ref()?.raw_argument.as_deref()
    }

    /// The id of the call that runs; empty outside of one.
    pub fn call_id(&self) -> &str {
        self.call.as_ref().map_or("", |call| &call.id)
    }

    /// What the host provides.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Something the host provides, where it does, to this request.
    pub fn resource<T: Send + Sync + 'static>(&self) -> Option<Resource<T>> {
        self.resolve().ok()
    }

    /// Why something is not there for this request; `None` where it is.
    pub(crate) fn missing<T: Send + Sync + 'static>(&self) -> Option<String> {
        self.resolve::<T>().err()
    }

    /// What the host provides to this request, asked once in a call.
    fn resolve<T: Send + Sync + 'static>(&self) -> Result<Resource<T>, String> {
        match &self.call {
            Some(call) if self.resources.differs_by_request::<T>() => {
                call.provided(|| Ok(self.resources.get::<T>(self)?.into_inner())).map(Resource::from)
            }
            _ => self.resources.get(self),
        }
    }

    /// Says what the tool is doing.
    pub fn status(&self, message: impl Into<String>) {
        self.report(message.into(), None);
    }

    /// Says what the tool is doing and how far it is, from 0 to 1.
    pub fn progress(&self, fraction: f64, message: impl Into<String>) {
        self.report(message.into(), Some(fraction.clamp(0.0, 1.0)));
    }

    /// Says that the call waits for a person, who has so long to answer.
    pub(crate) fn ask_approval(&self, id: &str, message: String, left: Duration) {
        let (approval, approval_seconds) = (Some(id.to_owned()), Some(left.as_secs()));
        self.send(ToolEvent { message, approval, approval_seconds, ..ToolEvent::default() });
    }

    fn report(&self, message: String, progress: Option<f64>) {
        self.send(ToolEvent { message, progress, ..ToolEvent::default() });
    }

    fn send(&self, event: ToolEvent) {
        let (Some(events), Some(call)) = (&self.events, &self.call) else { return };
        events(ToolEvent { call_id: call.id.clone(), tool_name: call.tool.to_string(), ..event });
    }

    /// Whether the call should stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Waits until the call should stop. The registry drops a cancelled call by itself; this is for work that runs elsewhere.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// A token that is cancelled with the call, to pass on. To cancel it cancels nothing else.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancellation.child_token()
    }
}
