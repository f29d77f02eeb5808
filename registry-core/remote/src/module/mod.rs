//! Modules: services that have tools and are asked for them over HTTP.
//!
//! A module answers `GET /manifest` with its tools and `POST /execute` with a call's result; `docs/modules.md` has both shapes.
//! [`Modules`] asks all of them, [offers](registry_core::Registry::offer) the registry what they have, and keeps it as they come and go:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use registry_core::{Registry, store::MemoryManifests};
//! use toolrack_remote::module::{ModuleSettings, Modules, ModulesSettings};
//!
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::builder().build()?;
//! let settings = ModulesSettings::default().with_module("research", ModuleSettings::new("http://research:8000"));
//! let manifests = Arc::new(MemoryManifests::default());
//! let modules = Modules::new(&registry, settings, manifests.clone(), manifests)?;
//! modules.ready().await;
//! for report in modules.reports() {
//!     println!("{}: {} tools", report.source.name, report.source.tools);
//! }
//! # Ok(())
//! # }
//! ```

mod call;
mod client;
mod discovery;
mod intake;
mod manifest;
mod reply;
mod report;
mod serve;
mod settings;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use registry_core::{
    Registry, Remote, RemoteKind,
    store::{ManifestCache, ManifestStore},
};
use tokio::{sync::OnceCell, task::JoinSet};

pub use self::{
    call::Hops,
    client::{APPROVAL_WAIT_HEADER, HOPS_HEADER, MAX_MANIFEST, MAX_REPLY, READS_HEADER, reads_of},
    discovery::RETRY,
    intake::MAX_HOPS,
    manifest::{ManifestParameter, ManifestTool},
    report::ModuleReport,
    serve::ServedManifest,
    settings::{ModuleSettings, ModulesSettings},
};
use self::{client::Client, discovery::Module, intake::Rules, settings::wrong};
use crate::{
    acceptance::AcceptError,
    settings::SettingsError,
    source::{RemoteSource, SourceSettings},
};

/// How often is looked whether a module is to be asked again, beside each request.
const TICK: Duration = Duration::from_secs(15);

/// The modules of a registry. Cheap to clone; they are asked by themselves until the last clone is dropped, and their tools stay.
#[derive(Clone, derive_more::Debug)]
#[debug("Modules({:?})", shared.by_name.keys())]
pub struct Modules {
    shared: Arc<Shared>,
}

struct Shared {
    settings: ModulesSettings,
    by_name: BTreeMap<String, Arc<Module>>,
    loaded: OnceCell<()>,
    started: OnceCell<()>,
    /// Whether somebody is asking those that are due.
    is_asking: AtomicBool,
}

impl Modules {
    /// The modules of the settings, for a registry and those of its other tenants. Nothing is asked before it is
    /// [needed](Self::ready). The cache says for how long a manifest is good; the store keeps what a restart must not forget,
    /// above all what was accepted of modules that are pinned.
    ///
    /// # Errors
    /// What is wrong with a module's settings, or with the system's TLS.
    pub fn new(
        registry: &Registry,
        settings: ModulesSettings,
        cache: Arc<dyn ManifestCache>,
        store: Arc<dyn ManifestStore>,
    ) -> Result<Self, SettingsError> {
        settings.check()?;
        let http = client::connections().map_err(|error| SettingsError {
            setting: "module_services".to_owned(),
            message: format!("the system's TLS cannot be set up: {error}"),
        })?;
        let mut by_name = BTreeMap::new();
        for (name, module) in &settings.module_services {
            let url = module.parse_url().map_err(wrong(name))?;
            let key = module.find_key().map_err(wrong(name))?;
            let address = url.as_str().trim_end_matches('/').into();
            let remote = Remote { kind: RemoteKind::Module, name: name.as_str().into(), address };
            let timeout = settings.timeout_of(name, module);
            let client = Arc::new(Client::new(Arc::clone(&remote.name), http.clone(), url, key));
            let source = SourceSettings {
                remote,
                breaker: settings.breaker,
                concurrency: module.concurrency,
                timeout,
                pin: module.pin,
            };
            let source = RemoteSource::new(registry, Arc::clone(&store), client.clone(), source);
            let rules = Rules { module: module.clone(), timeout };
            let (cache, store) = (Arc::clone(&cache), Arc::clone(&store));
            let module = Module::new(source, client, rules, settings.discovery_timeout, cache, store);
            by_name.insert(name.clone(), Arc::new(module));
        }
        let by_default = ModulesSettings::default().slow_modules;
        let given = settings.slow_modules.difference(&by_default);
        for name in given.filter(|name| !by_name.contains_key(*name)) {
            tracing::warn!(module = name, "slow_module_unknown");
        }
        let shared = Shared {
            settings,
            by_name,
            loaded: OnceCell::new(),
            started: OnceCell::new(),
            is_asking: AtomicBool::new(false),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The settings.
    pub fn settings(&self) -> &ModulesSettings {
        &self.shared.settings
    }

    /// Sees to it that the modules' tools are in the registry, as far as they can be had. To be awaited before tools are listed
    /// or called for somebody.
    ///
    /// The first time it takes what the cache has, and waits for the modules only where that is nothing at all. From then on it
    /// waits only for modules that were not there yet: they are asked again, once for all who wait, and less often each time. What is too old, or failed a while ago, is asked for in the background.
    pub async fn ready(&self) {
        self.shared.started.get_or_init(|| Shared::start(&self.shared)).await;
        Shared::ask_behind(&self.shared);
        if self.shared.by_name.values().any(|module| module.is_missing()) {
            self.shared.each(|module| async move { module.ask_if_missing().await }).await;
        }
    }

    /// Asks every module for its tools now, whatever the cache has.
    pub async fn refresh(&self) -> Vec<ModuleReport> {
        Shared::load(&self.shared).await;
        self.shared.each(|module| async move { module.refresh().await }).await;
        self.reports()
    }

    /// What is known of every module, by name; nobody is asked.
    pub fn reports(&self) -> Vec<ModuleReport> {
        self.shared.by_name.values().map(|module| module.report()).collect()
    }

    /// Accepts a module's tools as they are known here, where they are those that somebody has looked at: those of the digest in
    /// the module's [report](Self::reports).
    ///
    /// # Errors
    /// When there is no such module, its tools have another digest by now, or the store did not keep it. Then nothing has changed.
    pub async fn accept(&self, module: &str, digest: &str) -> Result<ModuleReport, AcceptError> {
        let known = self.shared.by_name.get(module);
        let known = known.ok_or_else(|| AcceptError::Unknown { kind: "module", name: module.to_owned() })?;
        Shared::load(&self.shared).await;
        known.source.accept(digest).await?;
        Ok(known.report())
    }
}

impl Shared {
    async fn start(this: &Arc<Self>) {
        Self::load(this).await;
        if !this.by_name.values().any(|module| module.source.has_tools()) {
            this.each(|module| async move { module.ask_if_due().await }).await;
        }
    }

    /// Takes what the cache has, once.
    async fn load(this: &Arc<Self>) {
        let load = || async {
            this.each(|module| async move { module.load().await }).await;
            tokio::spawn(Self::look_again(Arc::downgrade(this)));
        };
        this.loaded.get_or_init(load).await;
    }

    async fn look_again(this: Weak<Self>) {
        loop {
            tokio::time::sleep(TICK).await;
            let Some(this) = this.upgrade() else { return };
            Self::ask_behind(&this);
        }
    }

    /// Asks those that are due, without anybody waiting for it.
    fn ask_behind(this: &Arc<Self>) {
        if !this.by_name.values().any(|module| module.is_due()) || this.is_asking.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let this = Arc::clone(this);
        tokio::spawn(async move {
            this.each(|module| async move { module.ask_if_due().await }).await;
            this.is_asking.store(false, Ordering::Release);
        });
    }

    /// Does something with all modules at once, each in a task of its own, so that a fault in one reaches no other.
    async fn each<F: Future<Output = ()> + Send + 'static>(&self, run: impl Fn(Arc<Module>) -> F) {
        let mut tasks: JoinSet<()> = self.by_name.values().map(|module| run(Arc::clone(module))).collect();
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "module_discovery_failed");
            }
        }
    }
}
