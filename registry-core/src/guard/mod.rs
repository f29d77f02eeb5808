//! What stands around a call: limits, the gate and a person's approval, the queue, the audit.

pub mod approval;
pub mod audit;
mod charged;
pub mod gate;
pub mod limits;
mod nested;
pub(crate) mod person;
pub mod rule;

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::{sync::Notify, time::Instant};

use crate::{
    ask::keeping::{AdmittedBefore, Keeping},
    background::Background,
    clock::Clock,
    concurrency::{Concurrency, ConcurrencyLimiter, Permit},
    context::{Origin, ToolContext},
    flow::{Concern, FlowRule, FlowRules},
    future::{caught, within},
    id::random_id,
    policy::Effect,
    result::{ErrorKind, ToolError},
    store::StateStore,
    tool::Tool,
};
use approval::{APPROVAL_TIMEOUT, Approvals, MemoryApprovals};
use charged::Charged;
use gate::{Decision, GATE_TIMEOUT, Gate, GateAnswer, GateError, GateRequest, Verdict};
use limits::{Charge, MemoryUsage, Usage};
use nested::{Nested, Running};
use person::{Held, Yes};
use rule::Rules;

/// Who has decided where a rule refuses a call for what its turn has read.
const FLOW: &str = "flow";

/// All that is asked before a call is made. Shared by the registries of all tenants.
///
/// What most calls do not come to is boxed where it is awaited: the future of every call would have room for it otherwise, and is moved
/// from step to step.
pub(crate) struct Guards {
    pub(crate) usage: Arc<dyn Usage>,
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) approvals: Arc<dyn Approvals>,
    /// Whether a person is asked before a destructive call.
    pub(crate) approve_destructive: bool,
    /// Whether what persons have allowed beforehand is applied.
    pub(crate) approval_rules: bool,
    /// What happens to calls that would send private data outside, or act after untrusted text.
    pub(crate) flow: FlowRules,
    pub(crate) approval_timeout: Duration,
    pub(crate) limiter: Arc<ConcurrencyLimiter>,
    /// Shared by those who wait for answers and those who give them, within one process.
    pub(crate) answered: Arc<Notify>,
    pub(crate) background: Background,
    /// Set when the host ends: calls that can be made anew leave their questions open.
    pub(crate) leaving: Arc<AtomicBool>,
    /// Names this host among those that share its store.
    pub(crate) process: Arc<str>,
}

impl Default for Guards {
    fn default() -> Self {
        Self {
            usage: Arc::new(MemoryUsage::default()),
            gate: None,
            approvals: Arc::new(MemoryApprovals::default()),
            approve_destructive: true,
            approval_rules: true,
            flow: FlowRules::default(),
            approval_timeout: APPROVAL_TIMEOUT,
            limiter: Arc::new(ConcurrencyLimiter::new(Concurrency::default())),
            answered: Arc::default(),
            background: Background::default(),
            leaving: Arc::default(),
            process: random_id().unwrap_or_default().into(),
        }
    }
}

/// A call that wants to be made: found, allowed, and with arguments that fit.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) tenant: &'a Arc<str>,
    pub(crate) tool: &'a Arc<Tool>,
    pub(crate) context: &'a ToolContext,
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) origin: &'a Origin,
    /// Where rules of persons are kept.
    pub(crate) state: &'a Arc<dyn StateStore>,
    pub(crate) clock: &'a dyn Clock,
}

/// The right to run a call, as long as it is held.
pub(crate) struct Admitted {
    _running: Option<Running>,
    nested: Nested,
    /// As it was counted, where it was.
    charged: Option<Box<Charged>>,
    /// The yes that it has used, where a person was asked.
    approval: Option<Box<Held>>,
    /// What the call is made with, where that person has changed it.
    changed: Option<Map<String, Value>>,
}

impl Admitted {
    /// What the call is made with, where a person has changed it; given once.
    pub(crate) fn changed_arguments(&mut self) -> Option<Map<String, Value>> {
        self.changed.take()
    }

    /// The tool begins to act: what was charged stays so.
    pub(crate) fn spend(&mut self) {
        if let Some(charged) = &mut self.charged {
            charged.spend();
        }
    }

    /// The tool has asked something, and is run again from its start: that is the same call to its limits and to whom has approved it.
    pub(crate) async fn comes_back(&mut self) {
        refund(&mut self.charged).await;
        if let Some(approval) = self.approval.take() {
            approval.give_back().await;
        }
    }

    /// The call is over. Waits until the call around it, where there is one, may go on.
    pub(crate) async fn leave(self) {
        let Self { _running, nested, charged: _, approval: _, changed: _ } = self;
        drop(_running);
        nested.finish().await;
    }

    /// The call is not made after all: takes back what was counted.
    pub(crate) async fn give_back(mut self) {
        refund(&mut self.charged).await;
        self.leave().await;
    }
}

/// What a person has said, where one was asked.
#[derive(Default)]
struct Asked {
    /// The yes that was used.
    approval: Option<Box<Held>>,
    /// What the call is made with, where the person has changed it.
    changed: Option<Map<String, Value>>,
}

/// What rules and the gate say of a call that may be made.
struct Considered {
    /// Whether a person is asked.
    ask_person: bool,
    /// What the call would do with what was read, where it is asked about for that.
    reason: Option<String>,
    /// Whether all there is to ask about is that it cannot be undone, which a person can have allowed beforehand.
    by_effect_alone: bool,
    /// Whether the gate asks for a person.
    gate_asks: bool,
}

/// What came of asking.
pub(crate) enum Admission {
    /// The call may be made.
    Run(Admitted),
    /// A gate or a person says no, which is a result and no error.
    Blocked(String),
    /// The call may not be made.
    Refused(ToolError),
}

impl Wanted<'_> {
    fn keeping(&self) -> Option<&Keeping> {
        self.context.running().and_then(|call| call.asking.keeping()).map(|keeping| &**keeping)
    }

    /// How the call was admitted before its process ended, where it goes on.
    fn admitted_before(&self) -> Option<AdmittedBefore> {
        self.keeping().and_then(|keeping| keeping.admitted)
    }

    /// Whether what a person is to be asked about was answered, or not asked about, when the call was admitted that goes on now: all but
    /// what was read since, and a gate that asks for a person whom nobody has asked.
    fn was_asked_before(&self, gate_asks: bool) -> bool {
        let now = self.context.flow().map(|flow| flow.read.reads()).unwrap_or_default();
        self.admitted_before()
            .is_some_and(|before| before.reads.and(now) == before.reads && (before.approved || !gate_asks))
    }

    fn charge(&self, at: Timestamp) -> Charge {
        Charge {
            tenant: Arc::clone(self.tenant),
            user: self.context.caller().user.clone(),
            tool: self.tool.shared_name(),
            cooldown: self.tool.cooldown(),
            daily_limit: self.tool.daily_limit(),
            at,
        }
    }

    fn request(&self) -> GateRequest<'_> {
        GateRequest {
            tenant: self.tenant,
            spec: self.tool.spec(),
            policy: self.tool.policy(),
            arguments: self.arguments,
            context: self.context,
        }
    }
}

impl Guards {
    /// Asks everything in its order. `decision` is what a gate or a person said, for the audit.
    pub(crate) async fn admit(&self, wanted: Wanted<'_>, decision: &mut Option<Decision>) -> Admission {
        let call = wanted.context.running();
        let nested = self.borrow_permit(call);
        match self.admitted(wanted, decision).await {
            Ok((permit, charged, Asked { approval, changed })) => {
                let running = call.map(|call| {
                    call.permit.fill(permit);
                    Running(Arc::clone(call))
                });
                Admission::Run(Admitted { _running: running, nested, charged, approval, changed })
            }
            Err(admission) => {
                nested.finish().await;
                admission
            }
        }
    }

    async fn admitted(
        &self,
        wanted: Wanted<'_>,
        decision: &mut Option<Decision>,
    ) -> Result<(Permit, Option<Box<Charged>>, Asked), Admission> {
        let mut charged = self.charge(wanted).await.map_err(Admission::Refused)?;
        let entered = match self.ask(wanted, &mut charged, decision).await {
            Ok(asked) => self.enter(wanted).await.map(|permit| (permit, asked)).map_err(Admission::Refused),
            Err(admission) => Err(admission),
        };
        if entered.is_err() {
            refund(&mut charged).await;
        }
        let (permit, asked) = entered?;
        Ok((permit, charged, asked))
    }

    /// What rules and the gate say of a call: whether a person is to be asked, and about what.
    async fn considered(
        &self,
        wanted: Wanted<'_>,
        decision: &mut Option<Decision>,
    ) -> Result<Considered, Admission> {
        let policy = wanted.tool.policy();
        let concern = wanted
            .context
            .flow()
            .filter(|_| !wanted.was_asked_before(false))
            .and_then(|flow| Concern::about(self.flow, flow, wanted.tool, wanted.arguments));
        let reason = match concern {
            None => None,
            Some(Concern { rule: FlowRule::Refuse, sentence }) => {
                *decision = Some(Decision::new(Verdict::Blocked, FLOW).because(&sentence));
                return Err(Admission::Blocked(format!("This call is not allowed here: {sentence}")));
            }
            Some(concern) if policy.effect == Effect::Destructive => {
                Some(format!("{} This call cannot be undone.", concern.sentence))
            }
            Some(concern) => Some(concern.sentence),
        };
        let mut ask_person =
            reason.is_some() || self.approve_destructive && policy.effect == Effect::Destructive;
        let mut by_effect_alone = ask_person && reason.is_none();
        let mut gate_asks = false;
        if let Some(gate) = self.gate.as_deref().filter(|_| policy.requires_gate) {
            let (verdict, answer) = Box::pin(weigh(gate, wanted)).await;
            *decision = Some(Decision::new(verdict, gate.name()));
            match answer {
                GateAnswer::Approved => {}
                GateAnswer::Pending => (ask_person, by_effect_alone, gate_asks) = (true, false, true),
                GateAnswer::Blocked(reason) => return Err(Admission::Blocked(reason)),
            }
        }
        Ok(Considered { ask_person, reason, by_effect_alone, gate_asks })
    }

    /// The gate, and a person where the gate or the tool's effect asks for one.
    async fn ask(
        &self,
        wanted: Wanted<'_>,
        charged: &mut Option<Box<Charged>>,
        decision: &mut Option<Decision>,
    ) -> Result<Asked, Admission> {
        let Considered { ask_person, mut reason, by_effect_alone, gate_asks } =
            self.considered(wanted, decision).await?;
        if !ask_person || wanted.was_asked_before(gate_asks) {
            return Ok(Asked::default());
        }
        let may_remember = by_effect_alone && self.approval_rules;
        if may_remember && let Some(rule) = Box::pin(allowed_beforehand(wanted)).await {
            let gate = decision.take().map(Box::new);
            *decision = Some(Decision { gate, ..Decision::new(Verdict::Approved, format!("rule:{rule}")) });
            return Ok(Asked::default());
        }
        // Nothing is held while a person thinks, so that nothing is lost when the process ends meanwhile.
        refund(charged).await;
        let gate = decision.take();
        loop {
            let approval = Box::pin(self.approved(wanted, (reason.as_deref(), may_remember), decision)).await;
            match decision {
                Some(person) => {
                    person.gate = gate.clone().map(Box::new);
                    person.reason.clone_from(&reason);
                }
                None => decision.clone_from(&gate),
            }
            let Yes { question: approval, arguments: changed } = approval?;
            if let Some(arguments) = &changed {
                let other = self.consider_changed(Wanted { arguments, ..wanted }, decision).await?;
                reason = other.or(reason);
            }
            *charged = self.charge(wanted).await.map_err(Admission::Refused)?;
            if let Some(used) = self.take(wanted, approval).await? {
                if let Some(call) = wanted.context.running().filter(|_| reason.is_some()) {
                    call.is_flow_approved.store(true, Ordering::Relaxed);
                }
                if let Some(keeping) = wanted.keeping() {
                    keeping.approve();
                }
                return Ok(Asked { approval: Some(used), changed });
            }
            // It was good for one call, and another one about the same has taken it.
            refund(charged).await;
        }
    }

    /// Rules and the gate have seen other arguments than those that a person has written. That these are asked about is answered by
    /// that; but not that they are refused.
    async fn consider_changed(
        &self,
        wanted: Wanted<'_>,
        decision: &mut Option<Decision>,
    ) -> Result<Option<String>, Admission> {
        let mut said = None;
        match Box::pin(self.considered(wanted, &mut said)).await {
            Ok(Considered { reason, .. }) => {
                if let (Some(person), Some(gate)) = (decision, said) {
                    person.gate = Some(Box::new(gate));
                }
                Ok(reason)
            }
            Err(admission) => {
                *decision = said;
                Err(admission)
            }
        }
    }

    /// Waits for a permit.
    async fn enter(&self, wanted: Wanted<'_>) -> Result<Permit, ToolError> {
        let name = wanted.tool.shared_name();
        let share = self.limiter.share(wanted.tenant, wanted.context.caller());
        tokio::select! {
            biased;
            permit = self.limiter.enter(&name, wanted.tool.policy().max_concurrent, share) => permit.map_err(|_| busy(&name)),
            () = wanted.context.cancelled() => Err(ToolError::cancelled()),
        }
    }
}

/// The rule by which the caller has allowed such a call. Where the rules cannot be read, the person is asked.
async fn allowed_beforehand(wanted: Wanted<'_>) -> Option<String> {
    let rules = Rules::of(wanted.state, wanted.tenant, &wanted.context.caller().user).all().await;
    let rules = rules.inspect_err(|cause| tracing::warn!(%cause, "approval_rules_not_read")).ok()?;
    rules.into_iter().find(|rule| rule.allows(wanted)).map(|rule| rule.id)
}

async fn refund(charged: &mut Option<Box<Charged>>) {
    if let Some(charged) = charged.take() {
        Box::pin(charged.refund()).await;
    }
}

fn busy(tool: &str) -> ToolError {
    ToolError::new(ErrorKind::Busy, format!("{tool} is busy: as many calls wait as may"))
        .with_feedback(format!("The tool `{tool}` is busy. Try again later, or do without it."))
        .retryable()
}

/// The gate's answer, or what stands for it where there is none in time.
async fn weigh(gate: &dyn Gate, wanted: Wanted<'_>) -> (Verdict, GateAnswer) {
    // A gate that panics has failed like any other.
    let check = pin!(async { gate.check(wanted.request()).await });
    let asked = within(GATE_TIMEOUT, Instant::now(), pin!(caught(check))).await;
    let cause = match asked {
        Some(Ok(Ok(answer))) => {
            let verdict = match &answer {
                GateAnswer::Approved => Verdict::Approved,
                GateAnswer::Blocked(_) => Verdict::Blocked,
                GateAnswer::Pending => Verdict::Pending,
            };
            return (verdict, answer);
        }
        Some(Ok(Err(cause))) => cause,
        Some(Err(panic)) => GateError::Panicked(panic),
        None => GateError::TimedOut,
    };
    let (tool, gate_name, closed) = (wanted.tool.name(), gate.name(), gate.fails_closed());
    tracing::warn!(tool, gate = gate_name, %cause, refused = closed, "gate_failed");
    if closed {
        let reason = format!("The check by {gate_name} failed, and nothing is done without it.");
        return (Verdict::Blocked, GateAnswer::Blocked(reason));
    }
    (Verdict::Unanswered, GateAnswer::Approved)
}
