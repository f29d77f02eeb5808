//! What the caller may do by the time a call is made: requirements M6, B8, T3.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use registry_core::{
    Caller, CallerAuthority, Effect, ErrorKind, Permission, Registry, ToolCall, ToolContext, ToolError,
    ToolOutcome, ToolPolicy, ToolResult, ToolSpec,
    guard::{approval::ApprovalAnswer, audit::MemoryAudit},
    handler_fn,
    store::StoreError,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

type Said = Result<Option<Caller>, StoreError>;

/// Says one thing after the other, and the last for ever; without any it says nothing at all.
struct Script(Mutex<VecDeque<Said>>);

impl Script {
    fn new(said: impl IntoIterator<Item = Said>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(said.into_iter().collect())))
    }
}

#[async_trait]
impl CallerAuthority for Script {
    async fn caller(&self) -> Said {
        let next = {
            let mut said = self.0.lock().unwrap();
            if said.len() > 1 { said.pop_front() } else { said.front().cloned() }
        };
        match next {
            Some(said) => said,
            None => std::future::pending().await,
        }
    }
}

struct Site {
    registry: Registry,
    audit: Arc<MemoryAudit>,
    /// The levels at which the tool's code ran.
    ran: Arc<Mutex<Vec<Permission>>>,
}

fn site(policy: ToolPolicy) -> Site {
    let audit = Arc::new(MemoryAudit::new(16));
    let registry = Registry::builder().without_compiled().audit(audit.clone()).build().unwrap();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let levels = Arc::clone(&ran);
    let handler = handler_fn(move |context: ToolContext, _| {
        levels.lock().unwrap().push(context.caller().level);
        async { Ok(ToolResult::new("done")) }
    });
    registry.register(ToolSpec::new("mail.act", json!({"type": "object"})), policy, Some(handler)).unwrap();
    Site { registry, audit, ran }
}

impl Site {
    fn context(&self, said: impl IntoIterator<Item = Said>) -> ToolContext {
        self.registry.context(ada(Permission::Admin)).with_authority(Script::new(said))
    }

    async fn call(&self, context: &ToolContext) -> ToolOutcome {
        self.registry.execute(context, ToolCall::new("mail.act", json!({}))).await
    }

    fn ran(&self) -> usize {
        self.ran.lock().unwrap().len()
    }
}

fn ada(level: Permission) -> Caller {
    Caller::new("ada", level)
}

fn fault(outcome: ToolOutcome) -> ToolError {
    outcome.result.unwrap_err()
}

fn only_users() -> ToolPolicy {
    ToolPolicy { permission: Permission::User, ..ToolPolicy::new() }
}

#[tokio::test]
async fn m6_what_the_caller_has_lost_is_refused_and_what_it_has_gained_is_not_given() {
    let site = site(only_users());
    for lost in [
        Some(ada(Permission::Guest)),
        Some(ada(Permission::Admin).only_modules(["files"])),
        Some(ada(Permission::Admin).only_tools(["other"])),
        None,
    ] {
        let error = fault(site.call(&site.context([Ok(lost)])).await);
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!(site.audit.records().pop().unwrap().error, Some(ErrorKind::PermissionDenied));
    }
    assert_eq!(site.ran(), 0);
    // The tool's code sees the level that is left.
    assert!(site.call(&site.context([Ok(Some(ada(Permission::User)))])).await.is_success());
    // What the request had given up it does not get back.
    let owner = Script::new([Ok(Some(ada(Permission::Owner)))]);
    let narrowed = site.registry.context(ada(Permission::Guest)).with_authority(owner.clone());
    assert_eq!(fault(site.call(&narrowed).await).kind(), ErrorKind::PermissionDenied);
    let narrowed = site.registry.context(ada(Permission::Admin).only_tools(["other"])).with_authority(owner);
    assert_eq!(fault(site.call(&narrowed).await).kind(), ErrorKind::PermissionDenied);
    assert_eq!(*site.ran.lock().unwrap(), [Permission::User]);
}

#[tokio::test]
async fn m6_whoever_is_nobody_any_more_does_not_see_what_there_is() {
    let site = site(only_users());
    let call = ToolCall::new("mail.acts", json!({}));
    let error = fault(site.registry.execute(&site.context([Ok(None)]), call).await);
    assert_eq!((error.kind(), error.nearest().len()), (ErrorKind::PermissionDenied, 0));
}

#[tokio::test(start_paused = true)]
async fn m6_where_nobody_can_say_the_call_is_not_made_and_no_cause_is_shown() {
    let site = site(only_users());
    let failing: Option<Said> = Some(Err(StoreError::unavailable("postgres://db.example: gone")));
    for said in [failing, None] {
        let outcome = site.call(&site.context(said)).await;
        let shown = serde_json::to_string(&outcome.to_reply()).unwrap() + &outcome.for_model();
        assert!(!shown.contains("db.example"), "{shown}");
        let error = fault(outcome);
        assert!(error.kind() == ErrorKind::Unavailable && error.is_retryable(), "{error:?}");
    }
    // Whoever goes away does not wait for the answer.
    let token = CancellationToken::new();
    token.cancel();
    let error = fault(site.call(&site.context([]).with_cancellation(token)).await);
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(site.ran(), 0);
}

#[tokio::test]
async fn b8_a_caller_who_has_lost_a_tool_asks_no_person_about_it() {
    let site = site(ToolPolicy { effect: Effect::Destructive, ..only_users() });
    let context = site.context([Ok(Some(ada(Permission::Guest)))]).with_approval_wait(Duration::ZERO);
    assert_eq!(fault(site.call(&context).await).kind(), ErrorKind::PermissionDenied);
    assert_eq!(site.registry.pending_approvals().await.unwrap(), []);
}

#[tokio::test]
async fn t3_what_was_counted_for_a_caller_who_has_lost_the_tool_meanwhile_is_given_back() {
    let policy = ToolPolicy { effect: Effect::Destructive, daily_limit: 1, ..only_users() };
    for (meanwhile, kind) in [
        (Ok(None), ErrorKind::PermissionDenied),
        (Ok(Some(ada(Permission::Guest))), ErrorKind::PermissionDenied),
        (Err(StoreError::unavailable("gone")), ErrorKind::Unavailable),
    ] {
        let site = site(policy);
        for (said, expected) in [(meanwhile, Some(kind)), (Ok(Some(ada(Permission::Admin))), None)] {
            let context = site.context([Ok(Some(ada(Permission::Admin))), said]);
            let registry = site.registry.clone();
            let waiting = tokio::spawn(async move {
                registry.execute(&context, ToolCall::new("mail.act", json!({}))).await
            });
            let approval = loop {
                match site.registry.pending_approvals().await.unwrap().pop() {
                    Some(approval) => break approval,
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            };
            let yes = ApprovalAnswer {
                approve: true,
                by: "boss".into(),
                reason: None,
                content: None,
                arguments: None,
            };
            site.registry.answer_approval(&approval.id, yes).await.unwrap();
            let outcome = waiting.await.unwrap();
            assert_eq!(outcome.result.as_ref().err().map(ToolError::kind), expected);
            let record = site.audit.records().pop().unwrap();
            assert_eq!((record.error, record.decision.unwrap().by.as_str()), (expected, "user:boss"));
        }
        assert_eq!(site.ran(), 1);
    }
}

#[tokio::test]
async fn m6_a_call_is_not_tried_again_for_a_caller_who_has_lost_the_tool_meanwhile() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let tries = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&tries);
    let handler = handler_fn(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Err(ToolError::new(ErrorKind::Failed, "not now").retryable()) }
    });
    registry.register(ToolSpec::new("act", json!({"type": "object"})), only_users(), Some(handler)).unwrap();
    let still = || Ok(Some(ada(Permission::User)));
    for (said, expected) in [([still(), still(), still()], 3), ([still(), still(), Ok(None)], 1)] {
        let context = registry.context(ada(Permission::User)).with_authority(Script::new(said));
        let outcome = registry.execute(&context, ToolCall::new("act", json!({})).with_retries(2)).await;
        assert_eq!(fault(outcome).kind(), ErrorKind::Failed);
        assert_eq!(tries.swap(0, Ordering::SeqCst), expected);
    }
}
