//! What stands around a call when it fails, is asked too much, or is dropped: requirements T3, T4, T5, B8.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use registry_core::{
    Caller, CallerAuthority, Effect, ErrorKind, Permission, Registry, RegistryBuilder, ToolCall, ToolContext,
    ToolError, ToolOutcome, ToolPolicy, ToolResult, ToolSpec,
    guard::{
        approval::{ApprovalAnswer, ApprovalState},
        audit::{AuditRecord, AuditSink, MemoryAudit},
        gate::{Gate, GateAnswer, GateError, GateRequest, Verdict},
        limits::{Charge, Limited, Usage},
    },
    handler_fn,
    store::{StoreError, StoreResult},
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

fn builder() -> RegistryBuilder {
    Registry::builder().without_compiled()
}

fn add(registry: &Registry, policy: ToolPolicy) {
    let schema = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "pin": {"type": "string", "writeOnly": true},
    }});
    let handler = handler_fn(|_, arguments| async move { Ok(ToolResult::new(arguments.len())) });
    registry.register(ToolSpec::new("act", schema), policy, Some(handler)).unwrap();
}

fn of(registry: &Registry, user: &str) -> ToolContext {
    registry.context(Caller::new(user, Permission::User))
}

async fn call(registry: &Registry, context: &ToolContext, arguments: Value) -> ToolOutcome {
    registry.execute(context, ToolCall::new("act", arguments)).await
}

fn kind(outcome: &ToolOutcome) -> Option<ErrorKind> {
    outcome.result.as_ref().err().map(ToolError::kind)
}

#[tokio::test]
async fn t5_the_hash_of_the_arguments_leaves_out_what_is_secret() {
    let audit = Arc::new(MemoryAudit::new(16));
    let registry = builder().audit(audit.clone()).build().unwrap();
    add(&registry, ToolPolicy::new());
    let hashes = async |arguments: Value| {
        let known = audit.records().len();
        call(&registry, &of(&registry, "ada"), arguments).await;
        let mut hashes: Vec<String> =
            audit.records()[known..].iter().map(|record| record.arguments_sha256.clone()).collect();
        hashes.dedup();
        assert_eq!(hashes.len(), 1, "intent and outcome say the same");
        hashes.remove(0)
    };
    let one = hashes(json!({"path": "a", "pin": "1234"})).await;
    assert_eq!(one, hashes(json!({"path": "a", "pin": "1235"})).await);
    assert_ne!(one, hashes(json!({"path": "b", "pin": "1234"})).await);
    // A call that is refused for its arguments too.
    let refused = hashes(json!({"path": ["a"], "pin": "1234"})).await;
    assert_eq!(refused, hashes(json!({"path": ["a"], "pin": "1235"})).await);
    assert_eq!(audit.records().pop().unwrap().error, Some(ErrorKind::InvalidArguments));
}

/// Keeps nothing while it fails.
#[derive(Default)]
struct Failing(AtomicBool);

#[async_trait]
impl AuditSink for Failing {
    async fn record(&self, _: AuditRecord) -> StoreResult<()> {
        let fails = self.0.load(Ordering::SeqCst);
        if fails { Err(StoreError::unavailable("the disk is full")) } else { Ok(()) }
    }
}

#[tokio::test]
async fn t3_a_call_whose_intent_is_not_kept_is_not_counted() {
    let audit = Arc::new(Failing::default());
    let registry = builder().audit(audit.clone()).build().unwrap();
    add(&registry, ToolPolicy { daily_limit: 1, ..ToolPolicy::new() });
    audit.0.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let outcome = call(&registry, &of(&registry, "ada"), json!({})).await;
        assert_eq!(kind(&outcome), Some(ErrorKind::NotAudited));
    }
    audit.0.store(false, Ordering::SeqCst);
    assert!(call(&registry, &of(&registry, "ada"), json!({})).await.is_success());
    assert_eq!(
        kind(&call(&registry, &of(&registry, "ada"), json!({})).await),
        Some(ErrorKind::ToolRateLimited)
    );
}

#[tokio::test]
async fn t3_whoever_goes_away_while_waiting_for_a_turn_is_not_counted() {
    let registry = builder().build().unwrap();
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, release) = (Arc::clone(&entered), Arc::clone(&leave));
    let handler = handler_fn(move |_, _| {
        let (inside, release) = (Arc::clone(&inside), Arc::clone(&release));
        async move {
            inside.notify_one();
            release.notified().await;
            Ok(ToolResult::new("done"))
        }
    });
    let policy = ToolPolicy { max_concurrent: 1, daily_limit: 2, ..ToolPolicy::new() };
    registry.register(ToolSpec::new("act", json!({"type": "object"})), policy, Some(handler)).unwrap();
    let begin = |context: ToolContext| {
        let registry = registry.clone();
        tokio::spawn(async move { call(&registry, &context, json!({})).await })
    };
    let first = begin(of(&registry, "ada"));
    entered.notified().await;
    let token = CancellationToken::new();
    let second = begin(of(&registry, "ada").with_cancellation(token.clone()));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!second.is_finished());
    token.cancel();
    assert_eq!(kind(&second.await.unwrap()), Some(ErrorKind::Cancelled));
    leave.notify_one();
    assert!(first.await.unwrap().is_success());
    let third = begin(of(&registry, "ada"));
    entered.notified().await;
    leave.notify_one();
    assert!(third.await.unwrap().is_success());
}

struct Panics {
    closed: bool,
}

#[async_trait]
impl Gate for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn fails_closed(&self) -> bool {
        self.closed
    }

    async fn check(&self, _: GateRequest<'_>) -> Result<GateAnswer, GateError> {
        panic!("at once")
    }
}

#[tokio::test]
async fn t4_a_gate_that_panics_has_failed_like_any_other() {
    for (closed, verdict) in [(false, Verdict::Unanswered), (true, Verdict::Blocked)] {
        let audit = Arc::new(MemoryAudit::new(4));
        let registry = builder().gate(Arc::new(Panics { closed })).audit(audit.clone()).build().unwrap();
        add(&registry, ToolPolicy { requires_gate: true, daily_limit: 2, ..ToolPolicy::new() });
        for _ in 0..2 {
            assert_eq!(call(&registry, &of(&registry, "ada"), json!({})).await.is_success(), !closed);
        }
        let decision = audit.records().pop().unwrap().decision.unwrap();
        assert_eq!((decision.verdict, decision.by.as_str()), (verdict, "panics"));
        // What it has blocked is not counted.
        let third = call(&registry, &of(&registry, "ada"), json!({})).await;
        assert_eq!(kind(&third), (!closed).then_some(ErrorKind::ToolRateLimited));
    }
}

fn destructive() -> ToolPolicy {
    ToolPolicy { effect: Effect::Destructive, ..ToolPolicy::new() }
}

#[tokio::test]
async fn b8_no_user_has_more_than_64_questions_open() {
    let registry = builder().build().unwrap();
    add(&registry, destructive());
    let hasty = |user: &str| of(&registry, user).with_approval_wait(Duration::ZERO);
    let path = |number: usize| json!({"path": number.to_string()});
    let mut first = None;
    for number in 0..64 {
        let outcome = call(&registry, &hasty("ada"), path(number)).await;
        assert_eq!(kind(&outcome), Some(ErrorKind::ApprovalPending), "{number}");
        first = first.or(outcome.result.unwrap_err().approval().map(str::to_owned));
    }
    let over = call(&registry, &hasty("ada"), path(64)).await.result.unwrap_err();
    assert!(over.kind() == ErrorKind::Busy && over.is_retryable(), "{over:?}");
    assert_eq!(registry.pending_approvals().await.unwrap().len(), 64);
    // What was asked already may be asked again, and another user is another user.
    assert_eq!(kind(&call(&registry, &hasty("ada"), path(7)).await), Some(ErrorKind::ApprovalPending));
    assert_eq!(kind(&call(&registry, &hasty("bob"), path(64)).await), Some(ErrorKind::ApprovalPending));
    // An answer makes room.
    let no =
        ApprovalAnswer { approve: false, by: "boss".into(), reason: None, content: None, arguments: None };
    registry.answer_approval(&first.unwrap(), no).await.unwrap();
    assert_eq!(kind(&call(&registry, &hasty("ada"), path(64)).await), Some(ErrorKind::ApprovalPending));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b8_no_more_than_64_questions_are_asked_however_many_calls_come_at_once() {
    let registry = builder().build().unwrap();
    add(&registry, destructive());
    let calls: Vec<_> = (0..200)
        .map(|number: usize| {
            let registry = registry.clone();
            tokio::spawn(async move {
                let hasty = of(&registry, "ada").with_approval_wait(Duration::ZERO);
                kind(&call(&registry, &hasty, json!({"path": number.to_string()})).await).unwrap()
            })
        })
        .collect();
    let mut kinds = Vec::new();
    for call in calls {
        kinds.push(call.await.unwrap());
    }
    let count = |wanted| kinds.iter().filter(|kind| **kind == wanted).count();
    assert_eq!((count(ErrorKind::ApprovalPending), count(ErrorKind::Busy)), (64, 136));
    assert_eq!(registry.pending_approvals().await.unwrap().len(), 64);
}

#[tokio::test]
async fn a16_arguments_that_nobody_can_see_whole_are_not_asked_about() {
    let registry = builder().build().unwrap();
    add(&registry, destructive());
    let hasty = of(&registry, "ada").with_approval_wait(Duration::ZERO);
    // With the braces, the name and the quotes.
    let whole = (64 << 10) - r#"{"path":""}"#.len();
    let arguments = json!({"path": "x".repeat(whole)});
    let error = call(&registry, &hasty, arguments.clone()).await.result.unwrap_err();
    let id = error.approval().unwrap().to_owned();
    assert_eq!(registry.approval(&id).await.unwrap().unwrap().arguments, arguments);
    let yes =
        ApprovalAnswer { approve: true, by: "boss".into(), reason: None, content: None, arguments: None };
    registry.answer_approval(&id, yes).await.unwrap();
    assert!(call(&registry, &hasty, arguments).await.is_success());

    let error = call(&registry, &hasty, json!({"path": "x".repeat(whole + 1)})).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(
        error.feedback().contains("more than the 65536 bytes") && error.feedback().contains("less at once"),
        "{error}"
    );
    assert!(registry.pending_approvals().await.unwrap().is_empty());
}

#[tokio::test]
async fn a12_what_a_person_says_of_a_call_is_kept_within_a_bound() {
    let registry = builder().build().unwrap();
    add(&registry, destructive());
    let hasty = of(&registry, "ada").with_approval_wait(Duration::ZERO);
    let error = call(&registry, &hasty, json!({"path": "a"})).await.result.unwrap_err();
    let id = error.approval().unwrap().to_owned();
    let reason = Some("no ".repeat(10_000_000));
    let no = ApprovalAnswer { approve: false, by: "boss".into(), reason, content: None, arguments: None };
    match registry.answer_approval(&id, no).await.unwrap().state {
        ApprovalState::Denied { reason: Some(reason), .. } => {
            assert!(reason.len() < 4100 && reason.ends_with('…'), "{}", reason.len());
        }
        other => panic!("{other:?}"),
    }
}

/// A store that always fails in one way.
struct Fails(StoreError);

#[async_trait]
impl AuditSink for Fails {
    async fn record(&self, _: AuditRecord) -> StoreResult<()> {
        async { Err(self.0.clone()) }.await
    }
}

#[async_trait]
impl Usage for Fails {
    async fn charge(&self, _: &Charge) -> StoreResult<Option<Limited>> {
        async { Err(self.0.clone()) }.await
    }

    async fn refund(&self, _: &Charge) -> StoreResult<()> {
        async { Err(self.0.clone()) }.await
    }
}

#[async_trait]
impl CallerAuthority for Fails {
    async fn caller(&self) -> StoreResult<Option<Caller>> {
        async { Err(self.0.clone()) }.await
    }
}

#[tokio::test]
async fn k24_a_failed_store_is_distinguished_from_a_wrong_input_and_shown_to_nobody() {
    let cases = [
        (StoreError::unavailable("db.example refuses"), ErrorKind::Unavailable, true),
        (StoreError::conflict("db.example is locked"), ErrorKind::Unavailable, true),
        (StoreError::corrupt("db.example holds no JSON"), ErrorKind::Unavailable, false),
        (StoreError::invalid("db.example has no place for it"), ErrorKind::InvalidArguments, false),
    ];
    let limited = ToolPolicy { daily_limit: 1, ..ToolPolicy::new() };
    for (error, expected, retryable) in cases {
        let fails = || Arc::new(Fails(error.clone()));
        let uncounted = builder().usage(fails()).build().unwrap();
        let unaudited = builder().audit(fails()).build().unwrap();
        let unknown = builder().build().unwrap();
        for (registry, expected) in
            [(&uncounted, expected), (&unaudited, ErrorKind::NotAudited), (&unknown, expected)]
        {
            add(registry, limited);
            let context = match expected {
                _ if std::ptr::eq(registry, &unknown) => of(registry, "ada").with_authority(fails()),
                _ => of(registry, "ada"),
            };
            let failed = call(registry, &context, json!({})).await.result.unwrap_err();
            assert_eq!((failed.kind(), failed.is_retryable()), (expected, retryable), "{error}");
            for text in [failed.message(), failed.feedback()] {
                assert!(!text.contains("db.example"), "{text}");
            }
        }
    }
}
