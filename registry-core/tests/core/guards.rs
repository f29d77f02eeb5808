//! Limits, gate, approval and queue around a call: requirements T3, T4, B8.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use registry_core::{
    Caller, Concurrency, Conversation, Effect, ErrorKind, Handler, Permission, Registry, RegistryBuilder,
    ToolCall, ToolContext, ToolError, ToolEvent, ToolOutcome, ToolPolicy, ToolResult, ToolSpec,
    clock::Clock,
    guard::{
        approval::{AnswerError, ApprovalAnswer, ApprovalState},
        audit::MemoryAudit,
        gate::{Gate, GateAnswer, GateError, GateRequest, Verdict},
        limits::{Charge, Limited, Usage},
    },
    handler_fn,
    store::{StoreError, StoreResult},
    testing::TestClock,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const NOON: &str = "2026-03-01T12:00:00Z";

fn noon() -> Timestamp {
    NOON.parse().unwrap()
}

fn builder() -> RegistryBuilder {
    Registry::builder().without_compiled().clock(Arc::new(TestClock::at(noon())))
}

/// A tool that counts how often it has run.
fn counting(registry: &Registry, policy: ToolPolicy) -> Arc<AtomicU32> {
    let ran = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&ran);
    let handler = handler_fn(move |_, _| {
        let count = Arc::clone(&count);
        async move { Ok(ToolResult::new(count.fetch_add(1, Ordering::SeqCst) + 1)) }
    });
    add(registry, policy, handler);
    ran
}

fn add(registry: &Registry, policy: ToolPolicy, handler: Arc<dyn Handler>) {
    let schema = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "pin": {"type": "string", "writeOnly": true},
    }});
    registry.register(ToolSpec::new("act", schema), policy, Some(handler)).unwrap();
}

fn ada(registry: &Registry) -> ToolContext {
    registry.context(Caller::new("ada", Permission::User))
}

async fn call(registry: &Registry, context: &ToolContext) -> ToolOutcome {
    registry.execute(context, ToolCall::new("act", json!({"path": "a", "pin": "1234"}))).await
}

fn kind(outcome: &ToolOutcome) -> Option<ErrorKind> {
    outcome.result.as_ref().err().map(|error| error.kind())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t3_of_many_calls_at_once_no_more_run_than_may() {
    let registry = builder().build().unwrap();
    let ran = counting(&registry, ToolPolicy { daily_limit: 3, ..ToolPolicy::new() });
    let calls = (0..200).map(|_| {
        let registry = registry.clone();
        tokio::spawn(async move { call(&registry, &ada(&registry)).await })
    });
    let mut refused = 0;
    for task in calls.collect::<Vec<_>>() {
        let outcome = task.await.unwrap();
        if let Err(error) = &outcome.result {
            assert_eq!(error.kind(), ErrorKind::ToolRateLimited);
            assert_eq!(error.retry_at(), Some("2026-03-02T00:00:00Z".parse().unwrap()));
            assert!(outcome.for_model().contains("3 times a day"), "{}", outcome.for_model());
            refused += 1;
        }
    }
    assert_eq!((ran.load(Ordering::SeqCst), refused), (3, 197));
    // Another user has a count of his own, and so has another tenant.
    let bob = registry.context(Caller::new("bob", Permission::User));
    assert!(call(&registry, &bob).await.is_success());
    let other = registry.for_tenant("other");
    counting(&other, ToolPolicy { daily_limit: 3, ..ToolPolicy::new() });
    assert!(call(&other, &ada(&other)).await.is_success());
}

#[tokio::test]
async fn t3_a_cooldown_is_reported_to_the_model_in_a_sentence() {
    let registry = builder().build().unwrap();
    counting(&registry, ToolPolicy { cooldown: Duration::from_secs(90), ..ToolPolicy::new() });
    assert!(call(&registry, &ada(&registry)).await.is_success());
    let outcome = call(&registry, &ada(&registry)).await;
    assert_eq!(kind(&outcome), Some(ErrorKind::ToolRateLimited));
    assert!(outcome.for_model().contains("2026-03-01T12:01:30Z"), "{}", outcome.for_model());
    assert_eq!(outcome.to_reply().retry_at, Some("2026-03-01T12:01:30Z".parse().unwrap()));
}

#[tokio::test]
async fn t3_arguments_that_do_not_fit_are_not_counted() {
    let registry = builder().build().unwrap();
    counting(&registry, ToolPolicy { daily_limit: 1, ..ToolPolicy::new() });
    let wrong = ToolCall::new("act", json!({"path": {"no": "text"}}));
    assert_eq!(kind(&registry.execute(&ada(&registry), wrong).await), Some(ErrorKind::InvalidArguments));
    assert!(call(&registry, &ada(&registry)).await.is_success());
}

struct NoUsage;

#[async_trait]
impl Usage for NoUsage {
    async fn charge(&self, _: &Charge) -> StoreResult<Option<Limited>> {
        async { Err(StoreError::unavailable("the store is down")) }.await
    }

    async fn refund(&self, _: &Charge) -> StoreResult<()> {
        async { Err(StoreError::unavailable("the store is down")) }.await
    }
}

#[tokio::test]
async fn t3_what_cannot_be_counted_is_not_called() {
    let registry = builder().usage(Arc::new(NoUsage)).build().unwrap();
    let ran = counting(&registry, ToolPolicy { daily_limit: 1, ..ToolPolicy::new() });
    assert_eq!(kind(&call(&registry, &ada(&registry)).await), Some(ErrorKind::Unavailable));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

/// A gate that gives the prepared answer, and remembers what it was asked.
struct Says {
    answer: Result<GateAnswer, GateError>,
    delay: Duration,
    closed: bool,
    asked: Mutex<Vec<String>>,
}

impl Says {
    fn new(answer: Result<GateAnswer, GateError>) -> Self {
        Self { answer, delay: Duration::ZERO, closed: false, asked: Mutex::default() }
    }
}

#[async_trait]
impl Gate for Says {
    fn name(&self) -> &str {
        "says"
    }

    fn fails_closed(&self) -> bool {
        self.closed
    }

    async fn check(&self, request: GateRequest<'_>) -> Result<GateAnswer, GateError> {
        let asked = format!(
            "{} {:?} {} {}",
            request.spec.tool_name,
            request.policy.cost,
            request.context.caller().user,
            request.arguments["path"]
        );
        self.asked.lock().unwrap().push(asked);
        async {
            tokio::time::sleep(self.delay).await;
            self.answer.clone()
        }
        .await
    }
}

fn gated() -> ToolPolicy {
    ToolPolicy { requires_gate: true, daily_limit: 1, ..ToolPolicy::new() }
}

#[tokio::test]
async fn t4_the_gate_sees_the_call_and_what_it_blocks_is_not_counted() {
    let gate = Arc::new(Says::new(Ok(GateAnswer::Blocked("not today".into()))));
    let audit = Arc::new(MemoryAudit::new(8));
    let registry = builder().gate(gate.clone()).audit(audit.clone()).build().unwrap();
    let ran = counting(&registry, gated());
    for _ in 0..2 {
        let outcome = call(&registry, &ada(&registry)).await;
        let result = outcome.result.unwrap();
        assert_eq!((result.success, result.message.as_deref()), (false, Some("not today")));
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(gate.asked.lock().unwrap()[0], "act Free ada \"a\"");
    let records = audit.records();
    let decision = records[0].decision.clone().unwrap();
    assert_eq!((decision.verdict, decision.by.as_str()), (Verdict::Blocked, "says"));
    assert_eq!(records[0].success, Some(false));
}

#[tokio::test(start_paused = true)]
async fn t4_a_gate_that_fails_or_sleeps_is_passed_unless_it_fails_closed() {
    let failing = || Says::new(Err(GateError::Refused("500".into())));
    let sleeping = || Says { delay: Duration::from_secs(60), ..Says::new(Ok(GateAnswer::Approved)) };
    for gate in [failing(), sleeping()] {
        let closed = Says { closed: true, ..Says { asked: Mutex::default(), ..gate } };
        let registry = builder().gate(Arc::new(closed)).build().unwrap();
        counting(&registry, gated());
        let outcome = call(&registry, &ada(&registry)).await;
        assert!(!outcome.is_success() && outcome.for_model().contains("says"), "{}", outcome.for_model());
    }
    for gate in [failing(), sleeping()] {
        let audit = Arc::new(MemoryAudit::new(8));
        let registry = builder().gate(Arc::new(gate)).audit(audit.clone()).build().unwrap();
        counting(&registry, gated());
        assert!(call(&registry, &ada(&registry)).await.is_success());
        assert_eq!(audit.records()[1].decision.clone().unwrap().verdict, Verdict::Unanswered);
    }
}

#[tokio::test]
async fn t4_without_a_gate_tools_that_ask_for_one_run() {
    let registry = builder().build().unwrap();
    counting(&registry, gated());
    assert!(call(&registry, &ada(&registry)).await.is_success());
}

fn destructive() -> ToolPolicy {
    ToolPolicy { effect: Effect::Destructive, ..ToolPolicy::new() }
}

fn yes() -> ApprovalAnswer {
    ApprovalAnswer { approve: true, by: "boss".into(), reason: None, content: None, arguments: None }
}

/// Waits until a call waits for a person.
async fn asked(registry: &Registry) -> String {
    loop {
        if let Some(approval) = registry.pending_approvals().await.unwrap().first() {
            return approval.id.clone();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn t5_a_door_that_refuses_shows_no_secret_of_a_tool_that_is_not_for_the_caller() {
    let audit = Arc::new(MemoryAudit::new(8));
    let registry = builder().audit(audit.clone()).audit_arguments(true).build().unwrap();
    counting(&registry, ToolPolicy { permission: Permission::Owner, ..ToolPolicy::new() });
    let context = ada(&registry);
    let wanted = ToolCall::new("act", json!({"path": "a", "pin": "1234"}));
    let error = ToolError::new(ErrorKind::InvalidArguments, "not understood");
    let outcome = registry.select(&context).refuse(&context, wanted, error).await;
    assert_eq!(kind(&outcome), Some(ErrorKind::InvalidArguments));
    assert_eq!(audit.records()[0].arguments, Some(json!({"path": "a", "pin": "(secret)"})));
}

#[tokio::test]
async fn t5_a_call_of_no_tool_shows_no_secret_and_looks_like_no_command() {
    let audit = Arc::new(MemoryAudit::new(8));
    let registry = builder().audit(audit.clone()).audit_arguments(true).build().unwrap();
    let wanted = ToolCall::new("toolrack user promote", json!({"user": "ada", "pin": "1234"}));
    let outcome = registry.execute(&ada(&registry), wanted).await;
    assert_eq!(kind(&outcome), Some(ErrorKind::ToolNotFound));
    let record = audit.records().remove(0);
    assert_eq!(record.tool, "toolrack_user_promote");
    assert_eq!(record.arguments, Some(json!({"user": "(secret)", "pin": "(secret)"})));
    // Not in the hash either: a short one could be found by trying.
    let other = ToolCall::new("act2", json!({"user": "bob", "pin": "5678"}));
    registry.execute(&ada(&registry), other).await;
    assert_eq!(audit.records()[1].arguments_sha256, record.arguments_sha256);
}

#[tokio::test]
async fn b8_a_destructive_call_waits_for_a_person_and_runs_once() {
    let audit = Arc::new(MemoryAudit::new(8));
    let registry = builder().audit(audit.clone()).audit_arguments(true).build().unwrap();
    let ran = counting(&registry, destructive());
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let context = ada(&registry).with_events(Arc::new(move |event| seen.lock().unwrap().push(event)));
    let waiting = tokio::spawn({
        let registry = registry.clone();
        async move { call(&registry, &context).await }
    });
    let id = asked(&registry).await;
    let approval = registry.approval(&id).await.unwrap().unwrap();
    assert_eq!(approval.arguments, json!({"path": "a", "pin": "(secret)"}));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    registry.answer_approval(&id, yes()).await.unwrap();
    assert!(waiting.await.unwrap().is_success());
    assert_eq!(events.lock().unwrap()[0].approval.as_deref(), Some(id.as_str()));
    // It was good for one call, and is answered for good.
    assert_eq!(registry.answer_approval(&id, yes()).await, Err(AnswerError::Closed));
    assert_eq!(registry.answer_approval("none", yes()).await, Err(AnswerError::Unknown));
    let record = &audit.records()[1];
    assert_eq!(record.decision.clone().unwrap().by, "user:boss");
    assert_eq!(record.arguments, Some(json!({"path": "a", "pin": "(secret)"})));
    let again = ada(&registry).with_approval_wait(Duration::ZERO);
    let outcome = call(&registry, &again).await;
    assert_eq!(kind(&outcome), Some(ErrorKind::ApprovalPending));
    assert_ne!(outcome.result.unwrap_err().approval(), Some(id.as_str()));
}

#[tokio::test]
async fn b8_a_caller_that_does_not_wait_calls_again_with_the_same_arguments() {
    let registry = builder().build().unwrap();
    let ran = counting(&registry, destructive());
    let hasty = ada(&registry).with_approval_wait(Duration::ZERO);
    let first = call(&registry, &hasty).await.result.unwrap_err();
    let id = first.approval().unwrap().to_owned();
    registry.answer_approval(&id, yes()).await.unwrap();
    // Changed arguments, and another user, ask anew.
    let changed = ToolCall::new("act", json!({"path": "b", "pin": "1234"}));
    assert_eq!(kind(&registry.execute(&hasty, changed).await), Some(ErrorKind::ApprovalPending));
    let bob = registry.context(Caller::new("bob", Permission::User)).with_approval_wait(Duration::ZERO);
    assert_eq!(kind(&call(&registry, &bob).await), Some(ErrorKind::ApprovalPending));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert!(call(&registry, &hasty).await.is_success());
    assert_eq!(kind(&call(&registry, &hasty).await), Some(ErrorKind::ApprovalPending));
}

#[tokio::test]
async fn b8_a_new_version_asks_anew() {
    let registry = builder().build().unwrap();
    counting(&registry, destructive());
    let hasty = ada(&registry).with_approval_wait(Duration::ZERO);
    let id = call(&registry, &hasty).await.result.unwrap_err().approval().unwrap().to_owned();
    registry.answer_approval(&id, yes()).await.unwrap();
    let spec = ToolSpec { version: Some("2.0.0".into()), ..registry.get("act").unwrap().spec().clone() };
    let handler = handler_fn(|_, _| async { Ok(ToolResult::new("new")) });
    registry.register(spec, destructive(), Some(handler)).unwrap();
    assert_eq!(kind(&call(&registry, &hasty).await), Some(ErrorKind::ApprovalPending));
}

#[tokio::test]
async fn b8_a_person_may_refuse_and_say_why() {
    let registry = builder().build().unwrap();
    let ran = counting(&registry, destructive());
    let waiting = tokio::spawn({
        let registry = registry.clone();
        async move { call(&registry, &ada(&registry)).await }
    });
    let id = asked(&registry).await;
    let no = ApprovalAnswer {
        approve: false,
        by: "boss".into(),
        reason: Some("keep it".into()),
        content: None,
        arguments: None,
    };
    registry.answer_approval(&id, no).await.unwrap();
    let outcome = waiting.await.unwrap();
    assert_eq!(outcome.for_model(), "A person has refused this call: keep it");
    assert!(!outcome.is_success() && ran.load(Ordering::SeqCst) == 0);
}

#[tokio::test(start_paused = true)]
async fn b8_no_answer_is_a_no() {
    let registry = builder().approval_timeout(Duration::from_secs(300)).build().unwrap();
    counting(&registry, destructive());
    let outcome = call(&registry, &ada(&registry)).await;
    assert_eq!(outcome.for_model(), "Nobody has approved this call within 300 s.");
}

#[tokio::test]
async fn b8_the_operator_may_switch_it_off_and_a_gate_may_ask_for_it() {
    let registry = builder().approve_destructive(false).build().unwrap();
    counting(&registry, destructive());
    assert!(call(&registry, &ada(&registry)).await.is_success());

    let registry = builder().gate(Arc::new(Says::new(Ok(GateAnswer::Pending)))).build().unwrap();
    counting(&registry, gated());
    let hasty = ada(&registry).with_approval_wait(Duration::ZERO);
    assert_eq!(kind(&call(&registry, &hasty).await), Some(ErrorKind::ApprovalPending));
}

#[tokio::test]
async fn b7_who_goes_away_while_a_person_thinks_is_not_counted() {
    let registry = builder().build().unwrap();
    let ran = counting(&registry, ToolPolicy { daily_limit: 1, ..destructive() });
    let token = CancellationToken::new();
    let context = ada(&registry).with_cancellation(token.clone());
    let waiting = tokio::spawn({
        let registry = registry.clone();
        async move { call(&registry, &context).await }
    });
    let id = asked(&registry).await;
    token.cancel();
    assert_eq!(kind(&waiting.await.unwrap()), Some(ErrorKind::Cancelled));
    registry.finished().await;
    assert_eq!(registry.answer_approval(&id, yes()).await, Err(AnswerError::Closed));
    let again = approving(&registry);
    assert!(call(&registry, &again).await.is_success());
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

/// A context whose questions are answered with yes at once.
fn approving(registry: &Registry) -> ToolContext {
    let answering = registry.clone();
    ada(registry).with_events(Arc::new(move |event: ToolEvent| {
        let (registry, id) = (answering.clone(), event.approval.unwrap());
        tokio::spawn(async move { registry.answer_approval(&id, yes()).await.unwrap() });
    }))
}

#[tokio::test]
async fn u1_a_call_that_is_stopped_or_dropped_takes_its_question_with_it() {
    let registry = builder().build().unwrap();
    let ran = counting(&registry, destructive());
    for dropped in [false, true] {
        let token = CancellationToken::new();
        let waiting = tokio::spawn({
            let (registry, context) = (registry.clone(), ada(&registry).with_cancellation(token.clone()));
            async move { call(&registry, &context).await }
        });
        let id = asked(&registry).await;
        if dropped {
            waiting.abort()
        } else {
            token.cancel()
        }
        assert_eq!(waiting.await.is_err(), dropped);
        registry.finished().await;
        assert_eq!(registry.pending_approvals().await.unwrap(), []);
        assert_eq!(registry.answer_approval(&id, yes()).await, Err(AnswerError::Closed));
        assert_eq!(registry.approval(&id).await.unwrap().unwrap().state, ApprovalState::Withdrawn);
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn u1_a_yes_is_for_the_call_that_asked() {
    let registry = builder().build().unwrap();
    let ran = counting(&registry, destructive());
    // The yes to a call that comes back for it does not reach one that waits, nor one of another chat.
    let hasty = ada(&registry).with_approval_wait(Duration::ZERO);
    let id = call(&registry, &hasty).await.result.unwrap_err().approval().unwrap().to_owned();
    registry.answer_approval(&id, yes()).await.unwrap();
    let elsewhere = Conversation { chat_id: Some("another".into()), ..Conversation::default() };
    let elsewhere = hasty.clone().with_conversation(elsewhere);
    assert_eq!(kind(&call(&registry, &elsewhere).await), Some(ErrorKind::ApprovalPending));
    assert_eq!(registry.pending_approvals().await.unwrap().len(), 1);
    let wait = || {
        let registry = registry.clone();
        tokio::spawn(async move { call(&registry, &ada(&registry)).await })
    };
    let (one, other) = (wait(), wait());
    let pending = loop {
        let pending = registry.pending_approvals().await.unwrap();
        if pending.len() == 3 {
            break pending;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let waiting = pending.iter().find(|approval| approval.scope == approval.id).unwrap();
    registry.answer_approval(&waiting.id, yes()).await.unwrap();
    let (mut one, mut other) = (one, other);
    let (done, still) = tokio::select! {
        done = &mut one => (done, other),
        done = &mut other => (done, one),
    };
    assert!(done.unwrap().is_success() && !still.is_finished());
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    still.abort();
}

struct Ticking(Mutex<Timestamp>);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

#[tokio::test]
async fn u2_each_question_has_its_own_clock_and_says_what_is_left_on_it() {
    let clock = Arc::new(Ticking(Mutex::new(noon())));
    let registry = builder().clock(clock.clone()).approval_timeout(Duration::from_secs(60)).build().unwrap();
    counting(&registry, destructive());
    let (sender, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let context = ada(&registry).with_events(Arc::new(move |event| drop(sender.send(event))));
    for _ in 0..2 {
        let waiting = tokio::spawn({
            let (registry, context) = (registry.clone(), context.clone());
            async move { call(&registry, &context).await }
        });
        assert_eq!(hears.recv().await.unwrap().approval_seconds, Some(60));
        *clock.0.lock().unwrap() += Duration::from_secs(45);
        waiting.abort();
    }
}

#[tokio::test]
async fn b8_a_tool_switched_off_while_a_person_thinks_does_not_run() {
    let registry = builder().build().unwrap();
    let ran = counting(&registry, destructive());
    let waiting = tokio::spawn({
        let registry = registry.clone();
        async move { call(&registry, &ada(&registry)).await }
    });
    let id = asked(&registry).await;
    registry.set_enabled("act", false).unwrap();
    registry.answer_approval(&id, yes()).await.unwrap();
    assert_eq!(kind(&waiting.await.unwrap()), Some(ErrorKind::Unavailable));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn t3_no_more_run_at_once_than_may_and_too_many_are_turned_away() {
    let registry = builder()
        .concurrency(Concurrency { max_running: 8, max_waiting: 2, ..Concurrency::default() })
        .build()
        .unwrap();
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (now, top) = (Arc::clone(&running), Arc::clone(&most));
    let handler = handler_fn(move |_, _| {
        let (now, top) = (Arc::clone(&now), Arc::clone(&top));
        async move {
            top.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolResult::new("done"))
        }
    });
    add(&registry, ToolPolicy { max_concurrent: 1, daily_limit: 3, ..ToolPolicy::new() }, handler);
    let context = ada(&registry);
    let outcomes = futures_util::future::join_all((0..3).map(|_| call(&registry, &context))).await;
    assert!(outcomes.iter().all(ToolOutcome::is_success));
    assert_eq!(most.load(Ordering::SeqCst), 1);

    let bob = registry.context(Caller::new("bob", Permission::User));
    let calls = (0..3).map(|_| call(&registry, &bob));
    let carol = registry.context(Caller::new("carol", Permission::User));
    let (three, turned_away) = tokio::join!(futures_util::future::join_all(calls), call(&registry, &carol));
    assert!(three.iter().all(ToolOutcome::is_success));
    assert_eq!(kind(&turned_away), Some(ErrorKind::Busy));
    assert!(turned_away.result.unwrap_err().is_retryable());
}

/// A tool without secrets, whose result is what it was called with.
fn echoing(registry: &Registry, policy: ToolPolicy) {
    let handler = handler_fn(|context: ToolContext, arguments| async move {
        assert_eq!(context.raw_argument(), None);
        Ok(ToolResult::new(serde_json::Value::Object(arguments)))
    });
    let schema = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "times": {"type": "integer", "maximum": 9},
    }, "required": ["path"], "additionalProperties": false});
    registry.register(ToolSpec::new("echo", schema), policy, Some(handler)).unwrap();
}

fn changed(arguments: serde_json::Value) -> ApprovalAnswer {
    ApprovalAnswer { arguments: Some(arguments), ..yes() }
}

#[tokio::test]
async fn b8_a_person_may_change_the_arguments_and_that_is_what_runs_and_is_told_and_kept() {
    let audit = Arc::new(MemoryAudit::new(8));
    let registry = builder().audit(audit.clone()).audit_arguments(true).build().unwrap();
    echoing(&registry, destructive());
    let waiting = tokio::spawn({
        let registry = registry.clone();
        let mut wanted = ToolCall::new("echo", json!({"path": "a"}));
        wanted.raw_argument = Some("a".into());
        async move { registry.execute(&ada(&registry), wanted).await }
    });
    let id = asked(&registry).await;
    // What does not fit leaves the question open.
    let large = json!({"path": "x".repeat(70_000)});
    for wrong in [json!({"path": "b", "times": 10}), json!({"times": 1}), json!({"way": "b"}), large] {
        let answered = registry.answer_approval(&id, changed(wrong)).await;
        assert!(matches!(answered, Err(AnswerError::Invalid(_))), "{answered:?}");
    }
    let no = ApprovalAnswer { approve: false, ..changed(json!({"path": "b"})) };
    assert!(matches!(registry.answer_approval(&id, no).await, Err(AnswerError::Invalid(_))));
    // They are coerced as those of a model are.
    registry.answer_approval(&id, changed(json!({"path": "b", "times": "2"}))).await.unwrap();
    let outcome = waiting.await.unwrap();
    assert_eq!(outcome.changed_arguments, Some(json!({"path": "b", "times": 2})));
    assert_eq!(outcome.result.as_ref().unwrap().value, json!({"path": "b", "times": 2}));
    let told = outcome.for_model();
    assert!(told.starts_with("[A person has changed the arguments of this call"), "{told}");
    assert_eq!(outcome.to_reply().changed_arguments, outcome.changed_arguments);
    for record in audit.records() {
        assert_eq!(record.arguments, Some(json!({"path": "b", "times": 2})));
        assert_eq!(record.asked_for, Some(json!({"path": "a"})));
        assert_ne!(record.asked_for_sha256, Some(record.arguments_sha256));
    }
}

#[tokio::test]
async fn b8_arguments_that_are_sent_back_as_they_were_are_no_change() {
    let registry = builder().build().unwrap();
    echoing(&registry, destructive());
    let hasty = ada(&registry).with_approval_wait(Duration::ZERO);
    let wanted = || ToolCall::new("echo", json!({"path": "a"}));
    let id = registry.execute(&hasty, wanted()).await.result.unwrap_err().approval().unwrap().to_owned();
    registry.answer_approval(&id, changed(json!({"path": "a"}))).await.unwrap();
    let outcome = registry.execute(&hasty, wanted()).await;
    assert!(outcome.is_success() && outcome.changed_arguments.is_none());
    // The change is for the call that comes back, and is used with the yes.
    let id = registry.execute(&hasty, wanted()).await.result.unwrap_err().approval().unwrap().to_owned();
    registry.answer_approval(&id, changed(json!({"path": "b"}))).await.unwrap();
    assert_eq!(registry.execute(&hasty, wanted()).await.result.unwrap().value, json!({"path": "b"}));
    assert_eq!(kind(&registry.execute(&hasty, wanted()).await), Some(ErrorKind::ApprovalPending));
}

#[tokio::test]
async fn a16_arguments_that_are_not_shown_whole_cannot_be_changed() {
    let registry = builder().build().unwrap();
    let ran = counting(&registry, destructive());
    let hasty = ada(&registry).with_approval_wait(Duration::ZERO);
    let id = call(&registry, &hasty).await.result.unwrap_err().approval().unwrap().to_owned();
    let answered = registry.answer_approval(&id, changed(json!({"path": "b", "pin": "(secret)"}))).await;
    assert!(matches!(answered, Err(AnswerError::Invalid(_))), "{answered:?}");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

/// Refuses one path, and has a person asked about all others.
struct NotB;

#[async_trait]
impl Gate for NotB {
    fn name(&self) -> &'static str {
        "not-b"
    }

    fn fails_closed(&self) -> bool {
        true
    }

    async fn check(&self, request: GateRequest<'_>) -> Result<GateAnswer, GateError> {
        let answer = match request.arguments.get("path").and_then(serde_json::Value::as_str) {
            Some("b") => GateAnswer::Blocked("not b".into()),
            _ => GateAnswer::Pending,
        };
        Ok(answer)
    }
}

#[tokio::test]
async fn b8_the_gate_is_asked_about_what_a_person_has_written() {
    let audit = Arc::new(MemoryAudit::new(16));
    let registry = builder().gate(Arc::new(NotB)).audit(audit.clone()).build().unwrap();
    echoing(&registry, gated());
    let hasty = ada(&registry).with_approval_wait(Duration::ZERO);
    let wanted = || ToolCall::new("echo", json!({"path": "a"}));
    for (path, runs) in [("b", false), ("c", true)] {
        let id = registry.execute(&hasty, wanted()).await.result.unwrap_err().approval().unwrap().to_owned();
        registry.answer_approval(&id, changed(json!({"path": path}))).await.unwrap();
        let outcome = registry.execute(&hasty, wanted()).await;
        assert_eq!(outcome.is_success(), runs, "{}", outcome.for_model());
        let decision = audit.records().pop().unwrap().decision.unwrap();
        let (verdict, by) = if runs { (Verdict::Approved, "user:boss") } else { (Verdict::Blocked, "not-b") };
        assert_eq!((decision.verdict, &*decision.by), (verdict, by));
        // The refused yes is taken back in the background.
        registry.finished().await;
    }
}
