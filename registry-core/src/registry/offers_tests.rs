#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::{
    BoxFuture, Caller, ConfiguredTool, ConfiguredTools, Permission, ToolCall, ToolContext, ToolError,
    ToolResult,
    context::Origin,
    handler::{Handler, handler_fn},
    policy::ToolPolicy,
    spec::ToolSpec,
    store::{MemoryStore, Store, StoredTool},
};

fn registry() -> Registry {
    Registry::builder().without_compiled().build().unwrap()
}

fn module(name: &str) -> Remote {
    Remote { kind: RemoteKind::Module, name: name.into(), address: "http://module".into() }
}

fn mcp(name: &str) -> Remote {
    Remote { kind: RemoteKind::Mcp, name: name.into(), address: "a-server".into() }
}

fn schema() -> Value {
    json!({"type": "object"})
}

fn offer(name: &str, answer: &'static str) -> Offer {
    Offer {
        spec: ToolSpec::new(name, schema()),
        policy: ToolPolicy::new(),
        handler: handler_fn(move |_, _| async move { Ok(ToolResult::new(answer)) }),
    }
}

fn events_of(registry: &Registry, change: impl FnOnce()) -> Vec<(String, &'static str)> {
    let mut events = registry.subscribe();
    change();
    std::iter::from_fn(|| events.try_recv().ok()).map(|e| (e.tool, e.change.as_str())).collect()
}

fn context() -> ToolContext {
    ToolContext::new(Caller::new("ada", Permission::User))
}

async fn answer(registry: &Registry, name: &str) -> String {
    registry.execute_tool(name, json!({}), &context(), None).await.for_model()
}

fn kind_of(registry: &Registry, name: &str) -> RemoteKind {
    match registry.get(name).unwrap().source() {
        Source::Remote(remote) => remote.kind,
        other => panic!("{other}"),
    }
}

#[test]
fn l2_a_set_of_tools_is_replaced_at_once_and_what_is_the_same_stays() {
    let registry = registry();
    let (a, b, c) = (offer("m.a", "a"), offer("m.b", "b"), offer("m.c", "c"));
    let first = events_of(&registry, || {
        assert!(registry.offer(module("m"), vec![b.clone(), a.clone()]).is_empty());
    });
    assert_eq!(first, [("m.a".to_owned(), "registered"), ("m.b".to_owned(), "registered")]);
    let known = registry.get("m.a").unwrap();
    let mut newer = c.clone();
    newer.spec.version = Some("2.0.0".into());

    let second = events_of(&registry, || {
        registry.offer(module("m"), vec![a.clone(), c]);
    });
    assert_eq!(second, [("m.b".to_owned(), "removed"), ("m.c".to_owned(), "registered")]);
    assert!(Arc::ptr_eq(&known, &registry.get("m.a").unwrap()));
    let third = events_of(&registry, || {
        registry.offer(module("m"), vec![a.clone(), newer]);
    });
    assert_eq!(third, [("m.c".to_owned(), "replaced")]);
}

#[tokio::test]
async fn l2_another_handler_is_another_tool_with_the_same_switch() {
    let registry = registry();
    registry.offer(module("m"), vec![offer("m.a", "one")]);
    registry.set_enabled("m.a", false).unwrap();
    registry.offer(module("m"), vec![offer("m.a", "two")]);
    assert!(!registry.get("m.a").unwrap().is_enabled(), "off is the operator's word");
    registry.set_enabled("m.a", true).unwrap();
    assert_eq!(answer(&registry, "m.a").await, "two");
}

#[test]
fn l2_a_tool_that_was_off_comes_back_off_and_one_that_was_on_comes_back_on() {
    let registry = registry();
    let tools = vec![offer("m.a", "a"), offer("m.b", "b")];
    registry.offer(module("m"), tools.clone());
    registry.set_enabled("m.a", false).unwrap();
    registry.offer(module("m"), Vec::new());
    assert!(registry.is_empty());
    let back = events_of(&registry, || drop(registry.offer(module("m"), tools.clone())));
    let expected = [("m.a", "registered"), ("m.a", "disabled"), ("m.b", "registered")];
    assert_eq!(back, expected.map(|(name, kind)| (name.to_owned(), kind)));

    registry.set_enabled("m.a", true).unwrap();
    registry.offer(module("m"), Vec::new());
    registry.offer(module("m"), tools);
    assert!(registry.get("m.a").unwrap().is_enabled());
}

#[test]
fn c3_an_earlier_source_has_the_name_whatever_the_order_of_arrival() {
    for mcp_first in [true, false] {
        let registry = registry();
        let of_module = || registry.offer(module("m"), vec![offer("m.a", "module")]);
        let of_mcp = || registry.offer(mcp("m"), vec![offer("m.a", "mcp")]);
        let errors = match mcp_first {
            true => [of_mcp(), of_module(), registry.duplicates()],
            false => [of_module(), Vec::new(), of_mcp()],
        };
        assert_eq!(errors[0], []);
        assert_eq!(errors[1], []);
        assert_eq!(
            errors[2].iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "two tools are named m.a: module m at http://module stays, MCP server m at a-server is left out; \
              rename one of them"
            ]
        );
        assert_eq!(kind_of(&registry, "m.a"), RemoteKind::Module);
        // The place is free: the other one has it.
        registry.offer(module("m"), Vec::new());
        assert_eq!(kind_of(&registry, "m.a"), RemoteKind::Mcp);
        assert_eq!(registry.duplicates(), []);
    }
}

#[tokio::test]
async fn c3_two_of_one_source_with_one_name_are_reported() {
    let registry = registry();
    let errors = registry.offer(module("m"), vec![offer("m.a", "first"), offer("m.a", "second")]);
    assert_eq!(errors.len(), 1);
    assert_eq!(answer(&registry, "m.a").await, "first");
}

#[tokio::test]
async fn c3_a_registered_tool_has_its_name_before_a_remote_one_until_it_is_removed() {
    let registry = registry();
    let host = offer("m.a", "host");
    registry.register(host.spec.clone(), host.policy, Some(Arc::clone(&host.handler))).unwrap();
    let errors = registry.offer(module("m"), vec![offer("m.a", "module")]);
    assert!(
        matches!(errors.as_slice(), [RegistryError::Duplicate { first: Source::Host, .. }]),
        "{errors:?}"
    );
    assert_eq!(answer(&registry, "m.a").await, "host");
    let events = events_of(&registry, || registry.remove("m.a"));
    assert_eq!(events, [("m.a".to_owned(), "removed"), ("m.a".to_owned(), "registered")]);
    assert_eq!(answer(&registry, "m.a").await, "module");
    // And registering reports that the name is taken.
    let error = registry.register(host.spec, host.policy, None).unwrap_err();
    assert!(matches!(error, RegistryError::Duplicate { first: Source::Remote(_), .. }), "{error}");
}

#[tokio::test]
async fn c3_a_stored_registration_goes_before_a_remote_tool() {
    let store = Arc::new(MemoryStore::default());
    let one = registry().attach(store.clone()).await.unwrap();
    let two = registry().attach(store.clone()).await.unwrap();
    two.registry().offer(module("m"), vec![offer("m.a", "module")]);
    one.register(ToolSpec::new("m.a", schema()), ToolPolicy::new(), None).await.unwrap();
    while *two.registry().get("m.a").unwrap().source() != Source::Host {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    one.remove("m.a").await.unwrap();
    while two.registry().get("m.a").is_none_or(|tool| !tool.is_remote()) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(answer(two.registry(), "m.a").await, "module");
}

#[tokio::test]
async fn l2_a_switch_in_the_store_waits_for_a_remote_tool() {
    let store = Arc::new(MemoryStore::default());
    let stored = registry().attach(store.clone()).await.unwrap();
    stored.registry().offer(module("m"), vec![offer("m.a", "a")]);
    stored.set_enabled("m.a", false).await.unwrap();
    let rows: Vec<StoredTool> = store.tools("default").await.unwrap();
    assert!(rows.iter().all(|row| row.spec.is_none()), "only the switch: {rows:?}");

    let later = registry().attach(store).await.unwrap();
    later.registry().offer(module("m"), vec![offer("m.a", "a")]);
    assert!(!later.registry().get("m.a").unwrap().is_enabled());
    let error = later.remove("m.a").await.unwrap_err();
    assert!(error.to_string().contains("comes from module m"), "{error}");
}

#[tokio::test]
async fn l2_a_tool_that_its_source_has_withdrawn_is_refused_in_a_running_turn() {
    let registry = registry();
    registry.offer(module("m"), vec![offer("m.a", "a")]);
    let turn = registry.select(&context());
    registry.offer(module("m"), Vec::new());
    let call = ToolCall::new("m.a", json!({})).with_origin(Origin::Native);
    assert!(turn.execute(&context(), call).await.result.is_err());
}

#[test]
fn l5_every_tenant_has_the_remote_tools_with_a_switch_of_its_own() {
    let registry = registry();
    registry.offer(module("m"), vec![offer("m.a", "a")]);
    let other = registry.for_tenant("other");
    assert!(other.get("m.a").is_some());
    let events = events_of(&other, || drop(registry.offer(module("m"), vec![offer("m.b", "b")])));
    assert_eq!(events, [("m.a".to_owned(), "removed"), ("m.b".to_owned(), "registered")]);
    other.set_enabled("m.b", false).unwrap();
    assert!(registry.get("m.b").unwrap().is_enabled());
    drop(other);
    registry.offer(module("m"), Vec::new());
    assert!(registry.is_empty());
    assert_eq!(registry.shared.common.tenants().len(), 1, "tenants that are gone are forgotten");
}

#[test]
fn l4_readers_see_all_of_the_old_set_or_all_of_the_new() {
    let registry = registry();
    let set = |version: usize| (0..50).map(|n| offer(&format!("m.v{version}_{n}"), "")).collect::<Vec<_>>();
    registry.offer(module("m"), set(0));
    std::thread::scope(|scope| {
        let writer =
            scope.spawn(|| (1..40).for_each(|version| drop(registry.offer(module("m"), set(version)))));
        while !writer.is_finished() {
            let names: Vec<_> = registry.list_all(true).iter().map(|tool| tool.name().to_owned()).collect();
            let versions: std::collections::BTreeSet<_> =
                names.iter().filter_map(|name| name.split('_').next()).collect();
            assert_eq!((names.len(), versions.len()), (50, 1), "{versions:?}");
        }
    });
}

#[tokio::test]
async fn s1_a_tool_that_lacks_something_does_not_hide_one_that_works() {
    struct Lacking(AtomicBool);
    impl Handler for Lacking {
        fn unavailable(&self, _: &ToolContext) -> Option<String> {
            self.0.load(Ordering::SeqCst).then(|| "needs a key".to_owned())
        }

        fn call<'a>(
            &'a self,
            _: &'a ToolContext,
            _: serde_json::Map<String, Value>,
        ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
            Box::pin(std::future::ready(Ok(ToolResult::new("own"))))
        }
    }
    let lacking = Arc::new(Lacking(AtomicBool::new(true)));
    let own = ConfiguredTool {
        spec: offer("m.a", "").spec,
        policy: ToolPolicy::new(),
        handler: lacking.clone(),
        file: "tools.toml".into(),
        line: 1,
    };
    let configured = ConfiguredTools { tools: vec![own], faults: Vec::new() };
    let registry = Registry::builder().without_compiled().configured(configured).build().unwrap();
    let tools = vec![offer("m.a", "far")];
    assert_eq!(registry.offer(mcp("m"), tools.clone()), []);
    assert_eq!(answer(&registry, "m.a").await, "far");
    let (replaced, by) = registry.replaced().remove(0);
    assert_eq!((replaced.name(), by.to_string()), ("m.a", "MCP server m at a-server".to_owned()));

    // The switch is the name's, whoever has it.
    registry.set_enabled("m.a", false).unwrap();
    lacking.0.store(false, Ordering::SeqCst);
    assert_eq!(registry.offer(mcp("m"), tools.clone()).len(), 1, "it can be used now and has its name back");
    assert!(registry.replaced().is_empty());
    registry.set_enabled("m.a", true).unwrap();
    assert_eq!(answer(&registry, "m.a").await, "own");

    lacking.0.store(true, Ordering::SeqCst);
    registry.offer(mcp("m"), tools);
    assert_eq!(answer(&registry, "m.a").await, "far");
    registry.offer(mcp("m"), Vec::new());
    assert!(
        matches!(registry.get("m.a").unwrap().source(), Source::Configured { .. }),
        "nothing else has the name"
    );
}
