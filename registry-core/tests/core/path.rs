//! The one path of a call: requirements B5, B6, B7, C4, C6, M6, M7, M11, P3, P4, P5, T5, T6.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use registry_core::{
    Caller, Effect, ErrorKind, Handler, Permission, Registry, RegistryError, ToolCall, ToolContext,
    ToolError, ToolPolicy, ToolResult, ToolSpec,
    guard::audit::{AuditRecord, AuditSink, MemoryAudit, Phase},
    handler_fn,
    store::StoreError,
    testing::TestClock,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn registry_with(audit: Arc<dyn AuditSink>) -> Registry {
    Registry::builder().without_compiled().audit(audit).approve_destructive(false).build().unwrap()
}

fn registry() -> Registry {
    registry_with(Arc::new(MemoryAudit::new(0)))
}

fn add(registry: &Registry, name: &str, policy: ToolPolicy, handler: Arc<dyn Handler>) {
    let schema =
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": false});
    registry.register(ToolSpec::new(name, schema), policy, Some(handler)).unwrap();
}

fn echo() -> Arc<dyn Handler> {
    handler_fn(|_, arguments| async move { Ok(ToolResult::new(Value::Object(arguments))) })
}

fn at(permission: Permission) -> ToolPolicy {
    ToolPolicy { permission, ..ToolPolicy::new() }
}

fn user(registry: &Registry, level: Permission) -> ToolContext {
    registry.context(Caller::new("ada", level))
}

fn names(registry: &Registry, context: &ToolContext) -> Vec<String> {
    registry.select(context).tools().iter().map(|tool| tool.name().to_owned()).collect()
}

/// The worked example of the module registry: levels and allowed modules.
fn worked_example() -> Registry {
    let registry = registry();
    for (name, permission) in [
        ("research.web_search", Permission::Guest),
        ("research.fetch_webpage", Permission::Guest),
        ("file_manager.create_document", Permission::Guest),
        ("file_manager.delete_file", Permission::User),
        ("code_executor.run_python", Permission::User),
        ("code_executor.run_shell", Permission::Admin),
        ("scheduler.add_job", Permission::Admin),
    ] {
        add(&registry, name, at(permission), echo());
    }
    registry
}

#[tokio::test]
async fn m6_a_tool_passes_the_module_and_then_the_level() {
    let registry = worked_example();
    let caller =
        Caller::new("ada", Permission::User).only_modules(["research", "file_manager", "code_executor"]);
    let context = registry.context(caller);
    assert_eq!(
        names(&registry, &context),
        [
            "code_executor.run_python",
            "file_manager.create_document",
            "file_manager.delete_file",
            "research.fetch_webpage",
            "research.web_search",
        ]
    );
    for name in ["code_executor.run_shell", "scheduler.add_job"] {
        let outcome = registry.execute(&context, ToolCall::new(name, json!({}))).await;
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::PermissionDenied, "{name}");
    }
}

#[tokio::test]
async fn b5_what_is_listed_can_be_called_and_nothing_else() {
    let registry = worked_example();
    registry.set_enabled("research.web_search", false).unwrap();
    registry
        .register(
            ToolSpec::new("research.listed_only", json!({"type": "object"})),
            at(Permission::Guest),
            None,
        )
        .unwrap();
    registry
        .register(ToolSpec::new("research.bad", json!({"a": "string"})), at(Permission::Guest), Some(echo()))
        .unwrap();
    for level in Permission::ALL {
        for modules in [&["research"][..], &["file_manager", "scheduler"], &[]] {
            let context = registry.context(Caller::new("ada", level).only_modules(modules.iter().copied()));
            let listed = names(&registry, &context);
            for tool in registry.list_all(true) {
                let outcome = registry.execute(&context, ToolCall::new(tool.name(), json!({}))).await;
                let is_listed = listed.iter().any(|name| name == tool.name());
                assert_eq!(
                    outcome.is_success(),
                    is_listed,
                    "{} at {level}: {:?}",
                    tool.name(),
                    outcome.result
                );
            }
        }
    }
}

#[tokio::test]
async fn c4_lookup_is_by_the_whole_name() {
    let registry = worked_example();
    assert_eq!(registry.get("scheduler.add_job").unwrap().module(), "scheduler");
    assert!(registry.get("add_job").is_none());
}

#[tokio::test]
async fn c6_allowed_tools_keep_the_order_of_the_listing() {
    let registry = worked_example();
    let caller =
        Caller::new("ada", Permission::Owner).only_tools(["scheduler.add_job", "research.web_search", "x"]);
    assert_eq!(names(&registry, &registry.context(caller)), ["research.web_search", "scheduler.add_job"]);
}

#[tokio::test]
async fn m7_an_unknown_name_is_reported_in_the_words_agreed_with_the_nearest() {
    let registry = worked_example();
    let context = user(&registry, Permission::Guest);
    for (name, message, nearest) in [
        (
            "web_serch",
            "Invalid tool name format: web_serch. Expected 'module.tool_name'.",
            &["research.web_search"][..],
        ),
        ("reserch.web_search", "Unknown module: reserch", &["research.web_search"]),
        ("a.b.c", "Unknown module: a", &[]),
        (
            "research.web_searching",
            "The module research has no tool named web_searching.",
            &["research.web_search"],
        ),
    ] {
        let error = registry.execute(&context, ToolCall::new(name, json!({}))).await.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ToolNotFound);
        assert_eq!(error.message(), message);
        assert!(
            nearest.iter().all(|name| error.nearest().iter().any(|near| near == name)),
            "{:?}",
            error.nearest()
        );
        assert!(nearest.iter().all(|name| error.feedback().contains(name)), "{}", error.feedback());
    }
    // A name that the caller may not use is not given away.
    let error = registry.execute(&context, ToolCall::new("run_shel", json!({}))).await.result.unwrap_err();
    assert!(!error.nearest().iter().any(|name| name.contains("run_shell")), "{:?}", error.nearest());
}

#[tokio::test]
async fn p3_a_tool_with_a_bad_schema_does_not_stop_the_others() {
    let registry = registry();
    add(&registry, "good", ToolPolicy::new(), echo());
    registry
        .register(
            ToolSpec::new("bad", json!({"type": "object", "properties": {"a": {"type": 1}}})),
            ToolPolicy::new(),
            Some(echo()),
        )
        .unwrap();
    assert_eq!(registry.check().iter().map(|tool| tool.name().to_owned()).collect::<Vec<_>>(), ["bad"]);
    let context = user(&registry, Permission::Owner);
    assert_eq!(names(&registry, &context), ["good"]);
    assert!(registry.execute(&context, ToolCall::new("good", json!({}))).await.is_success());
}

/// A tool that is on only for one user.
struct ForAda;

impl Handler for ForAda {
    fn unavailable(&self, context: &ToolContext) -> Option<String> {
        (context.caller().user != "ada").then(|| "only Ada may".to_owned())
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolContext,
        _: serde_json::Map<String, Value>,
    ) -> registry_core::BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async { Ok(ToolResult::new("yes")) })
    }
}

#[tokio::test]
async fn p4_availability_is_asked_for_each_request() {
    let registry = registry();
    add(&registry, "mine", ToolPolicy::new(), Arc::new(ForAda));
    assert_eq!(names(&registry, &user(&registry, Permission::Guest)), ["mine"]);
    let other = registry.context(Caller::new("bob", Permission::Owner));
    assert!(names(&registry, &other).is_empty());
    let error = registry.execute(&other, ToolCall::new("mine", json!({}))).await.result.unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Unavailable, "mine cannot be used: only Ada may")
    );
}

#[tokio::test]
async fn p5_definitions_and_calls_by_name_with_status_on_the_way() {
    let registry = registry();
    let handler = handler_fn(|context: ToolContext, _| async move {
        context.status("half way");
        context.progress(2.0, "nearly");
        Ok(ToolResult::new("done"))
    });
    add(&registry, "work", ToolPolicy::new(), handler);
    let context = user(&registry, Permission::Guest);
    assert_eq!(registry.get_tools(&context)[0]["function"]["name"], "work");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let listener: registry_core::EventSink =
        Arc::new(move |event| sink.lock().unwrap().push((event.tool_name, event.message, event.progress)));
    let outcome = registry.execute_tool("work", json!({}), &context, Some(listener)).await;
    assert_eq!(outcome.for_model(), "done");
    let expected = [("work", "half way", None), ("work", "nearly", Some(1.0))];
    let expected: Vec<_> =
        expected.map(|(tool, text, progress)| (tool.to_owned(), text.to_owned(), progress)).into();
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn b6_wrong_arguments_do_not_reach_the_tool() {
    let registry = registry();
    let runs = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&runs);
    add(
        &registry,
        "f",
        ToolPolicy::new(),
        handler_fn(move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok(ToolResult::new(())) }
        }),
    );
    let context = user(&registry, Permission::Guest);
    let error = registry.execute(&context, ToolCall::new("f", json!({"txt": "a"}))).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(error.feedback().contains("did you mean `text`?"), "{}", error.feedback());
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn b6_what_is_wrong_is_repeated_with_its_beginning() {
    let registry = registry();
    let schema = json!({
        "type": "object",
        "properties": {
            "short": {"type": "string", "maxLength": 3},
            "number": {"type": "integer"},
            "letters": {"type": "string", "pattern": "^[a-z]+$"},
            "list": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true},
            "one": {"const": "x"},
        },
        "additionalProperties": false,
    });
    registry.register(ToolSpec::new("f", schema), ToolPolicy::new(), Some(echo())).unwrap();
    let context = user(&registry, Permission::Guest);
    let long = "Ä".repeat(100_000);
    let many: serde_json::Map<_, _> =
        (0..10_000).map(|number| (format!("{number}{long:.20}"), 1.into())).collect();
    for (arguments, expected) in [
        (json!({"short": long}), "is longer than 3 characters"),
        (json!({"short": "abcd"}), "`short`: \"abcd\" is longer than 3 characters"),
        (json!({"number": long}), "is not of type \"integer\""),
        (json!({"number": {"a": long}}), "is not of type \"integer\""),
        (json!({"number": "no"}), "`number`: \"no\" is not of type \"integer\""),
        (json!({"letters": long}), "does not match"),
        (json!({"list": vec![7; 100_000]}), "non-unique"),
        (json!({"one": long}), "was expected"),
        (json!({&long: 1}), "there is no `Ä"),
        (many.into(), "there is no `0Ä"),
    ] {
        let error = registry.execute(&context, ToolCall::new("f", arguments)).await.result.unwrap_err();
        for text in [error.feedback(), error.message()] {
            assert!(text.contains(expected), "{expected}: {text:.300}");
            assert!(text.len() < 5000, "{expected}: {} bytes", text.len());
        }
    }
}

#[tokio::test]
async fn b7_a_panic_is_one_failed_call() {
    let registry = registry();
    #[allow(unreachable_code)]
    let panics = handler_fn(|_, _| async {
        panic!("boom {}", 1);
        Ok(ToolResult::new(()))
    });
    add(&registry, "bad", ToolPolicy::new(), panics);
    add(
        &registry,
        "early",
        ToolPolicy::new(),
        handler_fn(|_, _| -> std::future::Ready<_> { panic!("at once") }),
    );
    add(&registry, "good", ToolPolicy::new(), echo());
    let context = user(&registry, Permission::Guest);
    for (name, text) in [("bad", "boom 1"), ("early", "at once")] {
        let error = registry.execute(&context, ToolCall::new(name, json!({}))).await.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Panicked);
        assert!(error.message().contains(text), "{error}");
        assert!(!error.feedback().contains(text), "a model has no use for it: {}", error.feedback());
    }
    assert!(registry.execute(&context, ToolCall::new("good", json!({}))).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn b7_a_tool_that_takes_too_long_is_ended() {
    let registry = registry();
    let policy = ToolPolicy { timeout: Duration::from_secs(30), ..ToolPolicy::new() };
    add(&registry, "slow", policy, handler_fn(|_, _| std::future::pending()));
    let error = registry.execute(&user(&registry, Permission::Guest), ToolCall::new("slow", json!({}))).await;
    let error = error.result.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Timeout, "Tool execution timed out (30s)."));
    assert!(error.is_retryable());
}

#[tokio::test]
async fn b7_cancelling_reaches_the_tool_and_the_audit() {
    let audit = Arc::new(MemoryAudit::new(8));
    let registry = registry_with(audit.clone());
    add(
        &registry,
        "slow",
        ToolPolicy::new(),
        handler_fn(|context: ToolContext, _| async move {
            context.cancelled().await;
            Ok(ToolResult::new("gave up"))
        }),
    );
    let token = CancellationToken::new();
    let context = user(&registry, Permission::Guest).with_cancellation(token.clone());
    let call = registry.execute(&context, ToolCall::new("slow", json!({})));
    let (outcome, ()) = tokio::join!(call, async { token.cancel() });
    // Whether the tool or the path sees it first: the call is over and has its record.
    assert_eq!(audit.records().len(), 2);
    assert!(outcome.result.is_ok() || outcome.result.unwrap_err().kind() == ErrorKind::Cancelled);
}

#[tokio::test]
async fn a_selection_is_pinned_and_what_was_revoked_is_refused() {
    let registry = registry();
    let answer = |text: &'static str| handler_fn(move |_, _| async move { Ok(ToolResult::new(text)) });
    let spec = |version: &str| ToolSpec {
        version: Some(version.into()),
        ..ToolSpec::new("f", json!({"type": "object"}))
    };
    registry.register(spec("1.0.0"), ToolPolicy::new(), Some(answer("one"))).unwrap();
    add(&registry, "g", ToolPolicy::new(), answer("g"));
    add(&registry, "h", ToolPolicy::new(), answer("h"));
    let context = user(&registry, Permission::Guest);
    let selection = registry.select(&context);
    registry.register(spec("2.0.0"), ToolPolicy::new(), Some(answer("two"))).unwrap();
    registry.set_enabled("g", false).unwrap();
    registry.remove("h");
    add(&registry, "new", ToolPolicy::new(), answer("new"));

    let call = |name: &str| ToolCall::new(name, json!({}));
    assert_eq!(selection.execute(&context, call("f")).await.for_model(), "one");
    assert_eq!(registry.execute(&context, call("f")).await.for_model(), "two");
    for (name, kind) in [
        ("g", ErrorKind::Unavailable),
        ("h", ErrorKind::Unavailable),
        ("new", ErrorKind::Unavailable),
        ("none", ErrorKind::ToolNotFound),
    ] {
        let outcome = selection.execute(&context, call(name)).await;
        assert_eq!(outcome.result.unwrap_err().kind(), kind, "{name}");
    }
}

#[tokio::test]
async fn m11_a_failure_that_may_pass_is_tried_once_more_and_each_try_has_its_records() {
    for (effect, retryable, attempts) in [
        (Effect::Read, true, 2),
        (Effect::Write, true, 1),
        (Effect::Destructive, true, 1),
        (Effect::Read, false, 1),
    ] {
        let audit = Arc::new(MemoryAudit::new(8));
        let registry = registry_with(audit.clone());
        let handler = handler_fn(move |_, _| async move {
            let error = ToolError::failed("no");
            Err(if retryable { error.retryable() } else { error })
        });
        add(&registry, "f", ToolPolicy { effect, ..ToolPolicy::new() }, handler);
        let call = ToolCall::new("f", json!({})).with_id("c1").with_retries(1);
        assert!(!registry.execute(&user(&registry, Permission::Guest), call).await.is_success());
        let records = audit.records();
        let shape: Vec<(Phase, u8)> = records.iter().map(|record| (record.phase, record.attempt)).collect();
        let expected: Vec<(Phase, u8)> = (1..=attempts)
            .flat_map(|attempt| [(Phase::Intent, attempt), (Phase::Outcome, attempt)])
            .collect();
        assert_eq!(shape, expected, "{effect:?}");
        assert!(records.iter().all(|record| record.call_id == "c1"));
    }
}

#[tokio::test]
async fn t5_the_registry_stamps_tool_time_and_duration() {
    let now: jiff::Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let audit = Arc::new(MemoryAudit::new(8));
    let registry = Registry::builder()
        .without_compiled()
        .audit(audit.clone())
        .clock(Arc::new(TestClock::at(now)))
        .build()
        .unwrap();
    add(
        &registry,
        "f",
        ToolPolicy::new(),
        handler_fn(|_, _| async {
            Ok(ToolResult::new(1).with_audit("pages", 3).with_side_effect("searched:x"))
        }),
    );
    let outcome =
        registry.execute(&user(&registry, Permission::User), ToolCall::new("f", json!({"text": "a"}))).await;
    let stamped = outcome.audit();
    assert_eq!(
        (&stamped["tool"], &stamped["ts"], &stamped["pages"]),
        (&json!("f"), &json!("2026-01-02T03:04:05Z"), &json!(3))
    );
    assert!(stamped["duration_ms"].is_u64());
    let records: Vec<AuditRecord> = audit.records();
    assert_eq!(records.len(), 2);
    assert_eq!((records[0].phase, records[0].success), (Phase::Intent, None));
    assert_eq!((records[1].phase, records[1].success), (Phase::Outcome, Some(true)));
    assert_eq!(records[1].side_effects, ["searched:x"]);
    assert_eq!((records[1].ts, records[1].user.as_str()), (now, "ada"));
    assert_eq!(records[0].arguments_sha256, records[1].arguments_sha256);
}

#[tokio::test]
async fn t6_a_result_carries_its_parts_and_a_refusal_one_record() {
    let audit = Arc::new(MemoryAudit::new(8));
    let registry = registry_with(audit.clone());
    add(
        &registry,
        "f",
        ToolPolicy::new(),
        handler_fn(|_, _| async {
            Ok(ToolResult::unsuccessful("nothing there").with_side_effect("looked:x"))
        }),
    );
    let context = user(&registry, Permission::User);
    let reply = registry.execute(&context, ToolCall::new("f", json!({}))).await.to_reply();
    assert_eq!((reply.success, reply.message.as_deref()), (false, Some("nothing there")));
    assert_eq!(reply.side_effects, ["looked:x"]);
    let reply = registry.execute(&context, ToolCall::new("g", json!({}))).await.to_reply();
    assert!(reply.error.is_some() && !reply.success && reply.retryable == Some(false));
    let last = audit.records().pop().unwrap();
    assert_eq!((last.phase, last.error), (Phase::Outcome, Some(ErrorKind::ToolNotFound)));
    assert_eq!(audit.records().len(), 3);
    assert_eq!((reply.call_id.is_empty(), &reply.call_id), (false, &last.call_id));
}

/// A sink that is full.
struct Full;

#[async_trait]
impl AuditSink for Full {
    async fn record(&self, _: AuditRecord) -> registry_core::store::StoreResult<()> {
        async { Err(StoreError::unavailable("the disk is full")) }.await
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_recorded_is_not_made() {
    let registry = registry_with(Arc::new(Full));
    let runs = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&runs);
    add(
        &registry,
        "f",
        ToolPolicy::new(),
        handler_fn(move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok(ToolResult::new(())) }
        }),
    );
    let error = registry.execute(&user(&registry, Permission::User), ToolCall::new("f", json!({}))).await;
    // Why is in the log alone: whoever calls over HTTP is shown the rest.
    assert!(!serde_json::to_string(&error.to_reply()).unwrap().contains("the disk is full"));
    assert_eq!(error.result.unwrap_err().kind(), ErrorKind::NotAudited);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn registering_follows_the_rules_of_versions() {
    let registry = registry();
    let spec = |version: Option<&str>, schema: Value| ToolSpec {
        version: version.map(str::to_owned),
        ..ToolSpec::new("f", schema)
    };
    let register = |spec| registry.register(spec, ToolPolicy::new(), None).map(|_| ());
    register(spec(None, json!({"a": 1}))).unwrap();
    register(spec(None, json!({"a": 1}))).unwrap();
    assert!(matches!(register(spec(None, json!({"a": 2}))), Err(RegistryError::VersionUnchanged { .. })));
    register(spec(Some("1.0.0"), json!({"a": 2}))).unwrap();
    assert!(matches!(
        register(spec(Some("1.0.0"), json!({"a": 3}))),
        Err(RegistryError::VersionUnchanged { .. })
    ));
    assert_eq!(registry.len(), 1);
    assert!(registry.set_enabled("g", true).is_err());
    registry.remove("f");
    registry.remove("f");
    assert!(registry.is_empty());
}
