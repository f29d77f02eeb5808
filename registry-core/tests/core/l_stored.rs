//! Registries that share a store, and tenants that share nothing: requirements L2, L5, B10.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::FutureExt;
use registry_core::{
    BoxFuture, Caller, Change, ChangeError, ErrorKind, Handler, Permission, Registry, RegistryError,
    RegistryEvent, StoredRegistry, ToolCall, ToolLimits, ToolPolicy, ToolResult, ToolSpec,
    guard::audit::MemoryAudit,
    handler_fn,
    store::{MemoryStore, Store, StoreError, StoreResult, StoredTool},
};
use serde_json::json;
use tokio::sync::broadcast::Receiver;

use crate::store_behind::{Asked, Before, StoreBehind};

/// A tool that is compiled in.
#[registry_core::tool(version = "2.0.0")]
async fn l_compiled() -> &'static str {
    "compiled"
}

fn registry() -> Registry {
    Registry::builder().build().unwrap()
}

fn spec(version: &str) -> ToolSpec {
    ToolSpec { version: Some(version.into()), ..ToolSpec::new("f", json!({"type": "object"})) }
}

fn answers(text: &'static str) -> Option<Arc<dyn Handler>> {
    Some(handler_fn(move |_, _| async move { Ok(ToolResult::new(text)) }))
}

async fn call(registry: &Registry, name: &str) -> Result<String, ErrorKind> {
    let context = registry.context(Caller::new("ada", Permission::User));
    let outcome = registry.execute(&context, ToolCall::new(name, json!({}))).await;
    match &outcome.result {
        Ok(_) => Ok(outcome.for_model().to_string()),
        Err(error) => Err(error.kind()),
    }
}

/// Waits until it is so, and not longer than a change may take to be seen.
async fn within_a_second(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(1), "not within a second");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn received(events: &mut Receiver<RegistryEvent>) -> Vec<(String, Change, bool)> {
    std::iter::from_fn(|| events.try_recv().ok())
        .map(|event| (event.tool, event.change, event.elsewhere))
        .collect()
}

/// Makes a store fail, and lets something else happen first when a tool is put into it.
#[derive(Default)]
struct Trouble {
    fails: AtomicBool,
    meanwhile: Mutex<Option<BoxFuture<'static, ()>>>,
}

#[async_trait]
impl Before for Trouble {
    async fn before(&self, asked: Asked<'_>) -> StoreResult<()> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("the disk is gone"));
        }
        let meanwhile = self.meanwhile.lock().unwrap().take_if(|_| asked == Asked::Put);
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        Ok(())
    }
}

type Shaky = StoreBehind<Trouble>;

async fn put(store: &MemoryStore, tool: StoredTool) {
    assert!(store.put_tool("default", tool, store.revision().await.unwrap()).await.unwrap());
}

async fn attached(store: &Arc<MemoryStore>) -> StoredRegistry {
    registry().attach(store.clone()).await.unwrap()
}

#[tokio::test]
async fn b10_what_one_server_switches_off_the_other_refuses_within_a_second() {
    let store = Arc::new(MemoryStore::default());
    let (one, two) = (attached(&store).await, attached(&store).await);
    let mut events = two.registry().subscribe();
    assert_eq!(call(two.registry(), "l_compiled").await.as_deref(), Ok("compiled"));
    one.set_enabled("l_compiled", false).await.unwrap();
    assert_eq!(call(one.registry(), "l_compiled").await, Err(ErrorKind::Unavailable));
    within_a_second(|| !two.registry().get("l_compiled").unwrap().is_enabled()).await;
    assert_eq!(call(two.registry(), "l_compiled").await, Err(ErrorKind::Unavailable));
    two.set_enabled("l_compiled", true).await.unwrap();
    within_a_second(|| one.registry().get("l_compiled").unwrap().is_enabled()).await;
    let name = || "l_compiled".to_owned();
    // The server that makes a change reports it as its own, once, whatever the store says after that.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(received(&mut events), [(name(), Change::Disabled, true), (name(), Change::Enabled, false)]);
}

#[tokio::test]
async fn b10_registrations_and_removals_reach_the_other_server() {
    let store = Arc::new(MemoryStore::default());
    let (one, two) = (attached(&store).await, attached(&store).await);
    let mut events = two.registry().subscribe();
    one.register(spec("1.0.0"), ToolPolicy::new(), answers("one")).await.unwrap();
    within_a_second(|| two.registry().get("f").is_some()).await;
    // Code does not travel: there it is listed only, until it is registered with its own.
    assert_eq!(call(two.registry(), "f").await, Err(ErrorKind::Unavailable));
    two.register(spec("1.0.0"), ToolPolicy::new(), answers("two")).await.unwrap();
    assert_eq!(call(one.registry(), "f").await.as_deref(), Ok("one"));
    assert_eq!(call(two.registry(), "f").await.as_deref(), Ok("two"));
    assert_eq!(one.registry().get("f").unwrap().created_at(), two.registry().get("f").unwrap().created_at());
    // The rules hold across servers.
    let other = ToolSpec { tags: vec!["new".into()], ..spec("1.0.0") };
    let error = two.register(other, ToolPolicy::new(), None).await.unwrap_err();
    assert!(matches!(error, ChangeError::Rule(RegistryError::VersionUnchanged { .. })), "{error}");
    one.remove("f").await.unwrap();
    one.remove("f").await.unwrap();
    within_a_second(|| two.registry().get("f").is_none()).await;
    let f = || "f".to_owned();
    assert_eq!(received(&mut events), [(f(), Change::Registered, true), (f(), Change::Removed, true)]);
}

#[tokio::test]
async fn b10_a_change_is_weighed_against_what_the_store_says_now() {
    let store = Arc::new(MemoryStore::default());
    let (one, two) = (attached(&store).await, attached(&store).await);
    // Without a pause: the second server has had no time to follow.
    one.register(spec("1.0.0"), ToolPolicy::new(), None).await.unwrap();
    let other = ToolSpec { tags: vec!["new".into()], ..spec("1.0.0") };
    two.register(other, ToolPolicy::new(), None).await.unwrap_err();
    one.set_enabled("f", false).await.unwrap();
    two.set_enabled("f", true).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(one.registry().get("f").unwrap().is_enabled() && two.registry().get("f").unwrap().is_enabled());
}

#[tokio::test]
async fn b10_a_change_made_elsewhere_between_reading_and_writing_is_not_undone() {
    let shaky = Arc::new(Shaky::default());
    let (one, two) = (registry().attach(shaky.clone()).await.unwrap(), attached(&shaky.kept).await);
    let kept = async || shaky.kept.tools("default").await.unwrap()[0].clone();
    let meanwhile = |change: BoxFuture<'static, ()>| *shaky.before.meanwhile.lock().unwrap() = Some(change);
    let register = |spec: ToolSpec| -> BoxFuture<'static, ()> {
        let two = two.clone();
        Box::pin(async move { drop(two.register(spec, ToolPolicy::new(), None).await.unwrap()) })
    };
    one.register(spec("1.0.0"), ToolPolicy::new(), None).await.unwrap();

    meanwhile(register(spec("2.0.0")));
    one.set_enabled("f", false).await.unwrap();
    let row = kept().await;
    assert_eq!((row.spec, row.enabled), (Some(spec("2.0.0")), false));
    let tool = one.registry().get("f").unwrap();
    assert_eq!((tool.spec(), tool.is_enabled()), (&spec("2.0.0"), false));

    // The rules are those of what is there by then.
    let other = ToolSpec { tags: vec!["new".into()], ..spec("3.0.0") };
    meanwhile(register(spec("3.0.0")));
    let error = one.register(other, ToolPolicy::new(), None).await.unwrap_err();
    assert!(matches!(error, ChangeError::Rule(RegistryError::VersionUnchanged { .. })), "{error}");
    assert_eq!(kept().await.spec, Some(spec("3.0.0")));

    let removed = two.clone();
    meanwhile(Box::pin(async move { removed.remove("f").await.unwrap() }));
    let error = one.set_enabled("f", false).await.unwrap_err();
    assert!(matches!(error, ChangeError::Rule(RegistryError::Unknown { .. })), "{error}");
    assert!(shaky.kept.tools("default").await.unwrap().is_empty());
}

#[tokio::test]
async fn l2_a_restart_finds_what_was_registered_and_switched() {
    let store = Arc::new(MemoryStore::default());
    let first = attached(&store).await;
    first.register(spec("1.0.0"), ToolPolicy::new(), answers("first")).await.unwrap();
    first.set_enabled("f", false).await.unwrap();
    first.set_enabled("l_compiled", false).await.unwrap();
    let before = first.registry().get("f").unwrap().registration();
    drop(first);

    let registry = registry();
    let mut events = registry.subscribe();
    let second = registry.attach(store.clone()).await.unwrap();
    assert_eq!(received(&mut events), []);
    assert_eq!(registry.get("f").unwrap().registration(), before);
    assert!(!registry.get("l_compiled").unwrap().is_enabled());
    // The code comes back with the same spec, and the switch stays the operator's.
    second.register(spec("1.0.0"), ToolPolicy::new(), answers("second")).await.unwrap();
    assert!(!registry.get("f").unwrap().is_enabled());
    second.set_enabled("f", true).await.unwrap();
    assert_eq!(call(&registry, "f").await.as_deref(), Ok("second"));
    // With another version it is a new registration.
    second.set_enabled("f", false).await.unwrap();
    second.register(spec("2.0.0"), ToolPolicy::new(), answers("third")).await.unwrap();
    assert_eq!(call(&registry, "f").await.as_deref(), Ok("third"));
    let row = &store.tools("default").await.unwrap()[0];
    assert!(row.enabled && row.spec.as_ref().unwrap().version.as_deref() == Some("2.0.0"));
}

#[tokio::test]
async fn l2_limits_that_an_operator_sets_hold_on_all_servers_at_once_and_for_tools_that_come_later() {
    let store = Arc::new(MemoryStore::default());
    let (first, second) = (registry(), registry());
    let (first, second) =
        (first.attach(store.clone()).await.unwrap(), second.attach(store.clone()).await.unwrap());
    let own = ToolPolicy { daily_limit: 1, ..ToolPolicy::new() };
    first.register(spec("1.0.0"), own, answers("ran")).await.unwrap();
    second.registry().register(spec("1.0.0"), own, answers("ran")).unwrap();
    let limited = Err(ErrorKind::ToolRateLimited);
    assert_eq!(call(second.registry(), "f").await.as_deref(), Ok("ran"));
    assert_eq!(call(second.registry(), "f").await, limited);
    let three = ToolLimits { daily_limit: Some(3), cooldown_seconds: None };
    let registration = first.set_limits("f", three).await.unwrap();
    assert_eq!(registration.limits, three);
    let tool = second.registry().get("f").unwrap();
    within_a_second(|| tool.daily_limit() == 3).await;
    for _ in 0..2 {
        assert_eq!(call(second.registry(), "f").await.as_deref(), Ok("ran"));
    }
    assert_eq!(call(second.registry(), "f").await, limited);
    // Neither a switch nor another version takes them away.
    first.set_enabled("f", false).await.unwrap();
    first.set_enabled("f", true).await.unwrap();
    first.register(spec("1.1.0"), own, answers("ran")).await.unwrap();
    assert_eq!(first.registry().get("f").unwrap().daily_limit(), 3);
    // A server that starts later has them, for a tool that comes later still.
    let third = registry().attach(store.clone()).await.unwrap();
    assert_eq!(third.registry().get("f").unwrap().limits(), three);
    let pause = ToolLimits { daily_limit: Some(0), cooldown_seconds: Some(60) };
    first.registry().register(ToolSpec::new("late", json!({"type": "object"})), own, answers("ran")).unwrap();
    first.set_limits("late", pause).await.unwrap();
    let late = ToolSpec::new("late", json!({"type": "object"}));
    let fourth = registry().attach(store.clone()).await.unwrap();
    let late = fourth.registry().register(late, own, answers("ran")).unwrap();
    assert_eq!((late.daily_limit(), late.cooldown()), (0, Duration::from_secs(60)));
    assert_eq!(call(fourth.registry(), "late").await.as_deref(), Ok("ran"));
    assert_eq!(call(fourth.registry(), "late").await, limited);
    // Without them the tool has its own again.
    first.set_limits("f", ToolLimits::default()).await.unwrap();
    within_a_second(|| tool.daily_limit() == 1).await;
    assert_eq!(first.registry().get("f").unwrap().daily_limit(), 1);
    assert_eq!(
        first.set_limits("no.such", three).await.unwrap_err(),
        ChangeError::Rule(RegistryError::Unknown { name: "no.such".into() })
    );
}

fn row(name: &str, enabled: bool, spec: Option<ToolSpec>) -> StoredTool {
    StoredTool {
        tool_name: name.into(),
        enabled,
        limits: ToolLimits::default(),
        spec,
        created_at: "2026-03-01T12:00:00Z".parse().unwrap(),
    }
}

#[tokio::test]
async fn l2_what_is_compiled_replaces_what_was_stored_and_what_is_gone_does_no_harm() {
    let store = Arc::new(MemoryStore::default());
    let old = ToolSpec { version: Some("1.0.0".into()), ..ToolSpec::new("l_compiled", json!({})) };
    let misnamed = ToolSpec::new("other", json!({}));
    for row in
        [row("l_compiled", false, Some(old)), row("gone", false, None), row("misnamed", true, Some(misnamed))]
    {
        put(&store, row).await;
    }
    let stored = attached(&store).await;
    let registry = stored.registry();
    let tool = registry.get("l_compiled").unwrap();
    assert_eq!((tool.spec().version.as_deref(), tool.is_enabled()), (Some("2.0.0"), false));
    for absent in ["gone", "misnamed", "other"] {
        assert!(registry.get(absent).is_none(), "{absent}");
    }
    let unknown = stored.set_enabled("gone", true).await.unwrap_err();
    assert_eq!(unknown, ChangeError::Rule(RegistryError::Unknown { name: "gone".into() }));
    // The switch of a tool that comes later, such as a remote one, waits for it.
    let mut events = registry.subscribe();
    registry.register(ToolSpec::new("gone", json!({})), ToolPolicy::new(), None).unwrap();
    assert!(!registry.get("gone").unwrap().is_enabled());
    let changes: Vec<Change> = received(&mut events).into_iter().map(|(_, change, _)| change).collect();
    assert_eq!(changes, [Change::Registered, Change::Disabled]);
    assert_eq!(store.tools("default").await.unwrap().len(), 3);
    // A compiled tool is switched off, not removed.
    let error = stored.remove("l_compiled").await.unwrap_err().to_string();
    assert!(error.contains("l_stored.rs") && error.contains("switch it off"), "{error}");
    stored.set_enabled("l_compiled", true).await.unwrap();
    let rows = store.tools("default").await.unwrap();
    let kept = rows.iter().find(|row| row.tool_name == "l_compiled").unwrap();
    assert!(kept.enabled && kept.spec.is_none());
}

#[tokio::test]
async fn l5_what_the_store_does_not_keep_is_not_done() {
    let store = Arc::new(Shaky::default());
    let stored = registry().attach(store.clone()).await.unwrap();
    stored.register(spec("1.0.0"), ToolPolicy::new(), answers("one")).await.unwrap();
    let mut events = stored.registry().subscribe();
    store.before.fails.store(true, Ordering::SeqCst);
    let failed = ChangeError::Store(StoreError::unavailable("the disk is gone"));
    assert!(failed.to_string().contains("nothing was changed"), "{failed}");
    assert_eq!(stored.set_enabled("f", false).await, Err(failed.clone()));
    assert_eq!(stored.register(spec("2.0.0"), ToolPolicy::new(), None).await.unwrap_err(), failed);
    assert_eq!(stored.remove("f").await, Err(failed));
    // Reading and calling go on.
    assert_eq!(call(stored.registry(), "f").await.as_deref(), Ok("one"));
    assert_eq!(received(&mut events), []);
    assert!(registry().attach(store.clone()).await.is_err());
    store.before.fails.store(false, Ordering::SeqCst);
    stored.set_enabled("f", false).await.unwrap();
    assert_eq!(call(stored.registry(), "f").await, Err(ErrorKind::Unavailable));
}

#[tokio::test]
async fn l5_a_change_that_was_begun_is_made_although_nobody_waits_for_it() {
    let store = Arc::new(MemoryStore::default());
    let stored = attached(&store).await;
    let mut events = stored.registry().subscribe();
    // Polled once and dropped, as by a server whose client has gone.
    assert_eq!(stored.set_enabled("l_compiled", false).now_or_never(), None);
    within_a_second(|| !stored.registry().get("l_compiled").unwrap().is_enabled()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(received(&mut events), [("l_compiled".into(), Change::Disabled, false)]);
}

#[tokio::test]
async fn b10_a_store_that_comes_back_is_followed_again() {
    let store = Arc::new(Shaky::default());
    let (one, two) =
        (registry().attach(store.clone()).await.unwrap(), registry().attach(store.clone()).await.unwrap());
    store.before.fails.store(true, Ordering::SeqCst);
    // Another server, which still reaches it.
    put(&store.kept, row("l_compiled", false, None)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(one.registry().get("l_compiled").unwrap().is_enabled());
    store.before.fails.store(false, Ordering::SeqCst);
    for stored in [&one, &two] {
        within_a_second(|| !stored.registry().get("l_compiled").unwrap().is_enabled()).await;
    }
}

#[tokio::test]
async fn b10_a_registry_that_is_gone_follows_nothing() {
    let store = Arc::new(MemoryStore::default());
    let stored = attached(&store).await;
    let registry = stored.registry().clone();
    drop(stored.clone());
    put(&store, row("l_compiled", false, None)).await;
    within_a_second(|| !registry.get("l_compiled").unwrap().is_enabled()).await;
    drop(stored);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(Arc::strong_count(&store), 1);
    put(&store, row("l_compiled", true, None)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!registry.get("l_compiled").unwrap().is_enabled());
}

#[tokio::test]
async fn l5_tenants_share_the_compiled_tools_and_nothing_else() {
    let store = Arc::new(MemoryStore::default());
    let audit = Arc::new(MemoryAudit::new(8));
    let acme = Registry::builder().audit(audit.clone()).build().unwrap().for_tenant("acme");
    let globex = acme.for_tenant("globex");
    let (acme, globex) =
        (acme.attach(store.clone()).await.unwrap(), globex.attach(store.clone()).await.unwrap());
    let mut events = globex.registry().subscribe();
    let limited = ToolPolicy { daily_limit: 1, ..ToolPolicy::new() };
    acme.register(spec("1.0.0"), limited, answers("acme")).await.unwrap();
    acme.set_enabled("l_compiled", false).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(
        globex.registry().get("f").is_none() && globex.registry().get("l_compiled").unwrap().is_enabled()
    );
    assert_eq!(call(globex.registry(), "f").await, Err(ErrorKind::ToolNotFound));
    assert_eq!(received(&mut events), []);
    // The same name with another spec is nobody else's business, and neither is its limit.
    let own = ToolSpec { tags: vec!["globex".into()], ..spec("1.0.0") };
    globex.register(own, limited, answers("globex")).await.unwrap();
    for (stored, answer) in [(&acme, "acme"), (&globex, "globex")] {
        assert_eq!(call(stored.registry(), "f").await.as_deref(), Ok(answer));
        assert_eq!(call(stored.registry(), "f").await, Err(ErrorKind::ToolRateLimited));
    }
    globex.remove("f").await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(acme.registry().get("f").is_some());
    assert_eq!(
        (store.tools("acme").await.unwrap().len(), store.tools("globex").await.unwrap().len()),
        (2, 0)
    );
    // Each record says whose it is.
    let records = audit.records();
    let of = |tenant: &str| records.iter().filter(|record| record.tenant == tenant).count();
    assert_eq!((of("acme"), of("globex"), records.len()), (3, 4, 7));
    // A restart keeps them apart.
    let again = registry().for_tenant("acme").attach(store.clone()).await.unwrap();
    assert!(!again.registry().get("l_compiled").unwrap().is_enabled() && again.registry().get("f").is_some());
}
