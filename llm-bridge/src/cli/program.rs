//! What the commands work on: the registry as the settings have it, and a tenant's with its stored changes.

use std::{process::ExitCode, sync::Arc, time::Duration};

use registry_core::{
    Caller, DEFAULT_TENANT, Registry, StoredRegistry,
    store::{ManifestStore, MemoryManifests},
};
use toolrack_configured::ToolFiles;
use toolrack_remote::{mcp::oauth::Connections, module::Modules};
use toolrack_stores::schedule::{MemoryJobs, Schedule};

use super::{
    Host, Settings, caller::CallerArguments, connections, made_by_operator, mcp_servers, names,
    store::Stores, tool_changes, webhooks,
};
use crate::registering::ToolChange;

/// The settings and the host, from which registries are built.
pub(super) struct Program<'s> {
    pub(super) settings: &'s Settings,
    pub(super) host: Host,
}

impl Program<'_> {
    /// The registry; with stores, its calls are limited and audited there.
    pub(super) async fn registry(&self, stores: Option<&Stores>) -> Result<Registry, String> {
        let guard = &self.settings.guard;
        let resources = self.settings.provide((self.host.resources)(self.settings)?)?;
        let resources = resources.with_compiled(&self.settings.configuration()).await;
        let mut resources = resources.map_err(|errors| self.settings.describe_resource_errors(&errors))?;
        self.settings.refresh_documents().await;
        let in_memory = || Schedule::new(Arc::new(MemoryJobs::default()));
        resources.insert(Arc::new(stores.map_or_else(in_memory, |stores| stores.schedule.clone())));
        let mut builder = Registry::builder()
            .resources(resources)
            .approve_destructive(guard.approve_destructive)
            .approval_rules(guard.approval_rules)
            .flow(self.settings.flow)
            .approval_timeout(Duration::from_secs(guard.approval_seconds))
            .concurrency(guard.concurrency())
            .audit_arguments(guard.audit_arguments)
            .audit_mebibytes_per_user(guard.max_audit_mebibytes_per_user)
            .modules(self.settings.modules.module_services.keys())
            .defer(self.settings.deferred_tools.clone());
        let files = self.settings.tool_files().into_iter().fold(ToolFiles::new(), ToolFiles::file);
        builder = builder.configured(files.read());
        if let Some(stores) = stores {
            builder = builder
                .usage(Arc::clone(&stores.usage))
                .approvals(Arc::clone(&stores.approvals))
                .state(Arc::clone(&stores.state))
                .audit(Arc::clone(&stores.audit));
            if let Some(gate) = &self.settings.gate {
                builder = builder.gate(Arc::new(gate.gate()?));
            }
        }
        builder.build().map_err(|error| error.to_string())
    }

    /// The tenant's registry with its stored changes, whose modules have not been asked yet.
    pub(super) async fn opened(&self, tenant: &str) -> Result<Opened, String> {
        self.in_stores(&Stores::open(self.settings).await?, tenant).await
    }

    /// Runs a command with a tenant's tools, those of MCP servers included.
    pub(super) async fn with_tools(
        &self,
        tenant: &str,
        command: impl AsyncFnOnce(&Opened) -> Result<ExitCode, String>,
    ) -> Result<ExitCode, String> {
        let opened = self.opened(tenant).await?;
        opened.modules().ready().await;
        let registry = opened.registry();
        let (manifests, connections) = (opened.manifests(), opened.connections());
        mcp_servers::ahead(self.settings, registry, manifests, connections, command(&opened)).await
    }

    async fn in_stores(&self, stores: &Stores, tenant: &str) -> Result<Opened, String> {
        names::warn_of_tenant(stores.store.as_ref(), tenant).await;
        let registry = self.registry(Some(stores)).await?;
        let registry = if tenant == DEFAULT_TENANT { registry } else { registry.for_tenant(tenant) };
        let modules = self.modules(&registry, Some(stores))?;
        let stored = registry.attach(Arc::clone(&stores.store)).await?;
        let connections = connections::of(self.settings, stores)?;
        Ok(Opened { stored, manifests: Arc::clone(&stores.manifests), connections, modules })
    }

    /// The modules, not yet discovered.
    pub(super) fn modules(&self, registry: &Registry, stores: Option<&Stores>) -> Result<Modules, String> {
        let settings = self.settings.modules.clone();
        let modules = match stores {
            Some(Stores { manifest_cache, manifests, .. }) => {
                Modules::new(registry, settings, Arc::clone(manifest_cache), Arc::clone(manifests))
            }
            None => {
                let memory = Arc::new(MemoryManifests::default());
                Modules::new(registry, settings, memory.clone(), memory)
            }
        };
        modules.map_err(|error| error.to_string())
    }

    /// Changes a tool, and notifies webhooks.
    pub(super) async fn change_tool(&self, tenant: &str, change: ToolChange) -> Result<ExitCode, String> {
        let endpoints = webhooks::endpoints(self.settings)?;
        let stores = Stores::open(self.settings).await?;
        let Opened { stored, manifests, connections, modules } = &self.in_stores(&stores, tenant).await?;
        modules.ready().await;
        let changed = async {
            let recorded = change.recorded(tenant);
            let made = tool_changes::change(change, stored);
            for event in made_by_operator(&stores, Some(recorded), made).await? {
                let (endpoints, letters) = (endpoints.clone(), Arc::clone(&stores.letters));
                webhooks::tell_of(&event, stored.registry(), endpoints, letters).await?;
            }
            Ok(ExitCode::SUCCESS)
        };
        let (manifests, connections) = (Arc::clone(manifests), connections.clone());
        mcp_servers::ahead(self.settings, stored.registry(), manifests, connections, changed).await
    }
}

/// A tenant's registry with its stored changes.
pub(super) struct Opened {
    stored: StoredRegistry,
    /// The accepted tools of remote sources.
    manifests: Arc<dyn ManifestStore>,
    /// The accounts of users on MCP servers.
    connections: Connections,
    /// Refreshed until this is dropped.
    modules: Modules,
}

impl Opened {
    pub(super) fn registry(&self) -> &Registry {
        self.stored.registry()
    }

    pub(super) fn modules(&self) -> &Modules {
        &self.modules
    }

    /// The caller that a command names.
    pub(super) async fn caller(
        &self,
        named: &CallerArguments,
        settings: &Settings,
    ) -> Result<Caller, String> {
        named.caller(settings, Some(self.stored.store().as_ref())).await
    }

    pub(super) fn connections(&self) -> Connections {
        self.connections.clone()
    }

    pub(super) fn manifests(&self) -> Arc<dyn ManifestStore> {
        Arc::clone(&self.manifests)
    }
}
