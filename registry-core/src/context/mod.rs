//! Who calls, with what, and how a running tool speaks back: the [`ToolContext`].

mod asking;
mod authority;
mod call;
mod caller;
mod event;
mod resource;
mod running;
mod store;

use std::{
    any::Any,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::{
    ask::keeping::Keeping,
    flow::{HasRead, Reads, TurnFlow},
    model::Model,
    tenant::DEFAULT_TENANT,
    trace::Trace,
};
pub(crate) use asking::{Pauses, Questions};
pub use authority::CallerAuthority;
pub use call::{Origin, ToolCall};
pub use caller::Caller;
pub use event::{EventSink, PendingQuestion, ToolEvent};
pub(crate) use resource::short_name;
pub use resource::{Resource, Resources};
pub(crate) use running::{ModelUses, Provided, RunningCall};
pub use store::ToolStore;

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
    asks: bool,
    question_wait: Option<Duration>,
    reply: Option<Arc<(String, Timestamp)>>,
    /// The call that was kept and is made anew.
    resumes: Option<Arc<Keeping>>,
    authority: Option<Arc<dyn CallerAuthority>>,
    host: Option<Host>,
    flow: Option<Arc<TurnFlow>>,
    trace: Option<Trace>,
}

/// A model, as the call asks it; anything else as it is.
fn counted<T: Send + Sync + 'static>(
    found: Resource<T>,
    call: &Arc<RunningCall>,
    trace: Option<&Trace>,
) -> Resource<T> {
    let any: &(dyn Any + Send + Sync) = &*found;
    let Some(model) = any.downcast_ref::<Model>() else { return found };
    let counted: Arc<dyn Any + Send + Sync> = Arc::new(model.counted(Arc::clone(call), trace.cloned()));
    counted.downcast().map_or(found, Resource::from)
}

/// A registry. Of no type here: a registry knows contexts, and not the other way round.
pub(crate) type Host = Arc<dyn Any + Send + Sync>;

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

    /// Made by that registry.
    pub(crate) fn of_host(mut self, host: Option<Host>) -> Self {
        self.host = host;
        self
    }

    /// The registry that makes the call, or else that has made this context.
    pub(crate) fn host(&self) -> Option<&Host> {
        self.call.as_ref().map(|call| &call.registry).or(self.host.as_ref())
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

    /// Lets tools ask the person in the middle of a call ([`ask`](Self::ask)): somebody sees the events, or answers in a later request.
    /// A call waits for an answer as it waits for an approval. By default nobody can be asked.
    pub fn with_questions(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Waiting no longer than this for the answer to a question of a tool that can be run again from its start: one that only reads or is
    /// idempotent, and so are the tools around it. Then the question stays open for the same call to be made again. By default this is the
    /// time for approvals. Others wait for the longer of both, and fail when it is over.
    pub fn with_question_wait(mut self, wait: Duration) -> Self {
        self.question_wait = Some(wait);
        self
    }

    /// In a trace: its calls leave spans there.
    pub fn with_trace(mut self, trace: Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    pub(crate) fn set_trace(&mut self, trace: Trace) {
        self.trace = Some(trace);
    }

    /// Where in a trace this request or call is, for what it asks of other servers.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Where the call stands in its turn. By default nothing was read before it.
    pub fn with_flow(mut self, flow: impl Into<Arc<TurnFlow>>) -> Self {
        self.flow = Some(flow.into());
        self
    }

    /// What was read before the call, where it is a part of a turn.
    pub fn flow(&self) -> Option<&TurnFlow> {
        self.flow.as_deref()
    }

    /// Adds to what was read before the call.
    pub(crate) fn add_read(&mut self, read: &HasRead) {
        if !read.is_empty() {
            let mut flow = self.flow.as_deref().cloned().unwrap_or_default();
            flow.read.add(read);
            self.flow = Some(Arc::new(flow));
        }
    }

    /// Says that the result of the running call holds this, beside what the [tool](crate::ToolPolicy::reads) always reads. `source` is what a
    /// person knows it by, such as the name of a tool or of a server.
    pub fn has_read(&self, reads: Reads, source: &str) {
        if let Some(call) = &self.call
            && !reads.is_nothing()
        {
            call.read.lock().note(reads, source);
        }
    }

    /// What a call that goes on to another server takes along: what was read before it, unless a person has approved the call knowing that,
    /// and what it has read itself.
    pub fn read_so_far(&self) -> Reads {
        let before = self.flow.as_ref().map(|flow| flow.read.reads()).unwrap_or_default();
        match &self.call {
            Some(call) if call.is_flow_approved.load(Ordering::Relaxed) => call.read.lock().reads(),
            Some(call) => before.and(call.read.lock().reads()),
            None => before,
        }
    }

    /// Making anew the call that was kept.
    pub(crate) fn with_resumed(mut self, keeping: Arc<Keeping>) -> Self {
        self.resumes = Some(keeping);
        self
    }

    pub(crate) fn is_resuming(&self) -> bool {
        self.resumes.is_some()
    }

    pub(crate) fn take_resumed(&mut self) -> Option<Arc<Keeping>> {
        self.resumes.take()
    }

    /// What the person has written, and when that came: it may be the answer to a question that was asked before.
    pub fn with_reply(mut self, text: impl Into<String>, at: Timestamp) -> Self {
        self.reply = Some(Arc::new((text.into(), at)));
        self
    }

    pub(crate) fn reply(&self) -> Option<(&str, Timestamp)> {
        self.reply.as_deref().map(|(text, at)| (text.as_str(), *at))
    }

    /// How long the answer to a question of the call is waited for, `Some(None)` until it expires; `None` where nobody can be asked.
    pub(crate) fn question_wait(&self) -> Option<Option<Duration>> {
        let repeatable = self.call.as_ref().is_some_and(|call| call.is_repeatable());
        self.asks.then(|| match (self.question_wait, self.approval_wait) {
            (Some(wait), _) if repeatable => Some(wait),
            (Some(wait), Some(approval)) => Some(wait.max(approval)),
            (_, approval) => approval,
        })
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
        if let Some(parent) = &call.parent {
            context.add_read(&parent.read.lock());
        }
        call.nesting = call.parent.as_ref().map_or(0, |parent| parent.nesting + 1);
        context.call = Some(Arc::new(call));
        context
    }

    pub(crate) fn running(&self) -> Option<&Arc<RunningCall>> {
        self.call.as_ref()
    }

    /// The call around a call, whose own context this is, or which has got no context of its own.
    pub(crate) fn parent_of(&self, call_id: &str) -> Option<&RunningCall> {
        match self.call.as_deref() {
            Some(call) if call.id == call_id => call.parent.as_deref(),
            other => other,
        }
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

    /// The text behind the tag, where the call was a line `TAG: text` and no person has changed its arguments.
    pub fn raw_argument(&self) -> Option<&str> {
        let call = self.call.as_ref().filter(|call| !call.is_changed.load(Ordering::Relaxed))?;
        call.raw_argument.as_deref()
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

    /// The same, as the host says it: without the name of the type.
    pub(crate) fn absence<T: Send + Sync + 'static>(&self) -> Option<String> {
        let missing = self.missing::<T>()?;
        let how = missing.split_once(": ").map(|(_, how)| how.to_owned());
        Some(how.unwrap_or(missing))
    }

    /// Something the host provides, or why it does not.
    pub(crate) fn require<T: Send + Sync + 'static>(&self) -> Result<Resource<T>, String> {
        self.resolve()
    }

    /// What the host provides to this request, asked once in a call.
    fn resolve<T: Send + Sync + 'static>(&self) -> Result<Resource<T>, String> {
        let Some(call) = &self.call else { return self.resources.get(self) };
        let found = match self.resources.differs_by_request::<T>() {
            true => call.provided(|| Ok(self.resources.get::<T>(self)?.into_inner())).map(Resource::from)?,
            false => self.resources.get(self)?,
        };
        Ok(counted(found, call, self.trace()))
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
