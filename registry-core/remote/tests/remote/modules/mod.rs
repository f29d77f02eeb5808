//! Modules over HTTP: requirements M1 to M9 and M11, and what a hostile one may try.

mod discovery;
mod execution;
mod hostile;
mod logs;
mod peer;
mod pins;
mod python;
mod serve;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};
use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use registry_core::{
    Caller, Permission, Registry, ToolCall, ToolContext, ToolError, ToolOutcome,
    clock::Clock,
    store::{Kept, ManifestCache, ManifestStore, StoreError, StoreResult},
};
use serde_json::json;
use toolrack_remote::module::{ModuleSettings, Modules, ModulesSettings};

/// A clock that a test moves.
struct HandClock(Mutex<Timestamp>);

impl HandClock {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new("2026-03-01T12:00:00Z".parse().unwrap())))
    }

    fn advance(&self, seconds: u64) {
        let mut now = self.0.lock().unwrap();
        *now = now.checked_add(Duration::from_secs(seconds)).unwrap();
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A cache that outlives a server, whose hour ends when a test says so, and that can be away.
#[derive(Default)]
struct TestCache {
    fresh: Mutex<HashMap<String, String>>,
    kept: Mutex<HashMap<(String, Kept), String>>,
    is_down: AtomicBool,
}

impl TestCache {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The hour is over.
    fn expire(&self) {
        self.fresh.lock().unwrap().clear();
    }

    /// Somebody has emptied it.
    fn empty(&self) {
        self.expire();
        self.kept.lock().unwrap().clear();
    }

    fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    fn put_text(&self, module: &str, manifest: String) {
        self.fresh.lock().unwrap().insert(module.to_owned(), manifest);
    }

    fn check(&self) -> StoreResult<()> {
        if self.is_down.load(Ordering::SeqCst) {
            Err(StoreError::unavailable("the cache is away"))
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl ManifestCache for TestCache {
    async fn get(&self, module: &str) -> StoreResult<Option<String>> {
        self.check().map(|()| self.fresh.lock().unwrap().get(module).cloned())
    }

    async fn put(&self, module: &str, manifest: &str) -> StoreResult<()> {
        self.check().map(|()| self.put_text(module, manifest.to_owned()))
    }
}

#[async_trait]
impl ManifestStore for TestCache {
    async fn kept(&self, module: &str, what: Kept) -> StoreResult<Option<String>> {
        let key = (module.to_owned(), what);
        self.check().map(|()| self.kept.lock().unwrap().get(&key).cloned())
    }

    async fn keep(&self, module: &str, what: Kept, text: &str) -> StoreResult<()> {
        let (key, text) = ((module.to_owned(), what), text.to_owned());
        self.check().map(|()| drop(self.kept.lock().unwrap().insert(key, text)))
    }
}

fn registry(clock: &Arc<HandClock>) -> Registry {
    Registry::builder().without_compiled().clock(clock.clone()).build().unwrap()
}

/// A server with modules, quick to give up.
struct Server {
    registry: Registry,
    modules: Modules,
    clock: Arc<HandClock>,
    cache: Arc<TestCache>,
}

fn quick(modules: &[(&str, ModuleSettings)]) -> ModulesSettings {
    ModulesSettings {
        module_services: modules.iter().map(|(name, module)| ((*name).to_owned(), module.clone())).collect(),
        discovery_timeout: Duration::from_millis(500),
        module_timeout: Duration::from_millis(500),
        ..ModulesSettings::default()
    }
}

impl Server {
    fn start(settings: ModulesSettings, clock: &Arc<HandClock>, cache: &Arc<TestCache>) -> Self {
        let registry = registry(clock);
        let modules = Modules::new(&registry, settings, cache.clone(), cache.clone()).unwrap();
        Self { registry, modules, clock: clock.clone(), cache: cache.clone() }
    }

    fn new(settings: ModulesSettings) -> Self {
        Self::start(settings, &HandClock::new(), &TestCache::new())
    }

    /// One module at that address, discovered.
    async fn with(name: &str, url: &str) -> Self {
        let server = Self::new(quick(&[(name, ModuleSettings::new(url))]));
        server.modules.ready().await;
        server
    }

    /// What names a module's tools as they are now.
    fn digest(&self, module: &str) -> String {
        let report = self.modules.reports().into_iter().find(|report| report.source.name == module);
        report.unwrap().source.digest
    }

    fn names(&self) -> Vec<String> {
        self.registry.list_all(true).iter().map(|tool| tool.name().to_owned()).collect()
    }

    async fn call(&self, name: &str) -> ToolOutcome {
        self.registry.execute(&ada(), ToolCall::new(name, json!({}))).await
    }

    async fn error(&self, name: &str) -> ToolError {
        self.call(name).await.result.unwrap_err()
    }
}

fn user(level: Permission) -> ToolContext {
    ToolContext::new(Caller::new("ada", level))
}

fn ada() -> ToolContext {
    user(Permission::User)
}

/// Waits for something that happens behind.
async fn until(what: impl Fn() -> bool) {
    let waited = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waited).await.unwrap();
}
