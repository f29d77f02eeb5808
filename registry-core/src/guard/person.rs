//! Asks a person, and waits for the answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::SignedDuration;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    Admission, Guards, Wanted,
    approval::{Approval, ApprovalState, Approvals},
    audit::hash_members,
    gate::{Decision, Verdict},
    rule::{RuleScope, tool_identity},
};
use crate::{
    background::Background,
    clock::Clock,
    context::{Origin, ToolContext},
    execute::fit_arguments,
    id::random_id,
    json::is_within,
    result::{ErrorKind, ToolError},
    schema::without_secrets,
    store::StoreError,
};

/// How often the store is asked for an answer that another server may have taken.
const POLL: Duration = Duration::from_millis(500);

/// Calls of one user that may wait for a person at once, so that nobody fills the store with questions.
pub(crate) const MAX_PENDING: usize = 64;
/// Longer arguments are not asked about, in bytes of JSON: nobody can approve what is not shown whole.
pub(crate) const MAX_SHOWN: usize = 64 << 10;

/// Refuses a call that nobody can look at.
fn check_length(tool: &str, arguments: &Map<String, Value>) -> Result<(), ToolError> {
    if is_within(arguments, MAX_SHOWN) {
        return Ok(());
    }
    let fault = format!("its arguments have more than the {MAX_SHOWN} bytes that a person is shown");
    Err(ToolError::new(ErrorKind::InvalidArguments, format!("{tool} was not called: {fault}")).with_feedback(
        format!("The tool `{tool}` needs a person's approval, and {fault}. Call it with less at once."),
    ))
}

/// How the wait for an answer ended.
pub(crate) enum Waited {
    Closed(ApprovalState),
    /// It was forgotten with its user.
    Gone,
    /// The caller waits no longer; the approval stays open.
    Enough,
    Expired,
    Cancelled,
}

/// A question to a person, and then the yes. Where it is dropped, it is withdrawn: nobody is left who could use an answer.
pub(crate) struct Held {
    approvals: Arc<dyn Approvals>,
    background: Background,
    tenant: Arc<str>,
    id: String,
    /// Whether the answer may still be used by the call that asks.
    held: bool,
    /// Where this is set, it is left to another process.
    leaving: Option<Arc<AtomicBool>>,
}

impl Held {
    pub(crate) fn new(guards: &Guards, tenant: Arc<str>, id: String) -> Self {
        let (approvals, background) = (Arc::clone(&guards.approvals), guards.background.clone());
        Self { approvals, background, tenant, id, held: true, leaving: None }
    }

    /// Stays open where the host ends.
    pub(crate) fn outliving(mut self, leaving: Arc<AtomicBool>) -> Self {
        self.leaving = Some(leaving);
        self
    }

    /// Withdraws it now.
    pub(crate) async fn withdraw(mut self) {
        if let Some(withdrawing) = self.withdrawing() {
            withdrawing.await;
        }
    }

    fn withdrawing(&mut self) -> Option<impl Future<Output = ()> + Send + 'static + use<>> {
        let (approvals, tenant) = (Arc::clone(&self.approvals), Arc::clone(&self.tenant));
        let id = std::mem::take(&mut self.id);
        let is_left = self.leaving.as_ref().is_some_and(|leaving| leaving.load(Ordering::Relaxed));
        (std::mem::take(&mut self.held) && !is_left).then_some(async move {
            if let Err(cause) = approvals.withdraw(&tenant, &id).await {
                tracing::error!(id, %cause, "approval_not_withdrawn");
            }
        })
    }

    /// Makes a yes that was used good for the same call once more.
    pub(super) async fn give_back(self) {
        if let Err(cause) = self.approvals.give_back(&self.tenant, &self.id).await {
            tracing::error!(id = self.id, %cause, "approval_not_given_back");
        }
    }

    /// Leaves the question open, or the answer as it is.
    pub(crate) fn release(mut self) {
        self.held = false;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(withdrawing) = self.withdrawing() {
            self.background.run("withdraw_approval", withdrawing);
        }
    }
}

/// A person's yes.
pub(super) struct Yes {
    pub(super) question: Held,
    /// What the call is made with, where the person has changed that.
    pub(super) arguments: Option<Map<String, Value>>,
}

/// Arguments that a person has written, for the tool that is called: another may have its name by now.
async fn refitted(wanted: Wanted<'_>, arguments: Value) -> Result<Map<String, Value>, Admission> {
    let user = (wanted.context.tenant(), &*wanted.context.caller().user);
    let fitted = Box::pin(fit_arguments(user, wanted.tool, wanted.tool.name(), arguments)).await;
    fitted.map_err(|fault| Admission::Refused(fault.error))
}

impl Guards {
    /// Asks a person and waits for the yes.
    pub(super) async fn approved(
        &self,
        wanted: Wanted<'_>,
        (reason, may_remember): (Option<&str>, bool),
        decision: &mut Option<Decision>,
    ) -> Result<Yes, Admission> {
        let failed = |cause: StoreError| Admission::Refused(not_asked(wanted.tool.name(), &cause));
        check_length(wanted.tool.name(), wanted.arguments).map_err(Admission::Refused)?;
        loop {
            let approval = self.new_approval(wanted, reason, may_remember).map_err(failed)?;
            let approval = self.approvals.request(approval, MAX_PENDING).await.map_err(failed)?;
            let Some(mut approval) = approval else {
                return Err(Admission::Refused(too_many(&wanted.context.caller().user)));
            };
            let question = Held::new(self, Arc::clone(wanted.tenant), approval.id.clone());
            if approval.state == ApprovalState::Pending {
                wanted.context.ask_approval(&approval, wanted.clock.now());
            }
            // Where a tool makes the call, the person takes none of its time.
            let _paused = wanted.context.running().map(|call| call.pause());
            let patience = wanted.context.approval_wait();
            match self.wait(wanted.context, wanted.clock, &mut approval, patience).await.map_err(failed)? {
                Waited::Closed(ApprovalState::Approved { by, arguments }) => {
                    *decision = Some(Decision::new(Verdict::Approved, format!("user:{by}")));
                    let arguments = match arguments {
                        Some(arguments) => Some(refitted(wanted, arguments).await?),
                        None => None,
                    };
                    return Ok(Yes { question, arguments });
                }
                Waited::Closed(ApprovalState::Denied { by, reason }) => {
                    question.release();
                    *decision = Some(Decision::new(Verdict::Blocked, format!("user:{by}")));
                    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                    return Err(Admission::Blocked(format!("A person has refused this call{reason}")));
                }
                // Another call of the same scope has used it, or has taken it back.
                Waited::Closed(_) => question.release(),
                Waited::Expired => {
                    *decision = Some(Decision::new(Verdict::Blocked, "timeout"));
                    let seconds = self.approval_timeout.as_secs();
                    return Err(Admission::Blocked(format!(
                        "Nobody has approved this call within {seconds} s."
                    )));
                }
                Waited::Enough => {
                    *decision = Some(Decision::new(Verdict::Pending, "person"));
                    let refused = pending(wanted.tool.name(), &question.id);
                    question.release();
                    return Err(Admission::Refused(refused));
                }
                // Asked anew, it would be asked of whoever comes under the same name.
                Waited::Gone | Waited::Cancelled => return Err(Admission::Refused(ToolError::cancelled())),
            }
        }
    }

    /// Uses the yes; `None` if another call has.
    pub(super) async fn take(
        &self,
        wanted: Wanted<'_>,
        mut question: Held,
    ) -> Result<Option<Box<Held>>, Admission> {
        let taken = self.approvals.take(wanted.tenant, &question.id, wanted.clock.now()).await;
        let taken = taken.map_err(|cause| Admission::Refused(not_asked(wanted.tool.name(), &cause)))?;
        question.held = false;
        Ok(taken.then(|| Box::new(question)))
    }

    /// The question as it is kept for the person.
    fn new_approval(
        &self,
        wanted: Wanted<'_>,
        reason: Option<&str>,
        may_remember: bool,
    ) -> Result<Approval, StoreError> {
        let (spec, requested_at) = (wanted.tool.spec(), wanted.clock.now());
        let timeout = SignedDuration::try_from(self.approval_timeout).unwrap_or(SignedDuration::MAX);
        let id = random_id().map_err(StoreError::unavailable)?;
        let remember = if may_remember { RuleScope::offered(wanted) } else { Vec::new() };
        Ok(Approval {
            tool_sha256: if remember.is_empty() { String::new() } else { tool_identity(wanted.tool) },
            remember,
            via: wanted.context.caller().via.clone(),
            scope: scope(wanted, reason, &id),
            id,
            tenant: wanted.tenant.to_string(),
            user: wanted.context.caller().user.clone(),
            tool: spec.tool_name.clone(),
            version: spec.version.clone(),
            arguments_sha256: hash_members(wanted.arguments),
            question: None,
            call: None,
            reason: reason.map(str::to_owned),
            arguments: without_secrets(&spec.input_schema, wanted.arguments),
            requested_at,
            expires_at: requested_at.checked_add(timeout).unwrap_or(jiff::Timestamp::MAX),
            state: ApprovalState::Pending,
        })
    }

    /// Waits for an answer, so long at most.
    pub(crate) async fn wait(
        &self,
        context: &ToolContext,
        clock: &dyn Clock,
        approval: &mut Approval,
        patience: Option<Duration>,
    ) -> Result<Waited, StoreError> {
        let until_expiry = approval.time_left(clock.now());
        let patience = patience.unwrap_or(Duration::MAX);
        let (started, longest) = (Instant::now(), until_expiry.min(patience));
        loop {
            // Made before the store is asked, so that no answer falls in between.
            let answered = self.answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            match self.approvals.get(context.tenant(), &approval.id).await? {
                Some(known) => *approval = known,
                None if approval.time_left(clock.now()).is_zero() => {}
                None => return Ok(Waited::Gone),
            }
            if approval.state != ApprovalState::Pending {
                return Ok(Waited::Closed(approval.state.clone()));
            }
            let Some(left) = longest.checked_sub(started.elapsed()).filter(|left| !left.is_zero()) else {
                return Ok(if patience < until_expiry { Waited::Enough } else { Waited::Expired });
            };
            tokio::select! {
                () = answered => {}
                () = tokio::time::sleep(left.min(POLL)) => {}
                () = context.cancelled() => return Ok(Waited::Cancelled),
            }
        }
    }
}

/// Who may use the answer. A call that waits for it to the end asks for itself alone.
fn scope(wanted: Wanted<'_>, reason: Option<&str>, id: &str) -> String {
    let context = wanted.context;
    // A yes from before the model has read what the call is asked about now is none to that.
    let concern = reason.and(context.flow()).map(|flow| flow.read.reads().to_string());
    match (context.approval_scope(), context.approval_wait()) {
        (Some(scope), _) => match concern.map(|read| format!(" {read}")) {
            // Who comes back with the scope of what was asked has it already.
            Some(read) if !scope.ends_with(&read) => format!("{scope}{read}"),
            _ => scope.to_owned(),
        },
        (None, None) => id.to_owned(),
        (None, Some(_)) => {
            let chat = context.conversation().chat_id.as_deref().unwrap_or_default();
            let via = context.caller().via.as_deref().unwrap_or_default();
            // In one chat a model may write the same call in another way.
            let origin = match wanted.origin {
                Origin::Native | Origin::Text(_) => "model".into(),
                other => serde_json::json!(other),
            };
            serde_json::json!([origin, via, chat, concern]).to_string()
        }
    }
}

fn pending(tool: &str, id: &str) -> ToolError {
    ToolError::new(ErrorKind::ApprovalPending, format!("{tool} waits for a person's approval ({id})"))
        .with_feedback(format!(
            "A person has to approve this call of `{tool}` first. Tell the user, and make the same call again when it is approved ({id})."
        ))
        .with_approval(id)
}

fn too_many(user: &str) -> ToolError {
    ToolError::new(ErrorKind::Busy, format!("{MAX_PENDING} calls of {user} wait for a person already"))
        .with_feedback("Too many calls wait for a person already. Ask the user to answer those first.")
        .retryable()
}

fn not_asked(tool: &str, cause: &StoreError) -> ToolError {
    tracing::error!(tool, %cause, "approval_failed");
    ToolError::store_failed(cause, format!("nobody could be asked about {tool}"))
        .with_feedback(format!("The tool `{tool}` cannot be used now. Do without it."))
}
