//! What a person has allowed beforehand, and what it does not allow: requirement B17.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use registry_core::{
    Caller, Conversation, Effect, ErrorKind, Permission, Registry, RegistryBuilder, ToolCall, ToolContext,
    ToolOutcome, ToolPolicy, ToolResult, ToolSpec,
    flow::{HasRead, Reads, TurnFlow},
    guard::{
        approval::ApprovalAnswer,
        audit::MemoryAudit,
        gate::{Gate, GateAnswer, GateError, GateRequest, Verdict},
        rule::{ApprovalRule, MAX_RULES, RuleError, RuleKind, RuleScope},
    },
    handler_fn,
    store::{
        Expected, MemoryStore, StateError, StateLimits, StateSpace, StateStore, Store, StoreError,
        StoreResult,
    },
};
use serde_json::{Value, json};

struct Site {
    registry: Registry,
    ran: Arc<AtomicU32>,
    audit: Arc<MemoryAudit>,
}

fn spec(description: &str) -> ToolSpec {
    let text = json!({"type": "string"});
    let schema =
        json!({"type": "object", "properties": {"path": text, "how": text, "keep": {"type": "integer"}}});
    ToolSpec { description: Some(description.to_owned()), ..ToolSpec::new("files.delete", schema) }
}

fn destructive() -> ToolPolicy {
    ToolPolicy { effect: Effect::Destructive, ..ToolPolicy::new() }
}

impl Site {
    fn new() -> Self {
        Self::of(Registry::builder(), destructive())
    }

    fn of(builder: RegistryBuilder, policy: ToolPolicy) -> Self {
        let audit = Arc::new(MemoryAudit::new(64));
        let registry = builder.without_compiled().audit(audit.clone()).build().unwrap();
        let site = Self { registry, ran: Arc::default(), audit };
        site.add(spec("Deletes a file."), policy);
        site
    }

    fn add(&self, spec: ToolSpec, policy: ToolPolicy) {
        let ran = Arc::clone(&self.ran);
        let handler = handler_fn(move |_, _| {
            let ran = Arc::clone(&ran);
            async move { Ok(ToolResult::new(ran.fetch_add(1, Ordering::SeqCst) + 1)) }
        });
        self.registry.register(spec, policy, Some(handler)).unwrap();
    }

    fn by(&self, user: &str, chat: Option<&str>) -> ToolContext {
        let conversation = Conversation { chat_id: chat.map(str::to_owned), ..Conversation::default() };
        let context = self.registry.context(Caller::new(user, Permission::User));
        context.with_conversation(conversation).with_approval_wait(Duration::ZERO)
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutcome {
        self.registry.execute(context, ToolCall::new("files.delete", arguments)).await
    }

    /// Asks about a call, and keeps a rule of it.
    async fn allowed(
        &self,
        context: &ToolContext,
        arguments: Value,
        kind: RuleKind,
    ) -> Result<ApprovalRule, RuleError> {
        let outcome = self.call(context, arguments).await;
        let id = outcome.result.unwrap_err().approval().unwrap().to_owned();
        let rule = self.registry.rule_of_approval(&id, "ada", kind).await?;
        self.registry.keep_approval_rule("ada", rule.clone()).await?;
        Ok(rule)
    }

    /// `asked`, `refused` or `ran`, of a call in a chat of hers.
    async fn fate(&self, arguments: Value) -> &'static str {
        fate(&self.call(&self.by("ada", Some("one")), arguments).await)
    }
}

fn fate(outcome: &ToolOutcome) -> &'static str {
    match &outcome.result {
        Err(error) if error.kind() == ErrorKind::ApprovalPending => "asked",
        Ok(result) if !result.success => "refused",
        Ok(_) => "ran",
        Err(error) => panic!("{error:?}"),
    }
}

fn kinds(scopes: &[RuleScope]) -> Vec<RuleKind> {
    scopes.iter().map(RuleScope::kind).collect()
}

/// What may be remembered of the one call that waits.
async fn offered(registry: &Registry) -> Vec<RuleKind> {
    let pending = registry.pending_approvals().await.unwrap();
    kinds(&pending.last().unwrap().remember)
}

#[tokio::test]
async fn b17_calls_with_the_same_arguments_run_and_their_record_names_the_rule() {
    let site = Site::new();
    let (ada, arguments) = (site.by("ada", Some("one")), json!({"path": "a", "how": "soft", "keep": 1}));
    let rule = site.allowed(&ada, arguments, RuleKind::Arguments).await.unwrap();
    // In whatever order they come, in whichever chat.
    let again = json!({"keep": 1, "how": "soft", "path": "a"});
    assert_eq!(site.fate(again.clone()).await, "ran");
    assert_eq!(fate(&site.call(&site.by("ada", None), again.clone()).await), "ran");
    for record in site.audit.records().iter().rev().take(4) {
        let decision = record.decision.as_ref().unwrap();
        assert_eq!((decision.verdict, &decision.by), (Verdict::Approved, &format!("rule:{}", rule.id)));
    }
    for other in [
        json!({"path": "a", "how": "soft", "keep": 2}),
        json!({"path": "a", "how": "soft"}),
        json!({"path": "a", "how": "soft", "keep": 1, "more": true}),
        json!({"path": "A", "how": "soft", "keep": 1}),
        json!({}),
    ] {
        assert_eq!(site.fate(other.clone()).await, "asked", "{other}");
    }
    // Of nobody else, at no other server's word, and in no other tenant.
    assert_eq!(fate(&site.call(&site.by("bob", Some("one")), again.clone()).await), "asked");
    let served = Caller::new("peer", Permission::User).on_behalf_of(Caller::new("ada", Permission::User));
    let served = site.registry.context(served).with_approval_wait(Duration::ZERO);
    assert_eq!(fate(&site.call(&served, again.clone()).await), "asked");
    let elsewhere = site.registry.for_tenant("other");
    let handler = handler_fn(|_, _| async { Ok(ToolResult::new("gone")) });
    elsewhere.register(spec("Deletes a file."), destructive(), Some(handler)).unwrap();
    let there = elsewhere.context(Caller::new("ada", Permission::User)).with_approval_wait(Duration::ZERO);
    assert_eq!(fate(&elsewhere.execute(&there, ToolCall::new("files.delete", again)).await), "asked");
}

#[tokio::test]
async fn b17_a_folder_is_left_by_no_path_and_all_else_stays_as_it_was_allowed() {
    let site = Site::new();
    let ada = site.by("ada", None);
    let allowed = json!({"path": "notes/old/a.md", "how": "soft"});
    let rule = site.allowed(&ada, allowed, RuleKind::Folder).await.unwrap();
    assert!(matches!(&rule.scope, RuleScope::Folder { folder, .. } if folder == "notes/old"), "{rule:?}");
    for path in ["notes/old/b.md", "./notes/old/b.md", "notes/old/deep/b.md"] {
        assert_eq!(site.fate(json!({"path": path, "how": "soft"})).await, "ran", "{path}");
    }
    for path in [
        "notes/a.md",
        "notes/old",
        "notes/older/a.md",
        "/notes/old/b.md",
        "notes/old/../a.md",
        "notes/old/../../etc/passwd",
        "notes/old/%2e%2e/a.md",
        "notes/old/..\\a.md",
        "notes/old/*",
    ] {
        assert_eq!(site.fate(json!({"path": path, "how": "soft"})).await, "asked", "{path}");
    }
    for other in [
        json!({"path": "notes/old/b.md", "how": "hard"}),
        json!({"path": "notes/old/b.md"}),
        json!({"path": "notes/old/b.md", "how": "soft", "file": "/etc/passwd"}),
        json!({"how": "soft", "more": "notes/old/b.md"}),
    ] {
        assert_eq!(site.fate(other.clone()).await, "asked", "{other}");
    }
}

#[tokio::test]
async fn b17_what_is_allowed_in_a_chat_is_forgotten_with_it() {
    let site = Site::new();
    let ada = site.by("ada", Some("one"));
    site.allowed(&ada, json!({"path": "a"}), RuleKind::Chat).await.unwrap();
    assert_eq!(site.fate(json!({"path": "b", "how": "hard"})).await, "ran");
    for chat in [Some("two"), None] {
        assert_eq!(fate(&site.call(&site.by("ada", chat), json!({"path": "a"})).await), "asked", "{chat:?}");
    }
    assert_eq!(site.registry.forget_chat_rules("ada", "two").await.unwrap(), 0);
    assert_eq!(site.registry.forget_chat_rules("ada", "one").await.unwrap(), 1);
    assert_eq!(site.fate(json!({"path": "b", "how": "hard"})).await, "asked");
}

#[tokio::test]
async fn b17_a_rule_is_listed_and_revoked_and_is_nobody_elses() {
    let site = Site::new();
    let ada = site.by("ada", Some("one"));
    let rule = site.allowed(&ada, json!({"path": "a"}), RuleKind::Arguments).await.unwrap();
    assert_eq!(site.registry.approval_rules("ada").await.unwrap(), std::slice::from_ref(&rule));
    assert!(site.registry.applies(&rule));
    assert!(site.registry.approval_rules("bob").await.unwrap().is_empty());
    assert_eq!(site.registry.revoke_approval_rule("bob", &rule.id).await.unwrap(), None);
    assert_eq!(site.fate(json!({"path": "a"})).await, "ran");
    assert_eq!(site.registry.revoke_approval_rule("ada", &rule.id).await.unwrap(), Some(rule.clone()));
    assert_eq!(site.registry.revoke_approval_rule("ada", &rule.id).await.unwrap(), None);
    assert_eq!(site.fate(json!({"path": "a"})).await, "asked");
}

#[tokio::test]
async fn b17_only_whose_call_it_is_can_have_it_remembered_and_only_while_it_waits() {
    let site = Site::new();
    let outcome = site.call(&site.by("ada", None), json!({"path": "a"})).await;
    let id = outcome.result.unwrap_err().approval().unwrap().to_owned();
    let rule = async |user: &str, kind| site.registry.rule_of_approval(&id, user, kind).await;
    assert_eq!(rule("bob", RuleKind::Arguments).await, Err(RuleError::Unknown));
    for kind in [RuleKind::Chat, RuleKind::Folder] {
        assert_eq!(rule("ada", kind).await, Err(RuleError::NotOffered));
    }
    assert!(rule("ada", RuleKind::Arguments).await.is_ok());
    let no =
        ApprovalAnswer { approve: false, by: "ada".into(), reason: None, content: None, arguments: None };
    site.registry.answer_approval(&id, no).await.unwrap();
    assert_eq!(rule("ada", RuleKind::Arguments).await, Err(RuleError::Closed));
    assert!(site.registry.approval_rules("ada").await.unwrap().is_empty());
}

#[tokio::test]
async fn b17_another_tool_of_the_same_name_is_asked_about() {
    let other_schema = |mut spec: ToolSpec| {
        spec.input_schema = Arc::new(json!({"type": "object"}));
        spec
    };
    for (what, other, policy) in [
        ("version", ToolSpec { version: Some("2.0.0".into()), ..spec("Deletes a file.") }, destructive()),
        (
            "description",
            ToolSpec { version: Some("1.0.1".into()), ..spec("Deletes the disk.") },
            destructive(),
        ),
        ("schema", other_schema(ToolSpec { version: Some("3".into()), ..spec("x") }), destructive()),
    ] {
        let site = Site::new();
        let ada = site.by("ada", Some("one"));
        let rule = site.allowed(&ada, json!({"path": "a"}), RuleKind::Chat).await.unwrap();
        assert_eq!(site.fate(json!({"path": "a"})).await, "ran");
        site.add(other, policy);
        assert_eq!(site.fate(json!({"path": "a"})).await, "asked", "{what}");
        assert!(!site.registry.applies(&rule), "{what}");
        assert_eq!(site.registry.approval_rules("ada").await.unwrap(), [rule], "{what}");
    }
}

#[tokio::test]
async fn b17_no_rule_allows_what_is_asked_about_for_what_was_read() {
    let site = Site::new();
    let ada = site.by("ada", Some("one"));
    site.allowed(&ada, json!({"path": "a"}), RuleKind::Chat).await.unwrap();
    assert_eq!(site.fate(json!({"path": "a"})).await, "ran");
    let mut read = HasRead::default();
    read.note(Reads::UNTRUSTED, "web");
    let misled = site.by("ada", Some("one")).with_flow(TurnFlow::after(read));
    assert_eq!(fate(&site.call(&misled, json!({"path": "b"})).await), "asked");
    let pending = site.registry.pending_approvals().await.unwrap();
    let asked = pending.iter().find(|approval| approval.arguments == json!({"path": "b"})).unwrap();
    assert!(asked.reason.is_some() && asked.remember.is_empty(), "{asked:?}");
}

#[tokio::test]
async fn b20_a_yes_from_before_something_was_read_is_none_to_what_was_read() {
    let site = Site::new();
    let ada = site.by("ada", Some("one"));
    assert_eq!(fate(&site.call(&ada, json!({"path": "a"})).await), "asked");
    let first = site.registry.pending_approvals().await.unwrap().remove(0);
    let yes =
        ApprovalAnswer { approve: true, by: "ada".into(), reason: None, content: None, arguments: None };
    site.registry.answer_approval(&first.id, yes).await.unwrap();
    let mut read = HasRead::default();
    read.note(Reads::UNTRUSTED, "web");
    let misled = site.by("ada", Some("one")).with_flow(TurnFlow::after(read));
    assert_eq!(fate(&site.call(&misled, json!({"path": "a"})).await), "asked");
    let asked = site.registry.pending_approvals().await.unwrap().remove(0);
    assert!(asked.id != first.id && asked.reason.is_some(), "{asked:?}");
    assert_eq!(fate(&site.call(&ada, json!({"path": "a"})).await), "ran");
}

#[tokio::test]
async fn b20_a_yes_to_a_turn_that_has_read_less_is_none_to_more() {
    let site = Site::new();
    let call = async |reads: Option<Reads>, scope: Option<&str>| {
        let mut context = site.by("ada", Some("one"));
        if let Some(reads) = reads {
            let mut read = HasRead::default();
            read.note(reads, "web");
            context = context.with_flow(TurnFlow::after(read));
        }
        if let Some(scope) = scope {
            context = context.with_approval_scope(scope);
        }
        fate(&site.call(&context, json!({"path": "a"})).await)
    };
    let answer_all = async |approve: bool| {
        for asked in site.registry.pending_approvals().await.unwrap() {
            let by = "ada".into();
            let answer = ApprovalAnswer { approve, by, reason: None, content: None, arguments: None };
            site.registry.answer_approval(&asked.id, answer).await.unwrap();
        }
    };
    for scope in [None, Some("form")] {
        for (before, now) in [(Some(Reads::UNTRUSTED), Reads::BOTH), (None, Reads::UNTRUSTED)] {
            assert_eq!(call(before, scope).await, "asked");
            answer_all(true).await;
            assert_eq!(call(Some(now), scope).await, "asked", "{before:?} {scope:?}");
            assert_eq!(call(before, scope).await, "ran");
            answer_all(false).await;
        }
    }
}

struct Says(fn() -> GateAnswer);

#[async_trait]
impl Gate for Says {
    fn name(&self) -> &str {
        "rules of the house"
    }

    async fn check(&self, _: GateRequest<'_>) -> Result<GateAnswer, GateError> {
        async { Ok((self.0)()) }.await
    }
}

#[tokio::test]
async fn b17_no_rule_goes_before_the_gate() {
    let store: Arc<dyn StateStore> = Arc::new(MemoryStore::default());
    let says = |answer: fn() -> GateAnswer| {
        let builder = Registry::builder().state(Arc::clone(&store)).gate(Arc::new(Says(answer)));
        Site::of(builder, ToolPolicy { requires_gate: true, ..destructive() })
    };
    let fine = says(|| GateAnswer::Approved);
    fine.allowed(&fine.by("ada", Some("one")), json!({"path": "a"}), RuleKind::Chat).await.unwrap();
    assert_eq!(fine.fate(json!({"path": "a"})).await, "ran");
    let decision = fine.audit.records().pop().unwrap().decision.unwrap();
    assert!(decision.by.starts_with("rule:"), "{decision:?}");
    assert_eq!(decision.gate.unwrap().by, "rules of the house");
    let blocking = says(|| GateAnswer::Blocked("no".into()));
    assert_eq!(blocking.fate(json!({"path": "a"})).await, "refused");
    let asking = says(|| GateAnswer::Pending);
    assert_eq!(asking.fate(json!({"path": "a"})).await, "asked");
    assert_eq!(offered(&asking.registry).await, []);
}

#[tokio::test]
async fn b17_what_is_not_shown_whole_is_not_allowed_for_good() {
    let secret = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "pin": {"type": "string", "writeOnly": true},
    }});
    let site = Site::new();
    site.add(
        ToolSpec { version: Some("2.0.0".into()), ..ToolSpec::new("files.delete", secret) },
        destructive(),
    );
    let arguments = json!({"path": "notes/a", "pin": "1234"});
    assert_eq!(site.fate(arguments).await, "asked");
    assert_eq!(offered(&site.registry).await, [RuleKind::Chat]);
    let site = Site::new();
    assert_eq!(site.fate(json!({"path": "notes/a", "how": "x".repeat(5000)})).await, "asked");
    assert_eq!(offered(&site.registry).await, [RuleKind::Chat]);
    let site = Site::new();
    assert_eq!(site.fate(json!({"path": "notes/a", "how": "x".repeat(1000)})).await, "asked");
    assert_eq!(offered(&site.registry).await, [RuleKind::Chat, RuleKind::Folder, RuleKind::Arguments]);
}

#[tokio::test]
async fn b17_a_person_has_so_many_rules_and_no_more() {
    let site = Site::new();
    let rule = site.allowed(&site.by("ada", None), json!({"path": "0"}), RuleKind::Arguments).await.unwrap();
    // The same again is no other one.
    let other = |scope: Option<RuleScope>| {
        let mut other = rule.clone();
        other.id = "other".into();
        other.scope = scope.unwrap_or(other.scope);
        other
    };
    assert_eq!(site.registry.keep_approval_rule("ada", other(None)).await, Ok(false));
    for number in 1..MAX_RULES {
        let arguments = json!({"path": number.to_string()}).as_object().unwrap().clone();
        let rule = other(Some(RuleScope::Arguments { arguments }));
        assert_eq!(site.registry.keep_approval_rule("ada", rule).await, Ok(true), "{number}");
    }
    let more = other(Some(RuleScope::Chat { chat: "one".into() }));
    assert_eq!(site.registry.keep_approval_rule("ada", more.clone()).await, Err(RuleError::Full));
    assert_eq!(site.registry.keep_approval_rule("bob", more).await, Ok(true));
    assert_eq!(site.registry.approval_rules("ada").await.unwrap().len(), MAX_RULES);
}

/// A store that can be taken away.
struct Flaky(MemoryStore, AtomicBool);

#[async_trait]
impl StateStore for Flaky {
    async fn state(&self, space: &StateSpace, key: &str) -> StoreResult<Option<String>> {
        match self.1.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(StoreError::unavailable("the disk is gone")) }),
            false => self.0.state(space, key),
        }
        .await
    }

    async fn put_state(
        &self,
        space: &StateSpace,
        key: &str,
        value: Option<&str>,
        expected: Expected<'_>,
        limits: &StateLimits,
    ) -> Result<bool, StateError> {
        self.0.put_state(space, key, value, expected, limits).await
    }

    async fn state_keys(&self, space: &StateSpace) -> StoreResult<Vec<String>> {
        self.0.state_keys(space).await
    }

    async fn states_of_users(
        &self,
        tenant: &str,
        name: &str,
        key: &str,
        after: &str,
        most: usize,
    ) -> StoreResult<Vec<(String, String)>> {
        self.0.states_of_users(tenant, name, key, after, most).await
    }
}

#[tokio::test]
async fn b17_where_rules_cannot_be_read_or_are_off_or_went_with_their_person_the_call_is_asked_about() {
    let store = Arc::new(Flaky(MemoryStore::default(), AtomicBool::new(false)));
    let builder = || Registry::builder().state(Arc::clone(&store) as Arc<dyn StateStore>);
    let site = Site::of(builder(), destructive());
    site.allowed(&site.by("ada", Some("one")), json!({"path": "a"}), RuleKind::Chat).await.unwrap();
    assert_eq!(site.fate(json!({"path": "a"})).await, "ran");
    store.1.store(true, Ordering::SeqCst);
    assert_eq!(site.fate(json!({"path": "b"})).await, "asked");
    store.1.store(false, Ordering::SeqCst);
    assert_eq!(site.fate(json!({"path": "a"})).await, "ran");
    let off = Site::of(builder().approval_rules(false), destructive());
    assert_eq!(off.fate(json!({"path": "a"})).await, "asked");
    assert_eq!(offered(&off.registry).await, []);
    assert!(!off.registry.applies(&off.registry.approval_rules("ada").await.unwrap()[0]));
    assert_eq!(store.0.remove_user("default", "ada", Timestamp::UNIX_EPOCH).await.unwrap().values, 1);
    assert_eq!(site.fate(json!({"path": "c"})).await, "asked");
}
