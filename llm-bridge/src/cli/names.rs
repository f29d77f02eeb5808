//! Warnings about unknown names in settings and commands. They are likely misspelt, but may also appear later, so they are not errors.

use std::collections::BTreeSet;

use registry_core::{DEFAULT_TENANT, LOCAL_MODULE, Registry, ToolPattern, nearest, store::Store};

use toolrack_apis::names::legal;

use super::{Settings, out::tell};

/// The registered name for a provider's form of it, such as `scheduler_add_job` for `scheduler.add_job`.
pub(super) fn as_registered(registry: &Registry, name: String) -> String {
    if registry.get(&name).is_some() {
        return name;
    }
    let tools = registry.list_all(true);
    let mut meant = tools.iter().map(|tool| tool.name()).filter(|tool| legal(tool) == name);
    match (meant.next(), meant.next()) {
        (Some(only), None) => only.to_owned(),
        _ => name,
    }
}

/// The names that are known.
pub(super) struct Known {
    tools: BTreeSet<String>,
    modules: BTreeSet<String>,
    /// Modules whose tools are not known yet.
    sources: BTreeSet<String>,
}

impl Known {
    pub(super) fn new(settings: &Settings, registry: &Registry) -> Self {
        let tools = registry.list_all(true);
        let sources: BTreeSet<String> =
            settings.modules.module_services.keys().chain(settings.mcp_servers.keys()).cloned().collect();
        let modules = tools.iter().map(|tool| tool.module().to_owned());
        Self {
            modules: modules.chain([LOCAL_MODULE.to_owned()]).chain(sources.iter().cloned()).collect(),
            tools: tools.iter().map(|tool| tool.name().to_owned()).collect(),
            sources,
        }
    }

    /// Adds the modules of a tenant's stored tools.
    pub(super) async fn with_stored(mut self, store: &dyn Store, tenant: &str) -> Self {
        let tools = store.tools(tenant).await.unwrap_or_default();
        let module = |name: &str| name.split_once('.').map(|(module, _)| module.to_owned());
        self.modules.extend(
            tools.iter().filter(|tool| tool.spec.is_some()).filter_map(|tool| module(&tool.tool_name)),
        );
        self
    }

    /// Warnings about unknown modules.
    pub(super) fn unknown_modules<'n>(
        &self,
        names: impl IntoIterator<Item = &'n String>,
    ) -> impl Iterator<Item = String> {
        let unknown = names.into_iter().filter(|name| !self.modules.contains(*name));
        unknown.map(|name| unknown_name("module", name, &self.modules))
    }

    /// Warnings about unknown names in the settings.
    pub(super) fn unknown_in(&self, settings: &Settings) -> Vec<String> {
        let deferred = settings.deferred_tools.iter().filter_map(|pattern| match pattern {
            ToolPattern::Module(name) => self.unknown_modules([name]).next(),
            ToolPattern::Tool(name) => {
                let is_of_source =
                    name.split_once('.').is_some_and(|(module, _)| self.sources.contains(module));
                let is_known = is_of_source || self.tools.contains(name);
                (!is_known).then(|| unknown_name("tool", name, &self.tools))
            }
        });
        let guests = settings.modules.default_guest_modules.iter().flatten();
        let own = settings.user.allowed_modules.iter().flatten();
        let keyed = |key: &str, reported: String| format!("{key}: {reported}");
        let deferred = deferred.map(|reported| keyed("deferred_tools", reported));
        let guests = self.unknown_modules(guests).map(|reported| keyed("default_guest_modules", reported));
        let own = self.unknown_modules(own).map(|reported| keyed("user.allowed_modules", reported));
        deferred.chain(guests).chain(own).collect()
    }
}

fn unknown_name(what: &str, name: &str, known: &BTreeSet<String>) -> String {
    match nearest(name, known.iter().map(String::as_str)).first() {
        Some(meant) => format!("there is no {what} `{name}`; did you mean `{meant}`?"),
        None => format!("there is no {what} `{name}`"),
    }
}

/// Warns about a tenant without users and tools in the store.
pub(super) async fn warn_of_tenant(store: &dyn Store, tenant: &str) {
    // A failing store is reported where it is used.
    let Ok(tenants) = store.tenants().await else { return };
    let known: BTreeSet<String> = tenants.into_iter().chain([DEFAULT_TENANT.to_owned()]).collect();
    if !known.contains(tenant) {
        tell(format_args!("warning: {}", unknown_name("tenant", tenant, &known)));
    }
}
