//! What a tool keeps between calls, and tools that call tools: requirement B19.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use registry_core::{
    Caller, Effect, ErrorKind, Permission, Registry, ToolCall, ToolContext, ToolError, ToolEvent, ToolPolicy,
    ToolResult, ToolSpec,
    guard::audit::{MemoryAudit, Phase},
    handler_fn,
    store::{StateError, StoreErrorKind},
    testing::TestHost,
};
use serde_json::{Value, json};

/// A host with one tool, `act`, which does what the closure says.
fn host<F, Fut>(act: F) -> registry_core::testing::Hosted
where
    F: Fn(ToolContext) -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    let host = TestHost::new().build();
    let handler = handler_fn(move |context, _| act.clone()(context));
    let spec = ToolSpec::new("act", json!({"type": "object"}));
    host.registry().register(spec, ToolPolicy::new(), Some(handler)).unwrap();
    host
}

async fn call_as(registry: &Registry, user: &str) -> Result<Value, ToolError> {
    let context = registry.context(Caller::new(user, Permission::User));
    registry.execute(&context, ToolCall::new("act", json!({}))).await.result.map(|result| result.value)
}

#[tokio::test]
async fn b19_each_user_has_the_values_of_a_tool_and_updates_are_not_lost() {
    let host = host(async |context| {
        let store = context.store();
        let calls = store.update("calls", |calls: Option<u32>| calls.unwrap_or(0) + 1).await?;
        let all = store.clone().for_all_users();
        let all = all.update("calls", |calls: Option<u32>| calls.unwrap_or(0) + 1).await?;
        Ok(ToolResult::new(json!([calls, all])))
    });
    let registry = host.registry();
    let calls = (0..16).map(|number| {
        let registry = registry.clone();
        tokio::spawn(async move { call_as(&registry, ["ada", "bob"][number % 2]).await.unwrap() })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(call_as(registry, "ada").await.unwrap(), json!([9, 17]));
    assert_eq!(call_as(registry, "bob").await.unwrap(), json!([9, 18]));
    let other = registry.for_tenant("acme");
    let handler = handler_fn(async |context, _| {
        Ok(ToolResult::new(json!(context.store().for_all_users().get::<u32>("calls").await?)))
    });
    other
        .register(ToolSpec::new("act", json!({"type": "object"})), ToolPolicy::new(), Some(handler))
        .unwrap();
    assert_eq!(call_as(&other, "ada").await.unwrap(), Value::Null);
}

#[tokio::test]
async fn b19_what_cannot_be_kept_is_an_error_that_says_why() {
    let host = host(async |context| {
        let store = context.store();
        for key in [String::new(), "k".repeat(257), "a\nb".to_owned()] {
            let error = store.set(&key, &1).await.unwrap_err();
            assert!(matches!(error, StateError::InvalidKey { .. }), "{error}");
            assert!(store.get::<u8>(&key).await.is_err() && store.remove(&key).await.is_err());
        }
        let error = store.set("long", &"x".repeat(64 << 10)).await.unwrap_err();
        assert_eq!(error.to_string(), r#"the value of "long" has 65538 bytes as JSON, and may have 65536"#);
        let by_pair = BTreeMap::from([((1, 2), 3)]);
        assert!(matches!(store.set("map", &by_pair).await, Err(StateError::Type { .. })));
        store.set("text", "one").await?;
        let error = store.get::<u32>("text").await.unwrap_err().to_string();
        assert!(error.contains(r#"the value of "text" is not of the expected type"#), "{error}");
        for number in 0..16 {
            store.set(&number.to_string(), &"x".repeat(60 << 10)).await?;
        }
        store.set("extra", &"x".repeat(60_000)).await?;
        let full = store.set("more", &"x".repeat(64_000)).await;
        assert!(matches!(full, Err(StateError::Full { .. })));
        store.remove("0").await?;
        store.set("more", &"x".repeat(61_000)).await?;
        assert_eq!(store.keys().await?.len(), 18);
        // Tools that name the same values share them.
        store.clone().named("notes").set("a", &1).await?;
        Ok(ToolResult::new(json!(context.store().named("notes").keys().await?)))
    });
    assert_eq!(host.call("act", json!({})).await.result.unwrap().value, json!(["a"]));
    let error = ToolContext::default().store().get::<u8>("k").await.unwrap_err();
    assert!(error.to_string().contains("TestHost"), "{error}");
    // A tool's function, called without the path.
    host.context().store().set("k", &1).await.unwrap();
}

/// Fails whatever it is asked.
struct Broken;

#[async_trait]
impl registry_core::store::StateStore for Broken {
    async fn state(
        &self,
        _: &registry_core::store::StateSpace,
        _: &str,
    ) -> registry_core::store::StoreResult<Option<String>> {
        async { Err(registry_core::store::StoreError::unavailable("db.example refused")) }.await
    }

    async fn put_state(
        &self,
        _: &registry_core::store::StateSpace,
        _: &str,
        _: Option<&str>,
        _: registry_core::store::Expected<'_>,
        _: &registry_core::store::StateLimits,
    ) -> Result<bool, StateError> {
        async { Err(registry_core::store::StoreError::unavailable("db.example refused").into()) }.await
    }

    async fn state_keys(
        &self,
        _: &registry_core::store::StateSpace,
    ) -> registry_core::store::StoreResult<Vec<String>> {
        async { Ok(Vec::new()) }.await
    }

    async fn states_of_users(
        &self,
        _: &str,
        _: &str,
        _: &str,
        _: &str,
        _: usize,
    ) -> registry_core::store::StoreResult<Vec<(String, String)>> {
        async { Ok(Vec::new()) }.await
    }
}

#[tokio::test]
async fn b19_a_store_that_fails_is_told_to_the_operator_alone() {
    let registry = Registry::builder().without_compiled().state(Arc::new(Broken)).build().unwrap();
    let handler = handler_fn(async |context: ToolContext, _| {
        let failed = context.store().get::<u8>("k").await;
        assert!(
            matches!(&failed, Err(StateError::Store(cause)) if cause.kind() == StoreErrorKind::Unavailable)
        );
        context.store().set("k", &1).await?;
        Ok(ToolResult::new(""))
    });
    registry
        .register(ToolSpec::new("act", json!({"type": "object"})), ToolPolicy::new(), Some(handler))
        .unwrap();
    let error = call_as(&registry, "ada").await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true));
    assert!(!error.message().contains("db.example") && error.detail().contains("db.example refused"));
}

#[tokio::test]
async fn b19_a_tool_calls_another_with_its_callers_rights_and_leaves_a_linked_record() {
    let audit = Arc::new(MemoryAudit::new(64));
    let registry = Registry::builder().without_compiled().audit(audit.clone()).build().unwrap();
    let spec = |name: &str| ToolSpec::new(name, json!({"type": "object"}));
    let leaf = handler_fn(async |context: ToolContext, arguments| {
        context.status("at work");
        Ok(ToolResult::new(Value::Object(arguments)))
    });
    let level = |permission, effect| ToolPolicy { permission, effect, ..ToolPolicy::new() };
    let user = level(Permission::User, Effect::Read);
    registry.register(spec("leaf"), user, Some(leaf.clone())).unwrap();
    registry.register(spec("secret"), level(Permission::Admin, Effect::Read), Some(leaf)).unwrap();
    let act = handler_fn(async |context: ToolContext, _| {
        let refused = context.call("secret", json!({})).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        assert_eq!(context.call("gone", json!({})).await.unwrap_err().kind(), ErrorKind::ToolNotFound);
        assert!(context.call("leaf", 7).await.is_err(), "arguments are an object");
        context.call("leaf", json!({"a": 1})).await
    });
    registry.register(spec("act"), user, Some(act)).unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let context = registry.context(Caller::new("ada", Permission::User));
    let context = context.with_events(Arc::new(move |event: ToolEvent| seen.lock().unwrap().push(event)));
    let wanted = ToolCall::new("act", json!({})).with_id("outer");
    let outcome = registry.execute(&context, wanted).await;
    assert_eq!(outcome.result.unwrap().value, json!({"a": 1}));
    let event = events.lock().unwrap()[0].clone();
    assert_eq!((&*event.call_id, &*event.tool_name, &*event.message), ("outer", "leaf", "at work"));
    let records = audit.records();
    let nested: Vec<_> = records.iter().filter(|record| record.tool != "act").collect();
    assert!(nested.iter().all(|record| record.parent_call_id.as_deref() == Some("outer")), "{nested:#?}");
    assert!(nested.iter().all(|record| record.user == "ada" && record.call_id != "outer"));
    let tools: Vec<_> = nested.iter().map(|record| (&*record.tool, record.phase)).collect();
    let (intent, outcome) = (Phase::Intent, Phase::Outcome);
    let refused = [("secret", outcome), ("gone", outcome), ("leaf", outcome)];
    assert_eq!(tools, [&refused[..], &[("leaf", intent), ("leaf", outcome)]].concat());
    assert!(
        records.iter().filter(|record| record.tool == "act").all(|record| record.parent_call_id.is_none())
    );
    // Outside of a registry there is nothing to call.
    let error = ToolContext::default().call("leaf", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn b19_calls_are_nested_so_deep_and_no_deeper() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let deeper = handler_fn(async |context: ToolContext, _| match context.call("act", json!({})).await {
        Ok(result) => Ok(ToolResult::new(result.value.as_u64().unwrap() + 1)),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Refused);
            Ok(ToolResult::new(0))
        }
    });
    registry
        .register(ToolSpec::new("act", json!({"type": "object"})), ToolPolicy::new(), Some(deeper))
        .unwrap();
    assert_eq!(call_as(&registry, "ada").await.unwrap(), json!(8));
}
